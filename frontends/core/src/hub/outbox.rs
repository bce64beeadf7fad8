//! What was submitted and not acknowledged, in its order.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use openpact_proto::frontend::v1::FrontendMessage;
use prost::Message as _;
use tokio::sync::{Notify, oneshot};

use crate::message::Place;

/// How often the orchestrator may end the stream over the oldest message before
/// that one is given up: it would stand before all others for ever.
const CHANCES: u32 = 3;

/// The message is in the orchestrator's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// OpenPact's id of the message, as `openpact trace` takes it.
    pub id: String,
    /// It had been accepted before.
    pub duplicate: bool,
}

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Too many wait for the orchestrator already; the author may try later.
    #[error("{waiting} messages are waiting for the orchestrator already: try again later")]
    Full {
        /// How many.
        waiting: usize,
    },
    /// It will never be taken: its author is to be told.
    #[error("{reason}")]
    Rejected {
        /// One sentence for the author.
        reason: String,
    },
    /// This process stops; whether the message was taken isn't known.
    #[error("the connection was closed before the orchestrator answered")]
    Stopped,
}

/// Where and what: a message's name in acknowledgements.
pub(super) type Key = (Place, String);
type Verdict = Result<Accepted, SubmitError>;

/// Messages from when they're submitted until they're acknowledged.
#[derive(Debug)]
pub(super) struct Outbox {
    most: usize,
    most_bytes: usize,
    state: Mutex<State>,
    pushed: Notify,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// How many of the first entries went out on this connection.
    sent: usize,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    message: FrontendMessage,
    bytes: usize,
    blamed: u32,
    waits: oneshot::Sender<Verdict>,
}

impl Outbox {
    pub(super) fn new(most: usize, most_bytes: usize) -> Self {
        Self { most, most_bytes, state: Mutex::default(), pushed: Notify::new() }
    }

    pub(super) fn push(
        &self,
        key: Key,
        message: FrontendMessage,
    ) -> Result<oneshot::Receiver<Verdict>, SubmitError> {
        let bytes = message.encoded_len();
        let mut state = self.state();
        if state.closed {
            return Err(SubmitError::Stopped);
        }
        if bytes > self.most_bytes {
            let most = self.most_bytes;
            let reason = format!("the message has {bytes} bytes, {most} at most can be sent");
            return Err(SubmitError::Rejected { reason });
        }
        let waiting = state.entries.len();
        if waiting >= self.most || state.bytes + bytes > self.most_bytes {
            return Err(SubmitError::Full { waiting });
        }
        let (waits, verdict) = oneshot::channel();
        state.bytes += bytes;
        state.entries.push_back(Entry { key, message, bytes, blamed: 0, waits });
        drop(state);
        self.pushed.notify_one();
        Ok(verdict)
    }

    /// A new connection: everything is to be sent again.
    pub(super) fn rewind(&self) {
        self.state().sent = 0;
    }

    /// The next message that didn't go out on this connection.
    pub(super) fn next(&self) -> Option<FrontendMessage> {
        let mut state = self.state();
        let message = state.entries.get(state.sent)?.message.clone();
        state.sent += 1;
        Some(message)
    }

    pub(super) fn has_next(&self) -> bool {
        let state = self.state();
        state.sent < state.entries.len()
    }

    /// Waits until something was pushed.
    pub(super) async fn pushed(&self) {
        self.pushed.notified().await;
    }

    /// A message was acknowledged, one way or the other.
    pub(super) fn settle(&self, key: &Key, verdict: &Verdict) {
        let mut state = self.state();
        let mut settled = Vec::new();
        while let Some(at) = state.entries.iter().position(|entry| entry.key == *key) {
            settled.extend(state.remove(at));
        }
        drop(state);
        for entry in settled {
            // Nobody has to wait for it.
            drop(entry.waits.send(verdict.clone()));
        }
    }

    /// The orchestrator ended the stream for a reason that may be the oldest
    /// message, the first that it would have acknowledged.
    pub(super) fn blame(&self, why: &str) {
        let mut state = self.state();
        if state.sent == 0 {
            return;
        }
        let Some(oldest) = state.entries.front_mut() else { return };
        oldest.blamed += 1;
        if oldest.blamed < CHANCES {
            return;
        }
        let given_up = state.remove(0);
        drop(state);
        tracing::warn!(why, "the orchestrator can't take a message; it's given up");
        if let Some(entry) = given_up {
            let reason = format!("the orchestrator can't take this message: {why}");
            drop(entry.waits.send(Err(SubmitError::Rejected { reason })));
        }
    }

    /// Nothing more is sent or taken.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let entries = std::mem::take(&mut state.entries);
        (state.bytes, state.sent) = (0, 0);
        drop(state);
        for entry in entries {
            drop(entry.waits.send(Err(SubmitError::Stopped)));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, at: usize) -> Option<Entry> {
        let entry = self.entries.remove(at)?;
        self.bytes -= entry.bytes;
        if at < self.sent {
            self.sent -= 1;
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Content, Incoming, User};
    use crate::wire;

    fn push(outbox: &Outbox, id: &str) -> Result<oneshot::Receiver<Verdict>, SubmitError> {
        let incoming = Incoming {
            place: Place::channel("main"),
            message_id: id.into(),
            user: User { id: "1".into(), name: "somebody".into() },
            content: Content::Command { name: "new".into(), arguments: String::new() },
        };
        outbox.push(key(id), wire::incoming("terminal", incoming))
    }

    fn key(id: &str) -> Key {
        (Place::channel("main"), id.into())
    }

    fn accepted() -> Verdict {
        Ok(Accepted { id: "x".into(), duplicate: false })
    }

    fn drain(outbox: &Outbox) -> usize {
        std::iter::from_fn(|| outbox.next()).count()
    }

    #[test]
    fn what_is_not_acknowledged_goes_out_again() {
        let outbox = Outbox::new(10, 10_000);
        let waits: Vec<_> = ["a", "b", "c"].map(|id| push(&outbox, id).unwrap()).into();
        assert_eq!(drain(&outbox), 3);
        outbox.settle(&key("b"), &accepted());
        assert!(!outbox.has_next());
        outbox.rewind();
        assert_eq!(drain(&outbox), 2);
        outbox.close();
        let verdicts: Vec<_> =
            waits.into_iter().map(|wait| wait.blocking_recv().unwrap()).collect();
        assert_eq!(verdicts, [Err(SubmitError::Stopped), accepted(), Err(SubmitError::Stopped)]);
        assert_eq!(push(&outbox, "d").unwrap_err(), SubmitError::Stopped);
    }

    #[test]
    fn a_full_outbox_says_so_and_has_room_again() {
        let outbox = Outbox::new(2, 10_000);
        let _waits = [push(&outbox, "a").unwrap(), push(&outbox, "b").unwrap()];
        assert_eq!(push(&outbox, "c").unwrap_err(), SubmitError::Full { waiting: 2 });
        outbox.settle(&key("a"), &accepted());
        assert!(push(&outbox, "c").is_ok());
        let small = Outbox::new(2, 3);
        assert!(matches!(push(&small, "a").unwrap_err(), SubmitError::Rejected { .. }));
    }

    #[test]
    fn a_message_that_breaks_every_stream_does_not_stand_before_the_others() {
        let outbox = Outbox::new(10, 10_000);
        let bad = push(&outbox, "bad").unwrap();
        let _good = push(&outbox, "good").unwrap();
        for _ in 0..CHANCES {
            outbox.rewind();
            assert_eq!(drain(&outbox), 2);
            outbox.blame("it's too large");
        }
        let verdict = bad.blocking_recv().unwrap().unwrap_err();
        assert!(verdict.to_string().contains("too large"), "{verdict}");
        outbox.rewind();
        assert_eq!(drain(&outbox), 1);
    }
}
