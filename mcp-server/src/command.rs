//! What the operator types.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Parser};

/// A standalone MCP tool server whose tools are confined by the kernel.
#[derive(Debug, Parser)]
#[command(name = "openpact-mcp", version)]
#[command(group = ArgGroup::new("mode").required(true))]
pub struct Command {
    /// Speak MCP over standard input and output.
    #[arg(long, group = "mode")]
    pub stdio: bool,
    /// Speak MCP over HTTP at this address; without one, at the setting `mcp.listen`.
    #[arg(long, group = "mode", value_name = "ADDR", num_args = 0..=1)]
    pub http: Option<Option<SocketAddr>>,
    /// Check the settings, print nothing, exit with 0 or 2.
    #[arg(long, group = "mode")]
    pub check_config: bool,
    /// Print what the kernel does to confine this process, as a line of JSON.
    #[arg(long, group = "mode")]
    pub check_confinement: bool,
    /// The workspace folder. What is missing in it is made.
    #[arg(long, value_name = "DIR")]
    pub workspace: PathBuf,
}
