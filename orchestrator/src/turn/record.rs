//! The journal of a running turn, and the draft that its channel sees.
//!
//! What happens goes to the journal first and to the channel then. Text is
//! gathered for a moment, so that a commit and an edit serve many tokens.

use std::time::Duration;

use openpact_runtime::redact::Stream;
use openpact_store::model::{At, Event, Mode, Turn};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Turns;
use crate::engine::{Progress, ToolCall, ToolState};
use crate::hub::{Activity, Draft, Outgoing};

/// How long text is gathered.
const GATHER: Duration = Duration::from_millis(120);
/// After the journal couldn't be written.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// Pieces of progress taken at once.
const BATCH: usize = 256;
/// The longest draft that is shown; the answer itself has no such limit.
const LONGEST_DRAFT: usize = 64 * 1024;
/// The longest detail of a tool call that is shown.
const LONGEST_DETAIL: usize = 200;

/// What is left when the progress has ended.
pub(super) struct Record {
    /// The text so far.
    pub(super) text: String,
    /// What isn't in the journal yet.
    pub(super) unwritten: Vec<Event>,
}

pub(super) struct Recorder<'a> {
    turns: &'a Turns,
    turn: &'a Turn,
    stretches: Vec<Stretch>,
    events: Vec<Event>,
    activities: Vec<Activity>,
    revision: u64,
    /// Text came that isn't in a draft yet.
    is_stale: bool,
}

struct Stretch {
    id: String,
    reasoning: bool,
    /// Holds back what may be the beginning of a secret.
    redacting: Stream,
    /// What came out of it so far.
    text: String,
    /// How much of `text` is in the journal.
    written: usize,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(turns: &'a Turns, turn: &'a Turn) -> Self {
        let (stretches, events, activities) = (Vec::new(), Vec::new(), Vec::new());
        // From the clock, so that it rises on after a restart as well.
        let revision = u64::try_from(At::now().0).unwrap_or(0);
        Self { turns, turn, stretches, events, activities, revision, is_stale: false }
    }

    /// Keeps the record until the progress ends.
    pub(super) async fn run(mut self, mut progress: mpsc::Receiver<Progress>) -> Record {
        let mut batch = Vec::with_capacity(BATCH);
        let mut flush_at = Instant::now();
        loop {
            let pending = self.is_stale || !self.events.is_empty();
            tokio::select! {
                got = progress.recv_many(&mut batch, BATCH) => {
                    if got == 0 {
                        break;
                    }
                    for progress in batch.drain(..) {
                        if self.take(progress) {
                            flush_at = Instant::now();
                        }
                    }
                }
                () = sleep_until(flush_at), if pending => {
                    self.flush().await;
                    flush_at = Instant::now() + GATHER;
                }
            }
        }
        for stretch in &mut self.stretches {
            let rest = stretch.redacting.finish();
            stretch.text.push_str(&rest);
        }
        self.journal_text();
        Record { text: self.text(false), unwritten: self.events }
    }

    /// `true`: worth being shown at once.
    fn take(&mut self, progress: Progress) -> bool {
        match progress {
            Progress::Text { part, more } => self.add(part, false, &more),
            Progress::Reasoning { part, more } => self.add(part, true, &more),
            Progress::Void { part } => {
                self.stretches.retain(|stretch| stretch.id != part);
                self.event("void", json!({ "part": part }));
            }
            Progress::Anew => {
                self.stretches.clear();
                self.event("anew", json!({}));
            }
            Progress::Tool(call) => {
                // What was written before the call stands before it.
                self.journal_text();
                self.tool(call);
                return true;
            }
            Progress::Retry { attempt, reason } => {
                self.event("retry", json!({ "attempt": attempt, "reason": reason }));
                self.activities.push(Activity {
                    place: self.turn.channel.place.clone(),
                    turn: self.turn.id.clone(),
                    call: format!("retry-{attempt}"),
                    tool: "model".into(),
                    ended_well: Some(false),
                    detail: format!("{reason} (asking again)")
                        .chars()
                        .take(LONGEST_DETAIL)
                        .collect(),
                });
            }
        }
        false
    }

    fn add(&mut self, id: String, reasoning: bool, more: &str) {
        self.is_stale = true;
        let known = self.stretches.iter().position(|stretch| stretch.id == id);
        let at = known.unwrap_or_else(|| {
            let (redacting, text) = (self.turns.redactor.stream(), String::new());
            self.stretches.push(Stretch { id, reasoning, redacting, text, written: 0 });
            self.stretches.len() - 1
        });
        let stretch = &mut self.stretches[at];
        let clean = stretch.redacting.push(more);
        stretch.text.push_str(&clean);
    }

    fn tool(&mut self, call: ToolCall) {
        let (state, error) = match &call.state {
            ToolState::Running => ("running", ""),
            ToolState::Completed => ("completed", ""),
            ToolState::Failed(error) => ("failed", error.as_str()),
        };
        self.event(
            "tool",
            json!({"call": call.id, "tool": call.tool, "state": state,
                "input": call.input, "error": error}),
        );
        let detail = if error.is_empty() { &call.input } else { error };
        let detail: String =
            self.turns.redactor.redact(detail).chars().take(LONGEST_DETAIL).collect();
        let ended_well = match call.state {
            ToolState::Running => None,
            ToolState::Completed => Some(true),
            ToolState::Failed(_) => Some(false),
        };
        self.activities.push(Activity {
            place: self.turn.channel.place.clone(),
            turn: self.turn.id.clone(),
            call: call.id,
            tool: call.tool,
            ended_well,
            detail,
        });
    }

    fn event(&mut self, kind: &str, mut detail: serde_json::Value) {
        self.turns.redactor.redact_json(&mut detail);
        self.events.push(Event { kind: kind.to_owned(), detail });
    }

    /// Queues for the journal what was written since the last time.
    fn journal_text(&mut self) {
        for stretch in &mut self.stretches {
            if stretch.written == stretch.text.len() {
                continue;
            }
            let kind = if stretch.reasoning { "reasoning" } else { "text" };
            let detail = json!({"part": stretch.id, "more": &stretch.text[stretch.written..]});
            stretch.written = stretch.text.len();
            self.events.push(Event { kind: kind.to_owned(), detail });
        }
    }

    async fn flush(&mut self) {
        self.journal_text();
        if !self.events.is_empty() {
            let events = std::mem::take(&mut self.events);
            if let Err(error) = self.turns.store.append_events(&self.turn.id, events.clone()).await
            {
                tracing::error!(error = %openpact_runtime::chain(&error), turn = self.turn.id, "the journal can't be written");
                // Not shown before it's written; tried again with what comes,
                // which meanwhile waits with the engine.
                self.events.splice(0..0, events);
                tokio::time::sleep(AFTER_FAILURE).await;
                return;
            }
        }
        let mode = self.turn.channel.mode;
        let activities = std::mem::take(&mut self.activities);
        if matches!(mode, Mode::Tools | Mode::Full) {
            activities.into_iter().for_each(|it| self.turns.hub.offer(Outgoing::Activity(it)));
        }
        if self.is_stale {
            self.draft(mode);
        }
    }

    fn draft(&mut self, mode: Mode) {
        self.is_stale = false;
        self.revision += 1;
        let thinks = matches!(mode, Mode::Thinking | Mode::Full);
        self.turns.hub.offer(Outgoing::Draft(Draft {
            place: self.turn.channel.place.clone(),
            turn: self.turn.id.clone(),
            revision: self.revision,
            text: self.text(false),
            reasoning: if thinks { self.text(true) } else { String::new() },
        }));
    }

    fn text(&self, reasoning: bool) -> String {
        let stretches = self.stretches.iter().filter(|stretch| stretch.reasoning == reasoning);
        let texts: Vec<_> = stretches.map(|stretch| stretch.text.as_str()).collect();
        let mut text = texts.join("\n\n");
        if text.len() > LONGEST_DRAFT {
            text.truncate(text.floor_char_boundary(LONGEST_DRAFT));
            text.push('…');
        }
        text
    }
}
