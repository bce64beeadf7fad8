//! The terminal as a chat platform: what is to be shown becomes an event.

use std::time::Duration;

use openpact_frontend::message::{Activity, Body, Delivery, Draft, Kind, Place};
use openpact_frontend::text::Length;
use openpact_frontend::{Abilities, Adapter, Piece, SendError};
use tokio::sync::{mpsc, oneshot};

/// Something to show.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message. It counts as delivered once [`Post::shown`] was called.
    Post(Post),
    /// Another text for a message that was shown earlier.
    Edited(String),
    /// The answer so far.
    Draft(Draft),
    /// Whether somebody is at work.
    Typing(bool),
    /// A tool call.
    Activity(Activity),
    /// The message waits, with so many before it.
    Queued { ahead: u32 },
}

/// A message that is to be shown.
#[derive(Debug)]
pub(crate) struct Post {
    /// All that is known of it.
    pub(crate) delivery: Delivery,
    shown: oneshot::Sender<String>,
}

impl Post {
    /// A delivery, and who waits until it's shown.
    pub(crate) fn new(delivery: Delivery) -> (Self, oneshot::Receiver<String>) {
        let (shown, confirmed) = oneshot::channel();
        (Self { delivery, shown }, confirmed)
    }

    /// What it says.
    pub(crate) fn text(&self) -> &str {
        match &self.delivery.body {
            Body::Text { text, .. } | Body::Ask { text, .. } | Body::Edit { text, .. } => text,
        }
    }

    /// How it's meant; a question is the system's own words.
    pub(crate) fn kind(&self) -> Kind {
        match &self.delivery.body {
            Body::Text { kind, .. } => *kind,
            Body::Ask { .. } | Body::Edit { .. } => Kind::Notice,
        }
    }

    /// Confirms it.
    pub(crate) fn shown(self) {
        if self.shown.send(openpact_runtime::id::fresh()).is_err() {
            tracing::debug!("nobody waits to hear that a message was shown");
        }
    }
}

/// Makes events of what the orchestrator sends.
#[derive(Debug)]
pub(crate) struct Terminal {
    events: mpsc::Sender<Event>,
}

impl Terminal {
    pub(crate) fn new(events: mpsc::Sender<Event>) -> Self {
        Self { events }
    }

    async fn show(&self, event: Event) {
        if self.events.send(event).await.is_err() {
            tracing::debug!("the terminal is closed");
        }
    }
}

impl Adapter for Terminal {
    type Place = Place;

    const LIMIT: Length = Length::UNLIMITED;
    const ABILITIES: Abilities =
        Abilities { edit: true, threads: true, typing: true, ..Abilities::NONE };
    const PACE: Duration = Duration::from_millis(50);

    fn place(&self, place: &Place) -> Option<Place> {
        Some(place.clone())
    }

    async fn send(&self, _to: &Place, piece: Piece<'_>) -> Result<String, SendError> {
        let (post, confirmed) = Post::new(piece.delivery.clone());
        self.show(Event::Post(post)).await;
        confirmed.await.map_err(|_| SendError::Failed("the terminal was closed".into()))
    }

    async fn edit(&self, _in: &Place, _message_id: &str, text: &str) -> Result<(), SendError> {
        self.show(Event::Edited(text.to_owned())).await;
        Ok(())
    }

    async fn draft(&self, _in: &Place, draft: &Draft) {
        self.show(Event::Draft(draft.clone())).await;
    }

    async fn typing(&self, _in: &Place, on: bool) {
        self.show(Event::Typing(on)).await;
    }

    async fn activity(&self, _in: &Place, activity: &Activity) {
        self.show(Event::Activity(activity.clone())).await;
    }

    async fn queued(&self, _in: &Place, _message_id: &str, ahead: u32) {
        self.show(Event::Queued { ahead }).await;
    }
}
