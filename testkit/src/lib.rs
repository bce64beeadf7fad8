//! What OpenPact is tested with: fakes that keep the real services' rules, and
//! a harness for real processes.
//!
//! Read [`llm`] first: a language model that says what a script tells it to.
//! [`engine`] is OpenCode as far as the orchestrator knows it, [`chat`] a chat
//! platform behind a frontend, [`harness`] starts OpenPact's own programs and
//! leaves none behind.
//!
//! Each fake listens on loopback at a port of its own, remembers what it was
//! asked, and says what is wrong when it's used in a way the real thing would
//! refuse. Dropping it ends it.

pub mod chat;
pub mod engine;
pub mod harness;
mod http;
pub mod llm;
mod wait;

pub use openpact_runtime::layout::Layout;
pub use wait::NotSeen;
