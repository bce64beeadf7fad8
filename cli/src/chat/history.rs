//! What was written earlier, for the arrow keys.

use std::collections::VecDeque;

/// How much is remembered.
const REMEMBERED: usize = 500;

/// Earlier texts, and which of them is shown.
#[derive(Debug, Default)]
pub(crate) struct History {
    texts: VecDeque<String>,
    /// How far back we are; 0: not in the past.
    back: usize,
    /// What was being written before going back.
    unsent: String,
}

impl History {
    /// Remembers a text, unless it's the same as the last.
    pub(crate) fn push(&mut self, text: &str) {
        self.back = 0;
        if text.trim().is_empty() || self.texts.back().is_some_and(|last| last == text) {
            return;
        }
        if self.texts.len() == REMEMBERED {
            self.texts.pop_front();
        }
        self.texts.push_back(text.to_owned());
    }

    /// The text before the one that is shown. `now`: what is being written.
    pub(crate) fn back(&mut self, now: &str) -> Option<&str> {
        if self.back == self.texts.len() {
            return None;
        }
        if self.back == 0 {
            now.clone_into(&mut self.unsent);
        }
        self.back += 1;
        self.shown()
    }

    /// The text after the one that is shown; at last, what was being written.
    pub(crate) fn forward(&mut self) -> Option<&str> {
        self.back = self.back.checked_sub(1)?;
        self.shown()
    }

    fn shown(&self) -> Option<&str> {
        match self.back {
            0 => Some(&self.unsent),
            back => self.texts.get(self.texts.len() - back).map(String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_texts_come_back_and_what_was_being_written_too() {
        let mut history = History::default();
        assert_eq!(history.back("draft"), None);
        for text in ["one", "two", "two", " "] {
            history.push(text);
        }
        assert_eq!(history.back("draft"), Some("two"));
        assert_eq!(history.back("two"), Some("one"));
        assert_eq!(history.back("one"), None);
        assert_eq!(history.forward(), Some("two"));
        assert_eq!(history.forward(), Some("draft"));
        assert_eq!(history.forward(), None);
    }
}
