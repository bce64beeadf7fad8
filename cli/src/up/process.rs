//! What is kept running: how each process is started, asked and ended.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use openpact_runtime::file;
use openpact_runtime::layout::Layout;

use super::port;
use super::supervise::{Asked, Supervised};
use crate::engine::health;
use crate::engine::install::pin;
use crate::engine::launch::Launch;
use crate::{child, control, environment};

/// How long the MCP server and the orchestrator may take to start.
const START: Duration = Duration::from_secs(60);
/// Longer than the orchestrator's own grace, so that it can end its turns.
const ORCHESTRATOR_GRACE: Duration = Duration::from_secs(15);
/// The engine ends at once when it does.
const ENGINE_GRACE: Duration = Duration::from_secs(5);
/// For calls that run.
const TOOLS_GRACE: Duration = Duration::from_secs(10);

/// The MCP server, listening at `address`.
pub(super) fn tools(
    openpact: &Path,
    layout: &Layout,
    address: SocketAddr,
    client: reqwest::Client,
) -> anyhow::Result<Supervised> {
    let program = environment::sibling("openpact-mcp")?;
    let (openpact, layout) = (openpact.to_owned(), layout.clone());
    let asked_at = port::reached(address);
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

/// The engine. Its address is in `secure/run` while it answers.
pub(super) fn engine(launch: Launch, client: reqwest::Client) -> Supervised {
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

/// The orchestrator, told which `model` answers unless its settings say that.
pub(super) fn orchestrator(
    openpact: &Path,
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
