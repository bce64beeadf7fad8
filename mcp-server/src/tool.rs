//! What a tool is, and the list of them.
//!
//! A tool is one type: its fields are the arguments (their docs are what the
//! model reads), its own doc is the description, [`Tool::EFFECT`] says what it
//! does to the world, [`Tool::run`] does it. A line in [`crate::tools::all`]
//! puts it on the list. What happens around `run` is [`crate::gate`]'s.

mod answer;
mod schema;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use openpact_runtime::redact::Redactor;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::error::ToolError;
use crate::policy::Effect;
use crate::workspace::Workspace;

pub use answer::Answer;
pub use schema::Described;

/// A tool: its arguments, with all that makes a tool of them.
pub trait Tool: DeserializeOwned + JsonSchema + Send + 'static {
    /// `family_verb`, as the model reads it.
    const NAME: &'static str;
    /// What it does to the world.
    const EFFECT: Effect;
    /// Whether it can destroy something that was there.
    const DESTRUCTIVE: bool = false;
    /// Whether doing it twice is the same as doing it once.
    const IDEMPOTENT: bool = false;

    /// Does it.
    ///
    /// Waits must end when [`Call::stop`] is cancelled; work on files goes
    /// through [`Call::blocking`].
    fn run(self, call: Call) -> impl Future<Output = Result<Answer, ToolError>> + Send;
}

/// What tools work with. No tool has anything else.
#[derive(Debug)]
pub struct Toolbox {
    /// The folder that file tools see.
    pub workspace: Workspace,
    /// Takes secrets out of text. Every answer passes it anyway; a tool that
    /// cuts or matches text needs it before that, since of half a value nothing
    /// is found, and what matches tells as much as what is shown.
    pub redactor: Redactor,
}

/// One call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// What there is to work with.
    pub toolbox: Arc<Toolbox>,
    /// Who called.
    pub caller: Caller,
    /// Cancelled when the result is no longer wanted.
    pub stop: CancellationToken,
}

impl Call {
    /// Runs `work` on a thread that may block.
    pub async fn blocking(
        self,
        work: impl FnOnce(&Toolbox, &CancellationToken) -> Result<Answer, ToolError> + Send + 'static,
    ) -> Result<Answer, ToolError> {
        let Self { toolbox, stop, caller: _ } = self;
        let task = tokio::task::spawn_blocking(move || work(&toolbox, &stop));
        match task.await {
            Ok(answer) => answer,
            Err(error) => match error.try_into_panic() {
                // Goes on to whoever contains panics of tools.
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_cancelled) => Err(ToolError::Cancelled),
            },
        }
    }
}

/// A tool's run, its arguments already read.
pub type Run =
    Box<dyn FnOnce(Call) -> Pin<Box<dyn Future<Output = Result<Answer, ToolError>> + Send>> + Send>;

/// A tool on the list, whatever its type.
#[derive(Debug)]
pub struct Entry {
    /// The tool's name.
    pub name: &'static str,
    /// What it does to the world.
    pub effect: Effect,
    /// See [`Tool::DESTRUCTIVE`].
    pub destructive: bool,
    /// See [`Tool::IDEMPOTENT`].
    pub idempotent: bool,
    describe: fn() -> Described,
    described: OnceLock<Described>,
    prepare: fn(Map<String, Value>) -> Result<Run, String>,
}

impl Entry {
    /// The tool's description and the schema of its arguments, made when first asked for.
    pub fn described(&self) -> &Described {
        self.described.get_or_init(self.describe)
    }

    /// Reads `arguments`; what it gives runs the tool.
    pub fn prepare(&self, arguments: Map<String, Value>) -> Result<Run, ToolError> {
        (self.prepare)(arguments).map_err(|problem| ToolError::Arguments {
            tool: self.name,
            problem,
            takes: self.described().takes(),
        })
    }
}

/// The tools there are, in the order in which they're listed.
#[derive(Debug, Default)]
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// Adds the tool `T`.
    ///
    /// # Panics
    ///
    /// If there is one of that name already.
    #[must_use]
    pub fn with<T: Tool>(mut self) -> Self {
        assert!(self.find(T::NAME).is_none(), "two tools are called `{}`", T::NAME);
        self.entries.push(Entry {
            name: T::NAME,
            effect: T::EFFECT,
            destructive: T::DESTRUCTIVE,
            idempotent: T::IDEMPOTENT,
            describe: Described::of::<T>,
            described: OnceLock::new(),
            prepare: prepare::<T>,
        });
        self
    }

    /// The tool called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// All tools.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The error for a tool that isn't there.
    #[must_use]
    pub fn unknown(&self, name: &str) -> ToolError {
        let name: String = name.chars().take(80).collect();
        let close = self
            .entries
            .iter()
            .map(|entry| (strsim::jaro_winkler(entry.name, &name), entry.name))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, close)| close.to_owned());
        ToolError::Unknown { name, close }
    }
}

fn prepare<T: Tool>(arguments: Map<String, Value>) -> Result<Run, String> {
    let tool: T = serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let problem = error.inner().to_string();
        // `.` is the path of the arguments as a whole.
        match error.path().to_string().as_str() {
            "." => problem,
            path => format!("`{path}`: {problem}"),
        }
    })?;
    Ok(Box::new(move |call| Box::pin(tool.run(call))))
}
