//! A language model that says what a script tells it to, behind a real HTTP
//! server: OpenAI's chat completions, streamed or whole.
//!
//! ```
//! use openpact_testkit::llm::{FakeLlm, Rule, call, text};
//! use serde_json::json;
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let llm = FakeLlm::start([Rule::user("what's in it")
//!     .round([call("openpact_workspace_read", json!({"path": "note.txt"}))])
//!     .round([text("It says: {{last_tool_result}}")])])
//! .await
//! .unwrap();
//! println!("give the engine {} and the model {}", llm.url(), openpact_testkit::llm::MODEL);
//! assert!(llm.requests().is_empty());
//! # });
//! ```
//!
//! Requests are held to the real API's rules: a wrong key is a 401, an unknown
//! model a 404, a tool message that answers nothing a 400. What the fake
//! refused, and why, is in [`FakeLlm::complaints`].

mod play;
mod request;
mod rules;
mod script;
mod server;
mod template;
mod wire;

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use request::LlmRequest;
pub use script::{
    Rule, Script, ScriptError, Step, When, call, hold, reasoning, slow, status, text, too_many,
};

use crate::http::Server;
use crate::wait::{Bell, NotSeen, PATIENCE};
use rules::Rules;
pub(crate) use wire::pieces;

/// The model a fake answers for unless its script says otherwise.
pub const MODEL: &str = "fake-model";

/// Requests that are remembered; older ones are forgotten.
const REMEMBERED: usize = 5_000;

/// A fake that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The script can't be followed.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// It can't listen.
    #[error("could not listen on {address}")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// A running fake model. Dropping it closes its port and every connection.
#[derive(Debug)]
pub struct FakeLlm {
    shared: Arc<Shared>,
    server: Server,
}

#[derive(Debug)]
struct Shared {
    memory: Mutex<Memory>,
    bell: Bell,
    /// Numbers answers and tool calls.
    count: AtomicU64,
}

#[derive(Debug)]
struct Memory {
    rules: Rules,
    requests: VecDeque<LlmRequest>,
    complaints: Vec<String>,
    released: HashSet<String>,
    held: HashMap<String, usize>,
    /// Answers that are being given.
    open: usize,
}

impl Shared {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complain(&self, complaint: String) {
        tracing::warn!(complaint, "the fake model was used wrongly");
        self.memory().complaints.push(complaint);
    }
}

impl FakeLlm {
    /// Starts one on a free port of the loopback interface.
    pub async fn start(script: impl Into<Script>) -> Result<Self, StartError> {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), script.into()).await
    }

    /// Starts one at `address`.
    pub async fn listen(address: SocketAddr, script: Script) -> Result<Self, StartError> {
        let shared = Arc::new(Shared {
            memory: Mutex::new(Memory {
                rules: Rules::new(script)?,
                requests: VecDeque::new(),
                complaints: Vec::new(),
                released: HashSet::new(),
                held: HashMap::new(),
                open: 0,
            }),
            bell: Bell::new(),
            count: AtomicU64::new(1),
        });
        let server = Server::start(address, |tasks, stop| {
            server::routes(&shared, tasks.clone(), stop.clone())
        })
        .await
        .map_err(|source| StartError::Listen { address, source })?;
        Ok(Self { shared, server })
    }

    /// The base URL, as the engine wants it: `http://127.0.0.1:PORT/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.server.address())
    }

    /// From now on the model knows these rules and no others.
    pub fn script(&self, script: impl Into<Script>) -> Result<(), ScriptError> {
        self.shared.memory().rules = Rules::new(script.into())?;
        Ok(())
    }

    /// What it was asked, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<LlmRequest> {
        self.shared.memory().requests.iter().cloned().collect()
    }

    /// Each request it refused for breaking the API's rules, and each answer of
    /// the script's that couldn't be given: what happened and why.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        self.shared.memory().complaints.clone()
    }

    /// How many answers are being given at this moment.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.memory().open
    }

    /// Waits for a request like this; one that came earlier will do.
    pub async fn seen(&self, like: impl FnMut(&LlmRequest) -> bool) -> Result<LlmRequest, NotSeen> {
        self.seen_within(PATIENCE, like).await
    }

    /// The same, with another bound than a minute.
    pub async fn seen_within(
        &self,
        within: Duration,
        mut like: impl FnMut(&LlmRequest) -> bool,
    ) -> Result<LlmRequest, NotSeen> {
        let look = || self.shared.memory().requests.iter().find(|request| like(request)).cloned();
        self.shared.bell.wait(within, look, || self.story()).await
    }

    /// Waits until an answer stands at [`hold`]`(name)`.
    pub async fn held(&self, name: &str) -> Result<(), NotSeen> {
        let look = || self.shared.memory().held.get(name).filter(|held| **held > 0).map(|_| ());
        let instead = || format!("an answer held at `{name}`; {}", self.story());
        self.shared.bell.wait(PATIENCE, look, instead).await
    }

    /// Waits until no answer is being given.
    pub async fn quiet(&self) -> Result<(), NotSeen> {
        let look = || (self.shared.memory().open == 0).then_some(());
        self.shared.bell.wait(PATIENCE, look, || self.story()).await
    }

    /// Lets all answers at [`hold`]`(name)` go on, now and later.
    pub fn release(&self, name: &str) {
        self.shared.memory().released.insert(name.to_owned());
        self.shared.bell.ring();
    }

    /// From now on answers stop at [`hold`]`(name)` again.
    pub fn hold_again(&self, name: &str) {
        self.shared.memory().released.remove(name);
    }

    /// Ends it and waits until its port is free.
    pub async fn stop(&self) {
        self.server.stop().await;
    }

    /// What there was, for a test that waited for something else.
    fn story(&self) -> String {
        let memory = self.shared.memory();
        let last: Vec<_> = memory.requests.iter().rev().take(5).collect();
        let mut story = format!("{} requests", memory.requests.len());
        for request in last.iter().rev() {
            let user: String = request.user().chars().take(80).collect();
            let (results, rule) = (request.tool_results().len(), request.rule);
            story += &format!("; {user:?} with {results} tool results, answered by {rule:?}");
        }
        for complaint in &memory.complaints {
            story += &format!("; {complaint}");
        }
        story
    }
}
