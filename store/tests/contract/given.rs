//! Messages, deliveries and turns for the cases to begin with.

use std::sync::Arc;

use openpact_store::State;
use openpact_store::model::{
    At, DeliveryKind, Event, NewDelivery, NewMessage, Outcome, Place, Turn, User,
};

pub(crate) type Store = Arc<dyn State>;

/// No case of the contract has more waiting, unless it's about that.
pub(crate) const ROOM: u32 = 1000;

pub(crate) fn place(channel: &str) -> Place {
    Place { provider: "terminal".into(), channel: channel.into(), thread: String::new() }
}

pub(crate) fn message(channel: &str, message_id: &str) -> NewMessage {
    NewMessage {
        place: place(channel),
        message_id: message_id.into(),
        user: User { id: "u1".into(), name: "Ann".into() },
        text: format!("text of {message_id}"),
        attachments: Vec::new(),
        sent_at: At(1_700_000_000_000),
    }
}

pub(crate) fn delivery(channel: &str, text: &str) -> NewDelivery {
    NewDelivery {
        place: place(channel),
        kind: DeliveryKind::Answer,
        text: text.into(),
        reply_to: "m1".into(),
        buttons: Vec::new(),
        answers: Vec::new(),
    }
}

pub(crate) fn event(kind: &str) -> Event {
    Event { kind: kind.into(), detail: serde_json::json!({ "of": kind }) }
}

/// Hands a message in that nothing speaks against; its id and session.
pub(crate) async fn accepted(store: &Store, channel: &str, message_id: &str) -> (String, String) {
    let accepted = store.accept(message(channel, message_id), ROOM).await.unwrap();
    assert!(!accepted.duplicate, "{message_id} is new");
    (accepted.id, accepted.session)
}

/// A running turn that answers one message.
pub(crate) async fn turn(store: &Store, channel: &str, message_id: &str) -> Turn {
    let (_, session) = accepted(store, channel, message_id).await;
    store.begin_turn(&session, ROOM).await.unwrap().expect("a message waits")
}

/// Ends a turn with one answer.
pub(crate) async fn answer(store: &Store, turn: &Turn, text: &str) {
    let deliveries = vec![NewDelivery { place: turn.channel.place.clone(), ..delivery("", text) }];
    let ended = store.end_turn(&turn.id, Outcome::Answered, event("answered"), deliveries).await;
    assert!(ended.unwrap(), "the turn ran");
}

/// The texts of what is pending for the terminal.
pub(crate) async fn pending(store: &Store) -> Vec<String> {
    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    found.into_iter().map(|delivery| delivery.new.text).collect()
}
