//! The server as its clients meet it: the real binary, over stdio and HTTP.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]
#![expect(clippy::needless_pass_by_value, reason = "arguments are written where they are passed")]

mod driver;

mod audit;
mod edit;
mod files;
mod framing;
mod handshake;
mod http;
mod lifetime;
mod memory;
mod parallel;
mod policy;
mod read;
mod search;
mod start;
mod tool_list;
