//! What happens in a turn, one thing after the other.

use std::time::Duration;

use serde_json::Value;

/// One thing that happens in a turn. A turn whose beats are over is finished
/// with `stop` and then idle.
#[derive(Debug, Clone, PartialEq)]
pub enum Beat {
    /// Text, as deltas and then whole.
    Say(String),
    /// Text of which the stream shows the deltas only: no closing
    /// `message.part.updated`. The history has it.
    SayUnclosed(String),
    /// Text whose deltas the stream doesn't show.
    SayWithoutDeltas(String),
    /// Text that was streamed and is then void, as when the model's connection
    /// broke and the engine asked again.
    SayInVain(String),
    /// Reasoning.
    Think(String),
    /// A tool call, its result or its error, and the step to the next message.
    Tool {
        /// As the engine names it: `openpact_workspace_read`.
        tool: String,
        /// Its arguments.
        input: Value,
        /// What came back.
        result: Result<String, String>,
    },
    /// The engine waits for the model again: `session.status` of type `retry`.
    Retry {
        /// Which try failed.
        attempt: u32,
        /// Why.
        message: String,
    },
    /// The engine asks for a permission and waits for the reply.
    AskPermission(String),
    /// The engine asks the user a question and waits for the reply.
    AskQuestion(String),
    /// Waits.
    Wait(Duration),
    /// Waits until the test [releases](super::FakeEngine::release) it.
    Hold(String),
    /// From here on the streams miss all events; the history doesn't.
    Deaf,
    /// The streams miss nothing any more.
    Hear,
    /// All event streams end.
    EndStreams,
    /// The turn fails: `session.error`, and idle twice.
    Fail {
        /// The error's name: `APIError`, `UnknownError`, …
        name: String,
        /// Its data; has a `message`.
        data: Value,
    },
    /// The last message ends with this reason instead of `stop`.
    Finish(String),
    /// Calls the model again and again, a new message each time, until it's
    /// aborted: what the engine does when a model's stream ends without reason.
    Loop,
    /// Never becomes idle; only an abort ends it.
    Never,
    /// Never becomes idle, not even by an abort.
    Stuck,
    /// Becomes idle without `session.idle` or any other event saying so.
    IdleUnseen,
    /// The engine dies.
    Die,
    /// Only as the first: becomes idle without having written a message.
    Nothing,
    /// Only as the first: 204, and neither message nor event.
    Swallow,
    /// Only as the first: the prompt is refused with this status.
    Refuse(u16),
    /// Only as the first: the connection breaks before there is an answer, but
    /// the prompt is taken and the beats that follow are played.
    Cut,
}

/// Says `text`.
#[must_use]
pub fn say(text: impl Into<String>) -> Beat {
    Beat::Say(text.into())
}

/// Thinks `text`.
#[must_use]
pub fn think(text: impl Into<String>) -> Beat {
    Beat::Think(text.into())
}

/// Calls `tool`, which returns `output`.
#[must_use]
pub fn tool(tool: impl Into<String>, input: Value, output: impl Into<String>) -> Beat {
    Beat::Tool { tool: tool.into(), input, result: Ok(output.into()) }
}

/// Calls `tool`, which fails with `error`.
#[must_use]
pub fn tool_error(tool: impl Into<String>, input: Value, error: impl Into<String>) -> Beat {
    Beat::Tool { tool: tool.into(), input, result: Err(error.into()) }
}

/// Waits until [`FakeEngine::release`](super::FakeEngine::release).
#[must_use]
pub fn hold(name: impl Into<String>) -> Beat {
    Beat::Hold(name.into())
}

/// Fails with an error of the model's provider.
#[must_use]
pub fn fail(message: &str, status: u16) -> Beat {
    let data = serde_json::json!({"message": message, "statusCode": status, "isRetryable": false});
    Beat::Fail { name: "APIError".to_owned(), data }
}
