//! One message, and its answer.

use std::pin::pin;

use openpact_frontend::message::{Body, Content, Incoming, Kind, Place, User};
use openpact_frontend::{Hub, SubmitError};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::aside::Aside;
use super::terminal::{Event, Post};

/// Who asks where, and who says what goes on meanwhile.
pub(crate) struct Asker<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) events: &'a mut mpsc::Receiver<Event>,
    pub(crate) aside: &'a mut Aside,
    pub(crate) place: Place,
    pub(crate) user: User,
    pub(crate) stop: CancellationToken,
}

/// An answer, which counts as delivered only when it's confirmed.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) post: Post,
    /// The message's id in the terminal, and in OpenPact if that is known.
    pub(crate) message_id: String,
    pub(crate) id: Option<String>,
    /// What was asked for came: an answer to a message, or a command's notice.
    pub(crate) good: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// The orchestrator didn't take the message.
    #[error(transparent)]
    NotTaken(#[from] SubmitError),
    /// It takes too long.
    #[error("no answer came in time; the next `openpact send` or `openpact chat` will show it")]
    TimedOut,
    /// The person doesn't want to wait any longer.
    #[error("not waiting any longer; the next `openpact send` or `openpact chat` shows the answer")]
    Stopped,
}

impl Asker<'_> {
    /// Sends `text`, a message or a command, and waits for what answers it.
    /// What answers something else is said aside, and confirmed.
    pub(crate) async fn ask(&mut self, text: &str, deadline: Instant) -> Result<Answer, AskError> {
        let message_id = openpact_runtime::id::fresh();
        let content = Content::typed(text);
        let is_command = matches!(content, Content::Command { .. });
        let mut submitted = pin!(self.hub.submit(Incoming {
            place: self.place.clone(),
            message_id: message_id.clone(),
            user: self.user.clone(),
            content,
        }));
        let mut link = self.hub.link();
        let mut id: Option<String> = None;
        // What came before it was known what it answers.
        let mut held: Vec<Post> = Vec::new();
        loop {
            let post = tokio::select! {
                accepted = &mut submitted, if id.is_none() => {
                    id = Some(accepted?.id);
                    held.pop()
                }
                event = self.events.recv() => match event {
                    Some(Event::Post(post)) => Some(post),
                    Some(event) => {
                        self.aside.event(&event);
                        None
                    }
                    None => return Err(SubmitError::Stopped.into()),
                },
                changed = link.changed() => {
                    changed.map_err(|_| SubmitError::Stopped)?;
                    self.aside.link(&link.borrow_and_update());
                    None
                }
                () = sleep_until(deadline) => return Err(AskError::TimedOut),
                () = self.stop.cancelled() => return Err(AskError::Stopped),
            };
            let Some(post) = post else { continue };
            let delivery = &post.delivery;
            let is_ours = delivery.reply_to == message_id
                || id.as_ref().is_some_and(|id| delivery.answers.contains(id));
            // A question in the middle of a turn answers nothing yet.
            let is_end = is_command || matches!(delivery.body, Body::Text { .. });
            if is_ours && is_end {
                let good =
                    post.kind() == Kind::Answer || (is_command && post.kind() == Kind::Notice);
                return Ok(Answer { post, message_id, id, good });
            }
            if id.is_none() && !is_ours {
                // The channel's next delivery comes when this one is confirmed,
                // so there is never more than one here.
                held.push(post);
            } else {
                self.aside.late(post);
            }
        }
    }
}
