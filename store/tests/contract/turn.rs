//! One turn a session at a time, from its beginning to its one end.

use openpact_store::StoreError;
use openpact_store::model::{Effect, NewDelivery, Outcome, Turn};

use super::given::{ROOM, Store, accepted, answer, delivery, event, message, pending, turn};

fn ids(turn: &Turn) -> Vec<&str> {
    turn.messages.iter().map(|message| message.new.message_id.as_str()).collect()
}

pub(crate) async fn a_turn_takes_what_waits_oldest_first(store: Store) {
    let mut session = String::new();
    for message_id in ["m3", "m1", "m2"] {
        session = accepted(&store, "main", message_id).await.1;
    }
    assert_eq!(store.begin_turn(&session, 0).await.unwrap(), None);
    let turn = store.begin_turn(&session, 2).await.unwrap().unwrap();
    assert_eq!(ids(&turn), ["m3", "m1"]);
    assert_eq!((turn.attempt, turn.engine_message.as_deref()), (0, None));
    assert_eq!((turn.session.id.as_str(), turn.session.turns), (session.as_str(), 1));
    answer(&store, &turn, "one").await;
    let turn = store.begin_turn(&session, 2).await.unwrap().unwrap();
    assert_eq!((ids(&turn), turn.session.turns), (vec!["m2"], 2));
    answer(&store, &turn, "two").await;
    assert_eq!(store.begin_turn(&session, 2).await.unwrap(), None);
}

pub(crate) async fn a_session_has_one_running_turn(store: Store) {
    let running = turn(&store, "main", "m1").await;
    accepted(&store, "main", "m2").await;
    assert_eq!(store.begin_turn(&running.session.id, ROOM).await.unwrap(), None);
    // Another session of the same channel is another matter.
    let effect = Effect::NewSession { title: String::new() };
    store.accept_command(message("main", "c1"), effect, Vec::new()).await.unwrap();
    let other = turn(&store, "main", "m3").await;
    assert_ne!(other.session.id, running.session.id);
    answer(&store, &running, "one").await;
    let next = store.begin_turn(&running.session.id, ROOM).await.unwrap().unwrap();
    assert_eq!(ids(&next), ["m2"]);
}

pub(crate) async fn sessions_wait_in_order_until_a_turn_runs(store: Store) {
    let (_, first) = accepted(&store, "first", "m1").await;
    let (_, second) = accepted(&store, "second", "m1").await;
    accepted(&store, "first", "m2").await;
    assert_eq!(store.waiting_sessions().await.unwrap(), [first.clone(), second.clone()]);
    let turn = store.begin_turn(&first, 1).await.unwrap().unwrap();
    assert_eq!(store.waiting_sessions().await.unwrap(), std::slice::from_ref(&second));
    answer(&store, &turn, "done").await;
    assert_eq!(store.waiting_sessions().await.unwrap(), [second, first], "m2 came last");
}

pub(crate) async fn a_running_turn_is_found_again(store: Store) {
    let (_, session) = accepted(&store, "main", "m1").await;
    store.set_engine_session(&session, Some("ses_1".into())).await.unwrap();
    let begun = store.begin_turn(&session, ROOM).await.unwrap().unwrap();
    assert_eq!(store.running_turns().await.unwrap(), std::slice::from_ref(&begun));
    assert_eq!(begun.session.engine_session.as_deref(), Some("ses_1"));
    accepted(&store, "main", "m2").await;
    store.begin_attempt(&begun.id, "msg_1").await.unwrap();
    let found = store.running_turns().await.unwrap();
    assert_eq!(ids(&found[0]), ["m1"], "what came meanwhile isn't in it");
    assert_eq!((found[0].attempt, found[0].engine_message.as_deref()), (1, Some("msg_1")));
    let second = turn(&store, "other", "m1").await;
    let found = store.running_turns().await.unwrap();
    assert_eq!(found.iter().map(|turn| &turn.id).collect::<Vec<_>>(), [&begun.id, &second.id]);
    answer(&store, &begun, "done").await;
    answer(&store, &second, "done").await;
    assert_eq!(store.running_turns().await.unwrap(), []);
}

pub(crate) async fn attempts_are_counted(store: Store) {
    let turn = turn(&store, "main", "m1").await;
    for (number, message) in [(1, "msg_1"), (2, "msg_2"), (3, "msg_3")] {
        assert_eq!(store.begin_attempt(&turn.id, message).await.unwrap(), number);
        let found = &store.running_turns().await.unwrap()[0];
        assert_eq!((found.attempt, found.engine_message.as_deref()), (number, Some(message)));
    }
}

pub(crate) async fn a_turn_ends_once(store: Store) {
    let outcomes = [Outcome::Answered, Outcome::Failed, Outcome::Cancelled];
    for (nth, outcome) in outcomes.into_iter().enumerate() {
        let channel = format!("channel {nth}");
        accepted(&store, &channel, "m1").await;
        let turn = turn(&store, &channel, "m2").await;
        let end = async |outcome, text: &str| {
            let deliveries = vec![
                NewDelivery { answers: vec!["not this".into()], ..delivery(&channel, text) },
                delivery("elsewhere", text),
            ];
            store.end_turn(&turn.id, outcome, event("end"), deliveries).await.unwrap()
        };
        assert!(end(outcome, "the end").await, "{outcome:?}");
        for again in outcomes {
            assert!(!end(again, "again").await, "{outcome:?}, then {again:?}");
        }
        let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
        let found = &found[nth * 2..];
        let answers: Vec<_> = turn.messages.iter().map(|message| message.id.clone()).collect();
        assert_eq!(answers.len(), 2);
        for (delivery, place) in found.iter().zip([channel.as_str(), "elsewhere"]) {
            assert_eq!(delivery.new.text, "the end");
            assert_eq!(delivery.new.place.channel, place);
            assert_eq!(delivery.new.answers, answers);
            assert_eq!(delivery.turn.as_ref(), Some(&turn.id));
        }
        assert_eq!(found.len(), 2);
        // A journal that comes late is kept; it changes nothing.
        store.append_events(&turn.id, vec![event("late")]).await.unwrap();
        assert_eq!(store.begin_turn(&turn.session.id, ROOM).await.unwrap(), None);
    }
    assert_eq!(store.counts().await.unwrap().running_turns, 0);
}

pub(crate) async fn an_end_that_fails_changes_nothing(store: Store) {
    let running = turn(&store, "main", "m1").await;
    let refused =
        store.end_turn("nowhere", Outcome::Answered, event("e"), vec![delivery("main", "x")]).await;
    assert!(matches!(refused, Err(StoreError::Missing { what: "turn", .. })));
    assert_eq!(pending(&store).await, [""; 0]);
    assert_eq!(store.running_turns().await.unwrap(), [running]);
}

pub(crate) async fn a_turn_that_answers_tells_of_failed_deliveries(store: Store) {
    let fail = async |store: &Store, reason: &str| {
        let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
        store.fail_delivery(&found.last().unwrap().id, reason).await.unwrap();
    };
    let first = turn(&store, "main", "m1").await;
    answer(&store, &first, "lost").await;
    fail(&store, "the chat is gone").await;
    let elsewhere = turn(&store, "other", "m1").await;
    assert_eq!(elsewhere.undelivered, [""; 0], "another session's failures are its own");

    // One that fails tells nobody, so the next one has to.
    let second = turn(&store, "main", "m2").await;
    assert_eq!(second.undelivered, ["the chat is gone"]);
    let failed = vec![delivery("main", "lost as well")];
    store.end_turn(&second.id, Outcome::Failed, event("failed"), failed).await.unwrap();
    fail(&store, "still gone").await;
    let third = turn(&store, "main", "m3").await;
    assert_eq!(third.undelivered, ["the chat is gone", "still gone"]);

    // What fails while it runs is for the next, also after a crash.
    store.queue_delivery("r1", delivery("main", "posted")).await.unwrap();
    fail(&store, "gone meanwhile").await;
    let found = store.running_turns().await.unwrap();
    let found = found.iter().find(|turn| turn.id == third.id).unwrap();
    assert_eq!(found.undelivered, third.undelivered);
    answer(&store, &third, "heard").await;
    let fourth = turn(&store, "main", "m4").await;
    assert_eq!(fourth.undelivered, ["gone meanwhile"]);
    answer(&store, &fourth, "heard").await;
    assert_eq!(turn(&store, "main", "m5").await.undelivered, [""; 0]);
}
