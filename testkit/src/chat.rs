//! A chat platform and its frontend in one: people write, the orchestrator
//! answers, and everything that would be seen is remembered.
//!
//! It keeps the rules that matter to whoever answers: a message has an id of
//! its own and comes again until it's accepted, a nonce is posted once, a text
//! that is too long or empty is refused, connections break. It's written on the
//! protocol itself and not on the frontends' shared code, so that one doesn't
//! vouch for the other.
//!
//! ```no_run
//! # async fn example(layout: &openpact_runtime::layout::Layout) {
//! use openpact_testkit::chat::{FakeChat, Platform};
//!
//! let chat = FakeChat::start(layout, Platform::default());
//! for channel in ["general", "random"] {
//!     chat.say(channel, "hello");
//! }
//! let report = chat.settled(std::time::Duration::from_secs(60)).await.unwrap();
//! assert_eq!((report.answered, report.doubled.len()), (2, 0), "{report}");
//! # }
//! ```

mod link;
mod platform;
mod report;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use platform::{Delivery, Draft, Mood, Platform, Sent, State, Visible};
pub use report::{Doubled, Outcome, Report};

use crate::wait::{Bell, NotSeen, PATIENCE};
use platform::World;

/// The platform's id of something a person wrote or pressed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(crate) String);

impl MessageId {
    /// The id as it stands on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A running fake platform. Dropping it ends its connection.
#[derive(Debug)]
pub struct FakeChat {
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<World>,
    bell: Bell,
    /// Whether there should be a connection; a new number breaks the one there is.
    online: watch::Sender<(bool, u64)>,
    address_file: PathBuf,
    key_file: PathBuf,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known and has everyone who waits look again.
    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.world());
        self.bell.ring();
        changed
    }
}

impl FakeChat {
    /// Starts one that connects to the orchestrator of the workspace, whenever
    /// and wherever that runs.
    #[must_use]
    pub fn start(layout: &Layout, platform: Platform) -> Self {
        let shared = Arc::new(Shared {
            world: Mutex::new(World::new(platform)),
            bell: Bell::new(),
            online: watch::Sender::new((true, 0)),
            address_file: layout.address_file("orchestrator"),
            key_file: layout.keys().join(key::FRONTEND),
        });
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(link::keep(Arc::clone(&shared), stop.clone()));
        tasks.close();
        Self { shared, stop, tasks }
    }

    /// A person writes a message. It's on its way until it's accepted.
    pub fn say(&self, channel: &str, text: &str) -> MessageId {
        self.say_as("ada", channel, text)
    }

    /// The same, by a person of your choice.
    pub fn say_as(&self, user: &str, channel: &str, text: &str) -> MessageId {
        self.shared.change(|world| world.write(user, channel, text))
    }

    /// A person gives a command: `new`, without the slash.
    pub fn command(&self, channel: &str, name: &str, arguments: &str) -> MessageId {
        self.shared.change(|world| world.command("ada", channel, name, arguments))
    }

    /// A person presses a button of what was asked in this delivery.
    pub fn press(&self, channel: &str, delivery: &str, button: &str) -> MessageId {
        self.shared.change(|world| world.press("ada", channel, delivery, button))
    }

    /// The platform brings a message again, though it was accepted.
    pub fn repeat(&self, message: &MessageId) {
        self.shared.change(|world| world.repeat(message));
    }

    /// From now on the platform behaves so.
    pub fn set_mood(&self, mood: Mood) {
        self.shared.change(|world| world.mood = mood);
    }

    /// Breaks the connection; there's a new one soon.
    pub fn reconnect(&self) {
        self.shared.online.send_modify(|online| *online = (true, online.1 + 1));
    }

    /// Breaks the connection and stays away until [`FakeChat::reconnect`].
    pub fn go_away(&self) {
        self.shared.online.send_modify(|online| *online = (false, online.1 + 1));
    }

    /// Whether there's a connection at this moment.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.world().connected
    }

    /// What stands in a channel, oldest first: the answers, not the questions.
    #[must_use]
    pub fn visible(&self, channel: &str) -> Vec<Visible> {
        self.shared.world().visible(channel).to_vec()
    }

    /// Everything that was sent to be posted, by delivery, oldest first.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Delivery> {
        self.shared.world().deliveries.clone()
    }

    /// The drafts that were shown, oldest first.
    #[must_use]
    pub fn drafts(&self) -> Vec<Draft> {
        self.shared.world().drafts.iter().cloned().collect()
    }

    /// What people wrote, oldest first.
    #[must_use]
    pub fn sent(&self) -> Vec<Sent> {
        self.shared.world().sent.clone()
    }

    /// What has become of a message so far.
    #[must_use]
    pub fn outcome(&self, message: &MessageId) -> Outcome {
        self.shared.world().outcome(message)
    }

    /// How it stands.
    #[must_use]
    pub fn report(&self) -> Report {
        self.shared.world().report()
    }

    /// Waits, for a minute at most, until there's a connection.
    pub async fn connected(&self) -> Result<(), NotSeen> {
        self.until(PATIENCE, |chat| chat.shared.world().connected.then_some(())).await
    }

    /// Waits, for a minute at most, until the message is accepted or rejected.
    pub async fn taken(&self, message: &MessageId) -> Result<State, NotSeen> {
        let known =
            |chat: &Self| chat.shared.world().message(message).map(|sent| sent.state.clone());
        self.until(PATIENCE, |chat| known(chat).filter(|state| *state != State::Waiting)).await
    }

    /// Waits until something has become of the message.
    pub async fn answered(
        &self,
        message: &MessageId,
        within: Duration,
    ) -> Result<Outcome, NotSeen> {
        let known = |chat: &Self| Some(chat.outcome(message));
        self.until(within, |chat| known(chat).filter(|outcome| *outcome != Outcome::Waiting)).await
    }

    /// Waits until something has become of every message. A test that wants to
    /// see a second answer to one of them waits for something more.
    pub async fn settled(&self, within: Duration) -> Result<Report, NotSeen> {
        let report = |chat: &Self| Some(chat.report()).filter(|report| report.waiting == 0);
        self.until(within, report).await
    }

    /// Waits until `look` finds something. It's asked again whenever something
    /// happened.
    pub async fn until<T>(
        &self,
        within: Duration,
        mut look: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, NotSeen> {
        let instead = || self.report().to_string();
        self.shared.bell.wait(within, || look(self), instead).await
    }

    /// Ends it.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for FakeChat {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
