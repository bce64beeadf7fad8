//! The connection to the orchestrator.
//!
//! [`attach`] gives a [`Hub`] to submit messages to, and the work that keeps
//! the connection: it connects, repeats what was not acknowledged, hands
//! deliveries to their lanes, and connects again when the connection breaks, at
//! growing intervals, for as long as it isn't told to stop. The orchestrator's
//! address is looked up anew each time, for it may have another one after a restart.

mod backoff;
mod outbox;
mod stream;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::backoff::Backoff;
use self::outbox::Outbox;
use self::stream::{Connections, End};
use crate::adapter::Adapter;
use crate::message::Incoming;
use crate::wire;

pub use self::outbox::{Accepted, SubmitError};

/// A connection that held this long was a good one: the next pause is short again.
const GOOD: Duration = Duration::from_secs(5);
/// How long what was posted is reported after a stop.
const GRACE: Duration = Duration::from_secs(5);

/// Where the orchestrator is and what it's shown.
#[derive(Debug, Clone)]
pub struct Target {
    /// As in `http://127.0.0.1:7410`.
    pub url: String,
    /// The bearer token.
    pub token: SecretString,
}

/// Why the orchestrator can't be found; for people to read.
pub type LocateError = Box<dyn std::error::Error + Send + Sync>;

/// Looks up where the orchestrator is now. Called before each try to connect.
pub type Locate = Arc<dyn Fn() -> Result<Target, LocateError> + Send + Sync>;

/// Who attaches, and how.
#[derive(Clone)]
pub struct Config {
    /// The platform's name: `telegram`, `terminal`.
    pub provider: String,
    /// The channels that are served; empty: all of the provider.
    pub channels: Vec<String>,
    /// Program and version, for the operator's eyes.
    pub client: String,
    /// Where the orchestrator is.
    pub locate: Locate,
    /// The pause after the first try that failed, to connect or to post. It doubles.
    pub first_pause: Duration,
    /// The pause between two tries to connect doesn't grow beyond this.
    pub longest_pause: Duration,
    /// How many messages may wait to be acknowledged.
    pub most_waiting: usize,
    /// How many bytes they may have together.
    pub most_waiting_bytes: usize,
}

impl Config {
    /// A frontend of `provider`, for all its channels and with the usual limits.
    #[must_use]
    pub fn new(provider: impl Into<String>, client: impl Into<String>, locate: Locate) -> Self {
        Self {
            provider: provider.into(),
            channels: Vec::new(),
            client: client.into(),
            locate,
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            most_waiting: 1000,
            most_waiting_bytes: 64 * 1024 * 1024,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("provider", &self.provider)
            .field("channels", &self.channels)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// How the connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Link {
    /// It's being made, for the first time.
    Connecting,
    /// It works.
    Up {
        /// The orchestrator's version.
        version: String,
        /// Changes when the orchestrator was started anew.
        instance: String,
    },
    /// It doesn't, and is tried again.
    Down {
        /// For people to read.
        why: String,
        /// The orchestrator is there and does not want us: waiting won't help.
        refused: bool,
    },
}

/// What frontends give their messages to. Clones share one connection.
#[derive(Debug, Clone)]
pub struct Hub {
    provider: Arc<str>,
    outbox: Arc<Outbox>,
    link: watch::Receiver<Link>,
}

impl Hub {
    /// Queues a message at once; what is returned waits until the orchestrator
    /// has it in its store. Only then may the platform's cursor move on.
    ///
    /// The message stays queued, and is sent again after a lost connection,
    /// whether or not somebody waits.
    pub fn submit(
        &self,
        incoming: Incoming,
    ) -> impl Future<Output = Result<Accepted, SubmitError>> + Send + use<> {
        let key = (incoming.place.clone(), incoming.message_id.clone());
        let queued = self.outbox.push(key, wire::incoming(&self.provider, incoming));
        async move { queued?.await.unwrap_or(Err(SubmitError::Stopped)) }
    }

    /// How the connection is, now and from now on.
    #[must_use]
    pub fn link(&self) -> watch::Receiver<Link> {
        self.link.clone()
    }
}

/// A hub for `adapter`, and the work behind it, which ends some moments after `stop`.
///
/// What was posted until then is reported before the work ends.
pub fn attach<A: Adapter>(
    config: Config,
    adapter: A,
    stop: CancellationToken,
) -> (Hub, impl Future<Output = ()> + Send) {
    let outbox = Arc::new(Outbox::new(config.most_waiting, config.most_waiting_bytes));
    let (link, watched) = watch::channel(Link::Connecting);
    let hub = Hub {
        provider: config.provider.as_str().into(),
        outbox: Arc::clone(&outbox),
        link: watched,
    };
    let backoff = Backoff::new(config.first_pause, config.longest_pause);
    let connections = Connections::new(config, Arc::new(adapter), outbox, link, stop);
    (hub, connections.keep(backoff))
}

impl<A: Adapter> Connections<A> {
    async fn keep(mut self, backoff: Backoff) {
        let everything_is_said = self.serve_until_stopped(backoff).await;
        self.outbox.close();
        if !everything_is_said && timeout(GRACE, self.say_the_rest()).await.is_err() {
            tracing::warn!("not all that was posted could be reported; it may be posted again");
        }
        self.end(GRACE).await;
    }

    /// `true`: the last connection was closed with everything said.
    async fn serve_until_stopped(&mut self, mut backoff: Backoff) -> bool {
        let stop = self.stop.clone();
        loop {
            let began = Instant::now();
            let end = match stop.run_until_cancelled(self.greet()).await {
                Some(Ok(greeted)) => self.serve(greeted).await,
                Some(Err(end)) => end,
                None => return false,
            };
            let (why, refused) = match end {
                End::Closed => return true,
                End::Lost(why) => (why, false),
                End::Refused(why) => (why, true),
            };
            if began.elapsed() >= GOOD {
                backoff.reset();
            }
            let pause = if refused { backoff.longest() } else { backoff.next() };
            tracing::info!(why, refused, ?pause, "the orchestrator is away");
            self.link.send_replace(Link::Down { why, refused });
            if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                return false;
            }
        }
    }

    /// Reports what was posted to an orchestrator that was away when we were told to stop.
    async fn say_the_rest(&mut self) {
        while self.has_something_to_say() {
            if let Ok(greeted) = self.greet().await
                && let End::Closed = self.serve(greeted).await
            {
                return;
            }
            sleep(self.config.first_pause).await;
        }
    }
}
