//! The text that is being written: one or more lines, and a cursor among its characters.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};
use unicode_width::UnicodeWidthStr as _;

use super::look::{Line, Look};

/// The longest text that is taken, in bytes: what the orchestrator takes unless
/// configured otherwise.
pub(crate) const LONGEST: usize = 256 * 1024;

/// Where a movement or a deletion goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To {
    /// One character, as people see them, backwards.
    Left,
    /// One character forwards.
    Right,
    /// To the beginning of this or the previous word.
    WordLeft,
    /// To the end of this or the next word.
    WordRight,
    /// To the beginning of the line.
    LineStart,
    /// To the end of the line.
    LineEnd,
}

/// A text and a cursor in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Editor {
    text: String,
    /// In bytes, always between two characters as people see them.
    cursor: usize,
    /// What was cut last.
    cut: String,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What stands before the cursor.
    pub(crate) fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Replaces the text and puts the cursor behind it.
    pub(crate) fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
    }

    /// Takes the text away.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Writes at the cursor, without what can't be in a message. `false`: it
    /// would be too long, and nothing was written.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String =
            text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        if self.text.len() + text.len() > LONGEST {
            return false;
        }
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        // What was written may have become one with what stands behind.
        if !self.is_boundary(self.cursor) {
            self.cursor = self.find(To::Right);
        }
        true
    }

    pub(crate) fn paste_cut(&mut self) -> bool {
        let cut = std::mem::take(&mut self.cut);
        let fits = self.insert(&cut);
        self.cut = cut;
        fits
    }

    pub(crate) fn go(&mut self, to: To) {
        self.cursor = self.find(to);
    }

    /// Deletes from the cursor to there; more than a character can be had back.
    pub(crate) fn delete(&mut self, to: To) {
        let there = self.find(to);
        let (from, to_) = (self.cursor.min(there), self.cursor.max(there));
        let gone: String = self.text.drain(from..to_).collect();
        if !matches!(to, To::Left | To::Right) && !gone.is_empty() {
            self.cut = gone;
        }
        self.cursor = from;
    }

    /// A line up, keeping the column. `false`: it's the first.
    pub(crate) fn up(&mut self) -> bool {
        let start = self.find(To::LineStart);
        if start == 0 {
            return false;
        }
        let column = self.text[start..self.cursor].width();
        let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.at_column(above, column);
        true
    }

    /// A line down, keeping the column. `false`: it's the last.
    pub(crate) fn down(&mut self) -> bool {
        let end = self.text[self.cursor..].find('\n').map(|at| at + self.cursor);
        let Some(end) = end else { return false };
        let column = self.text[self.find(To::LineStart)..self.cursor].width();
        self.cursor = self.at_column(end + 1, column);
        true
    }

    /// Replaces a backslash at the text's end by a line break, if the cursor is there.
    pub(crate) fn continue_line(&mut self) -> bool {
        let continues = self.cursor == self.text.len() && self.text.ends_with('\\');
        if continues {
            self.text.pop();
            self.text.push('\n');
        }
        continues
    }

    /// The text in rows of at most `width` columns behind `prompt`, and the
    /// cursor's row and column.
    pub(crate) fn rows(&self, prompt: &str, width: usize) -> (Vec<Line>, (usize, usize)) {
        let indent = " ".repeat(prompt.width());
        let mut rows = vec![Line::new(prompt, Look::OWN)];
        let mut used = prompt.width();
        let mut cursor = (0, used);
        for (at, grapheme) in self.text.grapheme_indices(true) {
            let breaks = matches!(grapheme, "\n" | "\r\n");
            let shown = if grapheme == "\t" { "    " } else { grapheme };
            let wide = if breaks { 0 } else { shown.width() };
            if used + wide > width && used > indent.len() {
                rows.push(Line::new(&indent, Look::PLAIN));
                used = indent.len();
            }
            if at == self.cursor {
                cursor = (rows.len() - 1, used);
            }
            if breaks {
                rows.push(Line::new(&indent, Look::PLAIN));
                used = indent.len();
                continue;
            }
            rows.last_mut().expect("there is always a row").push(shown, Look::PLAIN);
            used += wide;
        }
        if self.cursor == self.text.len() {
            // The cursor needs a column of its own.
            if used >= width {
                rows.push(Line::new(&indent, Look::PLAIN));
                used = indent.len();
            }
            cursor = (rows.len() - 1, used);
        }
        (rows, cursor)
    }

    fn find(&self, to: To) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        let mut graphemes = GraphemeCursor::new(self.cursor, self.text.len(), true);
        let is_word = |word: &str| word.chars().any(char::is_alphanumeric);
        match to {
            To::Left => graphemes.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0),
            To::Right => {
                graphemes.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
            }
            To::WordLeft => {
                let mut words = before.split_word_bound_indices().rev();
                words.find(|(_, word)| is_word(word)).map_or(0, |(at, _)| at)
            }
            To::WordRight => {
                let mut words = after.split_word_bound_indices();
                let next = words.find(|(_, word)| is_word(word));
                next.map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
            }
            To::LineStart => before.rfind('\n').map_or(0, |at| at + 1),
            To::LineEnd => after.find('\n').map_or(self.text.len(), |at| self.cursor + at),
        }
    }

    fn is_boundary(&self, at: usize) -> bool {
        GraphemeCursor::new(at, self.text.len(), true).is_boundary(&self.text, 0).unwrap_or(true)
    }

    /// The place in the line that begins at `start` which is nearest to `column`.
    fn at_column(&self, start: usize, column: usize) -> usize {
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let mut used = 0;
        for (at, grapheme) in line.grapheme_indices(true) {
            if used >= column {
                return start + at;
            }
            used += grapheme.width();
        }
        start + line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with the cursor as `|`.
    fn shown(editor: &Editor) -> String {
        let (before, after) = editor.text.split_at(editor.cursor);
        format!("{before}|{after}")
    }

    fn editor(shown: &str) -> Editor {
        let cursor = shown.find('|').unwrap();
        Editor { text: shown.replace('|', ""), cursor, cut: String::new() }
    }

    #[test]
    fn the_cursor_goes_by_characters_words_and_lines() {
        #[rustfmt::skip]
        let cases = [
            ("ab|c",            To::Left,      "a|bc"),
            ("|abc",            To::Left,      "|abc"),
            ("a|👩‍🚀b",            To::Right,     "a👩‍🚀|b"),
            ("ae\u{301}|",      To::Left,      "a|e\u{301}"),
            ("abc|",            To::Right,     "abc|"),
            ("one two|",        To::WordLeft,  "one |two"),
            ("one, |two",       To::WordLeft,  "|one, two"),
            ("one| two three",  To::WordRight, "one two| three"),
            ("one |",           To::WordRight, "one |"),
            ("one\ntw|o\nx",    To::LineStart, "one\n|two\nx"),
            ("one\ntw|o\nx",    To::LineEnd,   "one\ntwo|\nx"),
        ];
        for (before, to, after) in cases {
            let mut editor = editor(before);
            editor.go(to);
            assert_eq!(shown(&editor), after, "{before} {to:?}");
        }
    }

    #[test]
    fn what_was_cut_can_be_had_back() {
        let mut editor = editor("one two| three");
        editor.delete(To::WordLeft);
        assert_eq!(shown(&editor), "one | three");
        editor.delete(To::Left);
        editor.go(To::LineEnd);
        assert!(editor.paste_cut());
        assert_eq!(shown(&editor), "one threetwo|");
        editor.delete(To::LineStart);
        assert_eq!(shown(&editor), "|");
    }

    #[test]
    fn up_and_down_keep_the_column_as_it_is_seen() {
        let mut editor = editor("你好世界\nabcdef|\nx");
        assert!(editor.up());
        assert_eq!(shown(&editor), "你好世|界\nabcdef\nx");
        assert!(!editor.up());
        assert!(editor.down() && editor.down());
        assert_eq!(shown(&editor), "你好世界\nabcdef\nx|");
        assert!(!editor.down());
    }

    #[test]
    fn pasted_text_is_taken_whole_but_harmless_and_within_the_limit() {
        let mut editor = Editor::default();
        assert!(editor.insert("a\r\nb\rc\x1b[31m\u{7}\td"));
        assert_eq!(shown(&editor), "a\nb\nc[31m\td|");
        assert!(!editor.insert(&"x".repeat(LONGEST)));
        assert_eq!(shown(&editor), "a\nb\nc[31m\td|");
    }

    #[test]
    fn a_backslash_at_the_end_continues_the_line() {
        for (before, continues, after) in
            [("one\\|", true, "one\n|"), ("one|", false, "one|"), ("on|e\\", false, "on|e\\")]
        {
            let mut editor = editor(before);
            assert_eq!(editor.continue_line(), continues);
            assert_eq!(shown(&editor), after);
        }
    }

    #[test]
    fn rows_are_broken_where_they_are_full_and_the_cursor_is_found() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], (usize, usize)); 6] = [
            ("|",            &["> "],                   (0, 2)),
            ("abc|",         &["> abc"],                (0, 5)),
            ("abcd|",        &["> abcd", "  "],         (1, 2)),
            ("abcd|e",       &["> abcd", "  e"],        (1, 2)),
            ("a\n|b",        &["> a", "  b"],           (1, 2)),
            ("你好|世",       &["> 你好", "  世"],        (1, 2)),
        ];
        for (text, expected, cursor) in cases {
            let (rows, at) = editor(text).rows("> ", 6);
            assert_eq!(rows.iter().map(Line::text).collect::<Vec<_>>(), expected, "{text}");
            assert_eq!(at, cursor, "{text}");
        }
    }
}
