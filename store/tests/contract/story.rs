//! What people and the MCP server ask.

use openpact_store::model::{Counts, Effect, NewMessage, User};

use super::given::{ROOM, Store, accepted, answer, delivery, event, message, place, turn};

pub(crate) async fn lines_are_what_was_said(store: Store) {
    let first = turn(&store, "main", "m1").await;
    accepted(&store, "main", "m2").await;
    let session = first.session.id.clone();
    answer(&store, &first, "answer one").await;
    let reply = vec![delivery("main", "reply to a command")];
    store.accept_command(message("main", "c1"), Effect::None, reply).await.unwrap();
    store.queue_delivery("r1", delivery("main", "posted")).await.unwrap();
    accepted(&store, "other", "elsewhere").await;

    let lines = store.lines(&session, ROOM).await.unwrap();
    let said: Vec<_> = lines
        .iter()
        .map(|line| (line.outgoing, line.author.as_str(), line.text.as_str()))
        .collect();
    let all = [
        (false, "Ann", "text of m1"),
        (false, "Ann", "text of m2"),
        (true, "", "answer one"),
        (true, "", "posted"),
    ];
    assert_eq!(said, all);
    assert_eq!(lines[0].id, first.messages[0].id);
    assert_eq!(store.lines(&session, 3).await.unwrap(), lines[1..], "the newest");
    assert_eq!(store.lines(&session, 1).await.unwrap(), lines[3..]);
}

pub(crate) async fn counts_are_what_there_is_to_do(store: Store) {
    let counts = async |running_turns, waiting_messages, pending_deliveries| {
        let expected = Counts { running_turns, waiting_messages, pending_deliveries };
        assert_eq!(store.counts().await.unwrap(), expected);
    };
    counts(0, 0, 0).await;
    let first = turn(&store, "main", "m1").await;
    accepted(&store, "main", "m2").await;
    accepted(&store, "other", "m1").await;
    counts(1, 2, 0).await;
    answer(&store, &first, "done").await;
    counts(0, 2, 1).await;
    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    store.confirm_piece(&found[0].id, 0, 1, "p1").await.unwrap();
    counts(0, 2, 0).await;
}

pub(crate) async fn a_trace_is_found_by_each_kind_of_id(store: Store) {
    let (message_id, session) = accepted(&store, "main", "m1").await;
    store.set_engine_session(&session, Some("ses_1".into())).await.unwrap();
    let running = store.begin_turn(&session, ROOM).await.unwrap().unwrap();
    store.begin_attempt(&running.id, "msg_1").await.unwrap();
    store.begin_attempt(&running.id, "msg_2").await.unwrap();
    store.append_events(&running.id, vec![event("text"), event("tool")]).await.unwrap();
    answer(&store, &running, "the answer").await;
    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    let delivery_id = found[0].id.as_str();
    store.confirm_piece(delivery_id, 0, 2, "p1").await.unwrap();
    store.confirm_piece(delivery_id, 1, 2, "p2").await.unwrap();
    let reply = vec![delivery("main", "reply")];
    let command = store.accept_command(message("main", "c1"), Effect::None, reply).await.unwrap();
    let replied = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    let posted = store.queue_delivery("r1", delivery("other", "posted")).await.unwrap();
    store.fail_delivery(&posted, "blocked").await.unwrap();

    let kinds = async |id: &str| {
        let entries = store.trace(id, ROOM).await.unwrap();
        assert!(entries.is_sorted_by_key(|entry| entry.at), "in the order of time");
        entries.into_iter().map(|entry| entry.kind).collect::<Vec<_>>()
    };
    let whole = [
        "message", "turn", "turn", "turn", "event", "event", "event", "turn", "delivery",
        "delivery", "delivery", "delivery",
    ];
    let ids = [&message_id, "m1", &running.id, "msg_1", "msg_2", delivery_id, "p1", "p2"];
    for id in ids {
        let mut kinds = kinds(id).await;
        // What happened in one millisecond comes in an order that makes sense;
        // across two it may be another one.
        let mut whole = whole;
        kinds.sort_unstable();
        whole.sort_unstable();
        assert_eq!(kinds, whole, "{id}");
    }
    for id in [&command.id, "c1", &replied[0].id] {
        assert_eq!(kinds(id).await, ["message", "delivery"], "{id}");
    }
    for id in [posted.as_str(), "r1"] {
        assert_eq!(kinds(id).await, ["delivery", "delivery"], "{id}");
    }
    for id in [session.as_str(), "ses_1"] {
        assert_eq!(kinds(id).await.len(), whole.len() + 2, "{id}");
    }
    assert_eq!(kinds("nothing").await, [""; 0]);

    let told: Vec<_> = store.trace(&message_id, ROOM).await.unwrap();
    let told: Vec<_> = told.iter().map(|entry| entry.text.as_str()).collect();
    let parts = ["Ann", "text of m1", "msg_2", "answered", "the answer", "as p2", "delivered"];
    for part in parts {
        assert!(told.iter().any(|text| text.contains(part)), "`{part}` in {told:#?}");
    }
    let told = store.trace(&posted, ROOM).await.unwrap();
    assert!(told[1].text.contains("blocked"), "{told:?}");
}

pub(crate) async fn a_trace_is_cut_at_its_old_end(store: Store) {
    let running = turn(&store, "main", "m1").await;
    for nth in 0..50 {
        store.append_events(&running.id, vec![event(&format!("kind {nth}"))]).await.unwrap();
    }
    let entries = store.trace("m1", 3).await.unwrap();
    let texts: Vec<_> = entries.iter().map(|it| it.text.split(" {").next().unwrap()).collect();
    assert_eq!(texts, ["kind 47", "kind 48", "kind 49"]);
    assert!(entries.iter().all(|entry| entry.kind == "event" && entry.id == running.id));
}

pub(crate) async fn the_caller_is_whom_the_turn_answers(store: Store) {
    let say = async |message_id: &str, name: &str| {
        let user = User { id: format!("id of {name}"), name: name.into() };
        let new = NewMessage { user, ..message("main", message_id) };
        store.accept(new, ROOM).await.unwrap().session
    };
    let caller = async || store.caller("ses_1").await.unwrap();
    assert_eq!(caller().await, None);
    say("m1", "Ann").await;
    let session = say("m2", "Bob").await;
    store.set_engine_session(&session, Some("ses_1".into())).await.unwrap();
    let turn = store.begin_turn(&session, ROOM).await.unwrap().unwrap();
    say("m3", "Eve").await;
    let found = caller().await.unwrap();
    assert_eq!((found.session, found.place), (session.clone(), place("main")));
    assert_eq!(found.user, User { id: "id of Bob".into(), name: "Bob".into() });
    answer(&store, &turn, "done").await;
    assert_eq!(caller().await.unwrap().user.name, "Eve", "with no turn running, the last one");
    store.set_engine_session(&session, None).await.unwrap();
    assert_eq!(caller().await, None);
}
