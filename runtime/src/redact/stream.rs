//! Redacts text while it arrives.

use zeroize::Zeroizing;

use super::{Redactor, mark};

/// A text in pieces. See [`Redactor::stream`].
///
/// What comes out, put together, is what [`super::Redactor::redact`] makes of
/// the whole text. Held back is only what may be the beginning of a value, so
/// ordinary text passes at once and at most as much as a value's longest
/// spelling waits for the next piece.
#[derive(Debug)]
pub struct Stream {
    redactor: Redactor,
    held: Zeroizing<String>,
    /// So many bytes of `held` belong to a secret whose mark is out already.
    covered: usize,
}

impl Stream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Zeroizing::default(), covered: 0 }
    }

    /// Takes the next piece and gives what can be told by now.
    pub fn push(&mut self, piece: &str) -> String {
        // A fresh text each time: one that grows leaves copies that aren't wiped.
        let text = Zeroizing::new([self.held.as_str(), piece].concat());
        self.give(&text, false)
    }

    /// Gives the rest. The stream is then as new.
    pub fn finish(&mut self) -> String {
        let text = std::mem::take(&mut self.held);
        self.give(&text, true)
    }

    fn give(&mut self, text: &str, ended: bool) -> String {
        let secrets = self.redactor.secrets();
        let seen = secrets.see(text);
        let until = if ended { text.len() } else { seen.settled };
        let mut given = String::with_capacity(until);
        let mut at = self.covered;
        for found in seen.found.iter().filter(|found| found.range.start < until) {
            // What begins within the last secret goes under the last mark.
            if found.range.start >= at {
                given.push_str(&text[at..found.range.start]);
                mark::push(&mut given, found.name);
            }
            at = at.max(found.range.end);
        }
        if let Some(rest) = text.get(at..until) {
            given.push_str(rest);
        }
        self.covered = at.saturating_sub(until);
        self.held = Zeroizing::new(text[until..].to_owned());
        given
    }
}
