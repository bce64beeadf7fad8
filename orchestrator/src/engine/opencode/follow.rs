//! Follows one question to its end, whatever happens to the events on the way.
//!
//! Events are fast and may be lost; the history is slow and true. The loop
//! lives on events and looks at the history when some may be missing, when
//! nothing was heard for a while, and at the end if something isn't complete.

use std::time::Duration;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::api::{Api, ApiError};
use super::events::Signal;
use super::view::View;
use super::wire::Event;
use crate::engine::{Answer, EngineError, ModelError, Progress, ProgressSender};

/// Without an event for this long, the history is looked at.
const QUIET: Duration = Duration::from_secs(5);
/// Between two looks while something is unclear.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Looks at an idle session before a question counts as cut off…
const LOOKS_IF_BEGUN: u32 = 3;
/// …and as never taken up: a cold engine needs seconds to begin.
const LOOKS_IF_NOT: u32 = 15;
/// How long an engine may take to stop a turn.
const HALT: Duration = Duration::from_secs(5);

/// A question on its way to an answer.
pub(super) struct Follow<'a> {
    pub(super) api: &'a Api,
    pub(super) limits: Limits,
    pub(super) session: &'a str,
    pub(super) question: &'a str,
    pub(super) signals: broadcast::Receiver<Signal>,
    pub(super) progress: &'a ProgressSender,
    pub(super) stop: &'a CancellationToken,
}

/// What the loop waits on besides events.
struct Clock {
    look: Instant,
    stalled: Instant,
    deadline: Instant,
    /// Since when the provider fails and is asked again.
    failing: Instant,
    /// Since when the engine can't be reached.
    away: Option<Instant>,
    /// Looks in a row that found the session idle and the question not answered.
    idle_looks: u32,
}

impl Follow<'_> {
    /// Waits for the answer. `look_first`: something may have happened before
    /// `signals` were subscribed to.
    pub(super) async fn run(mut self, look_first: bool) -> Result<Answer, EngineError> {
        let mut view = View::new(self.question);
        let now = Instant::now();
        let mut clock = Clock {
            look: if look_first { now } else { now + QUIET },
            stalled: now + self.limits.stall,
            deadline: now + self.limits.turn,
            failing: now,
            away: None,
            idle_looks: 0,
        };
        loop {
            let over = tokio::select! {
                biased;
                () = self.stop.cancelled() => Some(Err(self.halt(EngineError::Stopped).await)),
                signal = self.signals.recv() => self.heard(signal, &mut view, &mut clock).await,
                () = sleep_until(clock.look) => self.look(&mut view, &mut clock).await,
                () = sleep_until(clock.deadline) => {
                    Some(Err(self.halt(EngineError::TooLong { limit: self.limits.turn }).await))
                }
                () = sleep_until(clock.stalled) => {
                    Some(Err(self.halt(EngineError::Stalled { silent: self.limits.stall }).await))
                }
            };
            if let Some(over) = over {
                return over;
            }
        }
    }

    async fn heard(
        &self,
        signal: Result<Signal, RecvError>,
        view: &mut View,
        clock: &mut Clock,
    ) -> Option<Result<Answer, EngineError>> {
        let event = match signal {
            Ok(Signal::Event(event)) if event.session() == self.session => event,
            Ok(Signal::Event(event)) => {
                let unknown = matches!(*event, Event::Error { .. }) && event.session().is_empty();
                if unknown {
                    clock.look = Instant::now();
                }
                return None;
            }
            Ok(Signal::Gap) | Err(RecvError::Lagged(_)) => {
                clock.look = Instant::now();
                return None;
            }
            // The feed ends with the process.
            Err(RecvError::Closed) => return Some(Err(EngineError::Stopped)),
        };
        clock.stalled = Instant::now() + self.limits.stall;
        clock.look = Instant::now() + QUIET;
        clock.idle_looks = 0;
        self.refuse(&event).await;
        self.tell(view.apply(&event)).await;
        if let Some(wrong) = self.gone_wrong(view, clock) {
            return Some(self.give_up(view, wrong).await);
        }
        if !view.is_idle() {
            return None;
        }
        if view.is_whole() {
            return Some(view.answer());
        }
        self.look(view, clock).await
    }

    /// Looks at the history and at what the session does.
    async fn look(
        &self,
        view: &mut View,
        clock: &mut Clock,
    ) -> Option<Result<Answer, EngineError>> {
        let found = async {
            // In this order: an answer that comes in between is seen next time.
            let busy = self.api.is_busy(self.session).await?;
            Ok((self.api.messages(self.session, self.question).await?, busy))
        };
        let (history, busy) = match found.await {
            Ok(found) => found,
            Err(error) => return self.failed_look(view, clock, &error),
        };
        clock.away = None;
        let news = view.replace(&history, busy);
        if !news.is_empty() {
            clock.stalled = Instant::now() + self.limits.stall;
        }
        self.tell(news).await;
        if let Some(wrong) = self.gone_wrong(view, clock) {
            return Some(self.give_up(view, wrong).await);
        }
        if busy {
            clock.look = Instant::now() + QUIET;
            clock.idle_looks = 0;
            return None;
        }
        clock.look = Instant::now() + LOOK_AGAIN;
        clock.idle_looks += 1;
        // A turn whose tool was refused ends in mid-air; the second look says that it has.
        if view.has_ended() || (view.is_idle() && clock.idle_looks >= LOOKS_IF_BEGUN) {
            return Some(if view.has_ended() { view.answer() } else { self.cut_off(view) });
        }
        let waited_out = clock.idle_looks >= LOOKS_IF_NOT;
        (waited_out && !view.has_begun()).then_some(Err(EngineError::NotStarted))
    }

    fn failed_look(
        &self,
        view: &View,
        clock: &mut Clock,
        error: &ApiError,
    ) -> Option<Result<Answer, EngineError>> {
        if let ApiError::Missing { .. } = error {
            let session = self.session.to_owned();
            return Some(Err(match view.last_tool() {
                Some(tool) => EngineError::Interrupted { tool: Some(tool) },
                None => EngineError::NoSession { session },
            }));
        }
        let since = *clock.away.get_or_insert_with(Instant::now);
        // An engine that is away is waited for by its own limit.
        clock.stalled = Instant::now() + self.limits.stall;
        clock.look = Instant::now() + LOOK_AGAIN;
        clock.idle_looks = 0;
        tracing::debug!(error = %openpact_runtime::chain(error), "the history can't be read now");
        let waited = self.limits.away;
        (since.elapsed() > waited).then_some(Err(EngineError::Lost { waited }))
    }

    /// The engine was restarted in mid-turn, or somebody else ended it.
    fn cut_off(&self, view: &View) -> Result<Answer, EngineError> {
        Err(EngineError::Interrupted { tool: view.last_tool() })
    }

    /// What would go on for ever if nobody ended it.
    fn gone_wrong(&self, view: &View, clock: &mut Clock) -> Option<EngineError> {
        if view.is_endless() {
            return Some(EngineError::Empty);
        }
        if view.steps() > usize::try_from(self.limits.steps).unwrap_or(usize::MAX) {
            return Some(EngineError::TooManySteps { limit: self.limits.steps });
        }
        let retry = view.retry()?;
        if retry.attempt <= 1 {
            clock.failing = Instant::now();
        }
        let wait = retry_wait(retry.next);
        let failing = clock.failing.elapsed();
        // The engine says when it will go on, so until then it isn't stuck.
        clock.stalled = Instant::now() + wait + self.limits.stall;
        (failing + wait > self.limits.provider).then(|| EngineError::Model {
            kind: ModelError::Failing,
            message: retry.message.chars().take(300).collect(),
        })
    }

    /// Stops the engine and makes the best of what is there.
    async fn give_up(&self, view: &View, wrong: EngineError) -> Result<Answer, EngineError> {
        let wrong = self.halt(wrong).await;
        if view.is_endless() {
            return view.answer();
        }
        Err(wrong)
    }

    /// Stops the engine's work on the session, and waits until it has stopped.
    async fn halt(&self, why: EngineError) -> EngineError {
        let until = Instant::now() + HALT;
        while Instant::now() < until {
            match self.api.abort(self.session).await {
                Ok(()) => {}
                Err(ApiError::Unreachable { .. } | ApiError::Missing { .. }) => break,
                Err(error) => {
                    tracing::warn!(error = %openpact_runtime::chain(&error), "could not stop a turn");
                }
            }
            match self.api.is_busy(self.session).await {
                Ok(true) => tokio::time::sleep(Duration::from_millis(100)).await,
                Ok(false) | Err(_) => break,
            }
        }
        why
    }

    /// Nobody will answer what the engine asks of a person, so it's told no at once.
    async fn refuse(&self, event: &Event) {
        let refused = match event {
            Event::Permission { id, .. } => self.api.reject_permission(id).await,
            Event::Question { id, .. } => self.api.reject_question(id).await,
            _ => return,
        };
        if let Err(error) = refused {
            tracing::warn!(error = %openpact_runtime::chain(&error), "could not refuse a request");
        }
    }

    async fn tell(&self, news: Vec<Progress>) {
        for item in news {
            if self.progress.send(item).await.is_err() {
                // Nobody wants to know; the answer still counts.
                return;
            }
        }
    }
}

/// `next` is a moment or a span, both in milliseconds; which one depends on the engine's version.
fn retry_wait(next: f64) -> Duration {
    const A_YEAR: f64 = 365.0 * 24.0 * 3600.0 * 1000.0;
    let wait = if next > A_YEAR {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        next - now.unwrap_or_default().as_secs_f64() * 1000.0
    } else {
        next
    };
    Duration::try_from_secs_f64(wait / 1000.0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_read_as_a_span_and_as_a_moment() {
        let ahead = std::time::SystemTime::now() + Duration::from_secs(60);
        let moment = ahead.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64() * 1000.0;
        assert_eq!(retry_wait(4000.0), Duration::from_secs(4));
        assert!((55..=60).contains(&retry_wait(moment).as_secs()));
        assert_eq!(retry_wait(f64::NAN), Duration::ZERO);
    }
}
