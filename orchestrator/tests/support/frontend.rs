//! A frontend as small as it can be: sends what it's told to and keeps what it gets.

use std::collections::VecDeque;
use std::time::Duration;

use openpact_proto::frontend::v1 as wire;
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_client::HubClient;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use secrecy::ExposeSecret as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming};

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);

/// See the module.
pub struct Frontend {
    provider: String,
    up: mpsc::Sender<wire::FrontendMessage>,
    down: Streaming<wire::HubMessage>,
    /// What came while something else was waited for.
    kept: VecDeque<Down>,
}

impl Frontend {
    /// Connects and says hello.
    pub async fn attach(layout: &Layout, provider: &str) -> Self {
        let token = key::read(&layout.keys().join(key::FRONTEND)).unwrap();
        let hello = wire::Hello {
            provider: provider.into(),
            capabilities: Some(wire::Capabilities { buttons: true, ..Default::default() }),
            ..Default::default()
        };
        Self::connect(layout, token.expose_secret(), Up::Hello(hello)).await.unwrap()
    }

    /// Connects with any token and any first message.
    pub async fn connect(layout: &Layout, token: &str, first: Up) -> Result<Self, Status> {
        let address = std::fs::read_to_string(layout.address_file("orchestrator")).unwrap();
        let endpoint = format!("http://{}", address.trim());
        let mut client = HubClient::connect(endpoint).await.unwrap();
        let (up, sent) = mpsc::channel(64);
        let provider = match &first {
            Up::Hello(hello) => hello.provider.clone(),
            _ => String::new(),
        };
        up.send(wire::FrontendMessage { message: Some(first) }).await.unwrap();
        let mut request = Request::new(ReceiverStream::new(sent));
        let bearer = format!("Bearer {token}").parse().unwrap();
        request.metadata_mut().insert("authorization", bearer);
        let down = client.attach(request).await?.into_inner();
        let mut frontend = Self { provider, up, down, kept: VecDeque::new() };
        frontend.wait(|it| matches!(it, Down::Welcome(_)).then_some(())).await;
        Ok(frontend)
    }

    pub fn place(&self, channel: &str) -> wire::Place {
        wire::Place {
            provider: self.provider.clone(),
            channel: channel.into(),
            thread: String::new(),
        }
    }

    pub async fn send(&self, message: Up) {
        self.up.send(wire::FrontendMessage { message: Some(message) }).await.unwrap();
    }

    /// Writes a message and waits until it's accepted.
    pub async fn write(&mut self, channel: &str, id: &str, text: &str) -> wire::Accepted {
        let message = self.message(channel, id, text);
        self.send(Up::Inbound(message)).await;
        let id = id.to_owned();
        self.wait(move |it| match it {
            Down::Accepted(it) if it.message_id == id => Some(it.clone()),
            _ => None,
        })
        .await
    }

    pub fn message(&self, channel: &str, id: &str, text: &str) -> wire::Inbound {
        wire::Inbound {
            place: Some(self.place(channel)),
            message_id: id.into(),
            user: Some(wire::User { id: "1".into(), name: "Ann".into() }),
            text: text.into(),
            ..Default::default()
        }
    }

    /// Types a command and waits for its answer, which it confirms.
    pub async fn command(
        &mut self,
        channel: &str,
        id: &str,
        name: &str,
        arguments: &str,
    ) -> String {
        self.send(Up::Command(wire::Command {
            place: Some(self.place(channel)),
            message_id: id.into(),
            user: Some(wire::User { id: "1".into(), name: "Ann".into() }),
            name: name.into(),
            arguments: arguments.into(),
        }))
        .await;
        let id = id.to_owned();
        let (delivery, text) = self
            .wait(move |it| match it {
                Down::Send(it) if it.reply_to == id => {
                    Some((it.delivery_id.clone(), it.text.clone()))
                }
                Down::Ask(it) if it.reply_to == id => {
                    Some((it.delivery_id.clone(), it.text.clone()))
                }
                _ => None,
            })
            .await;
        self.confirm(&delivery).await;
        text
    }

    /// The next text for a channel that isn't a command's answer; not confirmed.
    pub async fn next(&mut self, channel: &str) -> wire::Send {
        let channel = channel.to_owned();
        self.wait(move |it| match it {
            Down::Send(it) if it.place.as_ref().is_some_and(|it| it.channel == channel) => {
                Some(it.clone())
            }
            _ => None,
        })
        .await
    }

    /// The next text for a channel, confirmed.
    pub async fn answer(&mut self, channel: &str) -> wire::Send {
        let send = self.next(channel).await;
        self.confirm(&send.delivery_id).await;
        send
    }

    pub async fn confirm(&self, delivery: &str) {
        self.send(Up::Delivered(wire::Delivered {
            delivery_id: delivery.into(),
            piece: 0,
            pieces: 1,
            platform_message_id: format!("posted-{delivery}"),
        }))
        .await;
    }

    /// The first thing that `pick` takes, of what came and what comes.
    pub async fn wait<T>(&mut self, mut pick: impl FnMut(&Down) -> Option<T>) -> T {
        for at in 0..self.kept.len() {
            if let Some(found) = pick(&self.kept[at]) {
                self.kept.remove(at);
                return found;
            }
        }
        loop {
            let next = tokio::time::timeout(LIMIT, self.down.message()).await;
            let next = next.expect("what was waited for did not come").unwrap();
            let message = next.expect("the stream ended").message.unwrap();
            if let Some(found) = pick(&message) {
                return found;
            }
            self.kept.push_back(message);
        }
    }
}
