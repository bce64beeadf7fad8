//! Who may come in, and what is refused at the door.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod support;

use openpact_proto::control::v1 as control;
use openpact_proto::control::v1::control_client::ControlClient;
use openpact_proto::frontend::v1 as wire;
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use secrecy::ExposeSecret as _;
use tonic::transport::Channel;
use tonic::{Code, Request};

use support::Running;
use support::engine::Scripted;
use support::frontend::Frontend;

fn hello(provider: &str) -> Up {
    Up::Hello(wire::Hello { provider: provider.into(), ..Default::default() })
}

fn token(layout: &Layout, name: &str) -> String {
    key::read(&layout.keys().join(name)).unwrap().expose_secret().to_owned()
}

async fn channel(layout: &Layout) -> Channel {
    let address = std::fs::read_to_string(layout.address_file("orchestrator")).unwrap();
    let endpoint = Channel::from_shared(format!("http://{}", address.trim())).unwrap();
    endpoint.connect().await.unwrap()
}

fn with_token<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

#[tokio::test]
async fn frontends_come_in_by_their_token_and_begin_with_hello() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let frontend = token(&running.layout, key::FRONTEND);
    let tools = token(&running.layout, key::TOOLS);
    let early = Up::Delivered(wire::Delivered::default());
    #[rustfmt::skip]
    let cases = [
        ("no token",          String::new(),    hello("test"), Code::Unauthenticated),
        ("a wrong token",     "x".repeat(43),   hello("test"), Code::Unauthenticated),
        ("another role",      tools,            hello("test"), Code::PermissionDenied),
        ("no hello",          frontend.clone(), early,         Code::InvalidArgument),
        ("no provider",       frontend.clone(), hello(""),     Code::InvalidArgument),
        ("a strange provider", frontend,        hello("A b"),  Code::InvalidArgument),
    ];
    for (shows, token, first, code) in cases {
        let refused = Frontend::connect(&running.layout, &token, first).await;
        assert_eq!(refused.err().map(|status| status.code()), Some(code), "{shows}");
    }
    running.stop().await;
}

#[tokio::test]
async fn messages_that_cannot_be_are_rejected_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let mut chat = running.frontend("test").await;
    let good = chat.message("main", "1", "hello");
    let file = |mime: &str, content: Vec<u8>| wire::Attachment {
        filename: "f".into(),
        mime: mime.into(),
        content,
    };
    #[rustfmt::skip]
    let cases = [
        ("no place",   wire::Inbound { place: None, ..good.clone() }),
        ("provider",   wire::Inbound { place: Some(wire::Place { provider: "other".into(), ..chat.place("main") }), ..good.clone() }),
        ("no channel", wire::Inbound { place: Some(chat.place("")), ..good.clone() }),
        ("no id",      wire::Inbound { message_id: String::new(), ..good.clone() }),
        ("no user",    wire::Inbound { user: None, ..good.clone() }),
        ("long text",  wire::Inbound { text: "x".repeat(256 * 1024 + 1), ..good.clone() }),
        ("media type", wire::Inbound { attachments: vec![file("image/png;base64,AAAA", vec![])], ..good.clone() }),
        ("too large",  wire::Inbound { attachments: vec![file("image/png", vec![0; 20 * 1024 * 1024 + 1])], ..good.clone() }),
    ];
    for (shows, message) in cases {
        chat.send(Up::Inbound(message)).await;
        let rejected = chat.wait(|it| match it {
            Down::Rejected(it) => Some(it.reason.clone()),
            _ => None,
        });
        assert!(!rejected.await.is_empty(), "{shows}");
    }
    chat.write("main", "1", "hello").await;
    assert_eq!(chat.answer("main").await.text, "echo: hello");
    running.stop().await;
}

#[tokio::test]
async fn each_call_of_control_is_for_its_roles() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "hello").await;
    chat.answer("main").await;
    let [operator, frontend, tools] =
        [key::OPERATOR, key::FRONTEND, key::TOOLS].map(|name| token(&running.layout, name));
    let mut client = ControlClient::new(channel(&running.layout).await);

    for token in [&operator, &frontend, &tools] {
        let status = client.get_status(with_token(control::GetStatusRequest {}, token)).await;
        assert!(status.unwrap().into_inner().engine.unwrap().healthy);
    }
    let asked = control::ListSessionsRequest::default();
    for token in [&frontend, &tools] {
        let refused = client.list_sessions(with_token(asked.clone(), token)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
    let sessions = client.list_sessions(with_token(asked, &operator)).await.unwrap().into_inner();
    assert_eq!(sessions.sessions.len(), 1);

    let asked =
        control::ListMessagesRequest { place: Some(chat.place("main")), ..Default::default() };
    let said = client.list_messages(with_token(asked, &operator)).await.unwrap().into_inner();
    let said: Vec<_> = said.messages.iter().map(|it| (it.outgoing, it.text.as_str())).collect();
    assert_eq!(said, [(false, "hello"), (true, "echo: hello")]);
    running.stop().await;
}

#[tokio::test]
async fn text_from_outside_is_posted_once_and_callers_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Scripted::echo();
    let running = Running::start(folder.path(), engine.clone()).await;
    let mut chat = running.frontend("test").await;
    chat.write("main", "1", "hello").await;
    chat.answer("main").await;
    let tools = token(&running.layout, key::TOOLS);
    let mut client = ControlClient::new(channel(&running.layout).await);
    let request = control::SendTextRequest {
        place: Some(chat.place("main")),
        text: "by the way".into(),
        request_id: "r1".into(),
    };
    let mut ids = Vec::new();
    for _ in 0..2 {
        let sent = client.send_text(with_token(request.clone(), &tools)).await.unwrap();
        ids.push(sent.into_inner().delivery_id);
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(chat.answer("main").await.delivery_id, ids[0]);

    let engine_session = engine.asked()[0].session.clone();
    let asked = control::ResolveCallerRequest { engine_session };
    let caller = client.resolve_caller(with_token(asked, &tools)).await.unwrap().into_inner();
    assert_eq!(caller.user.unwrap().name, "Ann");
    let unknown = control::ResolveCallerRequest { engine_session: "ses_x".into() };
    let refused = client.resolve_caller(with_token(unknown, &tools)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    running.stop().await;
}

#[tokio::test]
async fn health_needs_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(folder.path(), Scripted::echo()).await;
    let channel = channel(&running.layout).await;
    let mut client = tonic_health::pb::health_client::HealthClient::new(channel);
    let asked = tonic_health::pb::HealthCheckRequest { service: "openpact.frontend.v1.Hub".into() };
    let answer = client.check(asked).await.unwrap().into_inner();
    assert_eq!(answer.status(), tonic_health::pb::health_check_response::ServingStatus::Serving);
    running.stop().await;
}
