//! Cuts a text into pieces that a platform takes.

use unicode_segmentation::UnicodeSegmentation as _;

use super::fence::{self, Fence};
use super::length::{Length, Unit};

/// Cuts `text` into pieces of at most `longest`. The same text always gives the
/// same pieces; a text that is all white space gives none.
///
/// Cuts between paragraphs if that leaves no small piece, else between lines,
/// else between words, and inside a word or a character only if there is no
/// other place. A code block that is cut is closed and opened again with the
/// line that opened it, unless that line would take more than a quarter of a
/// piece. Apart from those lines only white space at a cut is lost: outside
/// code all of it except the next line's indentation, inside code one line
/// break.
///
/// Markdown's other spans (bold, links) are not looked at.
///
/// ```
/// use openpact_frontend::text::{Length, split};
/// let text = "```js\nlet a = first();\nlet b = second();\n```";
/// let pieces = split(text, Length::bytes(40));
/// assert_eq!(pieces, ["```js\nlet a = first();\n```", "```js\nlet b = second();\n```"]);
/// ```
#[must_use]
pub fn split(text: &str, longest: Length) -> Vec<String> {
    parts(text, longest).iter().map(Part::to_string).collect()
}

/// One piece: a stretch of the text, between the fences that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part<'a> {
    opened: Option<Fence<'a>>,
    body: &'a str,
    closed: Option<Fence<'a>>,
}

impl std::fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(fence) = self.opened {
            writeln!(f, "{}", fence.opening)?;
        }
        f.write_str(self.body)?;
        match self.closed {
            Some(fence) => write!(f, "\n{}", fence.closing),
            None => Ok(()),
        }
    }
}

fn parts(text: &str, longest: Length) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = trim(text, true);
    let mut open = None;
    while !rest.is_empty() {
        let opened = open.filter(|fence| is_worth_repeating(fence, longest));
        let cut = next_cut(rest, open, opened, longest);
        let (taken, mut left) = rest.split_at(cut.at);
        open = cut.open;
        let ends_line = taken.ends_with('\n');
        let closed = open.filter(|fence| is_worth_repeating(fence, longest));
        if closed.is_some() {
            // If the block's own end is what comes next, it has just been sent.
            let (line, after) = left.split_once('\n').unwrap_or((left, ""));
            if fence::after(line, open).is_none() {
                (left, open) = (after, None);
            }
        }
        let body = match cut.open {
            Some(_) => taken.strip_suffix('\n').unwrap_or(taken),
            None => taken.trim_end(),
        };
        if !body.trim().is_empty() {
            parts.push(Part { opened, body, closed });
        }
        rest = match open {
            Some(_) => left,
            None => trim(left, ends_line),
        };
    }
    parts
}

/// A place to cut at.
#[derive(Debug, Clone, Copy)]
struct Cut<'a> {
    at: usize,
    /// The fence that is open there.
    open: Option<Fence<'a>>,
}

/// Where the next piece of `text` ends. `open`: the fence that `text` begins
/// in; `opened`: the same, if the piece repeats it.
fn next_cut<'a>(
    text: &'a str,
    open: Option<Fence<'a>>,
    opened: Option<Fence<'a>>,
    longest: Length,
) -> Cut<'a> {
    let before = opened.map_or(0, |fence| longest.of(fence.opening) + 1);
    let room = longest.most() - before;
    // Nothing beyond this can be in the piece, whatever it's made of.
    let window = &text[..text.floor_char_boundary(room.saturating_mul(4).saturating_add(64))];
    let reach = reach(window, room, longest);
    if reach == text.len() {
        // What is left in an open code block is closed by its own fence, if at all.
        return Cut { at: reach, open: None };
    }
    let lines = Lines::scan(window, reach, open, room, longest);
    // A better place counts only if the piece isn't left half empty for it.
    let half = |cut: &Cut<'a>| cut.at >= reach / 2;
    if let Some(cut) = lines.paragraph.filter(half).or(lines.line.filter(half)) {
        return cut;
    }
    // Within a line: room for closing whatever is open there must be left.
    let reach = self::reach(window, room - lines.closing, longest);
    let line = lines.line.map_or(0, |cut| cut.at);
    let at = match last_space(window, reach) {
        Some(at) if at > line.max(lines.opened) => at,
        _ if line > 0 => line,
        _ => last_bound(window, reach),
    };
    let whole = window[..at].split_inclusive('\n').filter(|line| line.ends_with('\n'));
    Cut { at, open: whole.fold(open, |open, line| fence::after(line, open)) }
}

/// The last places between paragraphs and between lines.
#[derive(Debug, Clone, Copy, Default)]
struct Lines<'a> {
    paragraph: Option<Cut<'a>>,
    line: Option<Cut<'a>>,
    /// Behind the last line that opened a code block.
    opened: usize,
    /// What closing the dearest of the fences takes that are open somewhere.
    closing: usize,
}

impl<'a> Lines<'a> {
    fn scan(
        window: &'a str,
        reach: usize,
        mut open: Option<Fence<'a>>,
        room: usize,
        longest: Length,
    ) -> Self {
        let cost = |open: Option<Fence<'a>>| open.map_or(0, |it| closing_cost(&it, longest));
        let mut found = Self { closing: cost(open), ..Self::default() };
        let (mut at, mut used) = (0, 0);
        for line in window.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            at += line.len();
            used += longest.of(line);
            // The line break itself needn't fit, for it's not sent.
            if at > reach + 1 {
                break;
            }
            let before = open;
            open = fence::after(line, open);
            let cost = cost(open);
            found.closing = found.closing.max(cost);
            // A cut right behind an opening fence would make an empty block.
            let opens = before.is_none() && open.is_some();
            if opens {
                found.opened = at;
            }
            if opens || (used - 1) + cost > room || window[..at].trim().is_empty() {
                continue;
            }
            let cut = Some(Cut { at, open });
            found.line = cut;
            if open.is_none() && window[at..].starts_with(['\n', '\r']) {
                found.paragraph = cut;
            }
        }
        found
    }
}

/// A fence that is long for its piece is not repeated; the code goes on without.
fn is_worth_repeating(fence: &Fence<'_>, longest: Length) -> bool {
    longest.of(fence.opening) + longest.of(fence.closing) + 2 <= longest.most() / 4
}

/// What closing `fence` at the end of a piece takes.
fn closing_cost(fence: &Fence<'_>, longest: Length) -> usize {
    if is_worth_repeating(fence, longest) { longest.of(fence.closing) + 1 } else { 0 }
}

/// How many bytes of `text` fit into `room`, up to a character's end.
fn reach(text: &str, room: usize, longest: Length) -> usize {
    if longest.unit() == Unit::Bytes {
        return text.floor_char_boundary(room);
    }
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += if longest.unit() == Unit::Utf16 { c.len_utf16() } else { 1 };
        if used > room {
            return at;
        }
    }
    text.len()
}

/// Behind the last white space within `reach`, or at white space right behind it.
fn last_space(window: &str, reach: usize) -> Option<usize> {
    if window[reach..].starts_with(char::is_whitespace) {
        return Some(reach);
    }
    let (at, space) = window[..reach].char_indices().rev().find(|(_, c)| c.is_whitespace())?;
    Some(at + space.len_utf8())
}

/// The last place within `reach` between two words as Unicode has them, else
/// between two characters as people see them, else between two code points.
fn last_bound(window: &str, reach: usize) -> usize {
    let before = |at: &usize| *at > 0 && *at <= reach;
    let characters: Vec<_> =
        window.grapheme_indices(true).map(|(at, _)| at).take_while(|at| *at <= reach).collect();
    let word = window
        .split_word_bound_indices()
        .map(|(at, _)| at)
        .take_while(|at| *at <= reach)
        .filter(|at| *at >= reach / 2 && characters.binary_search(at).is_ok())
        .last()
        .filter(before);
    word.or_else(|| characters.last().copied().filter(before)).unwrap_or(reach)
}

/// Takes away white space around `text`, except the indentation of its first
/// line. `whole`: the text begins with a line, not within one.
fn trim(text: &str, whole: bool) -> &str {
    let text = text.trim_end();
    let indented = text.len() - text.trim_start().len();
    match text[..indented].rfind('\n') {
        Some(at) => &text[at + 1..],
        None if whole => text,
        None => &text[indented..],
    }
}

#[cfg(test)]
mod tests;
