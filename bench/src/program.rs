//! Builds and finds OpenPact's programs.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;
use openpact_testkit::harness;

use crate::say;

/// Builds the programs with the profile that this one was built with.
///
/// Cargo sets the variable for what it runs; started by hand, the programs
/// must be there.
pub(crate) fn build() -> anyhow::Result<()> {
    let Some(cargo) = std::env::var_os("CARGO") else { return Ok(()) };
    say("building openpact-mcp and openpact-orchestrator");
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "-p", "openpact-mcp", "-p", "openpact-orchestrator"]);
    if cfg!(debug_assertions) {
        say("this is a debug build, and its figures say little: run it with --release");
    } else {
        command.arg("--release");
    }
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let status = command.status().context("run cargo")?;
    anyhow::ensure!(status.success(), "cargo build ended with {status}");
    Ok(())
}

/// One of OpenPact's programs.
pub(crate) fn path(name: &str) -> anyhow::Result<PathBuf> {
    Ok(harness::binary(name)?)
}
