//! The connection to the orchestrator, and another one whenever it breaks.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures_util::stream;
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_client::HubClient;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_proto::frontend::v1::{Capabilities, FrontendMessage, Hello, HubMessage, LengthUnit};
use openpact_runtime::key;
use secrecy::ExposeSecret as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;
use tonic::{Request, Streaming};

use super::platform::{Draft, State, World};
use super::{MessageId, Shared};

/// Between two tries to connect.
const AGAIN: Duration = Duration::from_millis(50);
/// How long connecting and the welcome may take.
const CONNECT: Duration = Duration::from_secs(10);
/// Messages that may be on their way up.
const QUEUE: usize = 65_536;

/// Connects, again and again, until it's stopped.
pub(super) async fn keep(shared: Arc<Shared>, stop: CancellationToken) {
    let mut online = shared.online.subscribe();
    loop {
        let wanted = *online.borrow_and_update();
        let attached = async {
            if !wanted.0 {
                return std::future::pending().await;
            }
            attach(&shared).await
        };
        tokio::select! {
            () = stop.cancelled() => break,
            // Breaks the connection: it's dropped where it stands.
            _changed = online.changed() => {}
            Err(error) = attached => {
                tracing::debug!(error = %openpact_runtime::chain(error.as_ref()), "not connected");
            }
        }
        shared.change(|world| world.connected = false);
        tokio::select! {
            () = stop.cancelled() => break,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
    shared.change(|world| world.connected = false);
}

/// One connection, until it breaks.
async fn attach(shared: &Shared) -> anyhow::Result<std::convert::Infallible> {
    let mut link = tokio::time::timeout(CONNECT, Link::connect(shared)).await??;
    loop {
        // Before looking: what's written after that rings.
        let mut news = std::pin::pin!(shared.bell.rung());
        link.send_what_waits(shared)?;
        tokio::select! {
            down = link.down.message() => {
                let down = down?.context("the orchestrator ended the stream")?;
                let told = shared.change(|world| take(world, down));
                for up in told {
                    link.send(up)?;
                }
            }
            () = &mut news => {}
        }
    }
}

struct Link {
    up: mpsc::Sender<FrontendMessage>,
    down: Streaming<HubMessage>,
    /// What went out on this connection.
    sent: HashSet<MessageId>,
}

impl Link {
    async fn connect(shared: &Shared) -> anyhow::Result<Self> {
        let address = tokio::fs::read_to_string(&shared.address_file).await?;
        let token = key::read(&shared.key_file)?;
        let endpoint = Endpoint::from_shared(format!("http://{}", address.trim()))?;
        let mut client = HubClient::new(endpoint.connect().await?)
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX);
        let (up, mut queue) = mpsc::channel(QUEUE);
        let outgoing = stream::poll_fn(move |context| queue.poll_recv(context));
        up.try_send(message(Up::Hello(hello(&shared.world()))))?;
        let mut request = Request::new(outgoing);
        let bearer = format!("Bearer {}", token.expose_secret()).parse()?;
        request.metadata_mut().insert("authorization", bearer);
        let mut down = client.attach(request).await?.into_inner();
        let first = down.message().await?.and_then(|first| first.message);
        let Some(Down::Welcome(welcome)) = first else {
            anyhow::bail!("the orchestrator began with {first:?} instead of a welcome");
        };
        shared.change(|world| {
            world.connected = true;
            world.connections += 1;
            if world.instances.last() != Some(&welcome.instance) {
                world.instances.push(welcome.instance);
            }
        });
        Ok(Self { up, down, sent: HashSet::new() })
    }

    fn send(&self, up: Up) -> anyhow::Result<()> {
        Ok(self.up.try_send(message(up))?)
    }

    /// Sends what isn't acknowledged and hasn't gone out on this connection, in
    /// the order it was written, and what the platform brings again.
    fn send_what_waits(&mut self, shared: &Shared) -> anyhow::Result<()> {
        let mut world = shared.world();
        let again: Vec<_> = std::mem::take(&mut world.again);
        for sent in world.sent.iter().filter(|sent| again.contains(&sent.id)) {
            self.send(sent.up.clone())?;
        }
        for sent in world.sent.iter_mut().filter(|sent| sent.state == State::Waiting) {
            if self.sent.insert(sent.id.clone()) {
                sent.sent_at.get_or_insert_with(Instant::now);
                self.up.try_send(message(sent.up.clone()))?;
            }
        }
        Ok(())
    }
}

fn message(up: Up) -> FrontendMessage {
    FrontendMessage { message: Some(up) }
}

fn hello(world: &World) -> Hello {
    let platform = &world.platform;
    Hello {
        provider: platform.provider.clone(),
        channels: Vec::new(),
        client: "openpact-testkit".to_owned(),
        capabilities: Some(Capabilities {
            max_text_length: u32::try_from(platform.longest).unwrap_or(u32::MAX),
            length_unit: LengthUnit::Characters.into(),
            edit: platform.edit,
            buttons: true,
            threads: false,
            typing: true,
            files: true,
            nonce: platform.nonce,
        }),
    }
}

/// What the platform does with a message from the orchestrator, and what it says to it.
fn take(world: &mut World, down: HubMessage) -> Vec<Up> {
    match down.message {
        Some(Down::Accepted(accepted)) => world.accepted(accepted),
        Some(Down::Rejected(rejected)) => world.rejected(rejected),
        Some(Down::Send(send)) => return world.send(send),
        Some(Down::Ask(ask)) => return world.ask(ask),
        Some(Down::Edit(edit)) => return world.edit(edit),
        Some(Down::Draft(draft)) => world.draft(Draft {
            channel: draft.place.map(|place| place.channel).unwrap_or_default(),
            turn: draft.turn,
            revision: draft.revision,
            text: draft.text,
            reasoning: draft.reasoning,
        }),
        Some(Down::Welcome(_)) => world.complaints.push("there was a second welcome".to_owned()),
        Some(Down::Typing(_) | Down::Activity(_) | Down::Queued(_)) | None => {}
    }
    Vec::new()
}
