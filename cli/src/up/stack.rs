//! The three processes of a running OpenPact, started and ended in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use openpact_runtime::redact::Redactor;
use openpact_runtime::settings::Settings;
use secrecy::SecretString;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::report::{Report, Tone};
use super::supervise::{State, SuperviseError, Supervised, Surroundings};
use super::{port, process};
use crate::engine::launch::Launch;
use crate::engine::model::Model;
use crate::engine::settings::EngineSettings;
use crate::{control, environment};

/// How long a message may still not be answered once everything runs.
const SETTLE: Duration = Duration::from_secs(120);
/// It's said why only if it takes longer than it should.
const PATIENCE: Duration = Duration::from_secs(2);

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
        let engine_at = port::free("engine.listen", settings.listen)?;
        let tools_at = port::free("mcp.listen", port::of_tools(&all.written()))?;
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

        let tools = process::tools(&openpact, &layout, tools_at, client.clone())?;
        let tools_at = port::reached(tools_at);
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
        let orchestrator = process::orchestrator(&openpact, &layout, model_id)?;
        let engine = Kept::new(process::engine(launch, client), &around, log("engine")?);
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
