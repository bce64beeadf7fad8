//! Puts the orchestrator together and keeps it running until it's told to stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use openpact_runtime::layout::Layout;
use openpact_runtime::redact::Redactor;
use openpact_runtime::settings::Settings;
use openpact_runtime::{file, id, key};
use openpact_store::State;
use openpact_store::sqlite::Sqlite;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::command::Commands;
use crate::config::Config;
use crate::context::Context;
use crate::engine::Engine;
use crate::engine::opencode::{Endpoint, Limits, OpenCode};
use crate::grpc::{self, Control, FrontendHub, Keys, Largest};
use crate::hub::Hub;
use crate::session::Sessions;
use crate::status;
use crate::turn::Turns;

/// The hub between chat frontends and the AI engine.
#[derive(Debug, clap::Parser)]
#[command(name = "openpact-orchestrator", version)]
pub struct Args {
    /// The folder that holds everything of this OpenPact.
    #[arg(long, value_name = "DIR", env = "OPENPACT_WORKSPACE")]
    workspace: PathBuf,
    /// Check the settings and exit: 0 if they can be used, else 2.
    #[arg(long)]
    check_config: bool,
}

/// Runs the orchestrator until `stop`.
pub async fn run(args: Args, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let layout = Layout::new(&args.workspace).context("find the workspace")?;
    let config: Config = Settings::load(&layout.config_file())?.section("orchestrator")?;
    config.check()?;
    if args.check_config {
        return Ok(ExitCode::SUCCESS);
    }
    // reqwest leaves the choice to the program; only the first one counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    layout.create().with_context(|| format!("create `{}`", layout.root().display()))?;
    let store = Sqlite::open(&layout.state_db()).context("open the database")?;
    let password = engine_password(&config, &layout)?;
    let (engine, listening) =
        OpenCode::new(endpoint(&config, &layout), password.clone(), limits(&config), stop.clone())?;
    let secrets = [("engine_password".to_owned(), password)];
    let parts = Parts { store: Arc::new(store.clone()), engine: Arc::new(engine), secrets };
    let orchestrator = Orchestrator::bind(&layout, &config, parts, stop).await?;
    orchestrator.tasks.spawn(listening);
    let served = orchestrator.serve().await;
    store.close().await.context("close the database")?;
    served.map(|()| ExitCode::SUCCESS)
}

/// What an orchestrator is put together from.
pub struct Parts<const N: usize> {
    /// Where everything is kept.
    pub store: Arc<dyn State>,
    /// Who answers.
    pub engine: Arc<dyn Engine>,
    /// Values besides its own tokens that must not get into a journal or a chat.
    pub secrets: [(String, SecretString); N],
}

/// An orchestrator that has its address and isn't serving yet.
pub struct Orchestrator {
    listener: TcpListener,
    address: SocketAddr,
    address_file: PathBuf,
    keys: Keys,
    frontends: FrontendHub,
    control: Control,
    largest: u64,
    grace: Duration,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Orchestrator {
    /// Takes up its work and its address, which it writes down for others to find.
    pub async fn bind<const N: usize>(
        layout: &Layout,
        config: &Config,
        parts: Parts<N>,
        stop: CancellationToken,
    ) -> anyhow::Result<Self> {
        let Parts { store, engine, secrets } = parts;
        let keys = keys(&layout.keys())?;
        let tokens = [
            ("operator_token".to_owned(), keys.operator.clone()),
            ("frontend_token".to_owned(), keys.frontend.clone()),
            ("tools_token".to_owned(), keys.tools.clone()),
        ];
        let redactor = Redactor::new(tokens.into_iter().chain(secrets));
        let context = Context::new(layout.ai_data(), config.zone()?);
        context.seed().context("write the assistant's first files")?;
        // Before anything runs: a taken port should leave no trace.
        let listener = grpc::listen(config.listen).await?;

        let tasks = TaskTracker::new();
        let (status, watching) = status::watch(Arc::clone(&engine), stop.clone());
        tasks.spawn(watching);
        let hub = Hub::default();
        let model = Some(config.model.clone()).filter(|model| !model.is_empty());
        let turns = Turns {
            store: Arc::clone(&store),
            engine: Arc::clone(&engine),
            hub: hub.clone(),
            context,
            model: model.clone(),
            redactor,
            engine_wait: config.engine_wait,
        };
        let sessions = Sessions::new(
            Arc::clone(&store),
            turns,
            config.max_concurrent_turns,
            config.max_messages_per_turn,
            tasks.clone(),
            stop.clone(),
        );
        let resuming = sessions.clone();
        tasks.spawn(async move { resuming.resume_and_sweep().await });

        let commands = Commands {
            store: Arc::clone(&store),
            engine,
            sessions: sessions.clone(),
            hub: hub.clone(),
            model: model.clone(),
        };
        let frontends = FrontendHub {
            store: Arc::clone(&store),
            hub: hub.clone(),
            sessions: sessions.clone(),
            commands,
            largest: Largest {
                text: config.max_message_bytes,
                attachments: config.max_attachment_bytes,
            },
            waiting_limit: config.max_waiting_messages,
            instance: id::fresh(),
            tasks: tasks.clone(),
            stop: stop.clone(),
        };
        let control = Control { store, hub, sessions, status, model };

        let address = listener.local_addr().context("read the address")?;
        let address_file = layout.address_file("orchestrator");
        file::write_atomic(&address_file, format!("{address}\n").as_bytes(), 0o600)
            .with_context(|| format!("write `{}`", address_file.display()))?;
        tracing::info!(%address, "the orchestrator listens");
        Ok(Self {
            listener,
            address,
            address_file,
            keys,
            frontends,
            control,
            largest: config.max_message_bytes.saturating_add(config.max_attachment_bytes),
            grace: config.grace,
            tasks,
            stop,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it's told to stop, and then for the grace at most.
    pub async fn serve(self) -> anyhow::Result<()> {
        let Self { listener, address_file, keys, frontends, control, largest, .. } = self;
        let (stop, tasks, grace) = (self.stop, self.tasks, self.grace);
        let work = async {
            let served =
                grpc::serve(listener, keys, frontends, control, largest, stop.clone()).await;
            // Told to stop or failed: either way the tasks end with the server.
            stop.cancel();
            tasks.close();
            tasks.wait().await;
            served
        };
        let served = openpact_runtime::until_stopped(work, &stop, grace).await;
        forget(&address_file);
        served.unwrap_or_else(|| {
            tracing::warn!(?grace, "open streams were cut off");
            Ok(())
        })
    }
}

fn keys(folder: &Path) -> anyhow::Result<Keys> {
    Ok(Keys {
        operator: key::read_or_create(folder, key::OPERATOR)?,
        frontend: key::read_or_create(folder, key::FRONTEND)?,
        tools: key::read_or_create(folder, key::TOOLS)?,
    })
}

fn engine_password(config: &Config, layout: &Layout) -> anyhow::Result<SecretString> {
    Ok(match &config.engine_password_file {
        Some(path) => key::read(path)?,
        None => key::read_or_create(&layout.keys(), key::ENGINE_PASSWORD)?,
    })
}

fn endpoint(config: &Config, layout: &Layout) -> Endpoint {
    if config.engine_url.is_empty() {
        Endpoint::InFile(layout.address_file("engine"))
    } else {
        Endpoint::Fixed(config.engine_url.clone())
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        turn: config.turn_timeout,
        stall: config.stall_timeout,
        away: config.engine_wait,
        provider: config.provider_wait,
        steps: config.max_steps,
    }
}

fn forget(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "the address file stays behind");
    }
}
