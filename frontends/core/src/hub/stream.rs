//! One connection after the other: what goes up, and what comes down.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use openpact_proto::frontend::v1::hub_client::HubClient;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_proto::frontend::v1::{FrontendMessage, HubMessage, Welcome};
use secrecy::ExposeSecret as _;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use super::outbox::{Accepted, Outbox, SubmitError};
use super::{Config, Link};
use crate::adapter::Adapter;
use crate::delivery::Deliveries;
use crate::live::{Live, Show};
use crate::message::Delivery;
use crate::wire;

/// How long connecting and each step of the greeting may take.
const GREETING: Duration = Duration::from_secs(10);
/// How often a quiet connection is asked whether it's still there.
const PING: Duration = Duration::from_secs(20);
/// How long the answer may take.
const PONG: Duration = Duration::from_secs(10);
/// The largest message that is taken from the orchestrator.
const LARGEST_DOWN: usize = 16 * 1024 * 1024;
/// How many messages may be on their way up.
const UP: usize = 64;
/// How many reports may wait; lanes wait for room.
const REPORTS: usize = 256;
/// How many reports go up again on the next connection. Whether the last ones
/// arrived before a connection broke isn't known, and hearing of a piece twice
/// does no harm.
const REPEATED: usize = 256;

/// How a connection ended.
pub(super) enum End {
    /// As we wanted, with everything said.
    Closed,
    /// It broke, or couldn't be made.
    Lost(String),
    /// The orchestrator doesn't want us.
    Refused(String),
}

/// A frontend's connections, and what outlives each of them.
pub(super) struct Connections<A> {
    pub(super) config: Config,
    pub(super) outbox: Arc<Outbox>,
    pub(super) link: watch::Sender<Link>,
    pub(super) stop: CancellationToken,
    deliveries: Deliveries<A>,
    live: Arc<Live<A>>,
    reports: mpsc::Receiver<FrontendMessage>,
    /// Reports that are to go up next.
    ready: VecDeque<FrontendMessage>,
    /// The newest ones that went up.
    repeated: VecDeque<FrontendMessage>,
    tasks: TaskTracker,
}

/// A connection that is ready.
pub(super) struct Greeted {
    stream: Stream,
    welcome: Welcome,
}

/// Both ways of it.
struct Stream {
    up: mpsc::Sender<FrontendMessage>,
    down: Streaming<HubMessage>,
}

impl<A: Adapter> Connections<A> {
    pub(super) fn new(
        config: Config,
        adapter: Arc<A>,
        outbox: Arc<Outbox>,
        link: watch::Sender<Link>,
        stop: CancellationToken,
    ) -> Self {
        let (reporter, reports) = mpsc::channel(REPORTS);
        let tasks = TaskTracker::new();
        let live = Live::new(Arc::clone(&adapter), tasks.clone(), stop.clone());
        let deliveries = Deliveries::new(
            adapter,
            Arc::clone(&live),
            reporter,
            config.first_pause,
            tasks.clone(),
            stop.clone(),
        );
        let (ready, repeated) = (VecDeque::new(), VecDeque::new());
        Self { config, outbox, link, stop, deliveries, live, reports, ready, repeated, tasks }
    }

    /// Connects, says who we are, and waits to be welcomed.
    pub(super) async fn greet(&self) -> Result<Greeted, End> {
        let target = (self.config.locate)().map_err(|error| End::Lost(chain(&*error)))?;
        let refused = |what: &str| End::Refused(what.to_owned());
        let bearer = format!("Bearer {}", target.token.expose_secret());
        let mut bearer: AsciiMetadataValue =
            bearer.parse().map_err(|_| refused("the token is not one line of plain text"))?;
        bearer.set_sensitive(true);
        let endpoint = Endpoint::from_shared(target.url)
            .map_err(|error| refused(&chain(&error)))?
            .connect_timeout(GREETING)
            .http2_keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .keep_alive_while_idle(true);
        let channel: Channel =
            endpoint.connect().await.map_err(|error| End::Lost(chain(&error)))?;
        let (up, sent) = mpsc::channel(UP);
        let Config { provider, channels, client, .. } = &self.config;
        let hello = wire::hello::<A>(provider, channels, client);
        up.try_send(hello).map_err(|_| End::Lost("nothing can be sent".into()))?;
        let mut request = Request::new(ReceiverStream::new(sent));
        request.metadata_mut().insert("authorization", bearer);
        let mut client = HubClient::new(channel).max_decoding_message_size(LARGEST_DOWN);
        let late = || End::Lost("the orchestrator does not answer".into());
        let attached = timeout(GREETING, client.attach(request)).await.map_err(|_| late())?;
        let mut down = attached.map_err(|status| ended(&status))?.into_inner();
        let first = timeout(GREETING, down.message()).await.map_err(|_| late())?;
        match first.map_err(|status| ended(&status))? {
            Some(HubMessage { message: Some(Down::Welcome(welcome)) }) => {
                Ok(Greeted { stream: Stream { up, down }, welcome })
            }
            Some(_) => Err(refused("the orchestrator's first message was no welcome")),
            None => Err(End::Lost("the orchestrator closed the connection".into())),
        }
    }

    /// Serves a connection to its end.
    pub(super) async fn serve(&mut self, greeted: Greeted) -> End {
        let Greeted { mut stream, welcome: Welcome { version, instance } } = greeted;
        tracing::debug!(version, instance, "connected to the orchestrator");
        self.link.send_replace(Link::Up { version, instance });
        self.outbox.rewind();
        for report in self.repeated.drain(..).rev() {
            self.ready.push_front(report);
        }
        let outbox = Arc::clone(&self.outbox);
        loop {
            let has_more = !self.ready.is_empty() || outbox.has_next();
            tokio::select! {
                down = stream.down.message(), if self.ready.len() < REPORTS => match down {
                    Ok(Some(message)) => self.take(message),
                    Ok(None) => return End::Lost("the orchestrator closed the connection".into()),
                    Err(status) => {
                        self.blame(&status);
                        return ended(&status);
                    }
                },
                // A sender that fails is a stream that ends, which `down` tells of.
                Ok(room) = stream.up.reserve(), if has_more => {
                    if let Some(message) = self.next() {
                        room.send(message);
                    }
                }
                Some(report) = self.reports.recv(), if self.ready.len() < REPORTS => {
                    self.ready.push_back(report);
                }
                () = outbox.pushed() => {}
                () = self.stop.cancelled() => break,
            }
        }
        self.close(stream).await
    }

    /// Something was posted and it isn't known that the orchestrator knows.
    pub(super) fn has_something_to_say(&self) -> bool {
        !(self.ready.is_empty() && self.repeated.is_empty() && self.reports.is_empty())
    }

    /// What goes up next: first what was posted, then what was written.
    fn next(&mut self) -> Option<FrontendMessage> {
        self.next_report().or_else(|| self.outbox.next())
    }

    fn next_report(&mut self) -> Option<FrontendMessage> {
        let report = self.ready.pop_front()?;
        if self.repeated.len() == REPEATED {
            self.repeated.pop_front();
        }
        self.repeated.push_back(report.clone());
        Some(report)
    }

    fn take(&mut self, message: HubMessage) {
        let Some(message) = message.message else { return };
        if let Err(error) = self.sort(message) {
            tracing::warn!(%error, "the orchestrator sent something incomplete");
        }
    }

    fn sort(&mut self, message: Down) -> Result<(), wire::Missing> {
        match message {
            Down::Welcome(_) => tracing::warn!("welcomed twice"),
            Down::Accepted(it) => {
                let accepted = Accepted { id: it.id, duplicate: it.duplicate };
                self.outbox.settle(&(wire::place(it.place)?, it.message_id), &Ok(accepted));
            }
            Down::Rejected(it) => {
                let rejected = SubmitError::Rejected { reason: it.reason };
                self.outbox.settle(&(wire::place(it.place)?, it.message_id), &Err(rejected));
            }
            Down::Send(send) => self.deliver(wire::send(send)?),
            Down::Ask(ask) => self.deliver(wire::ask(ask)?),
            Down::Edit(edit) => self.deliver(wire::edit(edit)?),
            Down::Draft(mut it) => {
                self.live.offer(wire::place(it.place.take())?, Show::Draft(it.into()));
            }
            Down::Typing(it) => self.live.offer(wire::place(it.place)?, Show::Typing(it.on)),
            Down::Activity(mut it) => {
                self.live.offer(wire::place(it.place.take())?, Show::Activity(it.into()));
            }
            Down::Queued(it) => {
                let show = Show::Queued { message_id: it.message_id, ahead: it.ahead };
                self.live.offer(wire::place(it.place)?, show);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.ready.extend(self.deliveries.accept(delivery));
    }

    /// A message that the orchestrator's side can't even read ends every stream
    /// it's sent on.
    fn blame(&self, status: &Status) {
        if matches!(
            status.code(),
            Code::InvalidArgument | Code::OutOfRange | Code::ResourceExhausted
        ) {
            self.outbox.blame(status.message());
        }
    }

    /// Says what is left to say, and waits until the orchestrator has heard it.
    async fn close(&mut self, stream: Stream) -> End {
        let Stream { up, mut down } = stream;
        self.tasks.close();
        let said = timeout(super::GRACE, async {
            loop {
                let done = tokio::select! {
                    Some(report) = self.reports.recv() => {
                        self.ready.push_back(report);
                        false
                    }
                    () = self.tasks.wait() => true,
                };
                while let Ok(report) = self.reports.try_recv() {
                    self.ready.push_back(report);
                }
                while let Some(report) = self.next_report() {
                    if up.send(report).await.is_err() {
                        return false;
                    }
                }
                if done {
                    return true;
                }
            }
        });
        let said = said.await.unwrap_or(false);
        // The end of our side; theirs follows when all was read.
        drop(up);
        let heard = timeout(super::GRACE, async {
            loop {
                match down.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return true,
                    Err(_) => return false,
                }
            }
        });
        if said && heard.await.unwrap_or(false) {
            self.repeated.clear();
            return End::Closed;
        }
        End::Lost("the orchestrator did not hear the end".into())
    }

    /// Waits for the lanes that are still at work.
    pub(super) async fn end(&mut self, grace: Duration) {
        self.tasks.close();
        self.reports.close();
        if timeout(grace, self.tasks.wait()).await.is_err() {
            tracing::debug!("a platform was still at work");
        }
    }
}

/// How a stream ended, from its status.
fn ended(status: &Status) -> End {
    let why = match status.message() {
        "" => status.code().description().to_owned(),
        message => message.to_owned(),
    };
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented => End::Refused(why),
        _ => End::Lost(why),
    }
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    openpact_runtime::chain(error)
}
