//! A whole OpenPact in a temporary folder, started as an operator starts it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::Context as _;
use openpact_runtime::layout::Layout;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::program::{Program, binary};
use crate::llm::{FakeLlm, MODEL};

/// The engine needs six seconds of a core, and others need the core as well.
const READY: Duration = Duration::from_secs(240);

/// How a stack is to be.
#[derive(Debug, Default)]
pub struct StackBuilder {
    config: Option<String>,
    environment: Vec<(String, String)>,
}

impl StackBuilder {
    /// What `secure/config.yaml` says.
    #[must_use]
    pub fn config(mut self, yaml: &str) -> Self {
        self.config = Some(yaml.to_owned());
        self
    }

    /// Settings from the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs `openpact up` and waits until a message would be answered.
    pub async fn start(self, llm: &FakeLlm) -> anyhow::Result<Stack> {
        let folder = TempDir::new().context("make a folder for the workspace")?;
        let layout = Layout::new(folder.path())?;
        if let Some(config) = self.config {
            layout.create()?;
            std::fs::write(layout.config_file(), config)?;
        }
        let mut up = Command::new(binary("openpact")?);
        up.args(["up", "--headless", "--model", MODEL, "--llm-url", &llm.url()]);
        up.arg("--workspace").arg(layout.root());
        up.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let up = Program::start("openpact up", up)?;
        up.prints("ready", READY).await?;
        Ok(Stack { up, layout, _folder: folder })
    }
}

/// A stack that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Stack {
    // First, so that it has ended before its folder goes.
    up: Program,
    layout: Layout,
    _folder: TempDir,
}

impl Stack {
    /// A stack with the default settings, unless told otherwise.
    #[must_use]
    pub fn builder() -> StackBuilder {
        StackBuilder::default()
    }

    /// Where its files are.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// `openpact up` itself.
    pub fn up(&mut self) -> &mut Program {
        &mut self.up
    }

    /// Runs another of `openpact`'s commands in this workspace, to its end.
    pub async fn openpact(&self, command: &str, arguments: &[&str]) -> anyhow::Result<Output> {
        let mut run = Command::new(binary("openpact")?);
        run.arg(command).arg("--workspace").arg(self.layout.root()).args(arguments);
        let name = format!("run openpact {command}");
        tokio::task::spawn_blocking(move || run.output()).await?.context(name)
    }

    /// The process id of `engine`, `mcp` or `orchestrator`, if it runs now.
    #[must_use]
    pub fn pid(&self, process: &str) -> Option<i32> {
        let text = std::fs::read_to_string(self.pid_file(process)).ok()?;
        text.trim().parse().ok()
    }

    /// Ends one of them with no warning (SIGKILL). `false`: it doesn't run now.
    ///
    /// Only a process that `up` started is ended: its parent is looked at first.
    pub fn kill(&self, process: &str) -> bool {
        let Some(pid) = self.pid(process).filter(|pid| self.is_ours(*pid)) else { return false };
        Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }

    fn is_ours(&self, pid: i32) -> bool {
        // pid (name) state ppid …; a name may hold anything, so from the last `)`.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(&self.up.pid().to_string())
    }

    fn pid_file(&self, process: &str) -> impl AsRef<Path> + use<> {
        self.layout.run().join(format!("{process}.pid"))
    }
}
