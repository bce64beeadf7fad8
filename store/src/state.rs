//! What a store of the orchestrator's state can do.

use async_trait::async_trait;

use crate::model::{
    Accepted, Caller, Channel, Counts, Delivery, Effect, Event, Line, NewDelivery, NewMessage,
    Outcome, Place, Session, TraceEntry, Turn,
};

/// Why the store couldn't do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Too many messages wait in this session; the message was not taken.
    #[error("{limit} messages are waiting already")]
    Full {
        /// How many may wait.
        limit: u32,
    },
    /// There is no such thing.
    #[error("there is no {what} `{id}`")]
    Missing {
        /// `session`, `turn`, `running turn`, `delivery`
        what: &'static str,
        /// What was asked for.
        id: String,
    },
    /// The file was written by a newer OpenPact.
    #[error(
        "the database `{path}` has version {found}, this program knows up to {known}: start the newer OpenPact, or restore the backup made before its upgrade"
    )]
    Version {
        /// The database.
        path: String,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The database itself failed: disk full, file damaged or not ours, …
    #[error("could not {doing}")]
    Database {
        /// A verb phrase.
        doing: &'static str,
        /// What the database said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The durable state of an orchestrator.
///
/// What a method changed when it returned `Ok` is on the disk: it outlives
/// `kill -9` and power loss. Each method is one transaction. Methods may be
/// called from many tasks at once; changes of several callers share one commit.
#[async_trait]
pub trait State: Send + Sync + 'static {
    /// Takes a message in, unless its place and id are known already.
    ///
    /// It joins the channel's current session (made if there is none) and waits
    /// there. What is known is confirmed even in a full session.
    /// [`StoreError::Full`] if `waiting_limit` messages of that session wait.
    async fn accept(&self, message: NewMessage, waiting_limit: u32)
    -> Result<Accepted, StoreError>;

    /// Takes a command in, does what it does and queues its replies, all or
    /// nothing; does nothing if its place and id are known already.
    ///
    /// `message.text` is the command as typed. Each reply's `answers` is
    /// replaced by the command's own id. The session in the result is the
    /// channel's current one afterwards.
    async fn accept_command(
        &self,
        message: NewMessage,
        effect: Effect,
        replies: Vec<NewDelivery>,
    ) -> Result<Accepted, StoreError>;

    /// Sessions in which messages wait and no turn runs, longest waiting first.
    async fn waiting_sessions(&self) -> Result<Vec<String>, StoreError>;

    /// Begins a turn for the messages that wait in `session`, oldest first, at
    /// most `limit` of them. `None`: none wait, or a turn runs already.
    async fn begin_turn(&self, session: &str, limit: u32) -> Result<Option<Turn>, StoreError>;

    /// Turns that began and didn't end, such as those that a crash cut off.
    async fn running_turns(&self) -> Result<Vec<Turn>, StoreError>;

    /// Notes the engine's id of a session; `None` once the engine has lost it.
    async fn set_engine_session(
        &self,
        session: &str,
        engine_session: Option<String>,
    ) -> Result<(), StoreError>;

    /// Notes that the engine is about to be asked with the message
    /// `engine_message`; counts the attempt and returns its number (from 1).
    /// A turn that ended counts as missing: nobody may be asked for it.
    async fn begin_attempt(&self, turn: &str, engine_message: &str) -> Result<u32, StoreError>;

    /// Adds to a turn's journal, in order; also after its end.
    async fn append_events(&self, turn: &str, events: Vec<Event>) -> Result<(), StoreError>;

    /// Ends a turn and queues what its channel gets to see. `false`: it had
    /// ended before, and nothing was changed.
    ///
    /// Each delivery's `answers` is replaced by the ids of the turn's messages.
    /// The turn's `undelivered` count as told if the outcome is `Answered`.
    async fn end_turn(
        &self,
        turn: &str,
        outcome: Outcome,
        last_event: Event,
        deliveries: Vec<NewDelivery>,
    ) -> Result<bool, StoreError>;

    /// Queues text for a channel (made if it is not known). The same
    /// `request_id` queues it once; the delivery's id is returned each time.
    async fn queue_delivery(
        &self,
        request_id: &str,
        delivery: NewDelivery,
    ) -> Result<String, StoreError>;

    /// Deliveries of a provider that aren't done, oldest first, with ids after
    /// `after` (empty: from the start), at most `limit`. `channels` empty: all channels.
    async fn pending_deliveries(
        &self,
        provider: &str,
        channels: &[String],
        after: &str,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError>;

    /// One delivery, done or not.
    async fn delivery(&self, id: &str) -> Result<Delivery, StoreError>;

    /// Notes that deliveries were handed to a frontend once more.
    async fn begin_delivery(&self, id: &str) -> Result<(), StoreError>;

    /// Notes that one of `pieces` pieces stands on the platform. With the last
    /// of them the delivery is done: `true`. Confirming again changes nothing.
    async fn confirm_piece(
        &self,
        id: &str,
        piece: u32,
        pieces: u32,
        platform_message_id: &str,
    ) -> Result<bool, StoreError>;

    /// Notes that a delivery will never succeed. One that is done stays done,
    /// and one that failed is done after all if its pieces get confirmed.
    async fn fail_delivery(&self, id: &str, reason: &str) -> Result<(), StoreError>;

    /// The platform's message ids of a delivery, by piece.
    async fn platform_messages(&self, delivery: &str) -> Result<Vec<String>, StoreError>;

    /// A channel; `None` if nothing ever came from it.
    async fn channel(&self, place: &Place) -> Result<Option<Channel>, StoreError>;

    /// One session.
    async fn session(&self, id: &str) -> Result<Session, StoreError>;

    /// Sessions of one channel or of all, last used first, after the first
    /// `offset`, at most `limit`.
    async fn sessions(
        &self,
        place: Option<&Place>,
        offset: u32,
        limit: u32,
    ) -> Result<Vec<Session>, StoreError>;

    /// The newest `limit` messages and deliveries of a session, oldest first.
    /// Commands and their replies are left out.
    async fn lines(&self, session: &str, limit: u32) -> Result<Vec<Line>, StoreError>;

    /// How much there is to do.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Everything known of an id: ours (message, turn, delivery, session), the
    /// platform's, the requester's or the engine's. In the order of time, the
    /// newest `limit`.
    async fn trace(&self, id: &str, limit: u32) -> Result<Vec<TraceEntry>, StoreError>;

    /// Who stands behind an engine session; `None` if it isn't ours.
    async fn caller(&self, engine_session: &str) -> Result<Option<Caller>, StoreError>;
}
