//! Deliveries stay until they're confirmed or given up, in order.

use openpact_store::model::{Button, DeliveryKind, NewDelivery, Place};

use super::given::{ROOM, Store, answer, delivery, pending, place, turn};

pub(crate) async fn deliveries_come_in_order_and_in_pages(store: Store) {
    let mut ids = Vec::new();
    for nth in 0..7 {
        let channel = format!("channel {}", nth % 2);
        let queued = store.queue_delivery(&format!("r{nth}"), delivery(&channel, "text")).await;
        ids.push(queued.unwrap());
    }
    assert!(ids.is_sorted_by(|a, b| a < b), "ids rise");
    for channels in [vec![], vec!["channel 0".into(), "channel 1".into()]] {
        let (mut after, mut found) = (String::new(), Vec::new());
        loop {
            let page = store.pending_deliveries("terminal", &channels, &after, 3).await.unwrap();
            assert!(page.len() <= 3);
            let Some(last) = page.last() else { break };
            after = last.id.clone();
            found.extend(page.into_iter().map(|delivery| delivery.id));
        }
        assert_eq!(found, ids, "{channels:?}");
    }
}

pub(crate) async fn deliveries_go_to_their_provider_and_channels(store: Store) {
    let places = [("terminal", "a"), ("terminal", "b"), ("telegram", "a"), ("terminal", "c")];
    for (provider, channel) in places {
        let place = Place { provider: provider.into(), ..place(channel) };
        let text = format!("{provider} {channel}");
        let new = NewDelivery { place, ..delivery("", &text) };
        store.queue_delivery(&text, new).await.unwrap();
    }
    let cases: [(&str, &[&str], &[&str]); 5] = [
        ("terminal", &[], &["terminal a", "terminal b", "terminal c"]),
        ("terminal", &["c", "a", "a"], &["terminal a", "terminal c"]),
        ("telegram", &["a", "b"], &["telegram a"]),
        ("telegram", &["b"], &[]),
        ("slack", &[], &[]),
    ];
    for (provider, channels, expected) in cases {
        let channels: Vec<_> = channels.iter().map(|&channel| channel.into()).collect();
        let found = store.pending_deliveries(provider, &channels, "", ROOM).await.unwrap();
        let texts: Vec<_> = found.into_iter().map(|delivery| delivery.new.text).collect();
        assert_eq!(texts, expected, "{provider} {channels:?}");
    }
}

pub(crate) async fn a_delivery_is_done_with_its_last_piece(store: Store) {
    let turn = turn(&store, "main", "m1").await;
    answer(&store, &turn, "long").await;
    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    let id = found[0].id.as_str();
    let confirm = async |piece, message| store.confirm_piece(id, piece, 3, message).await.unwrap();
    assert!(!confirm(2, "p2").await);
    assert!(!confirm(0, "p0").await);
    assert!(!confirm(0, "another").await, "confirmed again");
    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    assert_eq!(found[0].delivered_pieces, [0, 2]);
    assert_eq!(store.delivery(id).await.unwrap(), found[0]);
    assert!(confirm(1, "p1").await);
    assert!(confirm(1, "another").await, "done is done");
    assert_eq!(pending(&store).await, [""; 0]);
    assert_eq!(store.delivery(id).await.unwrap().delivered_pieces, [0, 1, 2]);
    assert_eq!(store.platform_messages(id).await.unwrap(), ["p0", "p1", "p2"]);
    store.fail_delivery(id, "too late").await.unwrap();
    assert!(confirm(2, "p2").await, "what stands there can't fail any more");
}

pub(crate) async fn a_delivery_that_failed_is_no_longer_pending(store: Store) {
    let id = store.queue_delivery("r1", delivery("main", "text")).await.unwrap();
    store.fail_delivery(&id, "the bot was blocked").await.unwrap();
    store.fail_delivery(&id, "again").await.unwrap();
    assert_eq!(pending(&store).await, [""; 0]);
    assert_eq!(store.delivery(&id).await.unwrap().new.text, "text", "it's still known");
    assert_eq!(turn(&store, "main", "m1").await.undelivered, ["the bot was blocked"]);
    // A confirmation that comes late is the truth.
    assert!(store.confirm_piece(&id, 0, 1, "p1").await.unwrap());
    assert_eq!(store.platform_messages(&id).await.unwrap(), ["p1"]);
}

pub(crate) async fn a_request_is_queued_once(store: Store) {
    let new = NewDelivery {
        place: Place { thread: "thread".into(), ..place("main") },
        kind: DeliveryKind::Ask,
        text: "Which one?".into(),
        reply_to: "m9".into(),
        buttons: vec![
            Button { id: "b".into(), label: "\"B\"".into(), command: "/switch 1".into() },
            Button { id: "a".into(), label: "A".into(), command: String::new() },
        ],
        answers: vec!["somebody's".into()],
    };
    let id = store.queue_delivery("r1", new.clone()).await.unwrap();
    let other = delivery("elsewhere", "other text");
    assert_eq!(store.queue_delivery("r1", other.clone()).await.unwrap(), id);
    assert_ne!(store.queue_delivery("r2", other).await.unwrap(), id);
    let found = store.delivery(&id).await.unwrap();
    assert_eq!(found.new, new);
    assert_eq!((found.turn, found.attempt), (None, 0));
    store.confirm_piece(&id, 0, 1, "p1").await.unwrap();
    assert_eq!(store.queue_delivery("r1", new).await.unwrap(), id, "done, and still known");
    assert_eq!(pending(&store).await, ["other text"]);
}

pub(crate) async fn attempts_are_counted(store: Store) {
    let id = store.queue_delivery("r1", delivery("main", "text")).await.unwrap();
    store.begin_delivery(&id).await.unwrap();
    store.begin_delivery(&id).await.unwrap();
    let found = store.pending_deliveries("terminal", &[], "", ROOM).await.unwrap();
    assert_eq!(found[0].attempt, 2);
}
