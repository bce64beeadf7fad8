//! `workspace_search`.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use memchr::memchr;
use openpact_runtime::redact::Redactor;
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ToolError;
use crate::policy::Effect;
use crate::tool::{Answer, Call, Tool};
use crate::workspace::{Found, Kind, LARGEST_FILE, Step, WorkspacePath};

use super::glob::PathGlob;

/// Lines found in one answer.
const MOST_LINES: usize = 200;
/// Bytes of a found line that are shown.
const LINE_BYTES: usize = 240;
/// Files read for one answer.
const MOST_FILES: usize = 20_000;
/// Memory for a compiled pattern.
const PATTERN_BYTES: usize = 4 * 1024 * 1024;

/// Searches the text of files and gives the lines found as `path:line: text`, at most 200. Binary
/// files are skipped.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSearch {
    /// What to look for.
    pattern: String,
    /// Take the pattern as a regular expression instead of plain text.
    #[serde(default)]
    regex: bool,
    /// Tell capital from small letters.
    #[serde(default)]
    case_sensitive: bool,
    /// Folder to search; the whole workspace if left out.
    #[serde(default)]
    path: Option<WorkspacePath>,
    /// Only files that match, such as `*.md` or `notes/**/*.md`.
    #[serde(default)]
    glob: Option<String>,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings {
    text: String,
    lines: usize,
    files: usize,
    read: usize,
    /// Files too large to be searched.
    passed_over: usize,
    more: bool,
}

impl Tool for WorkspaceSearch {
    const NAME: &'static str = "workspace_search";
    const EFFECT: Effect = Effect::Read;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        let pattern = self.compiled()?;
        let glob = self.glob.as_deref().map(PathGlob::parse).transpose()?;
        let path = self.path.unwrap_or_else(WorkspacePath::root);
        call.blocking(move |with, stop| {
            let mut findings = Findings::default();
            with.workspace.walk(&path, stop, |found| {
                if stop.is_cancelled() {
                    return ControlFlow::Break(());
                }
                if found.kind != Kind::File
                    || glob.as_ref().is_some_and(|glob| !glob.matches(&found.path))
                {
                    return ControlFlow::Continue(Step::Into);
                }
                if found.bytes > LARGEST_FILE {
                    findings.passed_over += 1;
                    return ControlFlow::Continue(Step::Past);
                }
                findings.read += 1;
                // A file that is gone or can't be read is no reason to find nothing.
                if let Ok(content) = with.workspace.read_found(found) {
                    findings.search(found, &content, &pattern, &with.redactor);
                }
                findings.more |= findings.read == MOST_FILES;
                if findings.more {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(Step::Past)
                }
            })?;
            if stop.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            Ok(findings.into_answer())
        })
        .await
    }
}

impl WorkspaceSearch {
    fn compiled(&self) -> Result<Regex, ToolError> {
        if self.pattern.is_empty() {
            return Err(ToolError::Senseless("`pattern` is empty"));
        }
        let text = if self.regex { self.pattern.clone() } else { regex::escape(&self.pattern) };
        RegexBuilder::new(&text)
            .case_insensitive(!self.case_sensitive)
            .multi_line(true)
            .crlf(true)
            .size_limit(PATTERN_BYTES)
            .build()
            .map_err(|error| ToolError::Pattern {
                pattern: self.pattern.clone(),
                kind: "regular expression",
                problem: error.to_string(),
            })
    }
}

impl Findings {
    /// Looks through the text as a read would show it: a pattern that could
    /// match a secret would tell it, letter by letter.
    fn search(&mut self, found: &Found, content: &[u8], pattern: &Regex, redactor: &Redactor) {
        if memchr(0, content).is_some() {
            return;
        }
        let text = String::from_utf8_lossy(content);
        let text = redactor.redact(&text);
        let content = text.as_bytes();
        let before = self.lines;
        let (mut line_number, mut counted_to, mut from) = (1, 0, 0);
        while let Some(hit) = pattern.find_at(content, from) {
            if hit.start() == content.len() && content.ends_with(b"\n") {
                // After the last line there's no other one.
                break;
            }
            if self.lines == MOST_LINES {
                self.more = true;
                break;
            }
            let start = memchr::memrchr(b'\n', &content[..hit.start()]).map_or(0, |at| at + 1);
            let end =
                memchr(b'\n', &content[hit.start()..]).map_or(content.len(), |at| hit.start() + at);
            line_number += memchr::memchr_iter(b'\n', &content[counted_to..start]).count();
            counted_to = start;
            self.show(found, line_number, &content[start..end], hit.start() - start);
            // One line a hit, however often the pattern is in it.
            from = end + 1;
            if from > content.len() {
                break;
            }
        }
        self.files += usize::from(self.lines > before);
    }

    fn show(&mut self, found: &Found, line_number: usize, line: &[u8], at: usize) {
        self.lines += 1;
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        let shown = around(&line, at);
        writeln!(self.text, "{}:{line_number}: {shown}", found.path.display())
            .expect("a String takes everything");
    }

    fn into_answer(self) -> Answer {
        let Self { text, lines, files, read, passed_over, more } = self;
        let mut note = match lines {
            0 => format!("[nothing found in {read} files"),
            _ => format!("[{lines} lines in {files} of {read} files"),
        };
        if more {
            note.push_str("; there may be more: narrow it down with `path`, `glob` or `pattern`");
        }
        if passed_over > 0 {
            write!(note, "; {passed_over} files were too large to search")
                .expect("a String takes everything");
        }
        note.push(']');
        if text.is_empty() { Answer::text(note) } else { Answer::text(text).and(note) }
    }
}

/// The line, or as much of it around `at` as is shown.
fn around(line: &str, at: usize) -> String {
    if line.len() <= LINE_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(at.saturating_sub(LINE_BYTES / 4).min(line.len()));
    let end = line.floor_char_boundary((start + LINE_BYTES).min(line.len()));
    let dots = |cut: bool| if cut { "…" } else { "" };
    format!("{}{}{}", dots(start > 0), &line[start..end], dots(end < line.len()))
}
