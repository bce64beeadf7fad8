//! OpenCode's JSON, as far as it's needed: messages, parts and events.
//!
//! Fields that aren't used are ignored, so that a newer engine may add some.

use serde::Deserialize;
use serde_json::Value;

/// A message of a session with its parts: an entry of `GET /session/{id}/message`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Message {
    pub(super) info: Info,
    #[serde(default)]
    pub(super) parts: Vec<Part>,
}

/// What a message is. The engine writes one assistant message for each call of the model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Info {
    pub(super) id: String,
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    pub(super) role: String,
    /// The user message that it answers.
    #[serde(rename = "parentID")]
    pub(super) parent: String,
    #[serde(rename = "providerID")]
    pub(super) provider: String,
    #[serde(rename = "modelID")]
    pub(super) model: String,
    pub(super) cost: f64,
    pub(super) tokens: Tokens,
    pub(super) time: Times,
    /// `stop`, `tool-calls`, `length`, `content-filter`, `unknown`, `error`
    pub(super) finish: Option<String>,
    pub(super) error: Option<Failure>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache: Cache,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cache {
    pub(super) read: u64,
    pub(super) write: u64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Times {
    /// Milliseconds since 1970.
    pub(super) created: f64,
    pub(super) completed: Option<f64>,
}

/// An error as the engine reports it in messages and events.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    /// `APIError`, `ProviderAuthError`, `ContextOverflowError`, `MessageAbortedError`, …
    pub(super) name: String,
    pub(super) data: FailureData,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FailureData {
    pub(super) message: String,
    pub(super) status_code: Option<u16>,
}

/// A piece of a message.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    pub(super) id: String,
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    #[serde(rename = "messageID")]
    pub(super) message: String,
    /// `text`, `reasoning`, `tool`, `step-start`, …
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: String,
    /// Text that the engine wrote itself.
    pub(super) synthetic: bool,
    pub(super) tool: String,
    #[serde(rename = "callID")]
    pub(super) call: String,
    pub(super) state: State,
    pub(super) time: Option<PartTimes>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct PartTimes {
    pub(super) end: Option<f64>,
}

/// Where a tool call stands.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct State {
    /// `pending`, `running`, `completed`, `error`
    pub(super) status: String,
    pub(super) input: Value,
    pub(super) error: String,
}

/// What a session does now.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    /// `busy`, `retry`, `idle`
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) attempt: u32,
    pub(super) message: String,
    /// When the next try is, in milliseconds since 1970, or how long until then.
    pub(super) next: f64,
}

/// An event of `GET /event`, as far as turns care.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// A message began or changed.
    Message(Box<Info>),
    /// A part began or changed; its text so far is in it, unless deltas follow.
    Part(Box<Part>),
    /// More of a part's text.
    Delta { session: String, message: String, part: String, more: String },
    /// What the session does changed.
    Status { session: String, status: Status },
    /// The session has nothing to do.
    Idle { session: String },
    /// A turn failed. Without a session: the engine couldn't tell which.
    Error { session: String, failure: Failure },
    /// A tool call waits for a permission.
    Permission { session: String, id: String },
    /// The model asks its user something.
    Question { session: String, id: String },
    /// Something that doesn't matter here.
    Other,
}

/// Reads one event. Accepts it bare and wrapped in `payload`, as `/global/event` does.
pub(super) fn event(json: &str) -> Result<Event, serde_json::Error> {
    #[derive(Deserialize)]
    struct Raw {
        #[serde(default, rename = "type")]
        kind: String,
        #[serde(default)]
        properties: Value,
        payload: Option<Box<Raw>>,
    }
    let mut raw: Raw = serde_json::from_str(json)?;
    if let Some(inner) = raw.payload.take() {
        raw = *inner;
    }
    let text = |name: &str| raw.properties[name].as_str().unwrap_or_default().to_owned();
    let session = || text("sessionID");
    Ok(match raw.kind.as_str() {
        "message.updated" => Event::Message(field(&raw.properties, "info")?),
        "message.part.updated" => Event::Part(field(&raw.properties, "part")?),
        "message.part.delta" if raw.properties["field"] == "text" => Event::Delta {
            session: session(),
            message: text("messageID"),
            part: text("partID"),
            more: text("delta"),
        },
        "session.status" => {
            Event::Status { session: session(), status: *field(&raw.properties, "status")? }
        }
        "session.idle" => Event::Idle { session: session() },
        "session.error" => {
            let failure = raw.properties.get("error").cloned().unwrap_or_default();
            Event::Error {
                session: session(),
                failure: serde_json::from_value(failure).unwrap_or_default(),
            }
        }
        "permission.asked" => Event::Permission { session: session(), id: text("id") },
        "question.asked" => Event::Question { session: session(), id: text("id") },
        _ => Event::Other,
    })
}

fn field<T: serde::de::DeserializeOwned>(
    properties: &Value,
    name: &str,
) -> Result<Box<T>, serde_json::Error> {
    serde_json::from_value(properties[name].clone()).map(Box::new)
}

impl Event {
    /// The session it's about; empty if it's about none.
    pub(super) fn session(&self) -> &str {
        match self {
            Self::Message(info) => &info.session,
            Self::Part(part) => &part.session,
            Self::Delta { session, .. }
            | Self::Status { session, .. }
            | Self::Idle { session }
            | Self::Error { session, .. }
            | Self::Permission { session, .. }
            | Self::Question { session, .. } => session,
            Self::Other => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_bare_and_wrapped() {
        let bare = r#"{"id":"evt_1","type":"session.idle","properties":{"sessionID":"ses_1"}}"#;
        let wrapped = format!(r#"{{"directory":"/x","payload":{bare}}}"#);
        for json in [bare, &wrapped] {
            assert!(matches!(event(json), Ok(Event::Idle { session }) if session == "ses_1"));
        }
    }

    #[test]
    fn unknown_events_and_odd_shapes_do_no_harm() {
        let cases = [
            r#"{"type":"plugin.added","properties":{}}"#,
            r#"{"type":"server.heartbeat"}"#,
            r#"{}"#,
            r#"{"type":"session.error","properties":{"error":7}}"#,
        ];
        for json in cases {
            assert!(event(json).is_ok(), "{json}");
        }
        assert!(event("not json").is_err());
    }
}
