//! What the chat shows, and what keys and events change about it. Knows no terminal.

mod live;

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use openpact_frontend::message::{Activity, ActivityState, Draft, Kind};
use openpact_frontend::{Accepted, Link, SubmitError};
use openpact_proto::control::v1::Message;

use super::complete::{Completion, complete};
use super::editor::{Editor, LONGEST};
use super::history::History;
use super::keys::Action;
use super::look::{Line, Look};
use super::markdown;
use crate::hub::aside::{LinkNews, activity_line, queued_line};
use crate::hub::terminal::{Event, Post};

/// How soon the second Ctrl-C must follow the first one to leave.
const TWICE: Duration = Duration::from_secs(2);
/// How many lines of an earlier message are shown at the start.
const EARLIER_LINES: usize = 12;
/// How many answered messages are remembered whose acceptance isn't known yet.
const ANSWERED: usize = 64;
/// Before what a person wrote.
const PROMPT: &str = "› ";

/// What is to be done outside of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Send this, and tell [`View::sent`] and [`View::taken`].
    Submit(String),
    /// Clear the screen.
    Clear,
    /// Leave.
    Quit,
}

/// A message that isn't answered yet.
#[derive(Debug)]
struct Waiting {
    message_id: String,
    /// OpenPact's id, once it's accepted.
    id: Option<String>,
}

/// All that is shown.
#[derive(Debug, Default)]
pub(crate) struct View {
    editor: Editor,
    history: History,
    /// Finished lines that aren't printed yet.
    finished: Vec<Line>,
    waiting: Vec<Waiting>,
    answered: VecDeque<String>,
    typing: bool,
    draft: Option<Draft>,
    running: Vec<Activity>,
    busy_since: Option<Instant>,
    hint: Option<String>,
    news: LinkNews,
    disconnected: bool,
    interrupted_at: Option<Instant>,
    /// Deliveries that were shown as earlier messages.
    known: HashSet<String>,
}

impl View {
    /// Shows who this is and what was said last.
    pub(crate) fn begin(&mut self, greeting: &str, earlier: &[Message]) {
        self.note(greeting);
        for message in earlier {
            if message.outgoing {
                self.known.insert(message.id.clone());
            } else {
                self.history.push(&message.text);
            }
            let mark = if message.outgoing { "" } else { PROMPT };
            let mut lines = markdown::lines(&format!("{mark}{}", message.text), Look::DIM);
            let cut = lines.len() > EARLIER_LINES;
            lines.truncate(EARLIER_LINES);
            self.finished.append(&mut lines);
            if cut {
                self.note("…");
            }
            if message.outgoing {
                self.finished.push(Line::default());
            }
        }
    }

    /// The lines that are to be printed now.
    pub(crate) fn take_finished(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.finished)
    }

    /// An answer is being made, so time passes visibly.
    pub(crate) fn is_busy(&self) -> bool {
        self.typing || !self.waiting.is_empty()
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, action: Action, now: Instant) -> Option<Effect> {
        self.hint = None;
        match action {
            Action::Insert(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Action::Newline => self.insert("\n"),
            Action::Enter => return self.enter(),
            Action::Go(to) => self.editor.go(to),
            Action::Delete(to) => self.editor.delete(to),
            Action::PasteCut => {
                let fits = self.editor.paste_cut();
                self.fits(fits);
            }
            Action::Up => {
                if !self.editor.up() {
                    self.earlier();
                }
            }
            Action::Down => {
                if !self.editor.down() {
                    self.later();
                }
            }
            Action::Earlier => self.earlier(),
            Action::Later => self.later(),
            Action::Complete => self.complete(),
            Action::Escape => {}
            Action::Interrupt => return self.interrupt(now),
            Action::Leave if self.editor.is_empty() => return Some(Effect::Quit),
            Action::Leave => self.editor.delete(super::editor::To::Right),
            Action::Clear => return Some(Effect::Clear),
        }
        None
    }

    /// Text came from the clipboard.
    pub(crate) fn paste(&mut self, text: &str) {
        self.hint = None;
        self.insert(text);
    }

    /// A message goes out.
    pub(crate) fn sent(&mut self, message_id: &str, text: &str, now: Instant) {
        let mut lines = text.lines();
        let mut first = Line::new(PROMPT, Look::OWN);
        first.push(lines.next().unwrap_or_default(), Look::BOLD);
        self.finished.push(first.hanging(2));
        for line in lines {
            self.finished.push(Line::new(&format!("  {line}"), Look::BOLD).hanging(2));
        }
        self.waiting.push(Waiting { message_id: message_id.to_owned(), id: None });
        self.busy_since.get_or_insert(now);
    }

    /// A message was taken, or not.
    pub(crate) fn taken(&mut self, message_id: &str, verdict: Result<Accepted, SubmitError>) {
        match verdict {
            Ok(accepted) if self.answered.contains(&accepted.id) => self.done(message_id),
            Ok(accepted) => {
                let waiting = self.waiting.iter_mut().find(|it| it.message_id == message_id);
                if let Some(waiting) = waiting {
                    waiting.id = Some(accepted.id);
                }
            }
            Err(error) => {
                self.done(message_id);
                self.finished.push(Line::new(&format!("✗ not sent: {error}"), Look::BAD));
            }
        }
    }

    /// The connection has changed.
    pub(crate) fn link(&mut self, link: &Link) {
        self.disconnected = matches!(link, Link::Down { .. });
        if let Some(news) = self.news.of(link) {
            self.note(&news);
        }
        if self.disconnected {
            // Whoever said so can't take it back now.
            self.typing = false;
            self.settle();
        }
    }

    /// Something came. What is returned is to be confirmed once it's on the screen.
    pub(crate) fn event(&mut self, event: Event, now: Instant) -> Option<Post> {
        match event {
            Event::Post(post) => {
                self.post(&post);
                return Some(post);
            }
            Event::Edited(text) => self.note(&format!("changed: {text}")),
            Event::Draft(draft) => {
                let is_old = self.draft.as_ref().is_some_and(|shown| {
                    shown.turn == draft.turn && shown.revision > draft.revision
                });
                if !is_old {
                    self.draft = Some(draft);
                }
            }
            Event::Typing(on) => {
                self.typing = on;
                if on {
                    self.busy_since.get_or_insert(now);
                }
                self.settle();
            }
            Event::Activity(activity) => self.activity(activity),
            Event::Queued { ahead } => self.note(&queued_line(ahead)),
        }
        None
    }

    fn post(&mut self, post: &Post) {
        let delivery = &post.delivery;
        self.answered.extend(delivery.answers.iter().cloned());
        while self.answered.len() > ANSWERED {
            self.answered.pop_front();
        }
        self.waiting.retain(|it| {
            it.message_id != delivery.reply_to
                && !it.id.as_ref().is_some_and(|id| delivery.answers.contains(id))
        });
        let thought = match &self.draft {
            Some(draft) if draft.turn == delivery.turn => self.draft.take().map(|it| it.reasoning),
            _ => None,
        };
        if !delivery.turn.is_empty() {
            self.running.retain(|activity| activity.turn != delivery.turn);
        }
        self.settle();
        if self.known.contains(&delivery.id) {
            return;
        }
        if let Some(thought) = thought {
            self.finished.extend(markdown::lines(&thought, Look::DIM));
        }
        let lines = match post.kind() {
            Kind::Answer | Kind::Notice => markdown::lines(post.text(), Look::PLAIN),
            Kind::Failure => markdown::lines(&format!("✗ {}", post.text()), Look::BAD),
        };
        self.finished.extend(lines);
        self.finished.push(Line::default());
    }

    fn activity(&mut self, activity: Activity) {
        self.running.retain(|other| other.call != activity.call);
        match activity.state {
            ActivityState::Running => self.running.push(activity),
            ActivityState::Completed => self.note(&activity_line(&activity)),
            ActivityState::Failed => {
                self.finished.push(Line::new(&activity_line(&activity), Look::BAD).hanging(2));
            }
        }
    }

    fn note(&mut self, text: &str) {
        self.finished.extend(text.lines().map(|line| Line::new(line, Look::DIM).hanging(2)));
    }

    fn done(&mut self, message_id: &str) {
        self.waiting.retain(|it| it.message_id != message_id);
        self.settle();
    }

    fn settle(&mut self) {
        if !self.is_busy() {
            self.busy_since = None;
        }
    }

    fn insert(&mut self, text: &str) {
        let fits = self.editor.insert(text);
        self.fits(fits);
    }

    fn fits(&mut self, fits: bool) {
        if !fits {
            self.hint = Some(format!("a message has {} KiB at most", LONGEST / 1024));
        }
    }

    fn enter(&mut self) -> Option<Effect> {
        if self.editor.continue_line() || self.editor.text().trim().is_empty() {
            return None;
        }
        let text = self.editor.take();
        self.history.push(&text);
        if matches!(text.trim(), "/quit" | "/exit") {
            return Some(Effect::Quit);
        }
        Some(Effect::Submit(text.trim_end().to_owned()))
    }

    fn earlier(&mut self) {
        if let Some(text) = self.history.back(self.editor.text()) {
            self.editor.set(text);
        }
    }

    fn later(&mut self) {
        if let Some(text) = self.history.forward() {
            self.editor.set(text);
        }
    }

    fn complete(&mut self) {
        match complete(self.editor.before_cursor()) {
            Completion::Append(text) => self.insert(&text),
            Completion::Several(names) => self.hint = Some(names),
            Completion::None => {}
        }
    }

    fn interrupt(&mut self, now: Instant) -> Option<Effect> {
        if self.is_busy() && !self.disconnected {
            // Whatever comes of it, the next Ctrl-C is not for this answer.
            self.waiting.clear();
            self.typing = false;
            self.settle();
            return Some(Effect::Submit("/stop".into()));
        }
        if !self.editor.is_empty() {
            self.history.push(&self.editor.take());
            return None;
        }
        let first = self.interrupted_at.replace(now);
        if first.is_some_and(|first| now.duration_since(first) < TWICE) {
            return Some(Effect::Quit);
        }
        self.hint = Some("Ctrl-C once more leaves".into());
        None
    }
}

#[cfg(test)]
mod tests;
