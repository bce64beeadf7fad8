//! The connection: what is submitted arrives, through restarts, or its author is told.

use std::time::Duration;

use crate::fake::{self, FakeHub, frontend, frontend_with, message, said, within};
use openpact_frontend::{Link, SubmitError};
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_proto::frontend::v1::{LengthUnit, Rejected};

#[tokio::test]
async fn a_frontend_says_who_it_is_and_its_messages_are_acknowledged() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend_with(hub.address, fake::TOKEN, |config| {
        config.channels = vec!["main".into()];
    });
    let taken = frontend.hub.submit(message("main", "hello"));
    let command = frontend.hub.submit(message("main", "/new a title"));
    let mut stream = hub.attached().await;
    assert_eq!((stream.hello.provider.as_str(), stream.hello.client.as_str()), ("fake", "test"));
    assert_eq!(stream.hello.channels, ["main"]);
    let can = stream.hello.capabilities.unwrap();
    assert_eq!((can.max_text_length, can.length_unit()), (12, LengthUnit::Characters));
    assert!(can.edit && !can.buttons);
    assert_eq!(said(stream.next().await), "inbound hello");
    assert_eq!(said(stream.next().await), "command new a title");
    stream.accept("main", "hello").await;
    assert_eq!(within(taken).await.unwrap().id, "ours");
    let rejected = Rejected {
        place: Some(fake::place("main")),
        message_id: "/new a title".into(),
        reason: "not now".into(),
    };
    stream.send(Down::Rejected(rejected)).await;
    let reason = "not now".into();
    assert_eq!(within(command).await.unwrap_err(), SubmitError::Rejected { reason });
}

#[tokio::test]
async fn what_was_not_acknowledged_is_sent_again_in_its_order() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let waiting: Vec<_> = ["a", "b", "c"].map(|id| frontend.hub.submit(message("main", id))).into();
    let mut stream = hub.attached().await;
    for id in ["a", "b", "c"] {
        assert_eq!(said(stream.next().await), format!("inbound {id}"));
    }
    stream.accept("main", "b").await;
    stream.cut().await;
    let mut stream = hub.attached().await;
    assert_eq!(said(stream.next().await), "inbound a");
    assert_eq!(said(stream.next().await), "inbound c");
    for id in ["a", "c"] {
        stream.accept("main", id).await;
    }
    for taken in waiting {
        assert!(within(taken).await.is_ok());
    }
}

#[tokio::test]
async fn a_hub_that_restarts_elsewhere_is_found() {
    let mut hub = FakeHub::start().await;
    let frontend = frontend(hub.address);
    let mut link = frontend.hub.link();
    let stream = hub.attached().await;
    let taken = frontend.hub.submit(message("main", "hello"));
    let mut elsewhere = FakeHub::start().await;
    *frontend.address.lock().unwrap() = elsewhere.address;
    stream.cut().await;
    drop(hub);
    within(link.wait_for(|link| matches!(link, Link::Down { refused: false, .. }))).await.unwrap();
    let mut stream = elsewhere.attached().await;
    assert_eq!(said(stream.next().await), "inbound hello");
    stream.accept("main", "hello").await;
    assert!(within(taken).await.is_ok());
    within(link.wait_for(|link| matches!(link, Link::Up { .. }))).await.unwrap();
}

#[tokio::test]
async fn a_wrong_token_is_told_apart_from_a_hub_that_is_away() {
    let hub = FakeHub::start().await;
    let refused = frontend_with(hub.address, "wrong", |_| {});
    let mut link = refused.hub.link();
    let down = within(link.wait_for(|link| matches!(link, Link::Down { .. }))).await.unwrap();
    assert_eq!(*down, Link::Down { why: "send a token".into(), refused: true });
}

#[tokio::test]
async fn a_full_queue_and_a_stop_are_clear_errors() {
    let hub = FakeHub::start().await;
    let frontend = frontend_with(hub.address, "wrong", |config| config.most_waiting = 1);
    let first = frontend.hub.submit(message("main", "a"));
    let second = within(frontend.hub.submit(message("main", "b"))).await;
    assert_eq!(second.unwrap_err(), SubmitError::Full { waiting: 1 });
    frontend.stop.cancel();
    assert_eq!(within(first).await.unwrap_err(), SubmitError::Stopped);
    tokio::time::timeout(Duration::from_secs(10), frontend.served).await.unwrap().unwrap();
    let late = frontend.hub.submit(message("main", "c"));
    assert_eq!(within(late).await.unwrap_err(), SubmitError::Stopped);
}
