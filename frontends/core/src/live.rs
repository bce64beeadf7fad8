//! Drafts, typing and tool calls: shown while nothing waits for them.
//!
//! Each channel has one stage. What is offered while an earlier call runs waits
//! there: the latest draft replaces the one before, typing likewise, tool calls
//! queue up to a limit. A call that takes too long is dropped. Before a
//! delivery, [`Live::clear_the_stage`] lets what must come before it go first.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::adapter::Adapter;
use crate::message::{Activity, Draft, Place};

/// How long one call may take.
const CALL: Duration = Duration::from_secs(2);
/// How many tool calls and notes may wait in a channel; the oldest go first.
const WAITING: usize = 64;

/// Something that may be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Show {
    Draft(Draft),
    Typing(bool),
    Activity(Activity),
    Queued { message_id: String, ahead: u32 },
}

/// All channels' stages.
pub(crate) struct Live<A> {
    adapter: Arc<A>,
    stages: Mutex<HashMap<String, Stage>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Default)]
struct Stage {
    draft: Option<(Place, Draft)>,
    others: VecDeque<(Place, Show)>,
    /// A call is being made.
    busy: bool,
    /// Something was added or taken away.
    changed: Arc<Notify>,
}

impl Stage {
    fn push(&mut self, place: Place, show: Show) {
        match show {
            Show::Draft(draft) => self.draft = Some((place, draft)),
            show => {
                if matches!(show, Show::Typing(_)) {
                    self.others.retain(|(_, other)| !matches!(other, Show::Typing(_)));
                }
                if self.others.len() == WAITING {
                    self.others.pop_front();
                }
                self.others.push_back((place, show));
            }
        }
    }
}

impl<A: Adapter> Live<A> {
    pub(crate) fn new(adapter: Arc<A>, tasks: TaskTracker, stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self { adapter, stages: Mutex::default(), tasks, stop })
    }

    /// Shows something soon, or never.
    pub(crate) fn offer(self: &Arc<Self>, place: Place, show: Show) {
        if self.stop.is_cancelled() {
            return;
        }
        let channel = place.channel.clone();
        let mut stages = self.stages();
        if let Some(stage) = stages.get_mut(&channel) {
            stage.push(place, show);
            stage.changed.notify_waiters();
            return;
        }
        let mut stage = Stage::default();
        stage.push(place, show);
        stages.insert(channel.clone(), stage);
        drop(stages);
        let live = Arc::clone(self);
        self.tasks.spawn(async move { live.play(&channel).await });
    }

    /// Drops the channel's waiting draft and waits, for as long as one call may
    /// take, until everything else was shown.
    pub(crate) async fn clear_the_stage(&self, channel: &str) {
        let cleared = async {
            loop {
                let changed = {
                    let mut stages = self.stages();
                    let Some(stage) = stages.get_mut(channel) else { return };
                    stage.draft = None;
                    if stage.others.is_empty() && !stage.busy {
                        // The task may be pausing between two drafts.
                        stage.changed.notify_waiters();
                        return;
                    }
                    Arc::clone(&stage.changed).notified_owned()
                };
                changed.await;
            }
        };
        if timeout(CALL, cleared).await.is_err() {
            tracing::debug!(channel, "a delivery does not wait for what is only shown");
            if let Some(stage) = self.stages().get_mut(channel) {
                stage.others.clear();
            }
        }
    }

    async fn play(&self, channel: &str) {
        let mut paused_until = Instant::now();
        loop {
            let (next, changed) = {
                let mut stages = self.stages();
                let Some(stage) = stages.get_mut(channel) else { return };
                let may_draft = paused_until <= Instant::now();
                let next = stage.others.pop_front().or_else(|| {
                    let draft = if may_draft { stage.draft.take() } else { None };
                    draft.map(|(place, draft)| (place, Show::Draft(draft)))
                });
                if next.is_none() && stage.draft.is_none() {
                    stages.remove(channel);
                    return;
                }
                stage.busy = next.is_some();
                (next, Arc::clone(&stage.changed).notified_owned())
            };
            let Some((place, show)) = next else {
                tokio::select! {
                    () = sleep_until(paused_until) => {}
                    () = changed => {}
                    () = self.stop.cancelled() => { self.stages().remove(channel); }
                }
                continue;
            };
            if matches!(show, Show::Draft(_)) {
                paused_until = Instant::now() + A::PACE;
            }
            // A panic in an adapter ends this call and nothing else.
            let shown = AssertUnwindSafe(timeout(CALL, self.show(&place, &show))).catch_unwind();
            match shown.await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::debug!(channel, "the platform is too slow for drafts"),
                Err(_) => tracing::error!(channel, "showing what goes on panicked"),
            }
            if let Some(stage) = self.stages().get_mut(channel) {
                stage.busy = false;
                stage.changed.notify_waiters();
            }
        }
    }

    async fn show(&self, place: &Place, show: &Show) {
        let Some(to) = self.adapter.place(place) else { return };
        match show {
            Show::Draft(draft) => self.adapter.draft(&to, draft).await,
            Show::Typing(on) => self.adapter.typing(&to, *on).await,
            Show::Activity(activity) => self.adapter.activity(&to, activity).await,
            Show::Queued { message_id, ahead } => {
                self.adapter.queued(&to, message_id, *ahead).await;
            }
        }
    }

    fn stages(&self) -> MutexGuard<'_, HashMap<String, Stage>> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
