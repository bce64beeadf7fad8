//! A chat platform behind a frontend of its own, written on the contract alone.
//!
//! It does what a real one does to a frontend: people write whether or not the
//! orchestrator is there, a message is handed over again until it's accepted,
//! and a post with a nonce that stands already is not made a second time. It
//! keeps what its people see and counts what they should never see.

mod stream;
mod tally;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openpact_proto::frontend::v1 as wire;
use openpact_runtime::layout::Layout;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use self::tally::Tally;
use crate::wait::{Bell, NotSeen};

/// Messages that may wait to be handed over.
const QUEUE: usize = 10_000;

/// A message that stands in a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// `<delivery>-<piece>`
    pub nonce: String,
    /// Where it stands.
    pub channel: String,
    /// What it says.
    pub text: String,
    /// What it is.
    pub kind: wire::SendKind,
    /// OpenPact's ids of the messages that it answers.
    pub answers: Vec<String>,
}

/// A platform with its people and its frontend. Dropping it ends the frontend.
#[derive(Debug)]
pub struct Platform {
    provider: String,
    shared: Arc<Shared>,
    hand_over: mpsc::Sender<String>,
    stop: CancellationToken,
    _task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    bell: Bell,
}

#[derive(Debug, Default)]
struct State {
    /// By the platform's id, in the order of writing.
    written: BTreeMap<String, Written>,
    posts: Vec<Post>,
    /// Posts that came again under a nonce that stood already.
    reposts: usize,
    /// Times that the frontend lost the orchestrator.
    disconnects: usize,
}

#[derive(Debug)]
struct Written {
    message: wire::Inbound,
    became: Became,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Became {
    Waiting,
    /// OpenPact's id of it.
    Accepted(String),
    Rejected(String),
}

impl Platform {
    /// A platform whose frontend finds the orchestrator of a workspace, and
    /// finds it again whenever it was gone.
    #[must_use]
    pub fn connect(layout: &Layout, provider: &str) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), bell: Bell::new() });
        let stop = CancellationToken::new();
        let (hand_over, handed) = mpsc::channel(QUEUE);
        let frontend = stream::Frontend {
            layout: layout.clone(),
            provider: provider.to_owned(),
            shared: Arc::clone(&shared),
        };
        let until = stop.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                () = frontend.run(handed) => {}
                () = until.cancelled() => {}
            }
        });
        Self { provider: provider.to_owned(), shared, hand_over, stop, _task: task }
    }

    /// Somebody writes; the result is the platform's id of the message.
    ///
    /// # Panics
    /// When more than 10,000 messages wait for the orchestrator.
    pub fn write(&self, channel: &str, text: &str) -> String {
        let mut state = self.shared.state();
        // Padded, so that the order of ids is the order of writing.
        let id = format!("m{:06}", state.written.len());
        let message = wire::Inbound {
            place: Some(wire::Place {
                provider: self.provider.clone(),
                channel: channel.to_owned(),
                thread: String::new(),
            }),
            message_id: id.clone(),
            user: Some(wire::User { id: "1".into(), name: "Ann".into() }),
            text: text.to_owned(),
            ..Default::default()
        };
        state.written.insert(id.clone(), Written { message, became: Became::Waiting });
        drop(state);
        self.hand_over.try_send(id.clone()).expect("too many messages wait to be handed over");
        id
    }

    /// What stands in a channel, oldest first.
    #[must_use]
    pub fn posts(&self, channel: &str) -> Vec<Post> {
        let state = self.shared.state();
        state.posts.iter().filter(|post| post.channel == channel).cloned().collect()
    }

    /// What became of everything that was written.
    #[must_use]
    pub fn tally(&self) -> Tally {
        tally::of(&self.shared.state())
    }

    /// Waits until everything that was written is answered, failed or refused.
    pub async fn settled(&self, within: Duration) -> Result<Tally, NotSeen> {
        let look = || Some(self.tally()).filter(|tally| tally.open == 0);
        let instead = || format!("everything settled, but {:?}", self.tally());
        self.shared.bell.wait(within, look, instead).await
    }

    /// Waits until at least `many` messages are settled.
    pub async fn settled_some(&self, many: usize, within: Duration) -> Result<Tally, NotSeen> {
        let look = || Some(self.tally()).filter(|tally| tally.written - tally.open >= many);
        let instead = || format!("{many} settled, but {:?}", self.tally());
        self.shared.bell.wait(within, look, instead).await
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
