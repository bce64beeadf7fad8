//! What is said besides answers: on standard error, or not at all.

use std::io::{IsTerminal as _, Write as _};

use console::Style;
use openpact_frontend::Link;
use openpact_frontend::message::{Activity, ActivityState};

use super::terminal::{Event, Post};
use crate::chat::plain;

/// Says things on standard error.
#[derive(Debug)]
pub(crate) struct Aside {
    quiet: bool,
    terminal: bool,
    news: LinkNews,
}

impl Aside {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal(), news: LinkNews::default() }
    }

    /// Says what goes on.
    pub(crate) fn event(&self, event: &Event) {
        match event {
            Event::Activity(activity) => self.note(&activity_line(activity)),
            Event::Queued { ahead } => self.note(&queued_line(*ahead)),
            Event::Edited(text) => self.note(text),
            Event::Post(_) | Event::Draft(_) | Event::Typing(_) => {}
        }
    }

    /// Says how the connection is, if that is news.
    pub(crate) fn link(&mut self, link: &Link) {
        if let Some(news) = self.news.of(link) {
            self.note(&news);
        }
    }

    /// Shows an answer to something that was asked earlier, and confirms it.
    pub(crate) fn late(&self, post: Post) {
        self.say(&format!("[to an earlier message] {}", post.text()));
        post.shown();
    }

    /// Says something that can be done without.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.write(text, &Style::new().for_stderr().dim());
        }
    }

    /// Says something that must be said.
    pub(crate) fn say(&self, text: &str) {
        self.write(text, &Style::new().for_stderr());
    }

    fn write(&self, text: &str, style: &Style) {
        let text = if self.terminal { plain::harmless(text) } else { text.into() };
        // Standard error may be closed; there is nowhere else to say it.
        let _written = writeln!(std::io::stderr(), "{}", style.apply_to(text));
    }
}

/// Tells once that the connection is lost and once that it's back.
#[derive(Debug, Default)]
pub(crate) struct LinkNews {
    lost: bool,
}

impl LinkNews {
    pub(crate) fn of(&mut self, link: &Link) -> Option<String> {
        match link {
            Link::Down { why, .. } if !self.lost => {
                self.lost = true;
                Some(format!("connection lost ({why}); trying again"))
            }
            Link::Up { .. } if self.lost => {
                self.lost = false;
                Some("connected again".into())
            }
            Link::Connecting | Link::Up { .. } | Link::Down { .. } => None,
        }
    }
}

/// A tool call in one line.
pub(crate) fn activity_line(activity: &Activity) -> String {
    let mark = match activity.state {
        ActivityState::Running => "▸",
        ActivityState::Completed => "✓",
        ActivityState::Failed => "✗",
    };
    let detail = activity.detail.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{mark} {} {detail}", activity.tool).trim_end().to_owned()
}

/// That a message waits, in one line.
pub(crate) fn queued_line(ahead: u32) -> String {
    match ahead {
        0 | 1 => "waiting for the running answer".into(),
        more => format!("waiting for the running answer, with {} messages before", more - 1),
    }
}
