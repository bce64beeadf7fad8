//! What this process has posted: so that what is sent again isn't posted again.

use std::collections::{HashMap, VecDeque};

/// Of how many pieces the platform's id is remembered. The orchestrator sends
/// again only what isn't confirmed, and that's never so many.
const REMEMBERED: usize = 8192;

/// The platform's ids of what was posted.
#[derive(Debug, Default)]
pub(super) struct Receipts {
    posted: HashMap<String, String>,
    /// In the order in which they came; the oldest is forgotten first.
    order: VecDeque<String>,
}

impl Receipts {
    /// The piece called `nonce` stands on the platform as `message_id`.
    pub(super) fn keep(&mut self, nonce: &str, message_id: &str) {
        if self.posted.insert(nonce.to_owned(), message_id.to_owned()).is_some() {
            return;
        }
        self.order.push_back(nonce.to_owned());
        if self.order.len() > REMEMBERED {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.posted.remove(&oldest));
        }
    }

    /// The platform's id of a piece that was posted.
    pub(super) fn of(&self, nonce: &str) -> Option<String> {
        self.posted.get(nonce).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_and_memory_is_bounded() {
        let mut receipts = Receipts::default();
        for piece in 0..REMEMBERED + 10 {
            receipts.keep(&format!("delivery-{piece}"), "1");
            receipts.keep(&format!("delivery-{piece}"), "2");
        }
        assert_eq!(receipts.of("delivery-9"), None);
        assert_eq!(receipts.of("delivery-10").as_deref(), Some("2"));
        assert_eq!((receipts.posted.len(), receipts.order.len()), (REMEMBERED, REMEMBERED));
    }
}
