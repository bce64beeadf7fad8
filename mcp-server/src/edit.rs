//! Exact replacements in a text file that keep every other byte as it is.
//!
//! Knows nothing of files: bytes in, bytes out. What is looked for and what is
//! put in its place have `\n` at their line ends, whatever the file has: a
//! caller sees lines, not line ends. So matching goes by a view of the file in
//! which `\r\n` is `\n`, and what is put in gets the file's own line ends.
//! A `\r` alone is data.

mod endings;
mod hint;

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use crate::workspace::describe;

use endings::{Ending, View};

/// The byte order mark that some editors put before UTF-8.
const BOM: &[u8] = "\u{feff}".as_bytes();
/// Line numbers that an error names.
const MOST_LINES: usize = 10;

/// One replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replacement<'a> {
    /// What must be there, once unless `all`.
    pub old: &'a str,
    /// What takes its place, to the letter.
    pub new: &'a str,
    /// Whether to replace every occurrence.
    pub all: bool,
}

/// Why nothing was replaced. Replacements are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file isn't UTF-8.
    #[error("the file is not UTF-8 text ({why}): nothing was changed")]
    NotText {
        /// What it looks like.
        why: &'static str,
    },
    /// There's nothing to look for.
    #[error("edit {number}: `old_text` is empty; to make or replace a whole file, write it")]
    Empty {
        /// Which replacement.
        number: usize,
    },
    /// It would change nothing.
    #[error("edit {number} changes nothing: `old_text` and `new_text` are the same")]
    Same {
        /// Which replacement.
        number: usize,
    },
    /// It isn't there.
    #[error("edit {number}: `old_text` is not in the file{hint}; nothing was changed")]
    NotFound {
        /// Which replacement.
        number: usize,
        /// What may be meant.
        hint: String,
    },
    /// It's there more than once.
    #[error(
        "edit {number}: `old_text` is in the file {count} times, at lines {}: give more of the \
             text around the one that is meant, or set `replace_all`; nothing was changed",
        list(lines)
    )]
    Ambiguous {
        /// Which replacement.
        number: usize,
        /// How often it's there.
        count: usize,
        /// Where, at most the first ten.
        lines: Vec<usize>,
    },
}

/// A file's new bytes and how many places changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole file.
    pub content: Vec<u8>,
    /// Places that were replaced.
    pub replaced: usize,
}

/// Makes all replacements, each in what the one before it left; or none.
pub fn apply(original: &[u8], edits: &[Replacement<'_>]) -> Result<Edited, EditError> {
    if std::str::from_utf8(original).is_err() {
        return Err(EditError::NotText { why: describe(original) });
    }
    let mark = if original.starts_with(BOM) { BOM.len() } else { 0 };
    let mut edited = Edited { content: original[mark..].to_vec(), replaced: 0 };
    for (index, edit) in edits.iter().enumerate() {
        edited.replaced += replace(&mut edited.content, edit, index + 1)?;
    }
    edited.content.splice(0..0, original[..mark].iter().copied());
    Ok(edited)
}

fn replace(
    content: &mut Vec<u8>,
    edit: &Replacement<'_>,
    number: usize,
) -> Result<usize, EditError> {
    let (old, new) = (to_lf(edit.old), to_lf(edit.new));
    if old.is_empty() {
        return Err(EditError::Empty { number });
    }
    if old == new {
        return Err(EditError::Same { number });
    }
    let view = View::of(content);
    let found: Vec<usize> = memmem::find_iter(view.text(), old.as_bytes()).collect();
    match found.len() {
        0 => {
            let hint = hint::for_missing(view.text(), &old);
            return Err(EditError::NotFound { number, hint });
        }
        1 => {}
        _ if edit.all => {}
        count => {
            let lines = found.iter().take(MOST_LINES).map(|at| view.line_at(*at)).collect();
            return Err(EditError::Ambiguous { number, count, lines });
        }
    }
    let dominant = Ending::dominant(content);
    let middle = differing(old.as_bytes(), new.as_bytes());
    let mut result = Vec::with_capacity(content.len() + new.len());
    let mut copied = 0;
    for at in &found {
        // What `old` and `new` begin and end with alike stays as it is.
        let touched = view.original(at + middle.old.start..at + middle.old.end);
        result.extend_from_slice(&content[copied..touched.start]);
        let endings = Ending::of_each(&content[touched.clone()]);
        endings::write(&mut result, &new.as_bytes()[middle.new.clone()], &endings, dominant);
        copied = touched.end;
    }
    result.extend_from_slice(&content[copied..]);
    drop(view);
    *content = result;
    Ok(found.len())
}

/// The parts in which two texts differ.
#[derive(Debug, PartialEq, Eq)]
struct Differing {
    old: Range<usize>,
    new: Range<usize>,
}

fn differing(old: &[u8], new: &[u8]) -> Differing {
    let most = old.len().min(new.len());
    let before = (0..most).take_while(|index| old[*index] == new[*index]).count();
    let after = (0..most - before)
        .take_while(|index| old[old.len() - 1 - index] == new[new.len() - 1 - index])
        .count();
    Differing { old: before..old.len() - after, new: before..new.len() - after }
}

fn to_lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

fn list(lines: &[usize]) -> String {
    let numbers: Vec<_> = lines.iter().map(usize::to_string).collect();
    numbers.join(", ")
}

#[cfg(test)]
mod tests;
