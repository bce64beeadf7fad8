//! `memory_append`.

use memchr::{memchr_iter, memmem};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::tools::unmarked;
use crate::workspace::{WorkspaceError, describe};

use super::{MemoryFile, short_enough};

/// Adds text at the end of a memory file, on a line of its own. Makes the file if it's missing.
/// What is in it stays, whoever else adds to it at the same time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryAppend {
    /// Memory file to add to, such as `MEMORY.md` or `memory/2026-01-31.md`.
    file: MemoryFile,
    /// Text to add, such as `- Ada prefers tea`.
    text: String,
}

impl Tool for MemoryAppend {
    const NAME: &'static str = "memory_append";
    const EFFECT: Effect = Effect::Write;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let Self { file, text } = self;
        unmarked("text", &text)?;
        if text.trim().is_empty() {
            return Err(ToolError::Senseless("`text` is empty"));
        }
        call.blocking(move |with, stop| {
            let written =
                with.workspace.update::<WorkspaceError>(file.path(), stop, |current| {
                    let before = if current.exists { current.read()? } else { Vec::new() };
                    if std::str::from_utf8(&before).is_err() {
                        let path = current.path.to_owned();
                        return Err(WorkspaceError::NotText { path, why: describe(&before) });
                    }
                    let after = appended(before, &text);
                    short_enough(current.path, after.len())?;
                    Ok(after)
                })?;
            Ok(Answer::text(format!(
                "added to {}: {} bytes now, digest {}",
                written.path.display(),
                written.bytes,
                written.digest
            )))
        })
        .await
    }
}

/// `before` and, on lines of its own, `text`; with the line ends the file has.
fn appended(mut before: Vec<u8>, text: &str) -> Vec<u8> {
    let breaks = memchr_iter(b'\n', &before).count();
    let crlf = memmem::find_iter(&before, b"\r\n").count() * 2 > breaks;
    let ending: &[u8] = if crlf { b"\r\n" } else { b"\n" };
    if !before.is_empty() && !before.ends_with(b"\n") {
        before.extend_from_slice(ending);
    }
    let text = text.replace("\r\n", "\n");
    for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
        before.extend_from_slice(line.as_bytes());
        before.extend_from_slice(ending);
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_added_on_lines_of_its_own() {
        #[rustfmt::skip]
        let cases: [(&str, &str, &str); 6] = [
            // before         text         after
            ("",              "a",         "a\n"),
            ("x\n",           "a\n",       "x\na\n"),
            ("x",             "a",         "x\na\n"),
            ("x\r\ny",        "a\nb",      "x\r\ny\r\na\r\nb\r\n"),
            ("x\n",           "a\r\nb",    "x\na\nb\n"),
            ("x\n\n",         "\na\n\n",   "x\n\n\na\n\n"),
        ];
        for (before, text, after) in cases {
            let bytes = appended(before.as_bytes().to_vec(), text);
            assert_eq!(String::from_utf8(bytes).unwrap(), after, "{before:?} {text:?}");
        }
    }
}
