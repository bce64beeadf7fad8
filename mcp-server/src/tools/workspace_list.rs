//! `workspace_list`.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool, Toolbox};
use crate::workspace::{Found, Kind, Step, WorkspacePath};

use super::glob::PathGlob;

/// Entries in one answer.
const MOST_ENTRIES: usize = 1000;
/// Things looked at, matching or not.
const MOST_LOOKED_AT: usize = 100_000;

/// Lists what is in a folder and the folders beneath it, at most 1000 entries: folders end with
/// `/`, files have their size in bytes, links show where they lead.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceList {
    /// Folder to list; the whole workspace if left out.
    #[serde(default)]
    path: Option<WorkspacePath>,
    /// How many levels down; 1 is only the folder itself. All if left out.
    #[serde(default)]
    depth: Option<usize>,
    /// Only files that match, such as `*.md` or `notes/**/*.md`.
    #[serde(default)]
    glob: Option<String>,
}

impl Tool for WorkspaceList {
    const NAME: &'static str = "workspace_list";
    const EFFECT: Effect = Effect::Read;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let glob = self.glob.as_deref().map(PathGlob::parse).transpose()?;
        let depth = self.depth.unwrap_or(usize::MAX).max(1);
        let path = self.path.unwrap_or_else(WorkspacePath::root);
        call.blocking(move |with, stop| {
            let (mut entries, mut looked_at, mut more) = (Vec::new(), 0, false);
            let folder = with.workspace.walk(&path, stop, |found| {
                looked_at += 1;
                let shown = match &glob {
                    Some(glob) => found.kind != Kind::Folder && glob.matches(&found.path),
                    None => true,
                };
                if looked_at > MOST_LOOKED_AT || (shown && entries.len() == MOST_ENTRIES) {
                    more = true;
                    return ControlFlow::Break(());
                }
                if shown {
                    entries.push(found.clone());
                }
                ControlFlow::Continue(if found.depth < depth { Step::Into } else { Step::Past })
            })?;
            entries.sort_by(|a, b| a.path.cmp(&b.path));
            let mut text = String::new();
            for entry in &entries {
                line(&mut text, with, entry);
            }
            let folder = folder.path;
            let place = if folder.as_os_str().is_empty() { ".".into() } else { folder };
            let note = match (entries.len(), more) {
                (0, false) => format!("[nothing in {}]", place.display()),
                (count, false) => format!("[{}: all {count} entries]", place.display()),
                (count, true) => format!(
                    "[{}: only {count} entries of more, the upper levels first; list a folder \
                     beneath it or give a `glob`]",
                    place.display()
                ),
            };
            Ok(if text.is_empty() { Answer::text(note) } else { Answer::text(text).and(note) })
        })
        .await
    }
}

fn line(text: &mut String, with: &Toolbox, found: &Found) {
    // A line break in a name would make two entries of one.
    let path = found.path.to_string_lossy().replace(char::is_control, "\u{fffd}");
    let written = match found.kind {
        Kind::Folder => writeln!(text, "{path}/"),
        Kind::File => writeln!(text, "{path} {}", found.bytes),
        Kind::Link => match with.workspace.link_target(found) {
            Ok(target) => writeln!(text, "{path} -> {}", target.to_string_lossy()),
            Err(_gone) => writeln!(text, "{path} -> ?"),
        },
        other => writeln!(text, "{path} ({})", other.in_words()),
    };
    written.expect("a String takes everything");
}
