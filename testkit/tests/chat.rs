//! The fake platform, with a hub that is as small as one can be.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_proto::frontend::v1::hub_server::{Hub, HubServer};
use openpact_proto::frontend::v1::{
    Accepted, FrontendMessage, HubMessage, Rejected, Send, SendKind, Welcome,
};
use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use openpact_testkit::chat::{FakeChat, Mood, Outcome, Platform, State};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

const SOON: Duration = Duration::from_secs(20);

/// Accepts what it's sent and answers at once: `bad …` is rejected, `fail …`
/// gets a failure, `deaf …` isn't even heard the first time.
#[derive(Clone, Default)]
struct SmallHub {
    seen: Arc<Mutex<HashMap<String, usize>>>,
    confirmed: watch::Sender<Vec<Up>>,
}

type Downs = Pin<Box<dyn Stream<Item = Result<HubMessage, Status>> + std::marker::Send>>;

#[tonic::async_trait]
impl Hub for SmallHub {
    type AttachStream = Downs;

    async fn attach(
        &self,
        request: Request<Streaming<FrontendMessage>>,
    ) -> Result<Response<Downs>, Status> {
        if request.metadata().get("authorization").is_none() {
            return Err(Status::unauthenticated("no token"));
        }
        let (send, mut queue) = mpsc::unbounded_channel();
        let mut ups = request.into_inner();
        let hub = self.clone();
        tokio::spawn(async move {
            while let Some(Ok(FrontendMessage { message: Some(up) })) = ups.next().await {
                for down in hub.take(up) {
                    if send.send(Ok(HubMessage { message: Some(down) })).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Response::new(Box::pin(stream::poll_fn(move |context| queue.poll_recv(context)))))
    }
}

impl SmallHub {
    /// So many confirmations and failures, once they're there.
    async fn told(&self, count: usize) -> Vec<Up> {
        let mut confirmed = self.confirmed.subscribe();
        let enough = confirmed.wait_for(|confirmed| confirmed.len() >= count);
        let told = tokio::time::timeout(SOON, enough).await;
        told.expect("in time").expect("a hub").clone()
    }

    fn take(&self, up: Up) -> Vec<Down> {
        let inbound = match up {
            Up::Hello(_) => {
                return vec![Down::Welcome(Welcome { version: "0".into(), instance: "i".into() })];
            }
            Up::Inbound(inbound) => inbound,
            other => {
                self.confirmed.send_modify(|confirmed| confirmed.push(other));
                return Vec::new();
            }
        };
        let mut seen = self.seen.lock().expect("no poison");
        let times = seen.entry(inbound.message_id.clone()).or_default();
        *times += 1;
        let (place, message_id) = (inbound.place, inbound.message_id);
        let kind = match inbound.text.split(' ').next() {
            Some("bad") => {
                let reason = "it is bad".to_owned();
                return vec![Down::Rejected(Rejected { place, message_id, reason })];
            }
            Some("deaf") if *times == 1 => return Vec::new(),
            Some("fail") => SendKind::Failure,
            _ => SendKind::Answer,
        };
        let id = format!("m{message_id}");
        let accepted = Down::Accepted(Accepted {
            place: place.clone(),
            message_id: message_id.clone(),
            id: id.clone(),
            duplicate: *times > 1 && !inbound.text.starts_with("deaf"),
        });
        let answer = Down::Send(Send {
            delivery_id: format!("d{message_id}"),
            place,
            text: format!("to {}", inbound.text),
            kind: kind.into(),
            answers: vec![id],
            ..Send::default()
        });
        vec![accepted, answer]
    }
}

/// A hub that runs until it's dropped.
struct Running {
    hub: SmallHub,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn run(layout: &Layout) -> Running {
    layout.create().expect("a layout");
    key::read_or_create(&layout.keys(), key::FRONTEND).expect("a key");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let incoming = stream::unfold(listener, |listener| async {
        let accepted = listener.accept().await.map(|(stream, _)| stream);
        Some((accepted, listener))
    });
    let (hub, stop) = (SmallHub::default(), CancellationToken::new());
    let server = tonic::transport::Server::builder().add_service(HubServer::new(hub.clone()));
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            served = server.serve_with_incoming(Box::pin(incoming)) => served.expect("served"),
            () = stopped.cancelled() => {}
        }
    });
    std::fs::write(layout.address_file("orchestrator"), address).expect("an address file");
    Running { hub, stop }
}

fn workspace() -> (tempfile::TempDir, Layout) {
    let folder = tempfile::tempdir().expect("a folder");
    let layout = Layout::new(folder.path()).expect("a layout");
    (folder, layout)
}

#[tokio::test]
async fn what_people_write_is_sent_and_what_comes_back_is_seen() {
    let (_folder, layout) = workspace();
    let running = run(&layout).await;
    let chat = FakeChat::start(&layout, Platform { longest: 5, ..Platform::default() });
    let [hello, bad, fail] = ["hello", "bad words", "fail please"].map(|text| chat.say("c", text));
    let answered = chat.answered(&hello, SOON).await.unwrap();
    assert_eq!(answered, Outcome::Answered("to hello".into()));
    let report = chat.settled(SOON).await.unwrap();
    assert_eq!(chat.outcome(&bad), Outcome::Rejected("it is bad".into()));
    assert_eq!(chat.outcome(&fail), Outcome::Failed("to fail please".into()));
    assert_eq!((report.answered, report.failed, report.rejected), (1, 1, 1), "{report}");
    let texts: Vec<_> = chat.visible("c").into_iter().map(|visible| visible.text).collect();
    assert_eq!(texts.concat(), "to helloto fail please");
    assert_eq!(texts.len(), 5);
    running.hub.told(5).await;
    assert!(report.complaints.is_empty(), "{report}");
}

#[tokio::test]
async fn what_was_not_acknowledged_is_sent_again_and_nothing_else() {
    let (_folder, layout) = workspace();
    let running = run(&layout).await;
    let chat = FakeChat::start(&layout, Platform::default());
    let (deaf, hello) = (chat.say("c", "deaf"), chat.say("c", "hello"));
    chat.answered(&hello, SOON).await.unwrap();
    assert_eq!(chat.outcome(&deaf), Outcome::Waiting);
    chat.reconnect();
    assert_eq!(chat.answered(&deaf, SOON).await.unwrap(), Outcome::Answered("to deaf".into()));
    chat.repeat(&hello);
    chat.until(SOON, |chat| (chat.report().redelivered == 1).then_some(())).await.unwrap();
    let seen = running.hub.seen.lock().unwrap().clone();
    assert_eq!((seen[deaf.as_str()], seen[hello.as_str()]), (2, 2));
    let report = chat.report();
    assert_eq!((report.answered, report.connections, report.refused), (2, 2, 1), "{report}");
    assert!(report.doubled.is_empty() && report.complaints.is_empty(), "{report}");
}

#[tokio::test]
async fn it_finds_an_orchestrator_that_comes_later_or_elsewhere() {
    let (_folder, layout) = workspace();
    let chat = FakeChat::start(&layout, Platform::default());
    let first = chat.say("c", "one");
    let running = run(&layout).await;
    chat.answered(&first, SOON).await.unwrap();
    drop(running);
    let running = run(&layout).await;
    let second = chat.say("c", "two");
    chat.answered(&second, SOON).await.unwrap();
    chat.go_away();
    chat.until(SOON, |chat| (!chat.is_connected()).then_some(())).await.unwrap();
    let third = chat.say("c", "three");
    assert_eq!(running.hub.seen.lock().unwrap().get(third.as_str()), None);
    chat.reconnect();
    chat.answered(&third, SOON).await.unwrap();
}

#[tokio::test]
async fn a_platform_in_a_mood_tells_what_it_would() {
    let (_folder, layout) = workspace();
    let running = run(&layout).await;
    let chat = FakeChat::start(&layout, Platform::default());
    chat.set_mood(Mood::Gone("blocked".into()));
    let message = chat.say("c", "hello");
    assert!(matches!(chat.taken(&message).await.unwrap(), State::Accepted(_)));
    let Some(Up::Failed(failed)) = running.hub.told(1).await.pop() else { panic!("no failure") };
    assert_eq!((failed.permanent, failed.reason.as_str()), (true, "blocked"));
    assert!(chat.visible("c").is_empty());
}
