//! What an operator types: `openpact up`, `chat`, `send`, `status`, `doctor`, …
//!
//! Read [`command`] first: the commands and what runs them. [`up`] starts and
//! keeps everything; [`engine`] is how somebody else's program is fetched,
//! confined and told what it may do; [`child`] is what a started process does
//! first; [`chat`] and [`send`] talk to what runs; [`doctor`] looks at everything and says what to do.

pub mod chat;
pub mod child;
pub mod command;
pub mod config;
pub mod control;
pub mod doctor;
pub mod engine;
mod environment;
mod hub;
pub mod send;
pub mod status;
pub mod up;
pub mod workspace;

pub use command::main;
