//! Deliveries: posted once and in order, and no channel waits for another.

use std::time::Duration;

use crate::fake::{self, FakeHub, answer, draft, frontend, said, within};
use openpact_frontend::SendError;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_proto::frontend::v1::{Activity, Ask, Edit, Send};

#[tokio::test]
async fn a_long_text_is_posted_in_pieces_and_each_is_confirmed() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    stream.send(answer("d", "main", "one two\n\nthree four")).await;
    assert_eq!(said(stream.next().await), "d 1/2 #1");
    assert_eq!(said(stream.next().await), "d 2/2 #2");
    assert_eq!(frontend.chat.seen(2).await, ["main: one two", "main: three four"]);
}

#[tokio::test]
async fn what_is_sent_again_is_confirmed_again_and_not_posted_again() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    stream.send(answer("d", "main", "hello")).await;
    assert_eq!(said(stream.next().await), "d 1/1 #1");
    stream.send(answer("d", "main", "hello")).await;
    assert_eq!(said(stream.next().await), "d 1/1 #1");
    stream.cut().await;
    let mut stream = hub.attached().await;
    stream.send(answer("d", "main", "hello")).await;
    stream.send(answer("e", "main", "bye")).await;
    // Both confirmations may have been lost with the connection, and the hub asked once more.
    for _ in 0..3 {
        assert_eq!(said(stream.next().await), "d 1/1 #1");
    }
    assert_eq!(said(stream.next().await), "e 1/1 #2");
    assert_eq!(frontend.chat.seen(2).await, ["main: hello", "main: bye"]);
}

#[tokio::test]
async fn pieces_of_an_earlier_life_are_not_posted_again() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    let Down::Send(send) = answer("d", "main", "one two three\n\nfour") else { unreachable!() };
    stream.send(Down::Send(Send { delivered_pieces: vec![0], attempt: 2, ..send })).await;
    assert_eq!(said(stream.next().await), "d 2/2 #1");
    assert_eq!(frontend.chat.seen(1).await.len(), 1);
}

#[tokio::test]
async fn a_channel_that_is_stuck_delays_no_other_and_order_is_kept_within_one() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    stream.send(answer("s", "slow", "stuck")).await;
    for id in 0..20 {
        stream.send(answer(&format!("d{id:02}"), "main", &format!("text {id:02}"))).await;
    }
    for id in 0..20 {
        assert_eq!(said(stream.next().await), format!("d{id:02} 1/1 #{}", id + 1));
    }
    let seen = frontend.chat.seen(20).await;
    assert!(seen.is_sorted() && seen.iter().all(|it| it.starts_with("main")), "{seen:?}");
}

#[tokio::test]
async fn what_a_platform_says_decides_what_is_done() {
    let failed = || SendError::Failed("no network".into());
    let too_fast = |millis| SendError::TooFast(Duration::from_millis(millis));
    #[rustfmt::skip]
    let cases: [(&str, Vec<SendError>, usize, &str); 6] = [
        // what it shows                errors                                  tries  what is reported
        ("a short wait",                vec![too_fast(20)],                     2, "d 1/1 #2"),
        ("a wait of hours",             vec![too_fast(10_000_000)],             1, "d failed for now: the platform asks to wait 10000s"),
        ("a chat that is gone",         vec![SendError::Gone],                  1, "d failed for good: the chat is gone or does not let us in"),
        ("a failure that passes",       vec![failed(), failed()],               3, "d 1/1 #3"),
        ("one that doesn't",            (0..9).map(|_| failed()).collect(),     6, "d failed for now: the platform did not take the message: no network"),
        ("too fast for ever",           (0..9).map(|_| too_fast(1)).collect(),  6, "d failed for now: the platform asks to wait 1ms"),
    ];
    for (shows, errors, tries, reported) in cases {
        let mut hub = FakeHub::start().await;
        let frontend = frontend(hub.address);
        frontend.chat.failing("hello", errors);
        let mut stream = hub.attached().await;
        stream.send(answer("d", "main", "hello")).await;
        assert_eq!(said(stream.next().await), reported, "{shows}");
        assert_eq!(frontend.chat.seen(tries).await.len(), tries, "{shows}");
        stream.send(answer("next", "main", "bye")).await;
        assert!(said(stream.next().await).starts_with("next 1/1"), "{shows}");
    }
}

#[tokio::test]
async fn what_can_never_be_posted_fails_for_good() {
    let mut hub = FakeHub::start().await;
    let _frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    stream.send(answer("a", "elsewhere", "hello")).await;
    let expected = "a failed for good: `elsewhere` is no channel of this platform";
    assert_eq!(said(stream.next().await), expected);
    stream.send(answer("b", "main", " \n ")).await;
    assert_eq!(said(stream.next().await), "b failed for good: its text is empty");
    // Another's panic is no reason to go down with it.
    stream.send(answer("c", "main", "panic")).await;
    let told = said(stream.next().await);
    assert!(told.starts_with("c failed for now") && told.ends_with("posting panicked"), "{told}");
}

#[tokio::test]
async fn questions_and_changes_are_delivered_too() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    let place = Some(fake::place("main"));
    let ask = Ask {
        delivery_id: "a".into(),
        place: place.clone(),
        text: "May I?".into(),
        ..Ask::default()
    };
    stream.send(Down::Ask(ask)).await;
    assert_eq!(said(stream.next().await), "a 1/1 #1");
    let edit = Edit {
        place,
        platform_message_id: "#1".into(),
        text: "You may. And much more".into(),
        ..Edit::default()
    };
    stream.send(Down::Edit(edit.clone())).await;
    stream.send(Down::Edit(Edit { delivery_id: "e".into(), ..edit })).await;
    assert_eq!(said(stream.next().await), "e 1/1 #1");
    let seen = frontend.chat.seen(3).await;
    assert_eq!(seen, ["main: May I?", "main #1: You may. And", "main #1: You may. And"]);
}

#[tokio::test]
async fn drafts_are_shown_when_there_is_time_and_never_after_the_answer() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    stream.send(draft("main", "first")).await;
    assert_eq!(frontend.chat.seen(1).await, ["main draft first"]);
    for revision in 0..50 {
        stream.send(draft("main", &format!("more {revision}"))).await;
    }
    let tool =
        Activity { place: Some(fake::place("main")), tool: "read".into(), ..Activity::default() };
    stream.send(Down::Activity(tool)).await;
    stream.send(answer("d", "main", "the end")).await;
    assert!(said(stream.next().await).starts_with("d 1/1"));
    let seen = frontend.chat.seen(1).await;
    let drafts = seen.iter().filter(|it| it.contains("draft")).count();
    assert!(drafts < 25, "{drafts} drafts");
    assert_eq!(seen.last().unwrap(), "main: the end");
    assert!(seen.contains(&"main tool read".to_owned()));
}

#[tokio::test]
async fn a_draft_that_hangs_holds_the_answer_up_for_no_longer_than_a_moment() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    stream.send(draft("main", "stuck")).await;
    frontend.chat.seen(1).await;
    stream.send(answer("other", "other", "hello")).await;
    assert!(said(stream.next().await).starts_with("other 1/1"));
    stream.send(answer("d", "main", "hello")).await;
    let began = std::time::Instant::now();
    assert!(said(stream.next().await).starts_with("d 1/1"));
    assert!(began.elapsed() < Duration::from_secs(4));
}

#[tokio::test]
async fn a_stop_waits_until_what_was_posted_is_known() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut stream = hub.attached().await;
    for id in 0..5 {
        stream.send(answer(&format!("d{id}"), &format!("channel {id}"), "hello")).await;
    }
    frontend.chat.seen(5).await;
    frontend.stop.cancel();
    for _ in 0..5 {
        assert!(said(stream.next().await).starts_with('d'));
    }
    assert!(stream.next().await.is_none());
    drop(stream);
    within(frontend.served).await.unwrap();
}

#[tokio::test]
async fn a_hub_that_dies_before_it_heard_is_told_by_the_next_connection_even_after_a_stop() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let stream = hub.attached().await;
    stream.send(answer("d", "main", "hello")).await;
    frontend.chat.seen(1).await;
    frontend.stop.cancel();
    stream.cut().await;
    let mut stream = hub.attached().await;
    assert_eq!(said(stream.next().await), "d 1/1 #1");
    assert!(stream.next().await.is_none());
    drop(stream);
    within(frontend.served).await.unwrap();
}
