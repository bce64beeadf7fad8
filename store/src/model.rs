//! What the orchestrator's store keeps: channels, sessions, messages, turns and deliveries.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970 (UTC).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct At(pub i64);

impl At {
    /// Now, by the system's clock.
    #[must_use]
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// How long ago this was; nothing if it lies ahead.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        Duration::from_millis(u64::try_from(Self::now().0 - self.0).unwrap_or(0))
    }
}

impl From<SystemTime> for At {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A channel of a platform, or a thread in it. `thread` is empty outside threads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The platform: `telegram`, `terminal`, …
    pub provider: String,
    /// The platform's id of the channel.
    pub channel: String,
    /// The platform's id of the thread.
    pub thread: String,
}

/// Somebody who writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The platform's stable id.
    pub id: String,
    /// For people to read.
    pub name: String,
}

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// As its sender called it; never a path of ours.
    pub filename: String,
    /// Media type.
    pub mime: String,
    /// All of it.
    pub content: Vec<u8>,
}

/// A message as a frontend hands it in. Unique by place and `message_id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// Where it was written.
    pub place: Place,
    /// The platform's id.
    pub message_id: String,
    /// Who wrote it.
    pub user: User,
    /// What it says.
    pub text: String,
    /// What came with it.
    pub attachments: Vec<Attachment>,
    /// When it was written, by the platform's clock.
    pub sent_at: At,
}

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Ours.
    pub id: String,
    /// The session it belongs to: the channel's current one when it came.
    pub session: String,
    /// What the frontend handed in.
    pub new: NewMessage,
    /// When it was accepted.
    pub accepted_at: At,
}

/// What became of a message that a frontend handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Our id of the message.
    pub id: String,
    /// Its session.
    pub session: String,
    /// It had been accepted before; nothing was changed now.
    pub duplicate: bool,
    /// How many messages of the session wait before it, those of a running turn included.
    pub ahead: u32,
}

/// How much of a turn a channel wants to see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only the answer.
    #[default]
    Simple,
    /// What the model thinks, and the answer.
    Thinking,
    /// Tool calls, and the answer.
    Tools,
    /// Everything.
    Full,
}

/// A channel and what is set for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Where it is.
    pub place: Place,
    /// The session that new messages go to.
    pub session: String,
    /// How much of a turn it wants to see.
    pub mode: Mode,
    /// The model it asked for, as `provider/model`.
    pub model: Option<String>,
}

/// A conversation with a memory of its own. Belongs to one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Ours.
    pub id: String,
    /// The channel that owns it.
    pub place: Place,
    /// For people to read; may be empty.
    pub title: String,
    /// The channel's new messages go here.
    pub current: bool,
    /// The engine's id of it, once there is one.
    pub engine_session: Option<String>,
    /// When it was begun.
    pub created_at: At,
    /// When a message last went to it.
    pub used_at: At,
    /// How many turns it has had.
    pub turns: u32,
}

/// What a command changes, together with being recorded and answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that is stored.
    None,
    /// A new session becomes the channel's current one.
    NewSession {
        /// May be empty.
        title: String,
    },
    /// An earlier session of the same channel becomes current.
    Switch {
        /// The session.
        session: String,
    },
    /// The channel sees more or less of its turns.
    SetMode(Mode),
    /// The channel's turns use another model; `None`: the default again.
    SetModel(Option<String>),
}

/// The answering of one or more messages of a session by the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Ours.
    pub id: String,
    /// The session; it has no other running turn.
    pub session: Session,
    /// What is answered, in the order of arrival; never empty.
    pub messages: Vec<Message>,
    /// What the channel has set.
    pub channel: Channel,
    /// How often the engine was asked: 0 before the first time.
    pub attempt: u32,
    /// The engine's id of the message it was asked with last.
    pub engine_message: Option<String>,
    /// When it began.
    pub started_at: At,
    /// Why earlier deliveries of this session failed for good and nobody told the engine yet.
    pub undelivered: Vec<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The engine answered.
    Answered,
    /// It didn't, and the channel is told why.
    Failed,
    /// Somebody stopped it.
    Cancelled,
}

/// One entry of a turn's journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Such as `prompt`, `text`, `tool`, `error`.
    pub kind: String,
    /// What happened, as JSON; already redacted.
    pub detail: serde_json::Value,
}

/// What a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryKind {
    /// What the assistant answered.
    Answer,
    /// Why there is no answer.
    Failure,
    /// The system's own words.
    Notice,
    /// Text with buttons.
    Ask,
}

/// A button of an [`DeliveryKind::Ask`]; pressing it runs a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// Unique in its delivery.
    pub id: String,
    /// What it shows.
    pub label: String,
    /// What it does, as in `/switch 01h…`.
    pub command: String,
}

/// Something to be posted to a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Where to.
    pub place: Place,
    /// What it is.
    pub kind: DeliveryKind,
    /// Markdown.
    pub text: String,
    /// The platform's id of the message it answers; may be empty.
    pub reply_to: String,
    /// Buttons of an ask.
    pub buttons: Vec<Button>,
    /// Our ids of the messages that this answers.
    pub answers: Vec<String>,
}

/// What is to be posted and isn't confirmed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Ours; rises with the time, so that a channel's deliveries sort.
    pub id: String,
    /// The turn that it ends, if any.
    pub turn: Option<String>,
    /// What to post.
    pub new: NewDelivery,
    /// The pieces that stand on the platform already.
    pub delivered_pieces: Vec<u32>,
    /// How often it was handed to a frontend.
    pub attempt: u32,
}

/// What a session says, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The message's or the delivery's id.
    pub id: String,
    /// From us.
    pub outgoing: bool,
    /// Who wrote it; empty for us.
    pub author: String,
    /// Markdown.
    pub text: String,
    /// When.
    pub at: At,
}

/// One step of the story of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEntry {
    /// When.
    pub at: At,
    /// `message`, `turn`, `event`, `delivery`
    pub kind: &'static str,
    /// Ours.
    pub id: String,
    /// What happened, for people to read.
    pub text: String,
}

/// How much there is to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Turns that run.
    pub running_turns: u32,
    /// Messages that wait for a turn.
    pub waiting_messages: u32,
    /// Deliveries that aren't confirmed.
    pub pending_deliveries: u32,
}

/// Who stands behind an engine session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Our session.
    pub session: String,
    /// Its channel.
    pub place: Place,
    /// The author of the newest message of its running turn, or else of its last one.
    pub user: User,
}
