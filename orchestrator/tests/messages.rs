//! The life of a message, through the door: accepted, answered, delivered, once.

mod support;

use openpact_orchestrator::config::Config;
use openpact_orchestrator::engine::EngineError;
use openpact_proto::frontend::v1::SendKind;
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_message::Message as Down;

use support::Running;
use support::engine::{Scripted, says};

#[tokio::test]
async fn a_message_is_answered_in_its_channel() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let mut chat = running.frontend("test").await;
    let accepted = chat.write("main", "1", "hello").await;
    let answer = chat.answer("main").await;
    assert_eq!(answer.text, "echo: hello");
    assert_eq!(answer.kind(), SendKind::Answer);
    assert_eq!((answer.reply_to.as_str(), answer.answers), ("1", vec![accepted.id]));
    running.stop().await;
}

#[tokio::test]
async fn a_message_that_is_delivered_twice_is_answered_once() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    let first = chat.write("main", "1", "hello").await;
    let again = chat.write("main", "1", "hello").await;
    assert!(!first.duplicate && again.duplicate);
    assert_eq!(first.id, again.id);
    chat.answer("main").await;
    chat.write("main", "2", "more").await;
    assert_eq!(chat.answer("main").await.text, "echo: more");
    assert_eq!(engine.asked().len(), 2);
    running.stop().await;
}

#[tokio::test]
async fn what_comes_while_a_turn_runs_joins_the_next_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let gate = engine.hold("first");
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "first").await;
    engine.busy(1).await;
    for (id, text) in [("2", "second"), ("3", "third")] {
        chat.write("main", id, text).await;
    }
    let ahead = chat.wait(|it| match it {
        Down::Queued(it) if it.message_id == "3" => Some(it.ahead),
        _ => None,
    });
    assert_eq!(ahead.await, 2);
    gate.notify_one();
    assert_eq!(chat.answer("main").await.text, "echo: first");
    let joined = chat.answer("main").await;
    assert_eq!((joined.text.as_str(), joined.answers.len()), ("echo: third", 2));
    let asked = engine.asked();
    let text = &asked[1].text;
    assert!(text.find("second").unwrap() < text.find("third").unwrap(), "{text}");
    running.stop().await;
}

#[tokio::test]
async fn a_stuck_channel_delays_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let gate = engine.hold("stuck");
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("one", "1", "stuck").await;
    chat.write("two", "2", "free").await;
    assert_eq!(chat.answer("two").await.text, "echo: free");
    gate.notify_one();
    assert_eq!(chat.answer("one").await.text, "echo: stuck");
    running.stop().await;
}

#[tokio::test]
async fn a_failure_is_told_and_the_next_message_works() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    engine.next(|| Err(EngineError::Empty));
    let running = Running::start(folder.path(), engine).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "hello").await;
    let failure = chat.answer("main").await;
    assert_eq!(failure.kind(), SendKind::Failure);
    assert!(failure.text.contains("empty answer"), "{}", failure.text);
    chat.write("main", "2", "again").await;
    assert_eq!(chat.answer("main").await.text, "echo: again");
    running.stop().await;
}

#[tokio::test]
async fn only_what_was_not_done_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    engine.next(|| Err(EngineError::Interrupted { tool: None }));
    engine.next(|| Err(EngineError::NotStarted));
    chat.write("main", "1", "harmless").await;
    assert_eq!(chat.answer("main").await.text, "echo: harmless");
    engine.next(|| Err(EngineError::Interrupted { tool: Some("openpact_workspace_write".into()) }));
    chat.write("main", "2", "effects").await;
    let failure = chat.answer("main").await;
    assert!(failure.text.contains("workspace_write"), "{}", failure.text);
    for _ in 0..3 {
        engine.next(|| Err(EngineError::NotStarted));
    }
    chat.write("main", "3", "in vain").await;
    assert_eq!(chat.answer("main").await.kind(), SendKind::Failure);
    assert_eq!(engine.asked().len(), 3 + 1 + 3);
    running.stop().await;
}

#[tokio::test]
async fn a_session_that_the_engine_lost_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "hello").await;
    chat.answer("main").await;
    engine.next(|| Err(EngineError::NoSession { session: "ses".into() }));
    chat.write("main", "2", "again").await;
    assert_eq!(chat.answer("main").await.text, "echo: again");
    let asked = engine.asked();
    assert_eq!(asked[0].session, asked[1].session);
    assert_ne!(asked[1].session, asked[2].session);
    running.stop().await;
}

#[tokio::test]
async fn a_panic_ends_its_turn_alone_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    engine.next(|| panic!("in a test"));
    let running = Running::start(folder.path(), engine).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "hello").await;
    assert_eq!(chat.answer("main").await.kind(), SendKind::Failure);
    chat.write("main", "2", "again").await;
    assert_eq!(chat.answer("main").await.text, "echo: again");
    running.stop().await;
}

#[tokio::test]
async fn a_turn_that_a_stop_cut_off_is_collected_and_not_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let before = Scripted::echo();
    let _gate = before.hold("hello");
    let running = Running::start(folder.path(), before.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "hello").await;
    before.busy(1).await;
    drop(chat);
    running.stop().await;

    let after = Scripted::echo();
    after.next(|| Ok(says("collected")));
    let running = Running::start(folder.path(), after.clone()).await;
    let mut chat = running.frontend("test").await;
    assert!(chat.write("main", "1", "hello").await.duplicate);
    assert_eq!(chat.answer("main").await.text, "collected");
    let asked = &before.asked()[0];
    assert_eq!(after.collected(), [(asked.session.clone(), asked.message.clone())]);
    assert!(after.asked().is_empty());
    running.stop().await;
}

#[tokio::test]
async fn an_unconfirmed_answer_comes_again_under_the_same_id() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "hello").await;
    let first = chat.next("main").await;
    drop(chat);
    let mut chat = running.frontend("test").await;
    let second = chat.answer("main").await;
    assert_eq!((first.delivery_id, first.text), (second.delivery_id.clone(), second.text));
    assert!(second.attempt > first.attempt);
    chat.write("main", "2", "more").await;
    let third = chat.answer("main").await;
    assert_ne!(third.delivery_id, second.delivery_id);
    running.stop().await;
}

#[tokio::test]
async fn too_many_waiting_messages_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let _gate = engine.hold("first");
    let config = Config { max_waiting_messages: 2, ..Config::default() };
    let running = Running::with(folder.path(), engine.clone(), config).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "first").await;
    engine.busy(1).await;
    chat.write("main", "2", "waits").await;
    chat.write("main", "3", "waits").await;
    chat.send(Up::Inbound(chat.message("main", "4", "too much"))).await;
    let reason = chat.wait(|it| match it {
        Down::Rejected(it) if it.message_id == "4" => Some(it.reason.clone()),
        _ => None,
    });
    assert!(reason.await.starts_with("2 messages are waiting"));
    running.stop().await;
}
