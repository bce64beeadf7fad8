//! What answers: an AI engine, and what the orchestrator needs of one.

pub mod opencode;

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A question for the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The engine's id of the session.
    pub session: String,
    /// The id that the question gets; see [`Engine::message_id`].
    pub message: String,
    /// Who the assistant is and what it should know.
    pub system: String,
    /// What was written.
    pub text: String,
    /// What came with it.
    pub files: Vec<File>,
    /// `provider/model`; `None`: the engine's default.
    pub model: Option<String>,
}

/// A file for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// As its sender called it.
    pub filename: String,
    /// Media type.
    pub mime: String,
    /// All of it.
    pub content: Vec<u8>,
}

/// What happens while the engine answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// More of the answer. `part` tells one stretch of text from the next.
    Text {
        /// The stretch.
        part: String,
        /// What is new in it.
        more: String,
    },
    /// More of what the model thinks.
    Reasoning {
        /// The stretch.
        part: String,
        /// What is new in it.
        more: String,
    },
    /// A stretch of text became void: the engine begins it anew.
    Void {
        /// The stretch.
        part: String,
    },
    /// The engine is asked anew: all that came before is void.
    Anew,
    /// A tool call began, went well or failed.
    Tool(ToolCall),
    /// The model's provider failed and will be asked again.
    Retry {
        /// Which time it failed.
        attempt: u32,
        /// What the provider said.
        reason: String,
    },
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The engine's id of the call.
    pub id: String,
    /// The tool's name as the model knows it.
    pub tool: String,
    /// Where it stands.
    pub state: ToolState,
    /// What it was called with, as compact JSON.
    pub input: String,
}

/// Where a tool call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolState {
    /// It runs.
    Running,
    /// It went well.
    Completed,
    /// It failed, and this is what the model was told.
    Failed(String),
}

/// What came of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// What the model wrote last; this is the answer.
    pub text: String,
    /// Everything it wrote in the turn, what it said between tool calls included.
    pub all_text: String,
    /// Something cut the answer short; a sentence about what.
    pub note: Option<String>,
    /// What it cost.
    pub usage: Usage,
}

/// What a turn used, and how full the model's window is.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Usage {
    /// `provider/model`
    pub model: String,
    /// Tokens in the last request, cached ones included.
    pub context_tokens: u64,
    /// Of these, how many came out of the provider's cache.
    pub cached_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// The model's window; 0: unknown.
    pub window_tokens: u64,
    /// In US dollars, as the engine reckons.
    pub cost: f64,
}

impl Eq for Usage {}

/// What the engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Its version.
    pub version: String,
    /// Its connection to the MCP server: `Err` says what is wrong.
    pub tools: Result<(), String>,
}

/// Why there is no answer. Each variant is something a turn does differently about.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine can't be reached or isn't itself; it was not asked.
    #[error("the engine does not answer")]
    Unreachable(#[source] anyhow::Error),
    /// The engine has no such session (any more).
    #[error("the engine does not know the session `{session}`")]
    NoSession {
        /// The engine's id.
        session: String,
    },
    /// The engine didn't take the question up; asking again is safe.
    #[error("the engine did not take the question up")]
    NotStarted,
    /// The engine was cut off while it answered.
    #[error("the engine stopped while it answered")]
    Interrupted {
        /// The last tool that was called; asking again might do its work twice.
        tool: Option<String>,
    },
    /// The engine doesn't answer any more, and it had been asked.
    #[error("the engine went away while it answered and did not come back within {waited:?}")]
    Lost {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The model or its provider said no.
    #[error("the model failed: {message}")]
    Model {
        /// What kind of no.
        kind: ModelError,
        /// In the provider's words.
        message: String,
    },
    /// It ended without a word.
    #[error("the model gave no answer")]
    Empty,
    /// Nothing happened for too long; it was stopped.
    #[error("nothing happened for {silent:?}")]
    Stalled {
        /// How long.
        silent: Duration,
    },
    /// It took too long in all; it was stopped.
    #[error("the turn took longer than {limit:?}")]
    TooLong {
        /// The limit.
        limit: Duration,
    },
    /// The model was called too often in one turn; it was stopped.
    #[error("the model was called more than {limit} times")]
    TooManySteps {
        /// The limit.
        limit: u32,
    },
    /// Somebody stopped it.
    #[error("stopped")]
    Stopped,
}

/// What kind of no a model's provider said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelError {
    /// Key missing, wrong or without the right.
    Key,
    /// No such model.
    Missing,
    /// Too many requests, quota used up, overloaded.
    Busy,
    /// It fails again and again, or asks to wait for too long.
    Failing,
    /// The conversation is longer than the model's window.
    TooLong,
    /// The provider's content filter.
    Filtered,
    /// Not reachable.
    Unreachable,
    /// Anything else.
    Other,
}

/// Where an engine's progress goes. The engine waits when nobody reads.
pub type ProgressSender = mpsc::Sender<Progress>;

/// An AI engine that keeps sessions and answers questions, one at a time a session.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// Whether it runs, and whether its tools are connected (and connects them
    /// if they aren't).
    async fn health(&self) -> Result<Health, EngineError>;

    /// Begins a session. `title` is for people who look into the engine.
    async fn create_session(&self, title: &str) -> Result<String, EngineError>;

    /// A fresh id for a question, in the engine's own order.
    fn message_id(&self) -> String;

    /// Asks, and waits for the answer. Every wait inside has an end.
    ///
    /// Cancelling `stop` stops the engine as well. Dropping the future does not.
    async fn answer(
        &self,
        ask: &Ask,
        progress: &ProgressSender,
        stop: &CancellationToken,
    ) -> Result<Answer, EngineError>;

    /// Waits for the answer to a question that was, or may have been, asked
    /// before, by this process or by one before it.
    async fn collect(
        &self,
        session: &str,
        message: &str,
        progress: &ProgressSender,
        stop: &CancellationToken,
    ) -> Result<Answer, EngineError>;

    /// What the session's last answer used; `None` before the first.
    async fn usage(&self, session: &str) -> Result<Option<Usage>, EngineError>;
}
