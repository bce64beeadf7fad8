//! The terminal: what scrolls away above, and what changes below.
//!
//! Finished lines are printed once and belong to the terminal's scrollback. Below
//! them are the live rows (a draft, what runs, the input), which are drawn anew
//! with each change.

use std::io::{self, Write};

use crossterm::cursor::{MoveTo, MoveToColumn, MoveUp};
use crossterm::queue;
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};

use super::look::Line;

/// The live rows, and where in them the cursor is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Live {
    /// Each fits the screen's width.
    pub(crate) rows: Vec<Line>,
    /// Row and column.
    pub(crate) cursor: (usize, usize),
}

/// A terminal in raw mode.
#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    width: usize,
    height: usize,
    /// Widths of the live rows as they were drawn.
    drawn: Vec<usize>,
    cursor: (usize, usize),
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(out: W, (width, height): (u16, u16)) -> Self {
        let mut screen = Self { out, width: 0, height: 0, drawn: Vec::new(), cursor: (0, 0) };
        screen.resize((width, height));
        screen
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// The terminal has another size. Draw afterwards.
    pub(crate) fn resize(&mut self, (width, height): (u16, u16)) {
        // A terminal that doesn't know its size says 0.
        self.width = if width == 0 { 80 } else { width.max(4).into() };
        self.height = if height == 0 { 24 } else { height.max(3).into() };
    }

    /// Prints `lines` above the live rows and draws these.
    pub(crate) fn update(&mut self, lines: &[Line], live: &Live) -> io::Result<()> {
        queue!(self.out, BeginSynchronizedUpdate)?;
        self.erase()?;
        for line in lines.iter().flat_map(|line| line.printed(self.width)) {
            line.write(&mut self.out)?;
            write!(self.out, "\r\n")?;
        }
        self.draw(live)?;
        queue!(self.out, EndSynchronizedUpdate)?;
        self.out.flush()
    }

    /// Clears everything but the live rows.
    pub(crate) fn clear(&mut self, live: &Live) -> io::Result<()> {
        queue!(self.out, Clear(ClearType::All), MoveTo(0, 0))?;
        self.drawn.clear();
        self.cursor = (0, 0);
        self.update(&[], live)
    }

    /// Takes the live rows away.
    pub(crate) fn end(&mut self, lines: &[Line]) -> io::Result<()> {
        self.update(lines, &Live::default())
    }

    /// Goes to where the live rows begin and clears from there.
    fn erase(&mut self) -> io::Result<()> {
        let (row, column) = self.cursor;
        // A terminal that became narrower has broken the rows above by itself.
        let broken = |width: usize| width.max(1).div_ceil(self.width);
        let above: usize = self.drawn.iter().take(row).map(|width| broken(*width)).sum();
        let up = above + column / self.width;
        if let Ok(up @ 1..) = u16::try_from(up) {
            queue!(self.out, MoveUp(up))?;
        }
        queue!(self.out, MoveToColumn(0), Clear(ClearType::FromCursorDown))
    }

    fn draw(&mut self, live: &Live) -> io::Result<()> {
        // More rows than the screen has would scroll away and be printed over and over.
        let hidden = live.rows.len().saturating_sub(self.height - 1);
        let rows = &live.rows[hidden..];
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                write!(self.out, "\r\n")?;
            }
            row.write(&mut self.out)?;
        }
        let last = rows.len().saturating_sub(1);
        let row = live.cursor.0.saturating_sub(hidden).min(last);
        let column = live.cursor.1.min(self.width - 1);
        if let Ok(up @ 1..) = u16::try_from(last - row) {
            queue!(self.out, MoveUp(up))?;
        }
        queue!(self.out, MoveToColumn(u16::try_from(column).unwrap_or(u16::MAX)))?;
        self.drawn = rows.iter().map(Line::width).collect();
        self.cursor = (row, column);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::Look;
    use super::*;

    /// A screen, and what a terminal of that size makes of what it writes.
    struct Seen {
        screen: Screen<Vec<u8>>,
        terminal: vt100::Parser,
    }

    fn terminal(width: u16, height: u16) -> vt100::Parser {
        vt100::Parser::new(height.try_into().unwrap(), width.try_into().unwrap(), 100)
    }

    impl Seen {
        fn new(width: u16, height: u16) -> Self {
            let screen = Screen::new(Vec::new(), (width, height));
            Self { screen, terminal: terminal(width, height) }
        }

        fn update(&mut self, lines: &[&str], rows: &[&str], cursor: (usize, usize)) {
            let new = |text: &&str| Line::new(text, Look::DIM);
            let lines: Vec<_> = lines.iter().map(new).collect();
            let live = Live { rows: rows.iter().map(new).collect(), cursor };
            self.screen.update(&lines, &live).unwrap();
            self.terminal.process(&std::mem::take(&mut self.screen.out));
        }

        fn text(&self) -> String {
            let contents = self.terminal.screen().contents();
            contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
        }
    }

    #[test]
    fn printed_lines_stay_and_live_rows_are_replaced() {
        let mut seen = Seen::new(20, 10);
        seen.update(&["hello"], &["draft one", "> "], (1, 2));
        assert_eq!(seen.text(), "hello\ndraft one\n>");
        seen.update(&[], &["draft one", "and two", "> typed", "more"], (2, 4));
        assert_eq!(seen.text(), "hello\ndraft one\nand two\n> typed\nmore");
        assert_eq!(seen.terminal.screen().cursor_position(), (3, 4));
        seen.update(&["the answer"], &["> typed"], (0, 7));
        assert_eq!(seen.text(), "hello\nthe answer\n> typed");
    }

    #[test]
    fn what_scrolls_is_printed_once() {
        let mut seen = Seen::new(10, 4);
        for number in 0..10 {
            seen.update(&[&format!("line {number}")], &["draft", "> "], (1, 2));
        }
        assert_eq!(seen.text(), "line 8\nline 9\ndraft\n>");
        seen.terminal.screen_mut().set_scrollback(4);
        assert_eq!(seen.text(), "line 4\nline 5\nline 6\nline 7");
    }

    #[test]
    fn live_rows_that_are_too_many_show_their_end() {
        let mut seen = Seen::new(10, 4);
        seen.update(&["above"], &["1", "2", "3", "4", "5", "> "], (5, 2));
        seen.update(&[], &["1", "2", "3", "4", "5", "> x"], (5, 3));
        assert_eq!(seen.text(), "above\n4\n5\n> x");
    }

    #[test]
    fn a_narrower_terminal_keeps_no_remains() {
        let mut seen = Seen::new(20, 10);
        seen.update(&["hello"], &["a row of 19 columns", "> "], (1, 2));
        // What a terminal that breaks rows anew shows at ten columns.
        seen.terminal = terminal(10, 10);
        seen.terminal.process(b"hello\r\na row of 1\r\n9 columns\r\n> ");
        seen.screen.resize((10, 10));
        seen.update(&[], &["a row", "> "], (1, 2));
        assert_eq!(seen.text(), "hello\na row\n>");
    }
}
