//! OpenPact's MCP server: tools for an assistant, and the walls around them.
//!
//! Read [`gate`] first: it's the one function through which every call goes.
//! [`tool`] says what a tool is, [`tools`] are those there are, [`workspace`]
//! is the folder they see. [`server`] is MCP, [`stdio`] and [`http`] are how it
//! gets in and out.

pub mod caller;
mod command;
pub mod config;
pub mod confine;
pub mod edit;
pub mod error;
pub mod gate;
pub mod http;
mod message;
pub mod policy;
pub mod server;
mod start;
pub mod stdio;
pub mod token;
pub mod tool;
pub mod tools;
pub mod workspace;

pub use command::Command;
pub use start::main;
