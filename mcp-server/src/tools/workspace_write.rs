//! `workspace_write`.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::workspace::{Current, Digest, ExpectedDigest, WorkspaceError, WorkspacePath, Written};

use super::unmarked;

/// Writes a whole text file, and the folders above it if they are missing. To change part of a
/// file, use workspace_edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceWrite {
    /// File to write, such as `notes/today.md`.
    path: WorkspacePath,
    /// The file's whole new text.
    content: String,
    /// Digest that workspace_read gave for the file. If the file has changed since, nothing is
    /// written.
    #[serde(default)]
    expected_digest: Option<ExpectedDigest>,
    /// Only make a new file; if there is one, nothing is written.
    #[serde(default)]
    create_only: bool,
}

impl Tool for WorkspaceWrite {
    const NAME: &'static str = "workspace_write";
    const EFFECT: Effect = Effect::Write;
    const DESTRUCTIVE: bool = true;
    const IDEMPOTENT: bool = true;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let Self { path, content, expected_digest, create_only } = self;
        unmarked("content", &content)?;
        if create_only && expected_digest.is_some() {
            let text = "`create_only` and `expected_digest` exclude each other";
            return Err(ToolError::Senseless(text));
        }
        call.blocking(move |with, stop| {
            let written = with.workspace.update::<WorkspaceError>(&path, stop, |current| {
                if create_only && current.exists {
                    return Err(WorkspaceError::Exists { path: current.path.to_owned() });
                }
                unchanged(current, expected_digest.as_ref())?;
                Ok(content.into_bytes())
            })?;
            Ok(Answer::text(said(&written)))
        })
        .await
    }
}

/// Makes sure that the file is the one the caller has read, if it says which.
pub(super) fn unchanged(
    current: &Current<'_>,
    expected: Option<&ExpectedDigest>,
) -> Result<(), WorkspaceError> {
    let Some(expected) = expected else { return Ok(()) };
    let now = if current.exists { Some(Digest::of(&current.read()?)) } else { None };
    if now.is_some_and(|now| expected.is(now)) {
        return Ok(());
    }
    Err(WorkspaceError::Changed { path: current.path.to_owned(), now })
}

/// What a write came to, in words.
pub(super) fn said(written: &Written) -> String {
    let Written { path, digest, bytes, created } = written;
    let did = if *created { "made" } else { "wrote" };
    format!("{did} {}: {bytes} bytes, digest {digest}", path.display())
}
