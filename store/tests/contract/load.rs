//! Many at once: nothing is lost, doubled or mixed up.

use std::collections::BTreeMap;

use openpact_store::model::{Event, Outcome};

use super::given::{ROOM, Store, accepted, answer, delivery, event, message, turn};

const CHANNELS: usize = 20;
const MESSAGES: usize = 10;

pub(crate) async fn many_channels_lose_and_mix_up_nothing(store: Store) {
    let mut tasks = Vec::new();
    for channel in 0..CHANNELS {
        for nth in 0..MESSAGES {
            let store = store.clone();
            tasks.push(tokio::spawn(async move {
                let (channel, id) = (format!("channel {channel}"), format!("m{nth}"));
                let taken = store.accept(message(&channel, &id), ROOM).await.unwrap();
                // Whoever finds no turn running begins one; the rest waits for it.
                while let Some(turn) = store.begin_turn(&taken.session, 3).await.unwrap() {
                    store.append_events(&turn.id, vec![event("text")]).await.unwrap();
                    answer(&store, &turn, "answer").await;
                }
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    // A message that came just before the turn of its session ended is left over.
    for session in store.waiting_sessions().await.unwrap() {
        while let Some(turn) = store.begin_turn(&session, ROOM).await.unwrap() {
            answer(&store, &turn, "answer").await;
        }
    }
    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    let mut answered: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for delivery in found {
        answered.entry(delivery.new.place.channel).or_default().extend(delivery.new.answers);
    }
    assert_eq!(answered.len(), CHANNELS);
    for (channel, ids) in answered {
        assert_eq!(ids.len(), MESSAGES, "{channel}: each is answered once");
        assert!(ids.is_sorted_by(|a, b| a < b), "{channel}: in the order of arrival");
    }
    assert_eq!(store.running_turns().await.unwrap(), []);
}

pub(crate) async fn one_message_from_many_tasks_is_taken_once(store: Store) {
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.accept(message("main", "m1"), ROOM).await.unwrap() })
        })
        .collect();
    let (mut taken, mut ids) = (0, Vec::new());
    for task in tasks {
        let accepted = task.await.unwrap();
        taken += usize::from(!accepted.duplicate);
        ids.push((accepted.id, accepted.session));
    }
    ids.dedup();
    assert_eq!((taken, ids.len()), (1, 1));
}

pub(crate) async fn a_turn_is_begun_once_by_many_tasks(store: Store) {
    let (_, session) = accepted(&store, "main", "m1").await;
    let spawn = |store: Store, session: String| {
        tokio::spawn(async move { store.begin_turn(&session, ROOM).await.unwrap() })
    };
    let tasks: Vec<_> = (0..50).map(|_| spawn(store.clone(), session.clone())).collect();
    let mut begun = Vec::new();
    for task in tasks {
        begun.extend(task.await.unwrap());
    }
    assert_eq!(begun.len(), 1);
    let id = begun[0].id.clone();
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (store, id) = (store.clone(), id.clone());
            tokio::spawn(async move {
                let deliveries = vec![delivery("main", "answer")];
                store.end_turn(&id, Outcome::Answered, event("end"), deliveries).await.unwrap()
            })
        })
        .collect();
    let mut ended = 0;
    for task in tasks {
        ended += usize::from(task.await.unwrap());
    }
    assert_eq!(ended, 1);
    assert_eq!(store.counts().await.unwrap().pending_deliveries, 1);
}

pub(crate) async fn a_journal_keeps_its_order(store: Store) {
    let mut tasks = Vec::new();
    for channel in 0..5 {
        let store = store.clone();
        tasks.push(tokio::spawn(async move {
            let turn = turn(&store, &format!("channel {channel}"), "m1").await;
            let event = |nth: u32| Event { kind: "text".into(), detail: nth.into() };
            for nth in (0..60).step_by(3) {
                let more = vec![event(nth), event(nth + 1)];
                // Two changes handed over together keep their order as well.
                let (first, second) = tokio::join!(
                    store.append_events(&turn.id, more),
                    store.append_events(&turn.id, vec![event(nth + 2)]),
                );
                first.and(second).unwrap();
            }
            let entries = store.trace(&turn.id, ROOM).await.unwrap();
            let events = entries.iter().filter(|entry| entry.kind == "event");
            let found: Vec<_> = events.map(|entry| entry.text.as_str()).collect();
            let expected: Vec<_> = (0..60).map(|nth| format!("text {nth}")).collect();
            assert_eq!(found, expected);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

pub(crate) async fn a_change_outlives_its_caller(store: Store) {
    let (_, session) = accepted(&store, "main", "m1").await;
    let begin = store.begin_turn(&session, ROOM);
    // Polled once it's handed over; then its caller goes away.
    tokio::select! {
        biased;
        begun = begin => drop(begun.unwrap()),
        () = std::future::ready(()) => {}
    }
    // What comes later is done later.
    store.set_engine_session(&session, None).await.unwrap();
    let found = store.running_turns().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].messages.len(), 1);
}
