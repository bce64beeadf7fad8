//! The orchestrator process. What it does is in the library.

use std::process::ExitCode;

use clap::Parser as _;
use openpact_orchestrator::{Args, run};
use openpact_runtime::{Process, Threads};

fn main() -> ExitCode {
    let args = Args::parse();
    let process = Process { name: "openpact-orchestrator", threads: Threads::PerCore };
    process.run(|stop| run(args, stop))
}
