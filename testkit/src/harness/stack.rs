//! All of OpenPact, as `openpact up` runs it.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use openpact_runtime::file;
use openpact_runtime::layout::Layout;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::process::{Ended, Process, Program, StartError};
use super::{NotBuilt, orphan};
use crate::llm::{FakeLlm, MODEL};

/// How long the stack may take to be ready. The engine alone needs six seconds
/// of processor time, and machines that test are busy ones.
const START: Duration = Duration::from_secs(240);
/// How long one command may take.
const COMMAND: Duration = Duration::from_secs(180);
/// How long a process that was killed may take to be back.
const RESTART: Duration = Duration::from_secs(180);
const TICK: Duration = Duration::from_millis(20);

/// Why there's no stack, or a command of it didn't end.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// A program isn't there or can't be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A program ended, or took too long.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The workspace can't be laid out.
    #[error("could not lay out the workspace `{}`", path.display())]
    Workspace {
        /// The workspace.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// There's no such process in this workspace.
    #[error("`{name}` does not run: there is no living process of this workspace in `{}`", file.display())]
    NotRunning {
        /// `engine`, `mcp`, `orchestrator`
        name: String,
        /// Where its id should be.
        file: PathBuf,
    },
}

impl From<NotBuilt> for StackError {
    fn from(error: NotBuilt) -> Self {
        Self::Start(error.into())
    }
}

/// What a command wrote and how it ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output, lines joined.
    pub stdout: String,
    /// Its standard error, lines joined.
    pub stderr: String,
}

impl Output {
    /// The exit code; -1 after a signal.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }
}

/// What a stack is started with.
#[derive(Debug, Default)]
pub struct Builder {
    workspace: Option<PathBuf>,
    config: Option<String>,
    llm: Option<String>,
    env: Vec<(String, String)>,
    args: Vec<String>,
}

impl Builder {
    /// The model that answers.
    #[must_use]
    pub fn llm(mut self, llm: &FakeLlm) -> Self {
        self.llm = Some(llm.url());
        self.env("OPENPACT_ENGINE_KEY", "sk-test")
    }

    /// The configuration file, as YAML.
    #[must_use]
    pub fn config(mut self, yaml: impl Into<String>) -> Self {
        self.config = Some(yaml.into());
        self
    }

    /// A workspace that is there already, and stays. Without: a temporary one.
    #[must_use]
    pub fn workspace(mut self, workspace: impl Into<PathBuf>) -> Self {
        self.workspace = Some(workspace.into());
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// One more argument for `openpact up`.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Starts it and waits until a message would be answered.
    pub async fn start(self) -> Result<Stack, StackError> {
        let stack = self.launch()?;
        stack.up.line(START, |line| (line == "ready").then_some(())).await?;
        Ok(stack)
    }

    /// Starts it and doesn't wait.
    pub fn launch(self) -> Result<Stack, StackError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| StackError::Workspace { path, source }
        };
        let temporary = match &self.workspace {
            Some(_) => None,
            None => Some(tempfile::tempdir().map_err(failed(Path::new("/tmp")))?),
        };
        let chosen = temporary.as_ref().map(TempDir::path).or(self.workspace.as_deref());
        let root = chosen.unwrap_or_else(|| Path::new("."));
        let layout = Layout::new(root).map_err(failed(root))?;
        if let Some(config) = &self.config {
            layout
                .create()
                .and_then(|()| file::write_atomic(&layout.config_file(), config.as_bytes(), 0o600))
                .map_err(failed(root))?;
        }
        let mut program = Program::ours("openpact")?
            .mark(layout.root().display().to_string())
            .arg("up")
            .arg("--workspace")
            .arg(layout.root())
            .arg("--headless");
        if let Some(url) = &self.llm {
            program = program.args(["--llm-url", url, "--model", MODEL]);
        }
        program = program.args(&self.args);
        for (name, value) in &self.env {
            program = program.env(name, value);
        }
        let up = program.start()?;
        Ok(Stack { up, layout, env: self.env, _temporary: temporary })
    }
}

/// A running OpenPact. Dropping it kills all of its processes and removes its
/// workspace, if that was a temporary one.
#[derive(Debug)]
pub struct Stack {
    up: Process,
    layout: Layout,
    env: Vec<(String, String)>,
    // After `up`, which is to be dropped first.
    _temporary: Option<TempDir>,
}

impl Stack {
    /// What to start.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The `openpact up` that runs it.
    #[must_use]
    pub fn up(&self) -> &Process {
        &self.up
    }

    /// Where its files are.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The workspace folder.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        self.layout.root()
    }

    /// Runs a command of `openpact`'s in this workspace: `["send", "hello"]`.
    pub async fn openpact<S: AsRef<str>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Output, StackError> {
        let mut args = args.into_iter();
        let mut program = Program::ours("openpact")?;
        for (name, value) in &self.env {
            program = program.env(name, value);
        }
        if let Some(command) = args.next() {
            program = program.arg(command.as_ref());
        }
        program = program.arg("--workspace").arg(self.layout.root());
        for arg in args {
            program = program.arg(arg.as_ref());
        }
        let process = program.start()?;
        let status = process.exited(COMMAND).await?;
        let (stdout, stderr) = (process.stdout().join("\n"), process.stderr().join("\n"));
        Ok(Output { status, stdout, stderr })
    }

    /// The id of a process that `up` keeps running: `engine`, `mcp`, `orchestrator`.
    pub fn pid_of(&self, name: &str) -> Result<i32, StackError> {
        let file = self.layout.pid_file(name);
        let read = || std::fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok();
        match read().filter(|pid| self.is_ours(*pid)) {
            Some(pid) => Ok(pid),
            None => Err(StackError::NotRunning { name: name.to_owned(), file }),
        }
    }

    /// Kills one of its processes with SIGKILL; returns the id it had.
    pub fn kill(&self, name: &str) -> Result<i32, StackError> {
        let pid = self.pid_of(name)?;
        if let Some(id) = Pid::from_raw(pid) {
            // It may have ended this very moment; then it's dead as well.
            let _killed = kill_process(id, Signal::KILL);
        }
        Ok(pid)
    }

    /// Waits until one of its processes runs again, with another id than `before`.
    pub async fn restarted(&self, name: &str, before: i32) -> Result<i32, StackError> {
        let again = async {
            loop {
                match self.pid_of(name) {
                    Ok(pid) if pid != before => return pid,
                    _ => tokio::time::sleep(TICK).await,
                }
            }
        };
        tokio::select! {
            pid = again => Ok(pid),
            ended = self.up.until(RESTART, || None::<i32>) => Ok(ended?),
        }
    }

    /// Stops it as Ctrl-C would.
    pub async fn stop(&self) -> Result<ExitStatus, StackError> {
        Ok(self.up.stop(COMMAND).await?)
    }

    /// All processes of this workspace that live, `up` included.
    #[must_use]
    pub fn living(&self) -> Vec<i32> {
        orphan::marked(&self.marks()).iter().map(|pid| pid.as_raw_nonzero().get()).collect()
    }

    fn marks(&self) -> [String; 1] {
        [self.layout.root().display().to_string()]
    }

    /// A pid file may be older than the process that has its number now.
    fn is_ours(&self, pid: i32) -> bool {
        u32::try_from(pid).is_ok_and(|pid| orphan::lives(pid, &self.marks()))
    }
}
