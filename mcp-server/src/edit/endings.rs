//! Line ends: seen as one, kept as they are.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr_iter, memmem};

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    CrLf,
}

impl Ending {
    /// What most lines of `content` end with; `\n` if there are none.
    pub(super) fn dominant(content: &[u8]) -> Self {
        let all = memchr_iter(b'\n', content).count();
        let crlf = memmem::find_iter(content, b"\r\n").count();
        if crlf > all - crlf { Self::CrLf } else { Self::Lf }
    }

    /// The ends of each line in `content`, in order.
    pub(super) fn of_each(content: &[u8]) -> Vec<Self> {
        memchr_iter(b'\n', content)
            .map(|at| if at > 0 && content[at - 1] == b'\r' { Self::CrLf } else { Self::Lf })
            .collect()
    }

    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }
}

/// Adds `text`, whose lines end with `\n`, to `out` with the ends `before`
/// that the replaced lines had, if there are as many; else with `dominant`.
pub(super) fn write(out: &mut Vec<u8>, text: &[u8], before: &[Ending], dominant: Ending) {
    let count = memchr_iter(b'\n', text).count();
    let mut from = 0;
    for (index, at) in memchr_iter(b'\n', text).enumerate() {
        out.extend_from_slice(&text[from..at]);
        let ending = if before.len() == count { before[index] } else { dominant };
        out.extend_from_slice(ending.bytes());
        from = at + 1;
    }
    out.extend_from_slice(&text[from..]);
}

/// A file's text with every `\r\n` as `\n`, and the way back.
#[derive(Debug)]
pub(super) struct View<'a> {
    text: Cow<'a, [u8]>,
    /// Where in `text` a `\r` before a `\n` was left out.
    dropped: Vec<usize>,
}

impl<'a> View<'a> {
    pub(super) fn of(content: &'a [u8]) -> Self {
        let mut text = Vec::new();
        let mut dropped = Vec::new();
        let mut from = 0;
        for at in memmem::find_iter(content, b"\r\n") {
            text.extend_from_slice(&content[from..at]);
            dropped.push(text.len());
            from = at + 1;
        }
        if dropped.is_empty() {
            return Self { text: Cow::Borrowed(content), dropped };
        }
        text.extend_from_slice(&content[from..]);
        Self { text: Cow::Owned(text), dropped }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The line, counted from 1, in which the byte `at` lies.
    pub(super) fn line_at(&self, at: usize) -> usize {
        memchr_iter(b'\n', &self.text[..at]).count() + 1
    }

    /// The bytes of the file that `range` of the text stands for.
    ///
    /// A range that begins with a line's end has its `\r` in it; one that ends
    /// before a line's end hasn't.
    pub(super) fn original(&self, range: Range<usize>) -> Range<usize> {
        let dropped_before = |at: usize| self.dropped.partition_point(|dropped| *dropped < at);
        range.start + dropped_before(range.start)..range.end + dropped_before(range.end)
    }
}
