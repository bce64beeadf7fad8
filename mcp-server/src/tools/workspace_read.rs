//! `workspace_read`.

use std::fmt::Write as _;

use openpact_runtime::redact::Redactor;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::workspace::{Span, Window, WorkspacePath};

/// Lines and bytes that a call gives unless more is asked for, note included:
/// OpenCode cuts what is longer, and then the note would be lost.
const LINES: u64 = 2000;
const BYTES: usize = 50 * 1024;
/// What is kept free for the note.
const NOTE_LINES: u64 = 4;
const NOTE_BYTES: usize = 1024;
/// The most that can be asked for.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// Reads a text file, at most 2000 lines or 50 KiB at once. The file's text comes first, exactly as
/// it is; a note in brackets after it gives the file's digest and, if there is more, the `offset`
/// that goes on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRead {
    /// File to read, such as `notes/today.md`.
    path: WorkspacePath,
    /// First line to read, counted from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// How many lines to read.
    #[serde(default)]
    limit: Option<u64>,
    /// Most bytes to read, up to 4194304, instead of 50 KiB and 2000 lines. Only for clients that
    /// take long results.
    #[serde(default)]
    max_bytes: Option<usize>,
}

impl Tool for WorkspaceRead {
    const NAME: &'static str = "workspace_read";
    const EFFECT: Effect = Effect::Read;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let span = self.span()?;
        call.blocking(move |with, stop| {
            let mut window = with.workspace.read_lines(&self.path, span, stop)?;
            let mut text = std::mem::take(&mut window.text);
            if window.cut {
                cut_before_secret(&mut text, &window.beyond, &with.redactor);
            }
            let note = note(&window, span, &text)?;
            Ok(Answer::text(text).and(note))
        })
        .await
    }
}

impl WorkspaceRead {
    fn span(&self) -> Result<Span, ToolError> {
        let (lines, bytes) = match self.max_bytes {
            Some(bytes) if bytes > MOST_BYTES => {
                return Err(ToolError::Senseless("`max_bytes` can be at most 4194304"));
            }
            Some(0) => return Err(ToolError::Senseless("`max_bytes` can't be 0")),
            Some(bytes) => (u64::MAX, bytes),
            None => (LINES - NOTE_LINES, BYTES - NOTE_BYTES),
        };
        if self.limit == Some(0) {
            return Err(ToolError::Senseless("`limit` can't be 0"));
        }
        let first = self.offset.unwrap_or(1).max(1);
        Ok(Span { first, lines: self.limit.unwrap_or(lines).min(lines), bytes })
    }
}

/// Shortens `text`, which goes on as `beyond`, until no secret is cut in two:
/// half of one would be shown.
fn cut_before_secret(text: &mut String, beyond: &str, redactor: &Redactor) {
    loop {
        let whole = format!("{text}{beyond}");
        if redactor.redact(&whole).starts_with(&*redactor.redact(text)) {
            return;
        }
        let shorter = text.floor_char_boundary(text.len().saturating_sub(beyond.len().max(1)));
        text.truncate(shorter);
    }
}

/// What the model needs to know beside the text.
fn note(window: &Window, span: Span, text: &str) -> Result<String, ToolError> {
    let path = window.path.display();
    let last = span.first + window.lines.saturating_sub(1);
    let mut note = format!("[{path}: ");
    let put = |note: &mut String, part: std::fmt::Arguments<'_>| {
        note.write_fmt(part).expect("a String takes everything");
    };
    match window.total_lines {
        Some(0) => note.push_str("empty"),
        Some(total) if span.first > total => {
            put(&mut note, format_args!("lines in it: {total}; nothing at {}", span.first));
        }
        Some(total) if span.first == 1 && last == total && !window.cut => {
            put(
                &mut note,
                format_args!("all {total} {}", if total == 1 { "line" } else { "lines" }),
            );
        }
        Some(total) => put(&mut note, format_args!("lines {}-{last} of {total}", span.first)),
        None => put(&mut note, format_args!("lines {}-{last}", span.first)),
    }
    put(&mut note, format_args!(", {} bytes", window.total_bytes));
    match window.digest {
        Some(digest) => put(&mut note, format_args!(", digest {digest}")),
        None => note.push_str(", too large to be edited, so without a digest"),
    }
    let at_the_end = window.total_lines.is_some_and(|total| last >= total);
    if window.cut {
        put(
            &mut note,
            format_args!(
                "; line {last} is cut here after {} bytes: a larger `max_bytes` gives more of it",
                text.len()
            ),
        );
        if !at_the_end {
            put(&mut note, format_args!("; the next line is `offset` {}", last + 1));
        }
    } else if !at_the_end {
        put(&mut note, format_args!("; go on with `offset` {}", last + 1));
    } else if !window.ends_with_break && !text.is_empty() {
        note.push_str("; no line break at its end");
    }
    note.push(']');
    Ok(note)
}
