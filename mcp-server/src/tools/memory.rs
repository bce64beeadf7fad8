//! `memory_read`, `memory_write`, `memory_append`: what the assistant keeps
//! between conversations.
//!
//! The files are in the workspace like any other; these tools see only them,
//! so that they can be allowed where the workspace isn't.

mod append;
mod file;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::workspace::{Digest, ExpectedDigest, Span, WorkspaceError};

use super::unmarked;
use super::workspace_write::{said, unchanged};

pub use append::MemoryAppend;
pub use file::MemoryFile;

/// The longest memory file, in bytes: it's meant to be read whole.
const LONGEST: usize = 1024 * 1024;
/// What one read gives at most: with the note just under what an engine shows.
const READ_LINES: u64 = 1990;
const READ_BYTES: usize = 49 * 1024;

/// Reads one of your memory files: `SOUL.md` (who you are), `USER.md` (who the user is), `MEMORY.md`
/// (what to remember), or a note such as `memory/2026-01-31.md`. A note in brackets after the text
/// gives the digest.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryRead {
    /// Memory file to read, such as `MEMORY.md`.
    file: MemoryFile,
    /// First line to read, counted from 1.
    #[serde(default)]
    offset: Option<u64>,
}

impl Tool for MemoryRead {
    const NAME: &'static str = "memory_read";
    const EFFECT: Effect = Effect::Read;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let first = self.offset.unwrap_or(1).max(1);
        let span = Span { first, lines: READ_LINES, bytes: READ_BYTES };
        call.blocking(move |with, stop| {
            let mut window = with.workspace.read_lines(self.file.path(), span, stop)?;
            let text = std::mem::take(&mut window.text);
            let last = first + window.lines.saturating_sub(1);
            let more = window.total_lines.is_some_and(|total| last < total);
            let digest = window.digest.as_ref().map(Digest::to_string).unwrap_or_default();
            let mut note = format!("[{}: {} bytes, digest {digest}", self.file, window.total_bytes);
            if more {
                note.push_str(&format!("; go on with `offset` {}", last + 1));
            }
            note.push(']');
            Ok(Answer::text(text).and(note))
        })
        .await
    }
}

/// Writes a whole memory file. What was in it is lost, so read it first; to add something, use
/// memory_append.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryWrite {
    /// Memory file to write, such as `USER.md`.
    file: MemoryFile,
    /// The file's whole new text.
    content: String,
    /// Digest that memory_read gave for the file. If the file has changed since, nothing is
    /// written.
    #[serde(default)]
    expected_digest: Option<ExpectedDigest>,
}

impl Tool for MemoryWrite {
    const NAME: &'static str = "memory_write";
    const EFFECT: Effect = Effect::Write;
    const DESTRUCTIVE: bool = true;
    const IDEMPOTENT: bool = true;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let Self { file, content, expected_digest } = self;
        unmarked("content", &content)?;
        call.blocking(move |with, stop| {
            let written =
                with.workspace.update::<WorkspaceError>(file.path(), stop, |current| {
                    unchanged(current, expected_digest.as_ref())?;
                    short_enough(current.path, content.len())?;
                    Ok(content.into_bytes())
                })?;
            Ok(Answer::text(said(&written)))
        })
        .await
    }
}

fn short_enough(path: &std::path::Path, bytes: usize) -> Result<(), WorkspaceError> {
    if bytes > LONGEST {
        return Err(WorkspaceError::TooLarge {
            path: path.to_owned(),
            bytes: bytes as u64,
            limit: LONGEST as u64,
        });
    }
    Ok(())
}
