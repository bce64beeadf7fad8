//! The MCP server process. What it does is in the library.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    openpact_mcp::main(openpact_mcp::Command::parse())
}
