//! [`State`] on SQLite: which methods change something, and which only look.

use async_trait::async_trait;

use super::{Sqlite, channel, delivery, message, session, story, turn};
use crate::model::{
    Accepted, Caller, Channel, Counts, Delivery, Effect, Event, Line, NewDelivery, NewMessage,
    Outcome, Place, Session, TraceEntry, Turn,
};
use crate::{State, StoreError};

/// About what a change takes besides the texts in it.
const SMALL: usize = 512;

#[async_trait]
impl State for Sqlite {
    async fn accept(
        &self,
        message: NewMessage,
        waiting_limit: u32,
    ) -> Result<Accepted, StoreError> {
        let bytes = SMALL + message::size(&message);
        let work = move |db: &_| message::accept(db, &message, waiting_limit);
        self.write("accept a message", bytes, work).await
    }

    async fn accept_command(
        &self,
        message: NewMessage,
        effect: Effect,
        replies: Vec<NewDelivery>,
    ) -> Result<Accepted, StoreError> {
        let bytes = SMALL + message::size(&message) + texts(&replies);
        let work = move |db: &_| message::accept_command(db, &message, &effect, &replies);
        self.write("accept a command", bytes, work).await
    }

    async fn waiting_sessions(&self) -> Result<Vec<String>, StoreError> {
        self.read("find waiting messages", message::waiting_sessions).await
    }

    async fn begin_turn(&self, session: &str, limit: u32) -> Result<Option<Turn>, StoreError> {
        let session = session.to_owned();
        self.write("begin a turn", SMALL, move |db| turn::begin(db, &session, limit)).await
    }

    async fn running_turns(&self) -> Result<Vec<Turn>, StoreError> {
        self.read("find running turns", turn::running).await
    }

    async fn set_engine_session(
        &self,
        session: &str,
        engine_session: Option<String>,
    ) -> Result<(), StoreError> {
        let session = session.to_owned();
        let work =
            move |db: &_| session::set_engine_session(db, &session, engine_session.as_deref());
        self.write("note the engine's session", SMALL, work).await
    }

    async fn begin_attempt(&self, turn: &str, engine_message: &str) -> Result<u32, StoreError> {
        let (turn, engine_message) = (turn.to_owned(), engine_message.to_owned());
        let work = move |db: &_| turn::begin_attempt(db, &turn, &engine_message);
        self.write("note an attempt", SMALL, work).await
    }

    async fn append_events(&self, turn: &str, events: Vec<Event>) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        // Written out here, so that the writing thread needn't and its queue is small.
        let events: Vec<_> = events.into_iter().map(turn::Entry::from).collect();
        let bytes = events.iter().map(turn::Entry::bytes).sum();
        let turn = turn.to_owned();
        self.write("write the journal", bytes, move |db| turn::append(db, &turn, &events)).await
    }

    async fn end_turn(
        &self,
        turn: &str,
        outcome: Outcome,
        last_event: Event,
        deliveries: Vec<NewDelivery>,
    ) -> Result<bool, StoreError> {
        let last = turn::Entry::from(last_event);
        let bytes = SMALL + last.bytes() + texts(&deliveries);
        let turn = turn.to_owned();
        let work = move |db: &_| turn::end(db, &turn, outcome, &last, &deliveries);
        self.write("end a turn", bytes, work).await
    }

    async fn queue_delivery(
        &self,
        request_id: &str,
        delivery: NewDelivery,
    ) -> Result<String, StoreError> {
        let bytes = SMALL + delivery.text.len();
        let request = request_id.to_owned();
        let work = move |db: &_| delivery::queue_once(db, &request, &delivery);
        self.write("queue a delivery", bytes, work).await
    }

    async fn pending_deliveries(
        &self,
        provider: &str,
        channels: &[String],
        after: &str,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let (provider, channels, after) =
            (provider.to_owned(), channels.to_owned(), after.to_owned());
        let work = move |db: &_| delivery::pending(db, &provider, &channels, &after, limit);
        self.read("find deliveries", work).await
    }

    async fn delivery(&self, id: &str) -> Result<Delivery, StoreError> {
        let id = id.to_owned();
        self.read("find a delivery", move |db| delivery::load(db, &id)).await
    }

    async fn begin_delivery(&self, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.write("note a delivery's attempt", SMALL, move |db| delivery::begin(db, &id)).await
    }

    async fn confirm_piece(
        &self,
        id: &str,
        piece: u32,
        pieces: u32,
        platform_message_id: &str,
    ) -> Result<bool, StoreError> {
        let (id, message) = (id.to_owned(), platform_message_id.to_owned());
        let work = move |db: &_| delivery::confirm(db, &id, piece, pieces, &message);
        self.write("confirm a delivery", SMALL, work).await
    }

    async fn fail_delivery(&self, id: &str, reason: &str) -> Result<(), StoreError> {
        let (id, reason) = (id.to_owned(), reason.to_owned());
        let work = move |db: &_| delivery::fail(db, &id, &reason);
        self.write("give a delivery up", SMALL, work).await
    }

    async fn platform_messages(&self, delivery: &str) -> Result<Vec<String>, StoreError> {
        let id = delivery.to_owned();
        self.read("find a delivery's messages", move |db| delivery::platform_messages(db, &id))
            .await
    }

    async fn channel(&self, place: &Place) -> Result<Option<Channel>, StoreError> {
        let place = place.clone();
        self.read("find a channel", move |db| channel::find(db, &place)).await
    }

    async fn session(&self, id: &str) -> Result<Session, StoreError> {
        let id = id.to_owned();
        self.read("find a session", move |db| session::load(db, &id)).await
    }

    async fn sessions(
        &self,
        place: Option<&Place>,
        offset: u32,
        limit: u32,
    ) -> Result<Vec<Session>, StoreError> {
        let place = place.cloned();
        let work = move |db: &_| session::list(db, place.as_ref(), offset, limit);
        self.read("list sessions", work).await
    }

    async fn lines(&self, session: &str, limit: u32) -> Result<Vec<Line>, StoreError> {
        let session = session.to_owned();
        self.read("read a session", move |db| story::lines(db, &session, limit)).await
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        self.read("count what there is to do", story::counts).await
    }

    async fn trace(&self, id: &str, limit: u32) -> Result<Vec<TraceEntry>, StoreError> {
        let id = id.to_owned();
        self.read("trace an id", move |db| story::trace(db, &id, limit)).await
    }

    async fn caller(&self, engine_session: &str) -> Result<Option<Caller>, StoreError> {
        let engine_session = engine_session.to_owned();
        self.read("find a caller", move |db| story::caller(db, &engine_session)).await
    }
}

fn texts(deliveries: &[NewDelivery]) -> usize {
    deliveries.iter().map(|delivery| delivery.text.len()).sum()
}
