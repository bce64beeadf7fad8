//! The other MCP server for files: `@modelcontextprotocol/server-filesystem`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::say;

/// Its program, for Node to run. Installs it from `bench/peers` if it's missing.
pub(crate) fn filesystem() -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let program = folder.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    if program.is_file() {
        return Ok(program);
    }
    say("installing the peers with npm");
    let status = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(&folder)
        .stdout(Stdio::null())
        .status()
        .context("run `npm ci`: measuring the peers needs Node.js with npm")?;
    anyhow::ensure!(status.success(), "`npm ci` in `{}` ended with {status}", folder.display());
    anyhow::ensure!(program.is_file(), "`npm ci` brought no `{}`", program.display());
    Ok(program)
}
