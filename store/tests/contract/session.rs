//! Channels, their sessions and their settings.

use openpact_store::StoreError;
use openpact_store::model::{Effect, Mode, Outcome};

use super::given::{ROOM, Store, accepted, answer, delivery, event, message, place, turn};

async fn command(store: &Store, channel: &str, message_id: &str, effect: Effect) -> String {
    let command = message(channel, message_id);
    store.accept_command(command, effect, Vec::new()).await.unwrap().session
}

async fn new_session(store: &Store, channel: &str, title: &str) -> String {
    let effect = Effect::NewSession { title: title.into() };
    command(store, channel, &format!("new {title}"), effect).await
}

pub(crate) async fn a_channel_is_known_from_its_first_message(store: Store) {
    assert_eq!(store.channel(&place("main")).await.unwrap(), None);
    let (_, session) = accepted(&store, "main", "m1").await;
    let channel = store.channel(&place("main")).await.unwrap().unwrap();
    assert_eq!(channel.session, session);
    assert_eq!((channel.mode, channel.model), (Mode::Simple, None));
    let session = store.session(&session).await.unwrap();
    assert!(session.current);
    assert_eq!((session.place, session.turns), (place("main"), 0));
    assert_eq!((session.title, session.engine_session), (String::new(), None));

    store.queue_delivery("r1", delivery("spoken to", "hi")).await.unwrap();
    let channel = store.channel(&place("spoken to")).await.unwrap().expect("made by a delivery");
    let (_, session) = accepted(&store, "spoken to", "m1").await;
    assert_eq!(channel.session, session);

    let session = new_session(&store, "new", "first").await;
    let all = store.sessions(Some(&place("new")), 0, ROOM).await.unwrap();
    assert_eq!(all.len(), 1, "no empty session beside the one that was asked for");
    assert_eq!((&all[0].id, all[0].title.as_str()), (&session, "first"));
}

pub(crate) async fn commands_change_the_session_and_the_settings(store: Store) {
    let running = turn(&store, "main", "m1").await;
    let first = running.session.id.clone();
    let second = new_session(&store, "main", "second").await;
    assert_ne!(first, second);
    assert_eq!(accepted(&store, "main", "m2").await.1, second);
    assert!(!store.session(&first).await.unwrap().current);

    let switch = Effect::Switch { session: first.clone() };
    assert_eq!(command(&store, "main", "c1", switch).await, first);
    assert_eq!(accepted(&store, "main", "m3").await.1, first);
    assert!(store.session(&first).await.unwrap().current);
    assert!(!store.session(&second).await.unwrap().current);
    assert_eq!(store.running_turns().await.unwrap().len(), 1, "the turn runs on");

    command(&store, "main", "c2", Effect::SetMode(Mode::Thinking)).await;
    command(&store, "main", "c3", Effect::SetModel(Some("some/model".into()))).await;
    let channel = store.channel(&place("main")).await.unwrap().unwrap();
    assert_eq!((channel.mode, channel.model.as_deref()), (Mode::Thinking, Some("some/model")));
    command(&store, "main", "c4", Effect::SetModel(None)).await;
    let channel = store.channel(&place("main")).await.unwrap().unwrap();
    assert_eq!((channel.mode, channel.model), (Mode::Thinking, None));
    // A session that is current already can be switched to.
    let switch = Effect::Switch { session: first.clone() };
    assert_eq!(command(&store, "main", "c5", switch).await, first);
}

pub(crate) async fn a_session_of_another_channel_is_not_switched_to(store: Store) {
    let (_, ours) = accepted(&store, "ours", "m1").await;
    let (_, theirs) = accepted(&store, "theirs", "m1").await;
    let effect = Effect::Switch { session: theirs.clone() };
    let refused = store.accept_command(message("ours", "c1"), effect, Vec::new()).await;
    assert!(matches!(refused, Err(StoreError::Missing { what: "session", id }) if id == theirs));
    assert_eq!(store.channel(&place("ours")).await.unwrap().unwrap().session, ours);
    assert!(store.session(&theirs).await.unwrap().current);
}

pub(crate) async fn sessions_come_last_used_first_and_in_pages(store: Store) {
    let mut ids = Vec::new();
    for title in ["one", "two", "three"] {
        ids.push(new_session(&store, "main", title).await);
    }
    accepted(&store, "other", "m1").await;
    let titles = async |offset, limit| {
        let found = store.sessions(Some(&place("main")), offset, limit).await.unwrap();
        found.into_iter().map(|session| session.title).collect::<Vec<_>>()
    };
    assert_eq!(titles(0, ROOM).await, ["three", "two", "one"]);
    assert_eq!(titles(1, 1).await, ["two"]);
    assert_eq!(titles(3, 10).await, [""; 0]);
    assert_eq!(store.sessions(None, 0, ROOM).await.unwrap().len(), 4);
    assert_eq!(store.sessions(None, 0, 2).await.unwrap().len(), 2);
    assert_eq!(store.sessions(Some(&place("nowhere")), 0, ROOM).await.unwrap(), []);

    // Used last, it comes first; times count in milliseconds.
    let before = store.session(&ids[2]).await.unwrap().used_at;
    while openpact_store::model::At::now() <= before {
        tokio::task::yield_now().await;
    }
    command(&store, "main", "c1", Effect::Switch { session: ids[0].clone() }).await;
    assert_eq!(titles(0, ROOM).await, ["three", "two", "one"], "looking isn't using");
    accepted(&store, "main", "m1").await;
    assert_eq!(titles(0, ROOM).await, ["one", "three", "two"]);
}

pub(crate) async fn an_engine_session_belongs_to_one_session(store: Store) {
    let (_, first) = accepted(&store, "main", "m1").await;
    let (_, second) = accepted(&store, "other", "m1").await;
    store.set_engine_session(&first, Some("ses_1".into())).await.unwrap();
    store.set_engine_session(&first, Some("ses_1".into())).await.unwrap();
    let known = store.session(&first).await.unwrap().engine_session;
    assert_eq!(known.as_deref(), Some("ses_1"));
    let refused = store.set_engine_session(&second, Some("ses_1".into())).await;
    assert!(matches!(refused, Err(StoreError::Database { .. })), "{refused:?}");
    store.set_engine_session(&first, None).await.unwrap();
    assert_eq!(store.session(&first).await.unwrap().engine_session, None);
    store.set_engine_session(&second, Some("ses_1".into())).await.unwrap();
}

pub(crate) async fn what_is_missing_is_named(store: Store) {
    let turn = turn(&store, "main", "m1").await;
    answer(&store, &turn, "done").await;
    let ended = store.begin_attempt(&turn.id, "msg_1").await.map(drop);
    let events = vec![event("text")];
    let results = [
        ("session", store.session("x").await.map(drop)),
        ("session", store.begin_turn("x", ROOM).await.map(drop)),
        ("session", store.set_engine_session("x", None).await),
        ("session", store.lines("x", ROOM).await.map(drop)),
        ("running turn", store.begin_attempt("x", "msg_1").await.map(drop)),
        ("running turn", ended),
        ("turn", store.append_events("x", events).await),
        ("turn", store.end_turn("x", Outcome::Failed, event("e"), vec![]).await.map(drop)),
        ("delivery", store.delivery("x").await.map(drop)),
        ("delivery", store.begin_delivery("x").await),
        ("delivery", store.confirm_piece("x", 0, 1, "p").await.map(drop)),
        ("delivery", store.fail_delivery("x", "why").await),
        ("delivery", store.platform_messages("x").await.map(drop)),
    ];
    for (nth, (expected, result)) in results.into_iter().enumerate() {
        match result {
            Err(StoreError::Missing { what, .. }) => assert_eq!(what, expected, "call {nth}"),
            other => panic!("call {nth}: {other:?}"),
        }
    }
}
