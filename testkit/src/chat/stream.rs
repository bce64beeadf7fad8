//! The platform's frontend: one stream at a time, and another when it breaks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use openpact_proto::frontend::v1 as wire;
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_client::HubClient;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use secrecy::ExposeSecret as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Request, Streaming};

use super::{Became, Post, Shared};

/// Between two tries to reach the orchestrator.
const PAUSE: Duration = Duration::from_millis(100);
const CONNECT: Duration = Duration::from_secs(5);
/// A connection whose other end is gone without a word is noticed after this.
const KEEPALIVE: Duration = Duration::from_secs(10);
const IN_FLIGHT: usize = 1024;

pub(super) struct Frontend {
    pub(super) layout: Layout,
    pub(super) provider: String,
    pub(super) shared: Arc<Shared>,
}

impl Frontend {
    /// Hands messages over and takes posts, for ever.
    pub(super) async fn run(self, mut handed: mpsc::Receiver<String>) {
        loop {
            // Why it broke is the orchestrator's matter; that it did is counted.
            if let Ok((up, down)) = self.attach().await {
                self.serve(&up, down, &mut handed).await;
                self.shared.state().disconnects += 1;
                self.shared.bell.ring();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn attach(
        &self,
    ) -> anyhow::Result<(mpsc::Sender<wire::FrontendMessage>, Streaming<wire::HubMessage>)> {
        let address = std::fs::read_to_string(self.layout.address_file("orchestrator"))?;
        let token = key::read(&self.layout.keys().join(key::FRONTEND))?;
        let channel = Endpoint::from_shared(format!("http://{}", address.trim()))?
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .keep_alive_while_idle(true)
            .connect()
            .await?;
        let (up, sent) = mpsc::channel(IN_FLIGHT);
        let hello = wire::Hello {
            provider: self.provider.clone(),
            client: "testkit".into(),
            capabilities: Some(wire::Capabilities { nonce: true, ..Default::default() }),
            ..Default::default()
        };
        up.send(wire::FrontendMessage { message: Some(Up::Hello(hello)) }).await?;
        let mut request = Request::new(ReceiverStream::new(sent));
        let bearer = format!("Bearer {}", token.expose_secret()).parse()?;
        request.metadata_mut().insert("authorization", bearer);
        let mut down = HubClient::new(channel).attach(request).await?.into_inner();
        let first = down.message().await?.context("the stream ended at once")?;
        anyhow::ensure!(matches!(first.message, Some(Down::Welcome(_))), "no welcome");
        Ok((up, down))
    }

    async fn serve(
        &self,
        up: &mpsc::Sender<wire::FrontendMessage>,
        mut down: Streaming<wire::HubMessage>,
        handed: &mut mpsc::Receiver<String>,
    ) {
        // What was not acknowledged on the stream before, in its order.
        while handed.try_recv().is_ok() {}
        for message in self.waiting() {
            if !send(up, Up::Inbound(message)).await {
                return;
            }
        }
        loop {
            tokio::select! {
                id = handed.recv() => {
                    let Some(id) = id else { return };
                    let message = self.shared.state().written.get(&id).map(|it| it.message.clone());
                    let Some(message) = message else { continue };
                    if !send(up, Up::Inbound(message)).await {
                        return;
                    }
                }
                message = down.message() => {
                    let Ok(Some(wire::HubMessage { message: Some(message) })) = message else {
                        return;
                    };
                    if let Some(confirmation) = self.take(message)
                        && !send(up, confirmation).await
                    {
                        return;
                    }
                    self.shared.bell.ring();
                }
            }
        }
    }

    fn waiting(&self) -> Vec<wire::Inbound> {
        let state = self.shared.state();
        let waiting = state.written.values().filter(|it| it.became == Became::Waiting);
        waiting.map(|it| it.message.clone()).collect()
    }

    /// Takes what came; says what to confirm.
    fn take(&self, message: Down) -> Option<Up> {
        let mut state = self.shared.state();
        match message {
            Down::Accepted(it) => {
                if let Some(written) = state.written.get_mut(&it.message_id) {
                    written.became = Became::Accepted(it.id);
                }
                None
            }
            Down::Rejected(it) => {
                if let Some(written) = state.written.get_mut(&it.message_id) {
                    written.became = Became::Rejected(it.reason);
                }
                None
            }
            Down::Send(send) => {
                let nonce = format!("{}-0", send.delivery_id);
                if state.posts.iter().any(|post| post.nonce == nonce) {
                    state.reposts += 1;
                } else {
                    let kind = send.kind();
                    let channel = send.place.map(|place| place.channel).unwrap_or_default();
                    let (text, answers) = (send.text, send.answers);
                    state.posts.push(Post { nonce: nonce.clone(), channel, text, kind, answers });
                }
                Some(Up::Delivered(wire::Delivered {
                    delivery_id: send.delivery_id,
                    piece: 0,
                    pieces: 1,
                    platform_message_id: format!("post-{nonce}"),
                }))
            }
            _ => None,
        }
    }
}

async fn send(up: &mpsc::Sender<wire::FrontendMessage>, message: Up) -> bool {
    up.send(wire::FrontendMessage { message: Some(message) }).await.is_ok()
}
