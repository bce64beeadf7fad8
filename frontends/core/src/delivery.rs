//! Brings deliveries to the platform: in order within a channel, each piece once.
//!
//! A channel with something to deliver has a lane, which is a task; lanes don't
//! wait for one another. [`receipts`] is what stands on the platform already;
//! [`lane`] is how one delivery is posted and tried again.

mod lane;
mod receipts;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openpact_proto::frontend::v1::FrontendMessage;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::receipts::Receipts;
use crate::adapter::Adapter;
use crate::live::Live;
use crate::message::Delivery;
use crate::wire;

/// How many deliveries may wait in all lanes together. The orchestrator has at
/// most 128 on their way, so this is reached only if something is wrong.
const WAITING: usize = 1024;

/// All lanes of a frontend.
pub(crate) struct Deliveries<A> {
    shared: Arc<Shared<A>>,
}

/// What all lanes use.
struct Shared<A> {
    adapter: Arc<A>,
    live: Arc<Live<A>>,
    lanes: Mutex<HashMap<String, Lane>>,
    receipts: Mutex<Receipts>,
    reports: mpsc::Sender<FrontendMessage>,
    /// After the first try that failed; it doubles.
    pause: Duration,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// One channel's deliveries; the first is at work.
#[derive(Default)]
struct Lane {
    queue: VecDeque<Arc<Delivery>>,
}

impl<A: Adapter> Deliveries<A> {
    /// Lanes that report into `reports`. After `stop` they finish the piece
    /// that they are at and end.
    pub(crate) fn new(
        adapter: Arc<A>,
        live: Arc<Live<A>>,
        reports: mpsc::Sender<FrontendMessage>,
        pause: Duration,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let (lanes, receipts) = (Mutex::default(), Mutex::default());
        Self {
            shared: Arc::new(Shared {
                adapter,
                live,
                lanes,
                receipts,
                reports,
                pause,
                tasks,
                stop,
            }),
        }
    }

    /// Takes a delivery on. What is returned is to be reported at once.
    ///
    /// A delivery that is on its way already is the same one, sent again.
    pub(crate) fn accept(&self, delivery: Delivery) -> Option<FrontendMessage> {
        let shared = &self.shared;
        if shared.stop.is_cancelled() {
            return None;
        }
        let channel = delivery.place.channel.clone();
        let mut lanes = shared.lanes();
        let waiting: usize = lanes.values().map(|lane| lane.queue.len()).sum();
        let lane = lanes.get_mut(&channel);
        let is_known = |lane: &Lane| lane.queue.iter().any(|other| other.id == delivery.id);
        if !delivery.id.is_empty() && lane.as_deref().is_some_and(is_known) {
            return None;
        }
        if waiting >= WAITING {
            let reason = format!("{WAITING} deliveries are waiting already");
            return Some(wire::failed(&delivery.id, &reason, false));
        }
        if let Some(lane) = lane {
            lane.queue.push_back(Arc::new(delivery));
            return None;
        }
        lanes.insert(channel.clone(), Lane { queue: VecDeque::from([Arc::new(delivery)]) });
        drop(lanes);
        let lane = Arc::clone(shared);
        shared.tasks.spawn(async move { lane.run(&channel).await });
        None
    }
}

impl<A: Adapter> Shared<A> {
    async fn run(&self, channel: &str) {
        loop {
            let first = self.lanes().get(channel).and_then(|lane| lane.queue.front().cloned());
            let Some(delivery) = first else { return };
            self.deliver(&delivery).await;
            let mut lanes = self.lanes();
            let Some(lane) = lanes.get_mut(channel) else { return };
            lane.queue.pop_front();
            if lane.queue.is_empty() || self.stop.is_cancelled() {
                lanes.remove(channel);
            }
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<String, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receipts(&self) -> MutexGuard<'_, Receipts> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
