//! The frontends that are connected, and who gets what.
//!
//! Knows streams and what goes down them, not how they're encoded. What must
//! arrive is in the store and is pumped from there (see [`crate::delivery`]);
//! what may be lost is offered to the stream and dropped if it's full.

use std::sync::{Arc, Mutex, PoisonError};

use openpact_store::model::{At, Button, Delivery, Place};
use tokio::sync::{Notify, mpsc};

/// How many messages may be on their way to one frontend.
pub const STREAM_QUEUE: usize = 256;

/// Something for a frontend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// Post this and confirm it.
    Deliver(Box<Delivery>),
    /// Change what an earlier delivery shows.
    Edit(Edit),
    /// The answer so far.
    Draft(Draft),
    /// Somebody is at work, or not any more.
    Typing {
        /// Where.
        place: Place,
        /// Whether.
        on: bool,
    },
    /// A tool call of a running turn.
    Activity(Activity),
}

/// A change of an earlier delivery. Not kept: what it shows is known elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Where.
    pub place: Place,
    /// The delivery that is changed.
    pub target: String,
    /// The platform's id of its message.
    pub platform_message_id: String,
    /// What it shows from now on.
    pub text: String,
}

/// The answer so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where.
    pub place: Place,
    /// The turn.
    pub turn: String,
    /// Rises.
    pub revision: u64,
    /// All of the text so far.
    pub text: String,
    /// All that the model thought so far, if the channel's mode shows it.
    pub reasoning: String,
}

/// A tool call of a running turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Where.
    pub place: Place,
    /// The turn.
    pub turn: String,
    /// The engine's id of the call.
    pub call: String,
    /// The tool.
    pub tool: String,
    /// `None`: it runs. Else whether it went well.
    pub ended_well: Option<bool>,
    /// For display.
    pub detail: String,
}

impl Outgoing {
    fn place(&self) -> &Place {
        match self {
            Self::Deliver(delivery) => &delivery.new.place,
            Self::Edit(Edit { place, .. })
            | Self::Draft(Draft { place, .. })
            | Self::Typing { place, .. }
            | Self::Activity(Activity { place, .. }) => place,
        }
    }
}

/// A frontend that is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontend {
    /// The platform.
    pub provider: String,
    /// The channels it serves; empty: all.
    pub channels: Vec<String>,
    /// Program and version.
    pub client: String,
    /// Its platform has buttons.
    pub buttons: bool,
    /// Since when.
    pub since: At,
}

/// All frontends that are connected.
#[derive(Debug, Clone, Default)]
pub struct Hub {
    streams: Arc<Mutex<Vec<Stream>>>,
}

#[derive(Debug, Clone)]
struct Stream {
    id: u64,
    frontend: Frontend,
    out: mpsc::Sender<Outgoing>,
    /// Something may be in the store for it.
    wake: Arc<Notify>,
}

/// A frontend's place in the hub; leaving it is dropping this.
#[derive(Debug)]
pub struct Seat {
    hub: Hub,
    id: u64,
    frontend: Frontend,
    out: mpsc::Sender<Outgoing>,
    wake: Arc<Notify>,
}

impl Hub {
    /// Lets a frontend in. What comes out of the receiver is for it.
    #[must_use]
    pub fn join(&self, frontend: Frontend) -> (Seat, mpsc::Receiver<Outgoing>) {
        let (out, received) = mpsc::channel(STREAM_QUEUE);
        let wake = Arc::new(Notify::new());
        let mut streams = self.streams();
        let id = streams.last().map_or(1, |last| last.id + 1);
        let stream =
            Stream { id, frontend: frontend.clone(), out: out.clone(), wake: Arc::clone(&wake) };
        streams.push(stream);
        drop(streams);
        (Seat { hub: self.clone(), id, frontend, out, wake }, received)
    }

    /// Says that there is something in the store for a provider's frontends.
    pub fn wake(&self, provider: &str) {
        for stream in self.streams().iter().filter(|it| it.frontend.provider == provider) {
            stream.wake.notify_one();
        }
    }

    /// Offers something that may be lost to the frontend of its place.
    pub fn offer(&self, outgoing: Outgoing) {
        let Some(owner) = self.owner(outgoing.place()) else { return };
        // Full or gone: the next draft has all of the text again.
        drop(owner.out.try_send(outgoing));
    }

    /// Whether the place's frontend, if one is there, can show buttons.
    #[must_use]
    pub fn has_buttons(&self, place: &Place) -> bool {
        self.owner(place).is_some_and(|stream| stream.frontend.buttons)
    }

    /// Everybody who is there.
    #[must_use]
    pub fn frontends(&self) -> Vec<Frontend> {
        self.streams().iter().map(|stream| stream.frontend.clone()).collect()
    }

    /// Of all streams that serve a place, the one that came last.
    fn owner(&self, place: &Place) -> Option<Stream> {
        self.streams().iter().rev().find(|stream| stream.serves(place)).cloned()
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    fn serves(&self, place: &Place) -> bool {
        let Frontend { provider, channels, .. } = &self.frontend;
        *provider == place.provider && (channels.is_empty() || channels.contains(&place.channel))
    }
}

impl Seat {
    /// Who sits here.
    #[must_use]
    pub fn frontend(&self) -> &Frontend {
        &self.frontend
    }

    /// What is for this place goes to this frontend, and to no other.
    #[must_use]
    pub fn owns(&self, place: &Place) -> bool {
        self.hub.owner(place).is_some_and(|stream| stream.id == self.id)
    }

    /// Sends something that must not be lost, waiting for room. `false`: the
    /// frontend is gone.
    pub async fn send(&self, outgoing: Outgoing) -> bool {
        self.out.send(outgoing).await.is_ok()
    }

    /// Waits until something may be in the store for this frontend.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Makes the next [`Seat::woken`] return at once.
    pub fn wake(&self) {
        self.wake.notify_one();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.streams().retain(|stream| stream.id != self.id);
        // Another stream may serve what this one did.
        self.hub.wake(&self.frontend.provider);
    }
}

/// Button of a delivery by its id.
#[must_use]
pub fn button<'a>(delivery: &'a Delivery, id: &str) -> Option<&'a Button> {
    delivery.new.buttons.iter().find(|button| button.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frontend(channels: &[&str]) -> Frontend {
        Frontend {
            provider: "terminal".into(),
            channels: channels.iter().map(|it| (*it).to_owned()).collect(),
            client: "test".into(),
            buttons: false,
            since: At(0),
        }
    }

    fn place(channel: &str) -> Place {
        Place { provider: "terminal".into(), channel: channel.into(), thread: String::new() }
    }

    #[tokio::test]
    async fn the_later_of_two_frontends_gets_what_both_serve() {
        let hub = Hub::default();
        let (first, _first_out) = hub.join(frontend(&[]));
        let (second, _second_out) = hub.join(frontend(&["main"]));
        assert!(second.owns(&place("main")) && !first.owns(&place("main")));
        assert!(first.owns(&place("other")) && !second.owns(&place("other")));
        drop(second);
        assert!(first.owns(&place("main")));
        first.woken().await;
    }

    #[tokio::test]
    async fn a_full_stream_drops_drafts_and_blocks_nobody() {
        let hub = Hub::default();
        let (_seat, mut out) = hub.join(frontend(&[]));
        for _ in 0..STREAM_QUEUE + 10 {
            hub.offer(Outgoing::Typing { place: place("main"), on: true });
        }
        let mut got = 0;
        while out.try_recv().is_ok() {
            got += 1;
        }
        assert_eq!(got, STREAM_QUEUE);
    }
}
