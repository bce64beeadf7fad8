//! OpenCode as far as the orchestrator knows it: the few routes, shapes and
//! events it uses, observed on version 1.18.33, at once and without a model.
//!
//! ```
//! use openpact_testkit::engine::{FakeEngine, say, think};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let engine = FakeEngine::start().await.unwrap();
//! engine.on("weather", [think("look outside"), say("It rains.")]);
//! println!("{} with the password {}", engine.url(), engine.password());
//! assert!(engine.prompts().is_empty());
//! # });
//! ```
//!
//! What no beat is given for is answered with `echo: ` and the text. The beats
//! in [`Beat`] are what the real engine was seen doing when something breaks.

mod beat;
mod event;
mod id;
mod routes;
mod run;
mod session;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use openpact_runtime::layout::Layout;
use openpact_runtime::{file, key};
use secrecy::ExposeSecret as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use beat::{Beat, fail, hold, say, think, tool, tool_error};

use crate::http::Server;
use crate::wait::{Bell, NotSeen, PATIENCE};
use event::Events;
use session::Sessions;

/// The version it says it has.
pub const VERSION: &str = "1.18.33";

/// The password of an engine that was started without a workspace.
const PASSWORD: &str = "password-of-the-fake-engine";

/// Prompts that are remembered.
const REMEMBERED: usize = 10_000;

/// A prompt that the engine was sent.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// When the request had been read.
    pub at: Instant,
    /// The engine's session.
    pub session: String,
    /// The id that the sender gave the message, if it did.
    pub message_id: Option<String>,
    /// All text parts.
    pub text: String,
    /// The system text that came with it.
    pub system: Option<String>,
    /// `provider/model`, if it named one.
    pub model: Option<String>,
    /// The whole body.
    pub body: serde_json::Value,
}

/// A running fake engine. Dropping it closes its port and every connection.
#[derive(Debug)]
pub struct FakeEngine {
    shared: Arc<Shared>,
    address: SocketAddr,
    server: tokio::sync::Mutex<Option<Server>>,
}

#[derive(Debug)]
struct Shared {
    password: String,
    world: Mutex<World>,
    bell: Bell,
}

/// All that the engine knows.
#[derive(Debug)]
struct World {
    sessions: Sessions,
    events: Events,
    healthy: bool,
    /// Each MCP server's status, and whether connecting would help.
    mcp: HashMap<String, Mcp>,
    rules: Vec<(String, Vec<Beat>)>,
    next: VecDeque<Vec<Beat>>,
    prompts: VecDeque<Prompt>,
    idle: VecDeque<(String, Instant)>,
    aborts: Vec<String>,
    requests: VecDeque<String>,
    released: HashSet<String>,
    held: HashMap<String, usize>,
    /// Permissions and questions that wait for a reply: id, what GET shows.
    permissions: Vec<(String, serde_json::Value)>,
    questions: Vec<(String, serde_json::Value)>,
    /// Owns what this life of the engine runs.
    life: Life,
}

#[derive(Debug, Clone)]
struct Life {
    tasks: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug, Clone)]
struct Mcp {
    status: String,
    reachable: bool,
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FakeEngine {
    /// Starts one on a free port of the loopback interface.
    pub async fn start() -> io::Result<Self> {
        Self::with_password(PASSWORD).await
    }

    /// Starts one and leaves address and password in a workspace, where the
    /// orchestrator looks for its engine.
    pub async fn start_in(layout: &Layout) -> io::Result<Self> {
        layout.create()?;
        let password =
            key::read_or_create(&layout.keys(), key::ENGINE_PASSWORD).map_err(io::Error::other)?;
        let engine = Self::with_password(password.expose_secret()).await?;
        let address = format!("{}\n", engine.address);
        file::write_atomic(&layout.address_file("engine"), address.as_bytes(), 0o600)?;
        Ok(engine)
    }

    async fn with_password(password: &str) -> io::Result<Self> {
        let life = Life { tasks: TaskTracker::new(), stop: CancellationToken::new() };
        let connected = Mcp { status: "connected".to_owned(), reachable: true };
        let shared = Arc::new(Shared {
            password: password.to_owned(),
            bell: Bell::new(),
            world: Mutex::new(World {
                sessions: Sessions::default(),
                events: Events::new(),
                healthy: true,
                mcp: HashMap::from([("openpact".to_owned(), connected)]),
                rules: Vec::new(),
                next: VecDeque::new(),
                prompts: VecDeque::new(),
                idle: VecDeque::new(),
                aborts: Vec::new(),
                requests: VecDeque::new(),
                released: HashSet::new(),
                held: HashMap::new(),
                permissions: Vec::new(),
                questions: Vec::new(),
                life,
            }),
        });
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Self::serve(&shared, anywhere).await?;
        let address = server.address();
        Ok(Self { shared, address, server: tokio::sync::Mutex::new(Some(server)) })
    }

    async fn serve(shared: &Arc<Shared>, address: SocketAddr) -> io::Result<Server> {
        Server::start(address, |tasks, stop| {
            shared.world().life = Life { tasks: tasks.clone(), stop: stop.clone() };
            routes::routes(shared)
        })
        .await
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The password for its user `opencode`.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.shared.password
    }

    /// The next prompt that has no rule is answered so; several queue up.
    pub fn next(&self, beats: impl IntoIterator<Item = Beat>) {
        self.shared.world().next.push_back(beats.into_iter().collect());
    }

    /// Prompts that contain `text` are answered so, before all others.
    pub fn on(&self, text: impl Into<String>, beats: impl IntoIterator<Item = Beat>) {
        self.shared.world().rules.push((text.into(), beats.into_iter().collect()));
    }

    /// Forgets what [`FakeEngine::on`] and [`FakeEngine::next`] were told.
    pub fn forget(&self) {
        let mut world = self.shared.world();
        world.rules.clear();
        world.next.clear();
    }

    /// Whether `/global/health` says that it is.
    pub fn set_healthy(&self, healthy: bool) {
        self.shared.world().healthy = healthy;
    }

    /// What the engine thinks of an MCP server: `connected`, `failed`,
    /// `disabled`. Connecting again helps if it's `reachable`.
    pub fn set_mcp(&self, name: &str, status: &str, reachable: bool) {
        let mcp = Mcp { status: status.to_owned(), reachable };
        self.shared.world().mcp.insert(name.to_owned(), mcp);
    }

    /// Ends every event stream in good manners, as disposing an instance does.
    pub fn end_streams(&self) {
        self.shared.world().events.end();
    }

    /// Sends an event of the test's own making to every stream.
    pub fn emit(&self, kind: &str, properties: &serde_json::Value) {
        self.shared.world().events.send(kind, properties);
    }

    /// Prompts it was sent, oldest first; repetitions as well.
    #[must_use]
    pub fn prompts(&self) -> Vec<Prompt> {
        self.shared.world().prompts.iter().cloned().collect()
    }

    /// The sessions that were aborted, in order.
    #[must_use]
    pub fn aborts(&self) -> Vec<String> {
        self.shared.world().aborts.clone()
    }

    /// Each `session.idle` it sent: session and time, oldest first.
    #[must_use]
    pub fn idle(&self) -> Vec<(String, Instant)> {
        self.shared.world().idle.iter().cloned().collect()
    }

    /// Every request it was sent, as `POST /session`, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.shared.world().requests.iter().cloned().collect()
    }

    /// Sessions that were created.
    #[must_use]
    pub fn sessions(&self) -> Vec<String> {
        self.shared.world().sessions.ids()
    }

    /// Event streams that are open.
    #[must_use]
    pub fn listeners(&self) -> usize {
        self.shared.world().events.listeners()
    }

    /// Waits for a prompt like this; one that came earlier will do.
    pub async fn seen(&self, mut like: impl FnMut(&Prompt) -> bool) -> Result<Prompt, NotSeen> {
        self.until(|engine| engine.prompts().into_iter().find(|prompt| like(prompt))).await
    }

    /// Waits until a turn stands at [`hold`]`(name)`.
    pub async fn held(&self, name: &str) -> Result<(), NotSeen> {
        self.until(|engine| {
            engine.shared.world().held.get(name).filter(|held| **held > 0).map(|_| ())
        })
        .await
    }

    /// Lets all turns at [`hold`]`(name)` go on, now and later.
    pub fn release(&self, name: &str) {
        self.shared.world().released.insert(name.to_owned());
        self.shared.bell.ring();
    }

    /// Waits, for a minute at most, until `look` finds something. It's asked
    /// again whenever something happened in the engine.
    pub async fn until<T>(&self, mut look: impl FnMut(&Self) -> Option<T>) -> Result<T, NotSeen> {
        self.shared.bell.wait(PATIENCE, || look(self), || self.story()).await
    }

    /// Dies as by SIGKILL: connections break, what wasn't finished is lost, the
    /// rest is there when it's [revived](FakeEngine::revive).
    pub async fn crash(&self) {
        if let Some(server) = self.server.lock().await.take() {
            server.stop().await;
        }
        let mut world = self.shared.world();
        world.sessions.crash();
        world.events.end();
        world.permissions.clear();
        world.questions.clear();
        drop(world);
        self.shared.bell.ring();
    }

    /// Starts it again, at the same address.
    pub async fn revive(&self) -> io::Result<()> {
        self.crash().await;
        let server = Self::serve(&self.shared, self.address).await?;
        *self.server.lock().await = Some(server);
        Ok(())
    }

    fn story(&self) -> String {
        let world = self.shared.world();
        let requests: Vec<_> = world.requests.iter().rev().take(10).rev().cloned().collect();
        format!(
            "{} prompts, {} aborts, {} streams; the last requests: {}",
            world.prompts.len(),
            world.aborts.len(),
            world.events.listeners(),
            requests.join(", ")
        )
    }
}

/// How long the engine waits for what only a test or a reply can bring.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);
