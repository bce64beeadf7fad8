//! The event stream.

use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::id;

/// Events a listener may be behind before its stream ends.
const BEHIND: usize = 16_384;

/// Hands events to all streams.
#[derive(Debug)]
pub(super) struct Events {
    sender: broadcast::Sender<String>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self { sender: broadcast::Sender::new(BEHIND) }
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<String> {
        self.sender.subscribe()
    }

    pub(super) fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    pub(super) fn send(&self, kind: &str, properties: &Value) {
        // Nobody listening is fine: the engine has no replay either.
        let _heard = self.sender.send(frame(kind, properties));
    }

    /// Ends all streams.
    pub(super) fn end(&mut self) {
        *self = Self::new();
    }
}

/// An event as it stands in the stream.
pub(super) fn frame(kind: &str, properties: &Value) -> String {
    let event = json!({"id": id::fresh("evt"), "type": kind, "properties": properties});
    format!("data: {event}\n\n")
}
