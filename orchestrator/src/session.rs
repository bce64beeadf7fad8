//! Sessions at work: one turn at a time in each, many beside each other.
//!
//! A session that has something to do has a task; the task begins a turn for
//! what waits, runs it, and goes on until nothing waits. Sessions don't wait for
//! one another except for a place among the turns that may run at once.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use openpact_store::model::{Place, Turn};
use openpact_store::{State, StoreError};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::turn::Turns;

/// Nothing waits longer than this for a wake-up that went missing.
const SWEEP: Duration = Duration::from_secs(15);
/// After the store failed.
const PAUSE: Duration = Duration::from_secs(2);

/// All sessions that have something to do.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn State>,
    turns: Turns,
    places: Semaphore,
    messages_per_turn: u32,
    tasks: TaskTracker,
    /// The process is to stop. Turns are left as they are and taken up again
    /// after the next start.
    stop: CancellationToken,
    working: Mutex<HashMap<String, Work>>,
}

#[derive(Debug, Default)]
struct Work {
    /// Something came while the task was at work.
    again: bool,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    place: Place,
    cancel: CancellationToken,
}

impl Sessions {
    /// Sessions that run at most `concurrent` turns at once, on `tasks`, until `stop`.
    #[must_use]
    pub fn new(
        store: Arc<dyn State>,
        turns: Turns,
        concurrent: u32,
        messages_per_turn: u32,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let places = Semaphore::new(usize::try_from(concurrent).unwrap_or(usize::MAX >> 4));
        let working = Mutex::default();
        let inner = Inner { store, turns, places, messages_per_turn, tasks, stop, working };
        Self { inner: Arc::new(inner) }
    }

    /// Takes up the turns that a stop or a crash cut off and whatever waits, and
    /// from then on looks from time to time whether something was left.
    pub async fn resume_and_sweep(&self) {
        loop {
            if let Err(error) = self.sweep().await {
                tracing::error!(error = %openpact_runtime::chain(&error), "what waits can't be read");
            }
            tokio::select! {
                () = tokio::time::sleep(SWEEP) => {}
                () = self.inner.stop.cancelled() => return,
            }
        }
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        for turn in self.inner.store.running_turns().await? {
            let session = turn.session.id.clone();
            self.start(&session, Some(turn));
        }
        for session in self.inner.store.waiting_sessions().await? {
            self.wake(&session);
        }
        Ok(())
    }

    /// Something waits in a session.
    pub fn wake(&self, session: &str) {
        self.start(session, None);
    }

    /// Ends the running turns of a channel. `false`: none runs.
    pub fn stop(&self, place: &Place) -> bool {
        let working = self.inner.working();
        let running = working.values().filter_map(|work| work.running.as_ref());
        let mut stopped = false;
        for turn in running.filter(|running| running.place == *place) {
            turn.cancel.cancel();
            stopped = true;
        }
        stopped
    }

    fn start(&self, session: &str, resumed: Option<Turn>) {
        let mut working = self.inner.working();
        if let Some(work) = working.get_mut(session) {
            work.again = true;
            return;
        }
        working.insert(session.to_owned(), Work::default());
        drop(working);
        let (inner, session) = (Arc::clone(&self.inner), session.to_owned());
        self.inner.tasks.spawn(async move {
            let stop = inner.stop.clone();
            tokio::select! {
                () = inner.work(&session, resumed) => {}
                () = stop.cancelled() => {}
            }
        });
    }
}

impl Inner {
    async fn work(&self, session: &str, resumed: Option<Turn>) {
        if let Some(turn) = resumed {
            self.run(session, turn).await;
        }
        loop {
            // First a place, then the messages: what comes meanwhile joins.
            let Ok(_place) = self.places.acquire().await else { return };
            match self.store.begin_turn(session, self.messages_per_turn).await {
                Ok(Some(turn)) => self.run(session, turn).await,
                Ok(None) => {
                    if self.is_done(session) {
                        return;
                    }
                }
                Err(error) => {
                    tracing::error!(error = %openpact_runtime::chain(&error), session, "a turn can't be begun");
                    tokio::time::sleep(PAUSE).await;
                    if self.is_done(session) {
                        return;
                    }
                }
            }
        }
    }

    async fn run(&self, session: &str, turn: Turn) {
        let cancel = CancellationToken::new();
        let running = Running { place: turn.channel.place.clone(), cancel: cancel.clone() };
        if let Some(work) = self.working().get_mut(session) {
            work.running = Some(running);
        }
        // A panic ends this turn alone, and its channel is told.
        let ended = AssertUnwindSafe(self.turns.run(&turn, &cancel)).catch_unwind().await;
        if ended.is_err() {
            self.turns.end_after_panic(&turn).await;
        }
        if let Some(work) = self.working().get_mut(session) {
            work.running = None;
        }
    }

    /// Nothing came since the last look: the session's task ends.
    fn is_done(&self, session: &str) -> bool {
        let mut working = self.working();
        let again = working.get_mut(session).is_some_and(|work| std::mem::take(&mut work.again));
        if !again {
            working.remove(session);
        }
        !again
    }

    fn working(&self) -> std::sync::MutexGuard<'_, HashMap<String, Work>> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
