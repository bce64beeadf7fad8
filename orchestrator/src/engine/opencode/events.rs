//! The engine's event stream: one connection, handed on to every turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::api::Api;
use super::wire::{self, Event};

/// The engine sends a heartbeat every 10 seconds; a connection that is silent
/// for longer than this is dead, whatever TCP thinks.
const SILENCE: Duration = Duration::from_secs(25);
/// The longest event. Tool output of 50 KiB and some, in JSON, is far below.
const LONGEST_EVENT: usize = 32 * 1024 * 1024;
/// How many events a turn may be behind before it has to look at the history.
const BEHIND: usize = 4096;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What turns hear.
#[derive(Debug, Clone)]
pub(super) enum Signal {
    /// Something happened.
    Event(Arc<Event>),
    /// Something may have happened unseen: look at the history.
    Gap,
}

/// A connection to the event stream that is made again whenever it breaks.
#[derive(Debug)]
pub(super) struct Feed {
    signals: broadcast::Sender<Signal>,
    connected: watch::Receiver<bool>,
}

impl Feed {
    /// A feed, and the work that keeps it going until `stop`.
    pub(super) fn new(api: Arc<Api>, stop: CancellationToken) -> (Self, impl Future<Output = ()>) {
        let (signals, _) = broadcast::channel(BEHIND);
        let (set_connected, connected) = watch::channel(false);
        let work = keep_reading(api, signals.clone(), set_connected, stop);
        (Self { signals, connected }, work)
    }

    /// Hears everything from now on.
    pub(super) fn subscribe(&self) -> broadcast::Receiver<Signal> {
        self.signals.subscribe()
    }

    /// Waits until events are being read. `false`: not within `limit`.
    pub(super) async fn is_connected(&self, limit: Duration) -> bool {
        let mut connected = self.connected.clone();
        matches!(timeout(limit, connected.wait_for(|it| *it)).await, Ok(Ok(_)))
    }
}

async fn keep_reading(
    api: Arc<Api>,
    signals: broadcast::Sender<Signal>,
    connected: watch::Sender<bool>,
    stop: CancellationToken,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        let reading = read(&api, &signals, &connected);
        let ended = tokio::select! {
            ended = reading => ended,
            () = stop.cancelled() => return,
        };
        connected.send_replace(false);
        // Nobody may be listening; then nobody missed anything.
        drop(signals.send(Signal::Gap));
        if let Err(error) = ended {
            tracing::debug!(error = %format!("{error:#}"), "the engine's events stopped");
        }
        pause = if began.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { pause * 2 };
        pause = pause.min(LONGEST_PAUSE);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn read(
    api: &Api,
    signals: &broadcast::Sender<Signal>,
    connected: &watch::Sender<bool>,
) -> anyhow::Result<()> {
    let response = api.events().await?;
    let unread = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&unread);
    let bytes = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        if counter.fetch_add(chunk.len(), Ordering::Relaxed) > LONGEST_EVENT {
            return Err(std::io::Error::other(format!("an event is over {LONGEST_EVENT} bytes")));
        }
        Ok(chunk)
    });
    let mut events = bytes.eventsource();
    loop {
        let Some(event) = timeout_at(Instant::now() + SILENCE, events.next()).await? else {
            return Ok(());
        };
        unread.store(0, Ordering::Relaxed);
        match wire::event(&event?.data) {
            Ok(Event::Other) => {}
            Ok(event) => drop(signals.send(Signal::Event(Arc::new(event)))),
            Err(error) => {
                tracing::warn!(%error, "an event of the engine's can't be read");
                drop(signals.send(Signal::Gap));
            }
        }
        // The first event says that the subscription stands.
        if !*connected.borrow() {
            connected.send_replace(true);
            drop(signals.send(Signal::Gap));
        }
    }
}
