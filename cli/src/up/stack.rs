//! The three processes of a running OpenPact, started and ended in order.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use openpact_runtime::file;
use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use openpact_runtime::redact::Redactor;
use openpact_runtime::settings::Settings;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::backoff::chance;
use super::log::Log;
use super::report::{Report, Tone};
use super::supervise::{Asked, State, SuperviseError, Supervised, Surroundings};
use crate::engine::health;
use crate::engine::install::pin;
use crate::engine::launch::Launch;
use crate::engine::model::Model;
use crate::engine::settings::EngineSettings;
use crate::{child, control, environment};

/// How long the MCP server and the orchestrator may take to start.
const START: Duration = Duration::from_secs(60);
/// How long a message may still not be answered once everything runs.
const SETTLE: Duration = Duration::from_secs(120);
/// It's said why only if it takes longer than it should.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longer than the orchestrator's own grace, so that it can end its turns.
const ORCHESTRATOR_GRACE: Duration = Duration::from_secs(15);
/// The engine ends at once when it does.
const ENGINE_GRACE: Duration = Duration::from_secs(5);
/// For calls that run.
const TOOLS_GRACE: Duration = Duration::from_secs(10);

/// What is to run.
pub(super) struct Plan {
    pub(super) layout: Layout,
    pub(super) settings: EngineSettings,
    pub(super) all: Settings,
    pub(super) model: Model,
    pub(super) binary: PathBuf,
    /// Show what the processes write.
    pub(super) verbose: bool,
}

/// What runs.
pub(super) struct Stack {
    orchestrator: Kept,
    engine: Kept,
    tools: Kept,
    layout: Layout,
    report: Report,
}

/// A process that is kept running, and the way to end that.
struct Kept {
    stop: CancellationToken,
    state: watch::Receiver<State>,
    task: JoinHandle<Result<(), SuperviseError>>,
}

impl Stack {
    /// Starts everything. What was started ends with `stop`, or with [`Stack::end`].
    pub(super) async fn start(
        plan: Plan,
        report: &Report,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let Plan { layout, settings, all, model, binary, verbose } = plan;
        let openpact = environment::openpact()?;
        let engine_at = listen("engine.listen", settings.listen)?;
        let tools_at = listen("mcp.listen", tools_listen(&all.written()))?;
        let password = key::read_or_create(&layout.keys(), key::ENGINE_PASSWORD)?;
        let token = key::read_or_create(&layout.keys(), key::ENGINE_TO_MCP)?;
        let redactor = Arc::new(redactor(&model, &password, &token));
        let log = |name: &'static str| {
            let path = layout.log_file(name);
            let mirror = verbose.then_some(name);
            let opened = Log::open(path.clone(), mirror, Arc::clone(&redactor));
            opened.with_context(|| format!("open the log `{}`", path.display()))
        };
        let client =
            reqwest::Client::builder().no_proxy().build().context("make an HTTP client")?;
        let around = Surroundings { layout: layout.clone(), report: report.clone() };

        let tools = tools(&openpact, &layout, tools_at, client.clone())?;
        let tools_at = reached(tools_at);
        let mut tools = Kept::new(tools, &around, log("mcp")?);
        // The engine looks for its tools once, when it starts.
        report.busy("mcp", "starting", "");
        if let Err(error) = tools.until_ready(stop).await {
            tools.end().await;
            return error.into_result();
        }
        // What the operator said themselves goes before what we work out.
        let chosen = all.written().iter().any(|(path, ..)| path == "orchestrator.model");
        let model_id = if chosen { None } else { Some(model.to_string()) };
        let launch = Launch {
            openpact: openpact.clone(),
            binary,
            layout: layout.clone(),
            settings,
            model,
            address: engine_at,
            tools: tools_at,
            password,
            token,
        };
        let orchestrator = orchestrator(&openpact, &layout, model_id)?;
        let engine = Kept::new(engine(launch, client), &around, log("engine")?);
        let orchestrator = Kept::new(orchestrator, &around, log("orchestrator")?);
        let mut stack = Self { orchestrator, engine, tools, layout, report: report.clone() };
        report.busy("engine", "starting", "(it takes its time)");
        match stack.until_answering(stop).await {
            Ok(()) => Ok(Some(stack)),
            Err(error) => {
                report.calm();
                stack.end().await;
                error.into_result()
            }
        }
    }

    /// Waits until a message would be answered.
    async fn until_answering(&mut self, stop: &CancellationToken) -> Result<(), NotReady> {
        self.engine.until_ready(stop).await?;
        self.orchestrator.until_ready(stop).await?;
        self.report.busy("all", "getting ready", "");
        let since = Instant::now();
        loop {
            let why = match control::status(&self.layout).await {
                Ok(status) if status.ready => break,
                Ok(status) => status.reason,
                Err(error) => openpact_runtime::chain(error.as_ref()),
            };
            if since.elapsed() > SETTLE {
                let text = format!("a message would not be answered: {why}");
                return Err(NotReady::Failed(anyhow::anyhow!(text)));
            }
            if since.elapsed() > PATIENCE {
                self.report.busy("orchestrator", &format!("not ready yet: {why}"), "");
            }
            tokio::select! {
                () = stop.cancelled() => return Err(NotReady::Stopped),
                failed = self.failure() => return Err(NotReady::Failed(failed)),
                () = sleep(Duration::from_millis(200)) => {}
            }
        }
        self.report.calm();
        Ok(())
    }

    /// Comes back when one of the processes is not kept running any more.
    pub(super) async fn failure(&mut self) -> anyhow::Error {
        tokio::select! {
            failed = self.orchestrator.failure() => failed,
            failed = self.engine.failure() => failed,
            failed = self.tools.failure() => failed,
        }
    }

    /// Ends everything: first who asks, then who answers.
    pub(super) async fn end(self) {
        self.report.say(Tone::Plain, "all", "stopping");
        self.orchestrator.end().await;
        tokio::join!(self.engine.end(), self.tools.end());
    }
}

/// Why there's no use in waiting.
enum NotReady {
    Stopped,
    Failed(anyhow::Error),
}

impl NotReady {
    fn into_result<T>(self) -> anyhow::Result<Option<T>> {
        match self {
            Self::Stopped => Ok(None),
            Self::Failed(error) => Err(error),
        }
    }
}

impl Kept {
    fn new(process: Supervised, around: &Surroundings, log: Log) -> Self {
        let stop = CancellationToken::new();
        let (sender, state) = watch::channel(State::Starting);
        let task = tokio::spawn(process.keep(around.clone(), log, sender, stop.clone()));
        Self { stop, state, task }
    }

    async fn until_ready(&mut self, stop: &CancellationToken) -> Result<(), NotReady> {
        let mut state = self.state.clone();
        tokio::select! {
            () = stop.cancelled() => Err(NotReady::Stopped),
            failed = self.failure() => Err(NotReady::Failed(failed)),
            ready = state.wait_for(|state| *state == State::Ready) => match ready {
                Ok(_) => Ok(()),
                // Its keeper has ended; it says why.
                Err(_) => Err(NotReady::Failed(self.failure().await)),
            },
        }
    }

    /// Waits for the keeper to end with an error; for ever if it ended as it was told.
    async fn failure(&mut self) -> anyhow::Error {
        match (&mut self.task).await {
            Ok(Err(SuperviseError::Settings { name, says })) => {
                let text = SuperviseError::Settings { name, says }.to_string();
                anyhow::Error::new(openpact_runtime::Usage(text))
            }
            Ok(Err(error)) => error.into(),
            Ok(Ok(())) => std::future::pending().await,
            Err(error) => anyhow::Error::new(error).context("keep a process running"),
        }
    }

    async fn end(self) {
        self.stop.cancel();
        if self.task.is_finished() {
            // Its result was taken by `failure`; a finished task can't be asked twice.
            return;
        }
        if let Ok(Err(error)) = self.task.await {
            tracing::debug!(error = %openpact_runtime::chain(&error), "it ended by itself");
        }
    }
}

/// What must not be in a log even if a process writes it.
fn redactor(model: &Model, password: &SecretString, token: &SecretString) -> Redactor {
    let key = model.key().map(|key| ("engine.key".to_owned(), key.clone()));
    let keys = [("engine.password", password), (key::ENGINE_TO_MCP, token)];
    Redactor::new(keys.map(|(name, key)| (name.to_owned(), key.clone())).into_iter().chain(key))
}

fn tools(
    openpact: &std::path::Path,
    layout: &Layout,
    address: SocketAddr,
    client: reqwest::Client,
) -> anyhow::Result<Supervised> {
    let program = environment::sibling("openpact-mcp")?;
    let (openpact, layout) = (openpact.to_owned(), layout.clone());
    let asked_at = reached(address);
    Ok(Supervised {
        name: "mcp",
        command: Box::new(move || {
            let mut command = child::command(&openpact, &program);
            command.args(["--http", &address.to_string(), "--workspace"]).arg(layout.root());
            Ok(command)
        }),
        probe: Box::new(move |_| {
            let client = client.clone();
            Box::pin(async move {
                let asked = client.get(format!("http://{asked_at}/health"));
                let answer = asked.timeout(Duration::from_secs(10)).send().await;
                match answer {
                    Ok(answer) if answer.status().is_success() => Ok(format!("at {address}")),
                    Ok(answer) => Err(format!("HTTP status {}", answer.status())),
                    Err(error) => Err(openpact_runtime::chain(&error)),
                }
            })
        }),
        start_timeout: START,
        grace: TOOLS_GRACE,
    })
}

fn engine(launch: Launch, client: reqwest::Client) -> Supervised {
    let Launch { address, .. } = launch;
    let (password, layout) = (launch.password.clone(), launch.layout.clone());
    Supervised {
        name: "engine",
        start_timeout: launch.settings.start_timeout,
        grace: ENGINE_GRACE,
        command: Box::new(move || {
            let folder = launch.layout.engine();
            launch.prepare().with_context(|| format!("prepare `{}`", folder.display()))?;
            Ok(launch.command())
        }),
        probe: Box::new(move |asked| {
            let patience = match asked {
                Asked::Started => health::STARTING,
                Asked::Alive => health::RUNNING,
            };
            let (client, password, layout) = (client.clone(), password.clone(), layout.clone());
            Box::pin(async move {
                let checked =
                    health::check(&client, address, &password, pin::version(), patience).await;
                checked.map_err(|error| openpact_runtime::chain(&error))?;
                // It's there only while the engine answers, so that nobody asks it too
                // early: what reaches it before it's ready is never answered.
                let path = layout.address_file("engine");
                if !path.exists() {
                    let written =
                        file::write_atomic(&path, format!("{address}\n").as_bytes(), 0o600);
                    written.map_err(|error| format!("write `{}`: {error}", path.display()))?;
                }
                Ok(format!("(OpenCode {})", pin::version()))
            })
        }),
    }
}

fn orchestrator(
    openpact: &std::path::Path,
    layout: &Layout,
    model: Option<String>,
) -> anyhow::Result<Supervised> {
    let program = environment::sibling("openpact-orchestrator")?;
    let (openpact, of) = (openpact.to_owned(), layout.clone());
    let layout = layout.clone();
    Ok(Supervised {
        name: "orchestrator",
        command: Box::new(move || {
            let mut command = child::command(&openpact, &program);
            command.arg("--workspace").arg(of.root());
            if let Some(model) = &model {
                command.env("OPENPACT_ORCHESTRATOR_MODEL", model);
            }
            Ok(command)
        }),
        probe: Box::new(move |_| {
            let layout = layout.clone();
            Box::pin(async move {
                let status = control::status(&layout).await;
                status.map_err(|error| openpact_runtime::chain(error.as_ref()))?;
                let at = control::address(&layout).map(|at| format!("at {at}"));
                Ok(at.unwrap_or_default())
            })
        }),
        start_timeout: START,
        grace: ORCHESTRATOR_GRACE,
    })
}

/// Where the MCP server's settings say that it listens; a free port if they don't.
fn tools_listen(written: &[(String, String, String)]) -> SocketAddr {
    let listen = written.iter().find(|(path, ..)| path == "mcp.listen");
    let listen = listen.and_then(|(_, value, _)| value.trim_matches('"').parse().ok());
    listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// Where something on this machine reaches what listens at `address`.
fn reached(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, v6.port()).into(),
        address => address,
    }
}

/// `wanted`, which is what the setting `name` says, with a free port if its own is 0.
///
/// Not a port that the system hands out by itself: between two lives of a process
/// somebody's outgoing connection could get it.
fn listen(name: &str, wanted: SocketAddr) -> anyhow::Result<SocketAddr> {
    let is_free = |address: SocketAddr| TcpListener::bind(address).map(drop);
    if wanted.port() != 0 {
        is_free(wanted).with_context(|| {
            format!("`{name}` is {wanted}, which can't be used: end what has it, or set another")
        })?;
        return Ok(wanted);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "20000 to 31999")]
    let candidates = std::iter::repeat_with(|| 20_000 + (chance() * 12_000.0) as u16)
        .map(|port| SocketAddr::new(wanted.ip(), port));
    let free = candidates.take(200).find(|address| is_free(*address).is_ok());
    free.with_context(|| format!("`{name}`: there is no free port at {}", wanted.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_is_found_and_a_taken_one_is_told() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let found = listen("engine.listen", any).unwrap();
        assert!((20_000..32_000).contains(&found.port()));
        let holder = TcpListener::bind(any).unwrap();
        let error = listen("engine.listen", holder.local_addr().unwrap()).unwrap_err();
        assert!(error.to_string().contains("`engine.listen` is 127.0.0.1:"), "{error}");
    }

    #[test]
    fn the_tools_listen_where_their_settings_say() {
        let written =
            |value: &str| vec![("mcp.listen".to_owned(), value.to_owned(), String::new())];
        #[rustfmt::skip]
        let cases = [
            (written("127.0.0.1:7411"),      "127.0.0.1:7411"),
            (written("\"127.0.0.1:7411\""),  "127.0.0.1:7411"),
            (written("${WHEREVER}"),         "127.0.0.1:0"),
            (Vec::new(),                     "127.0.0.1:0"),
        ];
        for (written, address) in cases {
            assert_eq!(tools_listen(&written).to_string(), address);
        }
    }
}
