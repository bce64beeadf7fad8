//! `workspace_move`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::workspace::WorkspacePath;

/// Moves or renames a file or folder. Folders that are missing above the new place are made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceMove {
    /// What to move.
    from: WorkspacePath,
    /// Its new path, or an existing folder to move a file into.
    to: WorkspacePath,
    /// Replace a file that is at the new path.
    #[serde(default)]
    overwrite: bool,
}

impl Tool for WorkspaceMove {
    const NAME: &'static str = "workspace_move";
    const EFFECT: Effect = Effect::Write;
    const DESTRUCTIVE: bool = true;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        call.blocking(move |with, stop| {
            let (from, to) = with.workspace.rename(&self.from, &self.to, self.overwrite, stop)?;
            Ok(Answer::text(format!("moved {} to {}", from.path.display(), to.path.display())))
        })
        .await
    }
}
