//! `workspace_delete`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::workspace::{Kind, WorkspacePath};

/// Deletes a file, an empty folder, or a link (not what it leads to). There is no way back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceDelete {
    /// What to delete.
    path: WorkspacePath,
    /// Delete a folder with all that is in it.
    #[serde(default)]
    recursive: bool,
}

impl Tool for WorkspaceDelete {
    const NAME: &'static str = "workspace_delete";
    const EFFECT: Effect = Effect::Write;
    const DESTRUCTIVE: bool = true;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        call.blocking(move |with, stop| {
            let (place, removed) = with.workspace.remove(&self.path, self.recursive, stop)?;
            let path = place.path.display();
            Ok(Answer::text(match place.kind {
                Kind::Folder if removed > 1 => {
                    format!("deleted the folder {path} and {} things in it", removed - 1)
                }
                Kind::Folder => format!("deleted the folder {path}"),
                Kind::Link => format!("deleted the link {path}; what it leads to is still there"),
                _ => format!("deleted {path}"),
            }))
        })
        .await
    }
}
