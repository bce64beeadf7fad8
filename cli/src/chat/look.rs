//! Lines of styled text, and how they're wrapped.

use std::io::{self, Write};

use crossterm::style::{Attribute, Color, ContentStyle, Stylize as _};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::plain;

/// How wide a tab is.
const TAB: &str = "    ";

/// How text looks. Colours are few, for backgrounds differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) tone: Option<Tone>,
}

/// What a colour stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// What the person wrote.
    Own,
    /// Something went wrong.
    Bad,
}

impl Look {
    pub(crate) const PLAIN: Self = Self { bold: false, dim: false, tone: None };
    pub(crate) const DIM: Self = Self { dim: true, ..Self::PLAIN };
    pub(crate) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub(crate) const OWN: Self = Self { tone: Some(Tone::Own), ..Self::BOLD };
    pub(crate) const BAD: Self = Self { tone: Some(Tone::Bad), ..Self::PLAIN };

    fn style(self) -> ContentStyle {
        let mut style = ContentStyle::new();
        if self.bold {
            style.attributes.set(Attribute::Bold);
        }
        if self.dim {
            style.attributes.set(Attribute::Dim);
        }
        match self.tone {
            Some(Tone::Own) => style.with(Color::Cyan),
            Some(Tone::Bad) => style.with(Color::Red),
            None => style,
        }
    }
}

/// A stretch of text that looks the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    text: String,
    look: Look,
}

/// One line. What it's made of has no line break and nothing that a terminal obeys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    spans: Vec<Span>,
    /// By how many columns the following rows are indented when it's wrapped.
    hang: usize,
    /// Code is not wrapped between words.
    verbatim: bool,
}

impl Line {
    pub(crate) fn new(text: &str, look: Look) -> Self {
        let mut line = Self::default();
        line.push(text, look);
        line
    }

    /// A line that the terminal may break anywhere, so that it can be copied whole.
    pub(crate) fn verbatim(text: &str, look: Look) -> Self {
        Self { verbatim: true, ..Self::new(text, look) }
    }

    /// The same line, with the rows after the first indented.
    pub(crate) fn hanging(self, hang: usize) -> Self {
        Self { hang, ..self }
    }

    /// Adds text; line breaks in it become spaces.
    pub(crate) fn push(&mut self, text: &str, look: Look) {
        if text.is_empty() {
            return;
        }
        let text = plain::harmless(text).replace('\t', TAB).replace('\n', " ");
        match self.spans.last_mut() {
            Some(last) if last.look == look => last.text.push_str(&text),
            _ => self.spans.push(Span { text, look }),
        }
    }

    /// How many columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// The text without its looks.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// The line in rows of at most `width` columns: broken between words, and
    /// within one only if it's wider than a row.
    pub(crate) fn wrapped(&self, width: usize) -> Vec<Self> {
        let width = width.max(2);
        if self.width() <= width {
            return vec![self.clone()];
        }
        let hang = if self.hang * 2 > width { 0 } else { self.hang };
        let mut rows = Rows { rows: Vec::new(), row: Self::default(), used: 0, width, hang };
        for span in &self.spans {
            // Verbatim text has no words.
            let bits: Vec<&str> = if self.verbatim {
                span.text.graphemes(true).collect()
            } else {
                span.text.split_word_bounds().collect()
            };
            for bit in bits {
                rows.add(bit, span.look);
            }
        }
        rows.rows.push(rows.row);
        rows.rows
    }

    /// The line as it goes to a terminal in raw mode or a scrollback: wrapped,
    /// unless it's verbatim, which the terminal breaks itself.
    pub(crate) fn printed(&self, width: usize) -> Vec<Self> {
        if self.verbatim { vec![self.clone()] } else { self.wrapped(width) }
    }

    /// Writes it as it looks. Where `NO_COLOR` is set it has no colours.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for Span { text, look } in &self.spans {
            if *look == Look::PLAIN {
                write!(out, "{text}")?;
            } else {
                write!(out, "{}", look.style().apply(text))?;
            }
        }
        Ok(())
    }
}

/// Rows in the making.
struct Rows {
    rows: Vec<Line>,
    row: Line,
    used: usize,
    width: usize,
    hang: usize,
}

impl Rows {
    fn add(&mut self, bit: &str, look: Look) {
        let wide = bit.width();
        if self.used + wide <= self.width {
            self.put(bit, wide, look);
            return;
        }
        if bit.trim().is_empty() {
            // White space at a row's end isn't seen, nor taken into the next.
            self.end_row();
            return;
        }
        if wide <= self.width - self.hang {
            self.end_row();
            self.put(bit, wide, look);
            return;
        }
        for grapheme in bit.graphemes(true) {
            let wide = grapheme.width();
            if self.used + wide > self.width {
                self.end_row();
            }
            self.put(grapheme, wide, look);
        }
    }

    fn put(&mut self, bit: &str, wide: usize, look: Look) {
        self.row.push(bit, look);
        self.used += wide;
    }

    fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
        self.row.push(&" ".repeat(self.hang), Look::PLAIN);
        self.used = self.hang;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_and_break_between_words() {
        #[rustfmt::skip]
        let cases: [(&str, &str, usize, usize, &[&str]); 7] = [
            // what it shows             text                 hang  width  rows
            ("a short line is one row",  "one two",           0,    10,    &["one two"]),
            ("words stay whole",         "one two three",     0,    8,     &["one two ", "three"]),
            ("a long word is cut",       "abcdefghij",        0,    4,     &["abcd", "efgh", "ij"]),
            ("wide characters count two","你好世界",            0,    5,     &["你好", "世界"]),
            ("emoji are one",            "👩‍🚀👩‍🚀👩‍🚀",               0,    4,     &["👩‍🚀👩‍🚀", "👩‍🚀"]),
            ("list items hang",          "- one two three",   2,    9,     &["- one two", "  three"]),
            ("no hang in a slit",        "- one two",         4,    5,     &["- one", "two"]),
        ];
        for (shows, text, hang, width, rows) in cases {
            let line = Line::new(text, Look::PLAIN).hanging(hang);
            let got = line.wrapped(width);
            assert!(got.iter().all(|row| row.width() <= width), "{shows}");
            assert_eq!(got.iter().map(Line::text).collect::<Vec<_>>(), rows, "{shows}");
        }
    }

    #[test]
    fn only_our_own_looks_are_obeyed() {
        let mut line = Line::new("a", Look::PLAIN);
        line.push("b\x1b[2J", Look::BOLD);
        let mut out = Vec::new();
        line.write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\x1b[1mb␛[2J\x1b[0m");
    }
}
