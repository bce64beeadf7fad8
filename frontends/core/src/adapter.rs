//! What one platform brings; everything else is shared.

use std::future::Future;
use std::time::Duration;

use crate::message::{Activity, Delivery, Draft, Place};
use crate::text::Length;

/// A chat platform, as the shared loop sees it.
///
/// The loop decides what is sent, where it's cut, and when it's tried again; an
/// adapter translates. Calls for one channel come one after the other, calls for
/// different channels at the same time.
pub trait Adapter: Send + Sync + 'static {
    /// A place in the platform's own terms.
    type Place: Send + Sync + 'static;

    /// The longest text of one message.
    const LIMIT: Length;

    /// What else the platform can do.
    const ABILITIES: Abilities = Abilities::NONE;

    /// How long the platform wants between two drafts in one channel.
    const PACE: Duration = Duration::from_secs(1);

    /// The place in the platform's own terms; `None` if it's not one of its places.
    fn place(&self, place: &Place) -> Option<Self::Place>;

    /// Posts a piece and returns the platform's id of the message.
    fn send(
        &self,
        to: &Self::Place,
        piece: Piece<'_>,
    ) -> impl Future<Output = Result<String, SendError>> + Send;

    /// Changes what the platform's message `message_id` shows. A platform that
    /// can't leaves the message as it is.
    fn edit(
        &self,
        _in: &Self::Place,
        _message_id: &str,
        _text: &str,
    ) -> impl Future<Output = Result<(), SendError>> + Send {
        async { Ok(()) }
    }

    /// Shows the answer so far. Dropped after two seconds, as are the calls below.
    fn draft(&self, _in: &Self::Place, _draft: &Draft) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Shows that somebody is at work, or not any more.
    fn typing(&self, _in: &Self::Place, _on: bool) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Shows a tool call.
    fn activity(&self, _in: &Self::Place, _activity: &Activity) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Shows that a message waits for a running turn, with `ahead` before it.
    fn queued(
        &self,
        _in: &Self::Place,
        _message_id: &str,
        _ahead: u32,
    ) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// What a platform can do besides posting text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Abilities {
    /// Messages can be changed, so drafts are welcome.
    pub edit: bool,
    /// Messages can have buttons.
    pub buttons: bool,
    /// Channels have threads.
    pub threads: bool,
    /// It can be shown that somebody is at work.
    pub typing: bool,
    /// Messages can have files.
    pub files: bool,
    /// The platform refuses a second message with the same [`Piece::nonce`].
    pub nonce: bool,
}

impl Abilities {
    /// Nothing but text.
    pub const NONE: Self = Self {
        edit: false,
        buttons: false,
        threads: false,
        typing: false,
        files: false,
        nonce: false,
    };
}

/// One message for the platform: a delivery, or a part of one.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// What is to be posted; within [`Adapter::LIMIT`].
    pub text: &'a str,
    /// Which part it is, from 0.
    pub index: u32,
    /// How many parts there are. Buttons belong below the last one.
    pub of: u32,
    /// Stands for this piece for ever.
    pub nonce: &'a str,
    /// What it's a part of.
    pub delivery: &'a Delivery,
}

impl Piece<'_> {
    /// Nothing of the delivery comes after it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.index + 1 == self.of
    }
}

/// Why something could not be posted, named by what is done about it.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The platform wants to be left alone for so long; then it's tried again.
    #[error("the platform asks to wait {0:?}")]
    TooFast(Duration),
    /// The chat is gone or the bot was blocked: it's never tried again.
    #[error("the chat is gone or does not let us in")]
    Gone,
    /// Anything else: it's tried again, and after a while the orchestrator is told.
    #[error("the platform did not take the message")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}
