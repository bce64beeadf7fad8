//! `workspace_edit`.

use std::borrow::Cow;

use openpact_runtime::redact::Redactor;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::edit::{self, EditError, Edited, Replacement};
use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::workspace::{ExpectedDigest, LARGEST_FILE, WorkspaceError, WorkspacePath};

use super::unmarked;
use super::workspace_write::unchanged;

/// Edits in one call.
const MOST_EDITS: usize = 100;

/// Replaces exact pieces of a text file: all edits, in order, or none. Everything else in the file
/// stays as it is. Line ends are matched and written as the file has them, so write them plainly.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceEdit {
    /// File to edit.
    path: WorkspacePath,
    /// Edits, each applied to what the one before it left.
    #[schemars(length(min = 1, max = 100))]
    edits: Vec<Edit>,
    /// Digest that workspace_read gave for the file. If the file has changed since, nothing is
    /// edited.
    #[serde(default)]
    expected_digest: Option<ExpectedDigest>,
}

/// One replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Text to replace, to the letter and without line numbers. It must be in the file exactly
    /// once: give enough of what is around it.
    old_text: String,
    /// Text to put in its place, taken literally.
    new_text: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for WorkspaceEdit {
    const NAME: &'static str = "workspace_edit";
    const EFFECT: Effect = Effect::Write;
    const DESTRUCTIVE: bool = true;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let Self { path, edits, expected_digest } = self;
        if edits.is_empty() || edits.len() > MOST_EDITS {
            return Err(ToolError::Senseless("`edits` holds 1 to 100 edits"));
        }
        for edit in &edits {
            unmarked("new_text", &edit.new_text)?;
        }
        call.blocking(move |with, stop| {
            let mut replaced = 0;
            let written = with.workspace.update::<ToolError>(&path, stop, |current| {
                if !current.exists {
                    let path = current.path.to_owned();
                    return Err(WorkspaceError::Missing { path, close: Vec::new() }.into());
                }
                unchanged(current, expected_digest.as_ref())?;
                let edits: Vec<_> = edits.iter().map(Replacement::from).collect();
                let edited = edit_as_shown(&current.read()?, &edits, &with.redactor)?;
                replaced = edited.replaced;
                fits(current.path, &edited.content)?;
                Ok(edited.content)
            })?;
            Ok(Answer::text(format!(
                "edited {}: {replaced} {}, {} bytes, digest {}",
                written.path.display(),
                if replaced == 1 { "place" } else { "places" },
                written.bytes,
                written.digest,
            )))
        })
        .await
    }
}

/// Edits the file as a read shows it, secrets taken out, and the file alike.
///
/// Text that matches only because a secret is in it must look as if it weren't
/// there: otherwise a model could guess a secret letter by letter.
fn edit_as_shown(
    original: &[u8],
    edits: &[Replacement<'_>],
    redactor: &Redactor,
) -> Result<Edited, EditError> {
    let shown = std::str::from_utf8(original).ok().map(|text| redactor.redact(text));
    let Some(Cow::Owned(shown)) = shown else { return edit::apply(original, edits) };
    let expected = edit::apply(shown.as_bytes(), edits)?;
    match edit::apply(original, edits) {
        Ok(edited) if is_shown_as(&edited.content, &expected.content, redactor) => Ok(edited),
        _ => Err(EditError::NotFound { number: 1, hint: String::new() }),
    }
}

fn is_shown_as(content: &[u8], shown: &[u8], redactor: &Redactor) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| redactor.redact(text).as_bytes() == shown)
}

impl<'a> From<&'a Edit> for Replacement<'a> {
    fn from(edit: &'a Edit) -> Self {
        Self { old: &edit.old_text, new: &edit.new_text, all: edit.replace_all }
    }
}

/// A file that grew beyond what can be edited again would be a trap.
fn fits(path: &std::path::Path, content: &[u8]) -> Result<(), WorkspaceError> {
    let bytes = content.len() as u64;
    if bytes > LARGEST_FILE {
        return Err(WorkspaceError::TooLarge { path: path.to_owned(), bytes, limit: LARGEST_FILE });
    }
    Ok(())
}
