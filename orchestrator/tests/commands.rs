//! Commands and buttons, through the door.

mod support;

use openpact_proto::frontend::v1 as wire;
use openpact_proto::frontend::v1::SendKind;
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_message::Message as Down;

use support::Running;
use support::engine::Scripted;

#[tokio::test]
async fn a_new_session_is_another_one_for_the_engine_and_switch_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "one").await;
    chat.answer("main").await;
    let text = chat.command("main", "c1", "new", "Second thoughts").await;
    assert!(text.contains("Second thoughts"), "{text}");
    chat.write("main", "2", "two").await;
    chat.answer("main").await;
    let list = chat.command("main", "c2", "sessions", "").await;
    assert!(list.contains("1. Second thoughts") && list.contains("2. "), "{list}");
    chat.command("main", "c3", "switch", "2").await;
    chat.write("main", "3", "three").await;
    chat.answer("main").await;
    let sessions: Vec<_> = engine.asked().into_iter().map(|ask| ask.session).collect();
    assert_ne!(sessions[0], sessions[1]);
    assert_eq!(sessions[0], sessions[2]);
    running.stop().await;
}

#[tokio::test]
async fn a_command_that_is_delivered_twice_is_carried_out_once() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let mut chat = running.frontend("test").await;
    chat.command("main", "c1", "new", "Solo").await;
    let again = wire::Command {
        place: Some(chat.place("main")),
        message_id: "c1".into(),
        user: Some(wire::User { id: "1".into(), name: "Ann".into() }),
        name: "new".into(),
        arguments: "Solo".into(),
    };
    chat.send(Up::Command(again)).await;
    let twice = chat.wait(|it| match it {
        Down::Accepted(it) if it.message_id == "c1" && it.duplicate => Some(()),
        _ => None,
    });
    twice.await;
    let list = chat.command("main", "c2", "sessions", "").await;
    assert_eq!(list.matches("Solo").count(), 1, "{list}");
    running.stop().await;
}

#[tokio::test]
async fn stop_ends_the_running_turn_and_keeps_what_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let _gate = engine.hold("long");
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "long story").await;
    chat.wait(|it| matches!(it, Down::Draft(it) if it.text.starts_with("half")).then_some(()))
        .await;
    assert_eq!(chat.command("main", "c1", "stop", "").await, "Stopping.");
    let ended = chat.answer("main").await;
    assert_eq!(
        (ended.kind(), ended.text.as_str()),
        (SendKind::Notice, "half a story\n\n*Stopped.*")
    );
    assert_eq!(chat.command("main", "c2", "stop", "").await, "Nothing is running.");
    chat.write("main", "2", "short").await;
    assert_eq!(chat.answer("main").await.text, "echo: short");
    running.stop().await;
}

#[tokio::test]
async fn the_mode_decides_what_is_seen_and_unknown_words_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let mut chat = running.frontend("test").await;
    #[rustfmt::skip]
    let cases = [
        ("mode",    "full",   "Mode is now `full`"),
        ("mode",    "",       "`full`: everything ← now"),
        ("mode",    "loud",   "There is no mode `loud`"),
        ("model",   "a/b",    "This channel's model is now `a/b`"),
        ("model",   "",       "This channel's model is `a/b`"),
        ("model",   "nonsense", "is no model"),
        ("context", "",       "Model: `a/b`"),
        ("switch",  "99",     "There is no session `99`"),
        ("dance",   "",       "There is no command `/dance`"),
        ("help",    "",       "`/new [title]`"),
    ];
    for (at, (name, arguments, expected)) in cases.into_iter().enumerate() {
        let text = chat.command("main", &format!("c{at}"), name, arguments).await;
        assert!(text.contains(expected), "/{name} {arguments}: {text}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_button_does_what_its_command_does_but_only_where_it_was_shown() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let mut chat = running.frontend("test").await;
    chat.command("other", "c0", "new", "").await;
    chat.send(Up::Command(wire::Command {
        place: Some(chat.place("main")),
        message_id: "c1".into(),
        user: Some(wire::User { id: "1".into(), name: "Ann".into() }),
        name: "mode".into(),
        arguments: String::new(),
    }))
    .await;
    let ask = chat.wait(|it| match it {
        Down::Ask(ask) => Some(ask.clone()),
        _ => None,
    });
    let ask = ask.await;
    chat.confirm(&ask.delivery_id).await;
    let press = |channel: &str, id: &str| {
        Up::Press(wire::Press {
            place: Some(chat.place(channel)),
            message_id: id.into(),
            user: Some(wire::User { id: "1".into(), name: "Ann".into() }),
            ask: ask.delivery_id.clone(),
            button: "tools".into(),
        })
    };
    let (elsewhere, here) = (press("other", "p1"), press("main", "p2"));
    chat.send(elsewhere).await;
    chat.wait(|it| matches!(it, Down::Rejected(it) if it.message_id == "p1").then_some(())).await;
    chat.send(here).await;
    assert_eq!(chat.answer("main").await.text, "Mode is now `tools`: answers and tool calls.");
    let edit = chat.wait(|it| match it {
        Down::Edit(edit) => Some(edit.clone()),
        _ => None,
    });
    assert!(edit.await.text.ends_with("*tools*"));
    running.stop().await;
}
