//! Starts OpenPact's own programs for a test, and leaves none behind.
//!
//! [`Stack`] is all of it, as `openpact up` runs it; [`Program`] is any single
//! one. Ports are free ones, folders temporary; whoever waits has a deadline;
//! what a program wrote is printed when the test fails.

mod environment;
mod orphan;
mod output;
mod process;
mod stack;

pub use environment::{EngineMissing, NotBuilt, binary, engine_binary};
pub use process::{Ended, Process, Program, StartError};
pub use stack::{Builder, Output, Stack, StackError};
