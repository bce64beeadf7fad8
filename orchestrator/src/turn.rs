//! One turn: asks the engine, keeps the journal, shows drafts, ends it in the store.

mod record;

use std::sync::Arc;
use std::time::Duration;

use openpact_runtime::redact::Redactor;
use openpact_store::model::{At, DeliveryKind, Event, Mode, NewDelivery, Outcome, Session, Turn};
use openpact_store::{State, StoreError};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::record::{Record, Recorder};
use crate::context::Context;
use crate::engine::{Answer, Ask, Engine, EngineError, File, Progress, ProgressSender};
use crate::hub::{Hub, Outgoing};
use crate::notice;

/// How often the engine is asked in one turn, if asking again is safe.
const ATTEMPTS: u32 = 3;
/// How many pieces of progress may wait to be written to the journal.
const PROGRESS_QUEUE: usize = 512;
/// Between two tries to reach an engine that is away, and to write to a store that fails.
const PAUSE: Duration = Duration::from_millis(500);
const STORE_TRIES: u32 = 20;

/// What turns need to run.
#[derive(Clone)]
pub struct Turns {
    /// Where they are kept.
    pub store: Arc<dyn State>,
    /// Who answers.
    pub engine: Arc<dyn Engine>,
    /// Who sees the drafts.
    pub hub: Hub,
    /// What the model is told.
    pub context: Context,
    /// `provider/model` for channels that didn't choose; `None`: the engine's default.
    pub model: Option<String>,
    /// Takes out what must not get into the journal or a chat.
    pub redactor: Redactor,
    /// How long an engine that is away is waited for before it's asked.
    pub engine_wait: Duration,
}

impl Turns {
    /// Runs a turn to its end in the store. `cancel` ends it early.
    ///
    /// A turn that had been asked before (by a process that was killed) is not
    /// asked again unless it's known that nothing came of it.
    pub async fn run(&self, turn: &Turn, cancel: &CancellationToken) {
        let place = &turn.channel.place;
        self.hub.offer(Outgoing::Typing { place: place.clone(), on: true });
        let (progress, received) = mpsc::channel(PROGRESS_QUEUE);
        let recorder = Recorder::new(self, turn);
        let asking = async {
            let result = self.pursue(turn, &progress, cancel).await;
            drop(progress);
            result
        };
        let (result, record) = tokio::join!(asking, recorder.run(received));
        self.end(turn, result, record).await;
        self.hub.offer(Outgoing::Typing { place: place.clone(), on: false });
    }

    /// Ends a turn whose running panicked.
    pub async fn end_after_panic(&self, turn: &Turn) {
        let text = "Something went wrong inside OpenPact while I answered; the log has the \
                    details. Please ask again.";
        let event = Event { kind: "failed".into(), detail: json!({"error": "panic"}) };
        let delivery = reply(turn, DeliveryKind::Failure, text.into());
        self.close(turn, Outcome::Failed, event, delivery, Vec::new()).await;
    }

    async fn pursue(
        &self,
        turn: &Turn,
        progress: &ProgressSender,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let mut asked = turn.attempt;
        let mut session = turn.session.clone();
        let mut before = turn.session.engine_session.clone().zip(turn.engine_message.clone());
        loop {
            let result = match before.take() {
                Some((session, message)) => {
                    self.engine.collect(&session, &message, progress, cancel).await
                }
                None => {
                    asked += 1;
                    self.ask(turn, &mut session, progress, cancel).await
                }
            };
            let error = match result {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if asked >= ATTEMPTS || !self.may_ask_again(turn, &mut session, &error).await {
                return Err(error);
            }
            tracing::info!(turn = turn.id, error = %openpact_runtime::chain(&error), "asking again");
            drop(progress.send(Progress::Anew).await);
        }
    }

    /// Nothing was done yet that asking again would do twice.
    async fn may_ask_again(&self, turn: &Turn, session: &mut Session, error: &EngineError) -> bool {
        match error {
            EngineError::NotStarted | EngineError::Interrupted { tool: None } => true,
            EngineError::NoSession { .. } => {
                session.engine_session = None;
                let forgotten = self.store.set_engine_session(&turn.session.id, None).await;
                forgotten.inspect_err(report).is_ok()
            }
            EngineError::Unreachable(_)
            | EngineError::Interrupted { tool: Some(_) }
            | EngineError::Lost { .. }
            | EngineError::Model { .. }
            | EngineError::Empty
            | EngineError::Stalled { .. }
            | EngineError::TooLong { .. }
            | EngineError::TooManySteps { .. }
            | EngineError::Stopped => false,
        }
    }

    async fn ask(
        &self,
        turn: &Turn,
        session: &mut Session,
        progress: &ProgressSender,
        cancel: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let engine_session = match &session.engine_session {
            Some(known) => known.clone(),
            None => {
                let made = self.create_session(turn, cancel).await?;
                session.engine_session = Some(made.clone());
                made
            }
        };
        let ask = Ask {
            session: engine_session,
            message: self.engine.message_id(),
            system: self.context.system(At::now()),
            text: self.context.prompt(turn),
            files: files(turn),
            model: turn.channel.model.clone().or_else(|| self.model.clone()),
        };
        // From here on a crash leaves behind what to look for.
        self.store
            .begin_attempt(&turn.id, &ask.message)
            .await
            .map_err(|error| EngineError::Unreachable(error.into()))?;
        self.engine.answer(&ask, progress, cancel).await
    }

    /// Waits for an engine that is away, such as one that restarts.
    async fn create_session(
        &self,
        turn: &Turn,
        cancel: &CancellationToken,
    ) -> Result<String, EngineError> {
        let until = Instant::now() + self.engine_wait;
        let title = if turn.session.title.is_empty() {
            let place = &turn.channel.place;
            format!("{} {}", place.provider, place.channel)
        } else {
            turn.session.title.clone()
        };
        loop {
            let error = match self.engine.create_session(&title).await {
                Ok(session) => {
                    let noted =
                        self.store.set_engine_session(&turn.session.id, Some(session.clone()));
                    noted.await.map_err(|error| EngineError::Unreachable(error.into()))?;
                    return Ok(session);
                }
                Err(error) => error,
            };
            if Instant::now() > until {
                return Err(error);
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = cancel.cancelled() => return Err(EngineError::Stopped),
            }
        }
    }

    async fn end(&self, turn: &Turn, result: Result<Answer, EngineError>, record: Record) {
        let (outcome, event, delivery) = match result {
            Ok(answer) => {
                let detail = json!({"usage": answer.usage, "note": answer.note});
                let event = Event { kind: "answered".into(), detail };
                let text = shown(&answer, turn.channel.mode);
                let text = self.redactor.redact(&text).into_owned();
                (Outcome::Answered, event, reply(turn, DeliveryKind::Answer, text))
            }
            Err(EngineError::Stopped) => {
                let event = Event { kind: "stopped".into(), detail: json!({}) };
                let text = match record.text.trim() {
                    "" => "Stopped.".to_owned(),
                    text => format!("{text}\n\n*Stopped.*"),
                };
                (Outcome::Cancelled, event, reply(turn, DeliveryKind::Notice, text))
            }
            Err(error) => {
                let chain = openpact_runtime::chain(&error);
                tracing::warn!(turn = turn.id, error = %chain, "a turn failed");
                let detail = json!({"error": self.redactor.redact(&chain)});
                let event = Event { kind: "failed".into(), detail };
                let text = notice::failure(&error);
                let text = self.redactor.redact(&text).into_owned();
                (Outcome::Failed, event, reply(turn, DeliveryKind::Failure, text))
            }
        };
        self.close(turn, outcome, event, delivery, record.unwritten).await;
    }

    /// Ends the turn in the store; until it has, the turn isn't over.
    async fn close(
        &self,
        turn: &Turn,
        outcome: Outcome,
        event: Event,
        delivery: NewDelivery,
        unwritten: Vec<Event>,
    ) {
        for attempt in 1..=STORE_TRIES {
            // Both go into one commit.
            let ended = async {
                let end =
                    self.store.end_turn(&turn.id, outcome, event.clone(), vec![delivery.clone()]);
                if unwritten.is_empty() {
                    return end.await;
                }
                let (kept, ended) =
                    tokio::join!(self.store.append_events(&turn.id, unwritten.clone()), end);
                kept.and(ended)
            };
            match ended.await {
                Ok(_) => {
                    self.hub.wake(&turn.channel.place.provider);
                    return;
                }
                Err(error) => {
                    tracing::error!(error = %openpact_runtime::chain(&error), attempt, turn = turn.id, "a turn can't be ended");
                    tokio::time::sleep(PAUSE * attempt).await;
                }
            }
        }
    }
}

fn report(error: &StoreError) {
    tracing::error!(error = %openpact_runtime::chain(error), "the store failed in a turn");
}

/// What the channel gets to see of an answer.
fn shown(answer: &Answer, mode: Mode) -> String {
    let text = match mode {
        Mode::Simple | Mode::Thinking => &answer.text,
        Mode::Tools | Mode::Full => &answer.all_text,
    };
    match &answer.note {
        Some(note) => format!("{text}\n\n*{note}*"),
        None => text.clone(),
    }
}

/// The end of a turn as its channel sees it: an answer to the newest message.
fn reply(turn: &Turn, kind: DeliveryKind, text: String) -> NewDelivery {
    let last = turn.messages.last();
    NewDelivery {
        place: turn.channel.place.clone(),
        kind,
        text,
        reply_to: last.map(|message| message.new.message_id.clone()).unwrap_or_default(),
        buttons: Vec::new(),
        answers: Vec::new(),
    }
}

/// What models take in as files; anything else is only mentioned in the text.
fn files(turn: &Turn) -> Vec<File> {
    let attachments = turn.messages.iter().flat_map(|message| &message.new.attachments);
    let files = attachments.map(|it| {
        let shown = it.mime.starts_with("image/") || it.mime == "application/pdf";
        if shown || it.mime.starts_with("text/") {
            return File {
                filename: it.filename.clone(),
                mime: it.mime.clone(),
                content: it.content.clone(),
            };
        }
        let text = format!(
            "[The file `{}` ({}, {} bytes) came with the message; its kind can't be shown to you.]",
            it.filename,
            it.mime,
            it.content.len()
        );
        File {
            filename: it.filename.clone(),
            mime: "text/plain".into(),
            content: text.into_bytes(),
        }
    });
    files.collect()
}
