//! The commands, and what runs them.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use openpact_runtime::{Process, Threads};
use tokio_util::sync::CancellationToken;

use crate::engine::install::pin;
use crate::{chat, child, config, doctor, send, status, up};

/// Your own AI assistant, with real powers and without your secrets.
#[derive(Debug, Parser)]
#[command(name = "openpact", version, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Args),
    Chat(chat::Args),
    Send(send::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    #[command(subcommand)]
    Config(config::Command),
    /// Prints the versions of OpenPact and of the engine it works with.
    Version,
    #[command(name = "__child", hide = true)]
    Child(child::ChildArgs),
    #[command(name = "__engine", hide = true)]
    Engine(child::EngineArgs),
}

/// The whole program.
#[must_use]
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Before there's a second thread: what these give up, they give up whole.
    match &command {
        Command::Child(args) => return child::become_child(args),
        Command::Engine(args) => return child::become_engine(args),
        _ => {}
    }
    // Fails only if there is a provider already, and then that one serves.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider had been chosen before");
    }
    // One thread: the kernel ends our children with the thread that started them.
    Process { name: "openpact", threads: Threads::One }.run(|stop| Box::pin(run(command, stop)))
}

async fn run(command: Command, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => up::run(args, stop).await,
        Command::Chat(args) => chat::run(args, stop).await,
        Command::Send(args) => send::run(args, stop).await,
        Command::Status(args) => status::run(args, stop).await,
        Command::Doctor(args) => doctor::run(args, stop).await,
        Command::Config(command) => config::run(command, stop).await,
        Command::Version => version(),
        Command::Child(args) => Ok(child::become_child(&args)),
        Command::Engine(args) => Ok(child::become_engine(&args)),
    }
}

fn version() -> anyhow::Result<ExitCode> {
    let text =
        format!("openpact {}\nengine: OpenCode {}\n", env!("CARGO_PKG_VERSION"), pin::version());
    std::io::stdout().write_all(text.as_bytes()).context("write to standard output")?;
    Ok(ExitCode::SUCCESS)
}
