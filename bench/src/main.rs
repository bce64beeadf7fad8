//! Measures OpenPact beside its peers and prints a table: one command,
//! `cargo run --release -p openpact-bench`.
//!
//! It builds the programs and installs the peers by itself. [`mcp`] is the MCP
//! server beside `@modelcontextprotocol/server-filesystem`, each seen as its
//! client sees it; [`turn`] is what the orchestrator adds to a turn, between a
//! fake chat platform and a fake engine that take no time of their own.

mod figure;
mod mcp;
mod peer;
mod program;
mod resident;
mod turn;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

/// Measures OpenPact beside its peers and prints a table.
#[derive(Debug, Parser)]
#[command(name = "openpact-bench", version)]
struct Args {
    /// How often each MCP server is started.
    #[arg(long, value_name = "N", default_value_t = 21)]
    starts: usize,
    /// How often the file is read.
    #[arg(long, value_name = "N", default_value_t = 51)]
    reads: usize,
    /// How many turns are measured, after a tenth as many that aren't.
    #[arg(long, value_name = "N", default_value_t = 300)]
    turns: usize,
    /// Leaves out the MCP server.
    #[arg(long)]
    no_mcp: bool,
    /// Leaves out the orchestrator.
    #[arg(long)]
    no_turns: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    anyhow::ensure!(
        args.starts > 0 && args.reads > 0 && args.turns > 0,
        "each count must be at least 1"
    );
    program::build()?;
    let mut figures = Vec::new();
    if !args.no_mcp {
        figures.extend(mcp::measure(args.starts, args.reads)?);
    }
    if !args.no_turns {
        figures.extend(turn::measure(args.turns)?);
    }
    write!(std::io::stdout(), "{}", figure::table(&figures))?;
    Ok(ExitCode::SUCCESS)
}

/// Says on standard error what takes a while.
fn say(what: &str) {
    // A closed standard error is no reason to stop measuring.
    let _written = writeln!(std::io::stderr(), "{what}");
}
