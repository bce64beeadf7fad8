//! What may have been meant by a text that isn't in the file.

use memchr::{memchr_iter, memmem};

/// A few words for an error, or nothing.
pub(super) fn for_missing(text: &[u8], old: &str) -> String {
    let bare: Vec<&str> = old.lines().map(without_number).collect();
    if old.lines().zip(&bare).all(|(line, bare)| line.len() != bare.len())
        && find(text, &bare.join("\n")).is_some()
    {
        return ": it seems to carry line numbers, which are not part of the file".into();
    }
    match alike(text, old) {
        Some(line) => format!(
            ", but line {line} differs from it only in blanks: read that part again and copy it \
             to the letter"
        ),
        None => String::new(),
    }
}

fn find(text: &[u8], wanted: &str) -> Option<usize> {
    memmem::find(text, wanted.as_bytes())
}

/// `12: text`, `  12\ttext`, `12|text`, `12→text` without what is before `text`.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.trim_start().len() {
        return line;
    }
    for mark in ["\t", ": ", ":", "| ", "|", "→"] {
        if let Some(text) = rest.strip_prefix(mark) {
            return text;
        }
    }
    line
}

/// The line where lines begin that are `old` but for blanks.
fn alike(text: &[u8], old: &str) -> Option<usize> {
    let wanted: Vec<String> = old.lines().map(squeezed).collect();
    let first = wanted.first().filter(|line| !line.is_empty() || wanted.len() > 1)?;
    let text = std::str::from_utf8(text).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let at = (0..lines.len()).find(|at| {
        squeezed(lines[*at]) == *first
            && wanted.iter().enumerate().all(|(offset, line)| {
                lines.get(at + offset).is_some_and(|there| squeezed(there) == *line)
            })
    })?;
    debug_assert!(at <= memchr_iter(b'\n', text.as_bytes()).count());
    Some(at + 1)
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
