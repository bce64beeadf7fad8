//! Messages and commands are taken once, whole, and up to a limit.

use openpact_store::StoreError;
use openpact_store::model::{Accepted, Attachment, Effect, Mode, NewMessage, Place, User};

use super::given::{ROOM, Store, accepted, answer, delivery, message, pending, place, turn};

pub(crate) async fn a_message_is_taken_once(store: Store) {
    let first = store.accept(message("main", "m1"), ROOM).await.unwrap();
    let again = NewMessage { text: "something else".into(), ..message("main", "m1") };
    let again = store.accept(again, ROOM).await.unwrap();
    assert_eq!(again, Accepted { duplicate: true, ..first.clone() });

    let turn = store.begin_turn(&first.session, ROOM).await.unwrap().unwrap();
    assert_eq!(turn.messages.len(), 1);
    assert_eq!(turn.messages[0].new.text, "text of m1");
    answer(&store, &turn, "done").await;
    let late = store.accept(message("main", "m1"), ROOM).await.unwrap();
    assert!(late.duplicate, "known after it was answered as well");
    assert_eq!(store.begin_turn(&first.session, ROOM).await.unwrap(), None);
}

pub(crate) async fn a_message_id_counts_within_its_place(store: Store) {
    let place = |provider: &str, channel: &str, thread: &str| Place {
        provider: provider.into(),
        channel: channel.into(),
        thread: thread.into(),
    };
    let places = [
        place("terminal", "main", ""),
        place("terminal", "main", "thread"),
        place("terminal", "other", ""),
        place("telegram", "main", ""),
    ];
    let mut sessions = Vec::new();
    for place in places {
        let new = NewMessage { place: place.clone(), ..message("", "m1") };
        let accepted = store.accept(new, ROOM).await.unwrap();
        assert!(!accepted.duplicate, "{place:?}");
        sessions.push(accepted.session);
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 4, "each place has a session of its own");
}

pub(crate) async fn a_message_comes_back_as_it_was_handed_in(store: Store) {
    let attachment = |filename: &str, content: &[u8]| Attachment {
        filename: filename.into(),
        mime: "application/octet-stream".into(),
        content: content.to_vec(),
    };
    let new = NewMessage {
        place: Place { thread: "t\u{1f9f5}".into(), ..place("ka'nal") },
        user: User { id: "é".into(), name: "\"Ann\"; DROP TABLE messages".into() },
        text: "line\nbreak\u{0} and NUL, ünïcödé 👋".into(),
        attachments: vec![
            attachment("b.bin", &[0, 255, 10, 13]),
            attachment("a.bin", b""),
            attachment("large.bin", &vec![7; 3 << 20]),
        ],
        ..message("", "m1")
    };
    let accepted = store.accept(new.clone(), ROOM).await.unwrap();
    let turn = store.begin_turn(&accepted.session, ROOM).await.unwrap().unwrap();
    assert_eq!(turn.messages[0].new, new);
    assert_eq!(turn.messages[0].id, accepted.id);
    assert_eq!(turn.messages[0].session, accepted.session);
    assert_eq!(turn.channel.place, new.place);
}

pub(crate) async fn a_full_session_takes_no_more(store: Store) {
    let (first, session) = accepted(&store, "main", "m1").await;
    store.accept(message("main", "m2"), 2).await.unwrap();
    let refused = store.accept(message("main", "m3"), 2).await;
    assert!(matches!(refused, Err(StoreError::Full { limit: 2 })), "{refused:?}");
    let known = store.accept(message("main", "m1"), 2).await.unwrap();
    assert!(known.duplicate && known.id == first, "what is known is confirmed all the same");
    store.accept(message("other", "m3"), 2).await.expect("another channel has room");

    // What is in a turn waits no longer.
    store.begin_turn(&session, 1).await.unwrap().unwrap();
    let taken = store.accept(message("main", "m3"), 2).await.unwrap();
    assert!(!taken.duplicate, "what was refused left no trace");
    let refused = store.accept(message("nobody", "m1"), 0).await;
    assert!(matches!(refused, Err(StoreError::Full { limit: 0 })));
    assert_eq!(store.channel(&place("nobody")).await.unwrap(), None);
}

pub(crate) async fn messages_say_how_many_are_before_them(store: Store) {
    let ahead = async |message_id: &str| {
        store.accept(message("main", message_id), ROOM).await.unwrap().ahead
    };
    assert_eq!((ahead("m1").await, ahead("m2").await), (0, 1));
    let session = store.channel(&place("main")).await.unwrap().unwrap().session;
    let turn = store.begin_turn(&session, ROOM).await.unwrap().unwrap();
    assert_eq!(ahead("m3").await, 2, "those of the running turn count");
    answer(&store, &turn, "done").await;
    assert_eq!(ahead("m4").await, 1);
    assert_eq!(ahead("m4").await, 1, "asked again, the same");
    assert_eq!(ahead("m1").await, 0, "it's done");
}

pub(crate) async fn a_command_is_carried_out_once(store: Store) {
    let command = async || {
        let replies = vec![delivery("main", "one"), delivery("other", "two")];
        let effect = Effect::SetMode(Mode::Full);
        store.accept_command(message("main", "c1"), effect, replies).await.unwrap()
    };
    let first = command().await;
    let again = command().await;
    assert_eq!(again, Accepted { duplicate: true, ..first.clone() });
    assert_eq!(first.ahead, 0);

    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    let texts: Vec<_> = found.iter().map(|it| it.new.text.as_str()).collect();
    assert_eq!(texts, ["one", "two"]);
    assert!(found.iter().all(|it| it.new.answers == [first.id.clone()] && it.turn.is_none()));
    assert_eq!(store.channel(&place("main")).await.unwrap().unwrap().mode, Mode::Full);
    assert_eq!(store.waiting_sessions().await.unwrap(), [""; 0], "a command waits for no turn");
    assert_eq!(store.begin_turn(&first.session, ROOM).await.unwrap(), None);
}

pub(crate) async fn a_command_and_a_message_share_ids(store: Store) {
    let (first, session) = accepted(&store, "main", "m1").await;
    let effect = Effect::NewSession { title: String::new() };
    let replies = vec![delivery("main", "never")];
    let command = store.accept_command(message("main", "m1"), effect, replies).await.unwrap();
    assert!(command.duplicate && command.id == first && command.session == session);
    assert_eq!(pending(&store).await, [""; 0]);

    let none = Effect::None;
    let command = store.accept_command(message("main", "c1"), none, Vec::new()).await.unwrap();
    let message = store.accept(message("main", "c1"), ROOM).await.unwrap();
    assert!(message.duplicate && message.id == command.id && message.ahead == 0);
}

pub(crate) async fn a_command_that_cant_be_carried_out_leaves_nothing(store: Store) {
    let turn = turn(&store, "main", "m1").await;
    let switch = |session: &str| Effect::Switch { session: session.into() };
    let replies = vec![delivery("main", "never")];
    let refused =
        store.accept_command(message("main", "c1"), switch("nowhere"), replies.clone()).await;
    assert!(matches!(refused, Err(StoreError::Missing { what: "session", .. })), "{refused:?}");
    assert_eq!(pending(&store).await, [""; 0]);
    let channel = store.channel(&place("main")).await.unwrap().unwrap();
    assert_eq!(channel.session, turn.session.id, "the session is current as before");

    let effect = switch(&turn.session.id);
    let taken = store.accept_command(message("main", "c1"), effect, replies).await.unwrap();
    assert!(!taken.duplicate, "the refused one left no trace");
    let refused = store.accept_command(message("new", "c1"), switch("nowhere"), Vec::new()).await;
    assert!(refused.is_err());
    assert_eq!(store.channel(&place("new")).await.unwrap(), None);
}
