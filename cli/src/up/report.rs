//! What `up` tells the person who started it: a line a change, on standard error.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console::{Style, Term};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::log::Log;

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Just so that one knows.
    Plain,
}

/// Writes status lines; on a terminal with colours and with a line that moves
/// while something takes long. All but that goes to a log as well. Clones write
/// to the same place.
#[derive(Debug, Clone)]
pub(super) struct Report {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    terminal: bool,
    muted: bool,
    log: Option<Log>,
    moving: Option<ProgressBar>,
    /// What the moving line says where lines can't move.
    said: String,
}

impl Report {
    /// On standard error, whatever that is.
    pub(super) fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let inner = Inner { terminal, muted: false, log: None, moving: None, said: String::new() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Keeps what is said from here on in `log` too.
    pub(super) fn keep(&self, log: Log) {
        self.with(|inner| inner.log = Some(log));
    }

    /// Says that something about `process` has changed.
    pub(super) fn say(&self, tone: Tone, process: &str, text: &str) {
        self.with(|inner| inner.line(tone, process, text));
    }

    /// Says what is taking its time at the moment. Where lines can't move, only
    /// its first words count: a number that grows doesn't make a new line.
    pub(super) fn busy(&self, process: &str, what: &str, how_far: &str) {
        self.with(|inner| inner.busy(process, what, how_far));
    }

    /// Nothing takes its time any more.
    pub(super) fn calm(&self) {
        self.with(|inner| {
            if let Some(bar) = inner.moving.take() {
                bar.finish_and_clear();
            }
            inner.said.clear();
        });
    }

    /// The terminal belongs to the chat from here on, or again to us.
    pub(super) fn mute(&self, muted: bool) {
        self.calm();
        self.with(|inner| inner.muted = muted);
    }

    fn with(&self, act: impl FnOnce(&mut Inner)) {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Inner {
    fn line(&mut self, tone: Tone, process: &str, text: &str) {
        if let Some(log) = &self.log {
            log.note(&format!("{process}: {text}"));
        }
        if self.muted {
            return;
        }
        let (mark, style) = match tone {
            Tone::Good => ("✓", Style::new().green()),
            Tone::Warning => ("!", Style::new().yellow()),
            Tone::Plain => ("·", Style::new().dim()),
        };
        if !self.terminal {
            let _written = writeln!(std::io::stderr(), "openpact: {process}: {text}");
            self.said.clear();
            return;
        }
        let mark = style.for_stderr().apply_to(mark);
        let line = format!("  {mark} {process:<12} {text}");
        match &self.moving {
            Some(bar) => bar.println(line),
            None => {
                let _written = Term::stderr().write_line(&line);
            }
        }
    }

    fn busy(&mut self, process: &str, what: &str, how_far: &str) {
        if self.muted {
            return;
        }
        if !self.terminal {
            let said = format!("{process}: {what}");
            if self.said != said {
                self.said = said;
                let _written = writeln!(std::io::stderr(), "openpact: {process}: {what}");
            }
            return;
        }
        let bar = self.moving.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("  {spinner} {msg} {elapsed:.dim}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        bar.set_message(format!("{process:<12} {what} {how_far}").trim_end().to_owned());
    }
}
