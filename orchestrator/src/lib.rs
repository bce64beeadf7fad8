//! The orchestrator: brings messages from chat frontends to the engine and answers back.
//!
//! Read in this order: [`grpc`] is the door. [`session`] decides who is worked
//! for, [`turn`] runs one question to its end, [`engine`] is who answers it and
//! [`engine::opencode`] how. [`delivery`] and [`hub`] bring the answer out.
//! [`command`] is what people type behind a slash, [`context`] what the model is
//! told besides.

pub mod command;
pub mod config;
pub mod context;
pub mod delivery;
pub mod engine;
pub mod grpc;
pub mod hub;
pub mod notice;
mod run;
pub mod session;
pub mod status;
pub mod turn;

pub use run::{Args, Orchestrator, Parts, run};
