//! A hub and a chat platform that do what a test says, and remember.

#![expect(clippy::unwrap_used, reason = "a fake that is used wrongly fails its test")]

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openpact_frontend::message::{Activity, Content, Draft, Incoming, Place, User};
use openpact_frontend::text::Length;
use openpact_frontend::{Abilities, Adapter, Config, Hub, Piece, SendError, Target, attach};
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_proto::frontend::v1::hub_server::{self, HubServer};
use openpact_proto::frontend::v1::{self as wire, FrontendMessage, HubMessage};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

pub(crate) const TOKEN: &str = "a token of some length";
/// Nothing here takes longer unless it's broken.
const PATIENCE: Duration = Duration::from_secs(20);

/// A hub that takes every frontend in and leaves the rest to the test.
pub(crate) struct FakeHub {
    pub(crate) address: SocketAddr,
    attached: mpsc::Receiver<Attached>,
    server: JoinHandle<()>,
}

/// One frontend's stream, from the hub's side.
pub(crate) struct Attached {
    pub(crate) hello: wire::Hello,
    up: Streaming<FrontendMessage>,
    down: mpsc::Sender<Result<HubMessage, Status>>,
}

struct Service {
    attached: mpsc::Sender<Attached>,
}

#[tonic::async_trait]
impl hub_server::Hub for Service {
    type AttachStream = ReceiverStream<Result<HubMessage, Status>>;

    async fn attach(
        &self,
        request: Request<Streaming<FrontendMessage>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let bearer = request.metadata().get("authorization").and_then(|it| it.to_str().ok());
        if bearer != Some(&format!("Bearer {TOKEN}")) {
            return Err(Status::unauthenticated("send a token"));
        }
        let mut up = request.into_inner();
        let Some(FrontendMessage { message: Some(Up::Hello(hello)) }) = up.message().await? else {
            return Err(Status::invalid_argument("the first message must be `hello`"));
        };
        let (down, sent) = mpsc::channel(64);
        let welcome = wire::Welcome { version: "1".into(), instance: "fake".into() };
        down.send(Ok(HubMessage { message: Some(Down::Welcome(welcome)) })).await.unwrap();
        self.attached.send(Attached { hello, up, down }).await.unwrap();
        Ok(Response::new(ReceiverStream::new(sent)))
    }
}

impl FakeHub {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, attached) = mpsc::channel(16);
        let service = HubServer::new(Service { attached: sender });
        let server = tonic::transport::Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async move { server.await.unwrap() });
        Self { address, attached, server }
    }

    /// The next frontend that connects.
    pub(crate) async fn attached(&mut self) -> Attached {
        within(self.attached.recv()).await.unwrap()
    }
}

impl Drop for FakeHub {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Attached {
    pub(crate) async fn send(&self, message: Down) {
        self.down.send(Ok(HubMessage { message: Some(message) })).await.unwrap();
    }

    /// What the frontend says next; `None`: it has closed its side.
    pub(crate) async fn next(&mut self) -> Option<Up> {
        within(self.up.message()).await.unwrap().and_then(|it| it.message)
    }

    pub(crate) async fn accept(&self, channel: &str, message_id: &str) {
        let (place, message_id) = (Some(place(channel)), message_id.to_owned());
        let accepted = wire::Accepted { place, message_id, id: "ours".into(), duplicate: false };
        self.send(Down::Accepted(accepted)).await;
    }

    /// Ends the stream as a hub does that restarts.
    pub(crate) async fn cut(self) {
        self.down.send(Err(Status::unavailable("restarting"))).await.unwrap();
    }
}

/// What may only take a while if something is broken.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it takes too long")
}

/// A chat platform. What it does with a text is scripted by the text itself.
#[derive(Clone, Default)]
pub(crate) struct FakeChat {
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    failures: Arc<Mutex<HashMap<String, VecDeque<SendError>>>>,
    changed: Arc<tokio::sync::Notify>,
}

impl FakeChat {
    /// The next tries to post `text` fail like this, one after the other.
    pub(crate) fn failing(&self, text: &str, errors: impl IntoIterator<Item = SendError>) {
        self.failures.lock().unwrap().insert(text.into(), errors.into_iter().collect());
    }

    /// All it was asked to do, once it's `count` things.
    pub(crate) async fn seen(&self, count: usize) -> Vec<String> {
        within(async {
            loop {
                let changed = self.changed.notified();
                let seen = self.seen.lock().unwrap().clone();
                if seen.len() >= count {
                    return seen;
                }
                changed.await;
            }
        })
        .await
    }

    fn saw(&self, what: String) -> usize {
        let mut seen = self.seen.lock().unwrap();
        seen.push(what);
        self.changed.notify_waiters();
        seen.len()
    }
}

impl Adapter for FakeChat {
    type Place = String;

    const LIMIT: Length = Length::characters(12);
    const ABILITIES: Abilities = Abilities { edit: true, ..Abilities::NONE };
    const PACE: Duration = Duration::from_millis(20);

    fn place(&self, place: &Place) -> Option<String> {
        (place.channel != "elsewhere").then(|| place.channel.clone())
    }

    async fn send(&self, to: &String, piece: Piece<'_>) -> Result<String, SendError> {
        let failures = self.failures.lock().unwrap().get_mut(piece.text).map(VecDeque::pop_front);
        if let Some(Some(error)) = failures {
            self.saw(format!("{to} refused {}", piece.text));
            return Err(error);
        }
        match piece.text {
            "stuck" => pending().await,
            "panic" => panic!("as told"),
            text => Ok(format!("#{}", self.saw(format!("{to}: {text}")))),
        }
    }

    async fn edit(&self, to: &String, message_id: &str, text: &str) -> Result<(), SendError> {
        self.saw(format!("{to} {message_id}: {text}"));
        Ok(())
    }

    async fn draft(&self, to: &String, draft: &Draft) {
        self.saw(format!("{to} draft {}", draft.text));
        if draft.text == "stuck" {
            pending::<()>().await;
        }
    }

    async fn activity(&self, to: &String, activity: &Activity) {
        self.saw(format!("{to} tool {}", activity.tool));
    }
}

/// A frontend that's attached to `hub`, wherever that is at the moment.
pub(crate) struct Frontend {
    pub(crate) hub: Hub,
    pub(crate) chat: FakeChat,
    pub(crate) address: Arc<Mutex<SocketAddr>>,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinHandle<()>,
}

pub(crate) fn frontend(address: SocketAddr) -> Frontend {
    frontend_with(address, TOKEN, |_| {})
}

pub(crate) fn frontend_with(
    address: SocketAddr,
    token: &'static str,
    change: impl FnOnce(&mut Config),
) -> Frontend {
    let chat = FakeChat::default();
    let address = Arc::new(Mutex::new(address));
    let now = Arc::clone(&address);
    let locate = Arc::new(move || {
        Ok(Target { url: format!("http://{}", now.lock().unwrap()), token: token.into() })
    });
    let mut config = Config::new("fake", "test", locate);
    config.first_pause = Duration::from_millis(5);
    config.longest_pause = Duration::from_millis(50);
    change(&mut config);
    let stop = CancellationToken::new();
    let (hub, served) = attach(config, chat.clone(), stop.clone());
    Frontend { hub, chat, address, stop, served: tokio::spawn(served) }
}

pub(crate) fn place(channel: &str) -> wire::Place {
    wire::Place { provider: "fake".into(), channel: channel.into(), thread: String::new() }
}

pub(crate) fn message(channel: &str, id: &str) -> Incoming {
    Incoming {
        place: Place::channel(channel),
        message_id: id.into(),
        user: User { id: "1".into(), name: "somebody".into() },
        content: Content::typed(id),
    }
}

pub(crate) fn answer(id: &str, channel: &str, text: &str) -> Down {
    Down::Send(wire::Send {
        delivery_id: id.into(),
        place: Some(place(channel)),
        text: text.into(),
        kind: wire::SendKind::Answer.into(),
        turn: "turn".into(),
        attempt: 1,
        ..wire::Send::default()
    })
}

pub(crate) fn draft(channel: &str, text: &str) -> Down {
    let (place, turn, text) = (Some(place(channel)), "turn".into(), text.into());
    Down::Draft(wire::Draft { place, turn, revision: 1, text, reasoning: String::new() })
}

/// What the frontend says of a delivery, in short.
pub(crate) fn said(up: Option<Up>) -> String {
    match up {
        Some(Up::Delivered(it)) => {
            let (id, piece, pieces) = (it.delivery_id, it.piece + 1, it.pieces);
            format!("{id} {piece}/{pieces} {}", it.platform_message_id)
        }
        Some(Up::Failed(it)) => {
            let how = if it.permanent { "for good" } else { "for now" };
            format!("{} failed {how}: {}", it.delivery_id, it.reason)
        }
        Some(Up::Inbound(it)) => format!("inbound {}", it.message_id),
        Some(Up::Command(it)) => format!("command {} {}", it.name, it.arguments),
        other => format!("{other:?}"),
    }
}
