//! What every OpenPact process does the same way.
//!
//! Read [`process`] first: it's how a binary starts and ends. [`settings`] is
//! how it reads `config.yaml`, [`layout`] where things are on disk, [`key`] how
//! processes know each other, [`redact`] what stands between a secret and
//! everything that is written or sent.

pub mod error;
pub mod file;
pub mod id;
pub mod key;
pub mod layout;
pub mod process;
pub mod redact;
pub mod settings;
mod telemetry;

pub use error::chain;
pub use process::{Process, Threads, Usage, until_stopped};
pub use telemetry::{divert_logs, redact_logs};
