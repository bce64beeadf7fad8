//! What goes between a platform and the orchestrator, in our own types.

use std::time::SystemTime;

/// Where a message belongs, on the platform that the frontend serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The platform's stable id of the channel.
    pub channel: String,
    /// Empty outside threads.
    pub thread: String,
}

impl Place {
    /// A channel, outside its threads.
    #[must_use]
    pub fn channel(channel: impl Into<String>) -> Self {
        Self { channel: channel.into(), thread: String::new() }
    }
}

/// Who wrote something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The platform's stable id, never a name that can change hands.
    pub id: String,
    /// For people to read.
    pub name: String,
}

/// Something a person wrote or pressed that is meant for the assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// Where.
    pub place: Place,
    /// The platform's id of it; with the place it makes a repetition recognisable.
    pub message_id: String,
    /// Who.
    pub user: User,
    /// What.
    pub content: Content,
}

/// What a person wrote or pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A message.
    Text {
        /// As it was written.
        text: String,
        /// What came with it.
        attachments: Vec<Attachment>,
        /// When.
        sent_at: SystemTime,
    },
    /// A command such as `/new title`.
    Command {
        /// Without the slash.
        name: String,
        /// All that stood behind the name.
        arguments: String,
    },
    /// A press of a button.
    Press {
        /// [`Delivery::id`] of what had the buttons.
        ask: String,
        /// [`Button::id`]
        button: String,
    },
}

impl Content {
    /// What was typed: a command if it begins with a slash and a letter, else a message.
    ///
    /// ```
    /// use openpact_frontend::message::Content;
    /// let Content::Command { name, arguments } = Content::typed("/new my title") else { panic!() };
    /// assert_eq!((name.as_str(), arguments.as_str()), ("new", "my title"));
    /// assert!(matches!(Content::typed("/etc/passwd is a file"), Content::Text { .. }));
    /// ```
    #[must_use]
    pub fn typed(text: &str) -> Self {
        let command = text.trim().strip_prefix('/').and_then(|rest| {
            let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.len() <= 32
                && name.chars().all(plain);
            is_name.then(|| (name.to_lowercase(), arguments.trim().to_owned()))
        });
        match command {
            Some((name, arguments)) => Self::Command { name, arguments },
            None => Self::Text {
                text: text.to_owned(),
                attachments: Vec::new(),
                sent_at: SystemTime::now(),
            },
        }
    }
}

/// A file that came with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// As its sender called it.
    pub filename: String,
    /// Media type, as in `image/png`.
    pub mime: String,
    /// All of it.
    pub content: Vec<u8>,
}

/// Something that is to stand on the platform, and be confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Stands for this delivery for ever. Empty for changes nobody waits for.
    pub id: String,
    /// Where.
    pub place: Place,
    /// What.
    pub body: Body,
    /// The platform's id of the message this answers; may be empty.
    pub reply_to: String,
    /// The turn that this ends; may be empty.
    pub turn: String,
    /// [`crate::Accepted::id`] of the messages that this answers.
    pub answers: Vec<String>,
    /// Pieces that were confirmed in an earlier life of this process.
    pub delivered: Vec<u32>,
    /// Which time this is sent: 1, 2, …
    pub attempt: u32,
}

/// What a delivery shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A message.
    Text {
        /// How it's meant.
        kind: Kind,
        /// Markdown, as a model writes it.
        text: String,
    },
    /// A message with buttons.
    Ask {
        /// Markdown.
        text: String,
        /// In their order.
        buttons: Vec<Button>,
    },
    /// Another text for a message that stands on the platform already.
    Edit {
        /// The platform's id of that message.
        message_id: String,
        /// Its new text.
        text: String,
    },
}

/// How a message to a person is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What the assistant answered.
    Answer,
    /// Why there is no answer.
    Failure,
    /// The system's own words, such as the answer to a command.
    Notice,
}

/// A button below a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Button {
    /// What a press says.
    pub id: String,
    /// At most 64 characters.
    pub label: String,
}

/// The answer so far. Each one replaces the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Whose draft it is.
    pub turn: String,
    /// Rises with each draft of the turn.
    pub revision: u64,
    /// All of the text so far.
    pub text: String,
    /// What the model thought, in the modes that show it.
    pub reasoning: String,
}

/// A tool call of a running turn, in the modes that show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// Whose call it is.
    pub turn: String,
    /// Stands for the call; it's told of when it begins and when it ends.
    pub call: String,
    /// The tool's name.
    pub tool: String,
    /// How far it is.
    pub state: ActivityState,
    /// What it was called with or what went wrong, cut short.
    pub detail: String,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityState {
    /// At work.
    Running,
    /// Done.
    Completed,
    /// It went wrong; the model knows and goes on.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_a_word_make_a_command() {
        let cases = [
            ("/new", Some(("new", ""))),
            ("  /NEW  a title ", Some(("new", "a title"))),
            ("/switch\n2", Some(("switch", "2"))),
            ("/etc/passwd", None),
            ("//", None),
            ("/", None),
            ("/2", None),
            ("not /new", None),
        ];
        for (text, expected) in cases {
            let got = match Content::typed(text) {
                Content::Command { name, arguments } => Some((name, arguments)),
                _ => None,
            };
            let got = got.as_ref().map(|(name, arguments)| (name.as_str(), arguments.as_str()));
            assert_eq!(got, expected, "{text:?}");
        }
    }
}
