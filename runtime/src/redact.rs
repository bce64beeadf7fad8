//! Takes secrets out of text before it leaves a process.
//!
//! [`Redactor`] is the door. How else a value may be spelt as a whole (base64,
//! hex, backwards) is in [`spelling`]; what single characters may be spelt as
//! (percent, JSON, HTML escapes) in [`reading`]; [`scan`] looks for all of the
//! former in every reading of the text at once; [`stream`] does it while the
//! text still arrives.

mod json;
mod mark;
mod reading;
mod scan;
mod spelling;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::{ExposeSecret as _, SecretString};

pub use mark::contains_mark;
pub use spelling::Unfit;
pub use stream::Stream;

use scan::Secrets;

/// Knows the values that must not leave, and finds them.
///
/// A clone shares the values with the original, so that whoever holds one
/// learns of new secrets by [`Redactor::replace`]. `Debug` doesn't print them.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Arc<RwLock<Arc<Secrets>>>,
}

impl Redactor {
    /// A redactor for these secrets, each a name and a value.
    ///
    /// A value that [`Redactor::check`] refuses is left out, and the log says
    /// so: looking for it would make text unreadable and protect nothing.
    pub fn new(secrets: impl IntoIterator<Item = (String, SecretString)>) -> Self {
        let redactor = Self::default();
        redactor.replace(secrets);
        redactor
    }

    /// Whether a value can be kept out of text.
    pub fn check(value: &str) -> Result<(), Unfit> {
        spelling::check(value.trim())
    }

    /// Forgets all secrets and takes these, here and in every clone.
    pub fn replace(&self, secrets: impl IntoIterator<Item = (String, SecretString)>) {
        let fit = secrets.into_iter().filter(|(name, value)| {
            let checked = Self::check(value.expose_secret());
            if let Err(reason) = &checked {
                tracing::warn!(secret = name, %reason, "a secret is not kept out of text");
            }
            checked.is_ok()
        });
        let secrets = Arc::new(Secrets::new(fit));
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = secrets;
    }

    /// Puts `[REDACTED:NAME]` where `text` holds a secret's value.
    ///
    /// Whatever leaves the process passes through here: tool results, logs, the
    /// journal, errors. It's the second wall; the first is that scripts and
    /// tools never hold a value.
    ///
    /// Finds a value as it is, in upper or lower case, and as base64 (in each
    /// alignment, both alphabets, wrapped or not), hex, percent, JSON, Markdown
    /// or HTML escapes would write it, wholly or in part and up to three times
    /// over, forwards and backwards. Of values that overlap, nothing is left
    /// and the first one gives the name. It doesn't find a part of a value, nor
    /// one that was enciphered, compressed, spaced out or spelt out in words,
    /// base64 within base64, or a value of fewer than six bytes.
    ///
    /// Redact first, then shorten: of half a value nothing is found.
    ///
    /// Linear in `text`; allocates only if something was found.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.secrets().redact(text)
    }

    /// [`Redactor::redact`] in every string, number and key of `value`.
    /// Says whether anything was found.
    pub fn redact_json(&self, value: &mut serde_json::Value) -> bool {
        json::redact(&self.secrets(), value)
    }

    /// Redacts a text that arrives in pieces, wherever they're cut.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::new(self.clone())
    }

    fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&self.secrets.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.secrets().len()).finish()
    }
}

#[cfg(test)]
mod tests;
