//! `openpact up`: everything that is needed for a chat, with one command.
//!
//! [`first_run`] puts a configuration and keys into a new workspace, [`stack`]
//! starts the three [`process`]es, [`supervise`] keeps each of them running with
//! [`backoff`], [`log`] keeps what they write, [`report`] is what the person sees.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use openpact_runtime::Usage;
use openpact_runtime::layout::Layout;
use openpact_runtime::redact::Redactor;
use openpact_runtime::settings::Settings;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::chat;
use crate::engine::install::{self, InstallError, Installation, Progress, pin};
use crate::engine::model::Model;
use crate::engine::sandbox::{self, Enforced, Level};
use crate::engine::settings::EngineSettings;
use crate::environment;
use crate::workspace::WorkspaceArgs;

mod backoff;
pub mod first_run;
pub(crate) mod lock;
mod log;
mod port;
mod process;
mod report;
mod stack;
pub(crate) mod stale;
mod supervise;

use first_run::{Kept, Named};
use report::{Report, Tone};
use stack::{Plan, Stack};

/// How to say which model answers, in three lines.
pub(crate) const NO_MODEL: &str = "\
No model is configured. Name one, once; it's kept in the workspace's secure/config.yaml:
  a local Ollama, or any OpenAI-compatible URL:  openpact up --llm-url http://127.0.0.1:11434/v1 --model qwen3:8b [--llm-key-env VARIABLE]
  any provider that OpenCode supports:           openpact up --llm-provider anthropic --model NAME --llm-key-env ANTHROPIC_API_KEY";

/// Starts everything and keeps it running until Ctrl-C; on a terminal, with a chat.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    workspace: WorkspaceArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// Without a chat: prints the one line `ready` once a message would be answered.
    #[arg(long)]
    headless: bool,
    /// Shows what the processes write, besides keeping it in secure/log; without a chat.
    #[arg(long)]
    verbose: bool,
}

/// The model on the command line. It's kept in the configuration where nobody
/// has edited that yet, and else holds for this run.
#[derive(Debug, Default, clap::Args)]
struct ModelArgs {
    /// URL of an OpenAI-compatible interface, such as <http://127.0.0.1:11434/v1>.
    #[arg(long, value_name = "URL", requires = "model")]
    llm_url: Option<String>,
    /// A provider that OpenCode knows, such as `anthropic`, instead of a URL.
    #[arg(long, value_name = "NAME", requires = "model")]
    llm_provider: Option<String>,
    /// The model's name.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The environment variable that holds the model's key.
    #[arg(long, value_name = "VARIABLE", requires = "model")]
    llm_key_env: Option<String>,
}

/// Runs `openpact up`.
pub async fn run(args: Args, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let layout = args.workspace.layout()?;
    let report = Report::new();
    layout.create().with_context(|| format!("make `{}`", layout.root().display()))?;
    let _lock = lock::Lock::take(&layout)?;
    let path = layout.log_file("up");
    let log = log::Log::open(path.clone(), None, Arc::new(Redactor::default()));
    report.keep(log.with_context(|| format!("open the log `{}`", path.display()))?);
    first_run::prepare(&layout)?;
    let all = Settings::load(&layout.config_file())?;
    let mut settings: EngineSettings = all.section("engine")?;
    args.model.apply(&mut settings)?;
    if let Some(binary) = environment::variable("OPENPACT_ENGINE_BINARY") {
        settings.binary = Some(PathBuf::from(binary));
    }
    settings.check()?;
    let model = Model::from_settings(&settings).map_err(|error| Usage(error.to_string()))?;
    let Some(model) = model else {
        let _written = writeln!(std::io::stderr(), "{NO_MODEL}");
        return Ok(ExitCode::from(2));
    };
    let kept = args.model.named().map(|named| first_run::keep(&layout, named)).transpose()?;
    greet(&report, &layout, &model, kept);
    warn_of_weak_walls(&report, settings.sandbox)?;
    for name in stale::clean(&layout) {
        let text = format!("another {name} listens for this workspace; starting one besides it");
        report.say(Tone::Warning, name, &text);
    }
    let Some(binary) = engine(&settings, &report, &stop).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let plan = Plan { layout, settings, all, model, binary, verbose: args.verbose };
    let workspace = args.workspace;
    let Some(mut stack) = Stack::start(plan, &report, &stop).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let on_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let served = if on_terminal && !args.headless && !args.verbose {
        report.say(Tone::Good, "all", "ready");
        report.mute(true);
        let chatted = tokio::select! {
            chatted = chat::run(chat::Args::of(workspace), stop.clone()) => chatted,
            failed = stack.failure() => Err(failed),
        };
        report.mute(false);
        chatted
    } else {
        ready()?;
        report.say(Tone::Good, "all", "ready: write with `openpact chat`, end with Ctrl-C");
        tokio::select! {
            () = stop.cancelled() => Ok(ExitCode::SUCCESS),
            failed = stack.failure() => Err(failed),
        }
    };
    stack.end().await;
    served
}

/// Tells whoever reads standard output that a message would be answered.
fn ready() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready").and_then(|()| out.flush()).context("write to standard output")
}

fn greet(report: &Report, layout: &Layout, model: &Model, kept: Option<Kept>) {
    report.say(Tone::Plain, "workspace", &layout.root().display().to_string());
    let kept = match kept {
        Some(Kept::ThisRun) => {
            " (for this run; to keep it, set it in the section `engine` of secure/config.yaml)"
        }
        Some(Kept::Stored) => " (kept in secure/config.yaml)",
        None => "",
    };
    let place = model.url().map(|url| format!(" at {url}")).unwrap_or_default();
    report.say(Tone::Plain, "model", &format!("{}{place}{kept}", model.name()));
}

/// Says it loudly when the engine could read what it must not.
fn warn_of_weak_walls(report: &Report, level: Level) -> anyhow::Result<()> {
    let lacking = match (level, sandbox::support()) {
        (Level::Off, _) => "`engine.sandbox` is off: the engine can read all that you can",
        (_, Enforced::Fully) => return Ok(()),
        (Level::BestEffort, Enforced::Not) => {
            "THE ENGINE IS NOT CONFINED: this kernel has no Landlock, so the engine can read all that \
             you can. Run OpenPact as a user of its own or in a container"
        }
        (Level::Strict, Enforced::Not) => {
            anyhow::bail!(Usage(
                "`engine.sandbox` is `strict`, and this kernel has no Landlock".into()
            ))
        }
        (_, Enforced::Partly) => {
            "this kernel is older than Linux 6.12: it keeps the engine from files, but not from every \
             port or from signals"
        }
    };
    report.say(Tone::Warning, "engine", lacking);
    Ok(())
}

/// The engine's program, installed if need be. `None`: told to stop meanwhile.
async fn engine(
    settings: &EngineSettings,
    report: &Report,
    stop: &CancellationToken,
) -> anyhow::Result<Option<PathBuf>> {
    let openpact = environment::openpact()?;
    if let Some(binary) = &settings.binary {
        report.busy("engine", "trying the program that was configured", "");
        install::verify(&openpact, binary, settings.sandbox).await?;
        return Ok(Some(binary.clone()));
    }
    let what = format!("installing OpenCode {} (60 MB, once)", pin::version());
    let installed = Installation::of_this_user()?
        .ensure(&openpact, stop, |progress| match progress {
            Progress::Waiting => {
                report.busy("engine", "waiting for another OpenPact that installs it", "");
            }
            Progress::Fetched(bytes) => {
                report.busy("engine", &what, &format!("{} MB", bytes / 1_000_000));
            }
            Progress::Trying => report.busy("engine", "trying it", ""),
        })
        .await;
    report.calm();
    match installed {
        Ok(binary) => Ok(Some(binary)),
        Err(InstallError::Stopped) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl ModelArgs {
    /// What may be kept in the configuration.
    fn named(&self) -> Option<Named<'_>> {
        Some(Named {
            provider: self.llm_provider.as_deref(),
            url: self.llm_url.as_deref(),
            model: self.model.as_deref()?,
            key_variable: self.llm_key_env.as_deref(),
        })
    }

    /// What was named goes before what is configured. A URL or a provider of
    /// its own comes with its own key or none: the configured one is for another place.
    fn apply(&self, settings: &mut EngineSettings) -> Result<(), Usage> {
        if let Some(model) = &self.model {
            settings.model.clone_from(model);
        }
        if self.llm_url.is_some() || self.llm_provider.is_some() {
            let defaults = EngineSettings::default();
            settings.url = self.llm_url.clone().unwrap_or_default();
            settings.provider = self.llm_provider.clone().unwrap_or(defaults.provider);
            settings.key = None;
        }
        if let Some(name) = &self.llm_key_env {
            if !is_variable(name) {
                let way_out = "it takes the name of an environment variable, not the key itself";
                return Err(Usage(format!("`--llm-key-env`: {way_out}")));
            }
            let value = environment::variable(name).ok_or_else(|| {
                Usage(format!(
                    "`--llm-key-env {name}`: the environment variable `{name}` is not set"
                ))
            })?;
            settings.key = Some(SecretString::from(value));
        }
        Ok(())
    }
}

/// A name that an environment variable can have, which hardly any key can.
fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
