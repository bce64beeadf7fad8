//! The rows that change: the answer so far, what runs, and the input.

use std::time::Instant;

use super::super::look::{Line, Look};
use super::super::markdown;
use super::super::screen::Live;
use super::{PROMPT, View};
use crate::hub::aside::activity_line;

/// How many running tools are shown.
const TOOLS: usize = 4;
/// A draft is shown if so many rows are left for it.
const ROWS_FOR_DRAFT: usize = 2;
/// What turns while something is at work.
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

impl View {
    /// The rows for a screen of this size.
    pub(crate) fn live(&self, width: usize, height: usize, now: Instant) -> Live {
        // The last row stays free, so that drawing never scrolls.
        let height = height.saturating_sub(1);
        let (input, (row, column)) = self.editor.rows(PROMPT, width);
        let most = (height / 2).max(1);
        let first = (row + 1).saturating_sub(most);
        let input = &input[first..input.len().min(first + most)];
        let mut below: Vec<Line> = Vec::new();
        if let Some(hint) = &self.hint {
            below.extend(Line::new(hint, Look::DIM).wrapped(width).into_iter().take(2));
        }
        let status = self.status(width, now);
        let taken = input.len() + below.len() + status.len();
        let mut rows = self.draft_rows(width, height.saturating_sub(taken));
        rows.extend(status);
        let cursor = (rows.len() + row - first, column);
        rows.extend_from_slice(input);
        rows.extend(below);
        Live { rows, cursor }
    }

    /// The end of the draft, as much as there is room for.
    fn draft_rows(&self, width: usize, room: usize) -> Vec<Line> {
        let Some(draft) = self.draft.as_ref().filter(|_| room >= ROWS_FOR_DRAFT) else {
            return Vec::new();
        };
        let mut lines = markdown::lines(&draft.reasoning, Look::DIM);
        lines.extend(markdown::lines(&draft.text, Look::PLAIN));
        let mut rows = Vec::new();
        for line in lines.iter().rev() {
            rows.extend(line.wrapped(width).into_iter().rev());
            if rows.len() > room {
                rows.truncate(room - 1);
                rows.push(Line::new("…", Look::DIM));
                break;
            }
        }
        rows.reverse();
        rows
    }

    /// What runs, and how to stop it.
    fn status(&self, width: usize, now: Instant) -> Vec<Line> {
        let row = |text: &str| {
            let rows = Line::new(text, Look::DIM).wrapped(width);
            rows.into_iter().next().unwrap_or_default()
        };
        let last = self.running.len().saturating_sub(TOOLS);
        let mut rows: Vec<_> =
            self.running[last..].iter().map(|it| row(&activity_line(it))).collect();
        if self.disconnected && !self.waiting.is_empty() {
            rows.push(row("no connection: what you wrote is sent when it's back"));
        } else if self.is_busy() {
            let time = self.busy_since.map(|since| now.duration_since(since)).unwrap_or_default();
            let frame = usize::try_from(time.as_millis() / 100).unwrap_or(0) % SPINNER.len();
            rows.push(row(&format!("{} {}s · Ctrl-C stops", SPINNER[frame], time.as_secs())));
        }
        rows
    }
}
