//! Which workspace a command is about.

use std::path::PathBuf;

use anyhow::Context as _;
use openpact_runtime::layout::Layout;

use crate::environment;

/// `--workspace DIR`, as every command takes it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WorkspaceArgs {
    /// The workspace folder [default: ~/openpact].
    #[arg(long, value_name = "DIR", env = "OPENPACT_WORKSPACE")]
    pub workspace: Option<PathBuf>,
}

impl WorkspaceArgs {
    /// Where everything is in that workspace.
    pub fn layout(&self) -> anyhow::Result<Layout> {
        let root = match &self.workspace {
            Some(root) => root.clone(),
            None => environment::default_workspace()?,
        };
        Layout::new(&root).with_context(|| format!("find `{}`", root.display()))
    }
}
