//! The engine: OpenCode, somebody else's program, installed, confined and told what it may do.
//!
//! Read [`settings`] first: what an operator can say about it. [`model`] is
//! which language model answers. [`install`] fetches the pinned version,
//! [`config`] writes what the engine is told, [`launch`] puts the command
//! together that starts it, inside the walls of [`sandbox`]. [`health`] asks it
//! how it is.

pub mod config;
pub mod health;
pub mod install;
pub mod launch;
pub mod model;
pub mod sandbox;
pub mod settings;
