//! From the command line to a running server.

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use openpact_runtime::layout::Layout;
use openpact_runtime::redact::Redactor;
use openpact_runtime::settings::Settings;
use openpact_runtime::{Process, Threads};
use openpact_store::audit::AuditLog;
use tokio_util::sync::CancellationToken;

use crate::command::Command;
use crate::config::Config;
use crate::confine::{self, Confinement};
use crate::gate::Gate;
use crate::server::Server;
use crate::token::Tokens;
use crate::tool::Toolbox;
use crate::workspace::Workspace;
use crate::{http, stdio, tools};

/// The program's name, in messages.
const NAME: &str = "openpact-mcp";
/// How long the end waits for calls that were told to stop.
const STOPPING: Duration = Duration::from_millis(300);

/// Runs the program.
///
/// Everything that needs more of the disk than tools do happens before the
/// process is confined, and that before there is a second thread, since
/// confinement holds for a thread and those it starts.
pub fn main(command: Command) -> ExitCode {
    let prepared = prepare(&command);
    let threads = if command.stdio { Threads::One } else { Threads::PerCore };
    Process { name: NAME, threads }.run(|stop| async move { run(&command, prepared?, stop).await })
}

/// What a server needs.
struct Prepared {
    layout: Layout,
    config: Config,
    /// What is needed beyond the settings; absent if only those are checked.
    ready: Option<Ready>,
}

struct Ready {
    workspace: Workspace,
    /// Only HTTP clients show tokens, so only then are they read.
    tokens: Option<Tokens>,
    confinement: Confinement,
}

fn prepare(command: &Command) -> anyhow::Result<Prepared> {
    let layout = Layout::new(&command.workspace).context("find the workspace folder")?;
    let settings = Settings::load(&layout.config_file())?;
    let config: Config = settings.section("mcp")?;
    if command.check_config {
        return Ok(Prepared { layout, config, ready: None });
    }
    layout.create().with_context(|| {
        format!(
            "make the folders of a workspace in `{}`: choose a folder that you may write to",
            layout.root().display()
        )
    })?;
    let workspace = Workspace::open(&layout.ai_data()).context("open the workspace")?;
    let tokens = match command.http {
        Some(_) => Some(Tokens::read(&layout, &config)?),
        None => None,
    };
    let confinement = confine::apply(&layout, true);
    Ok(Prepared { layout, config, ready: Some(Ready { workspace, tokens, confinement }) })
}

async fn run(
    command: &Command,
    prepared: Prepared,
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let Prepared { layout, config, ready } = prepared;
    let Some(Ready { workspace, tokens, confinement }) = ready else {
        return Ok(ExitCode::SUCCESS);
    };
    if command.check_confinement {
        let line = serde_json::to_string(&confinement)?;
        writeln!(std::io::stdout(), "{line}").context("write to standard output")?;
        return Ok(ExitCode::SUCCESS);
    }
    if confinement.landlock == "none" {
        tracing::warn!("no Landlock in this kernel: only each tool keeps itself to the workspace");
    }
    let held = match &tokens {
        Some(tokens) => Vec::from(tokens.named()),
        None => config.token.iter().map(|token| ("MCP_TOKEN".to_owned(), token.clone())).collect(),
    };
    let gate = Arc::new(Gate::new(
        &config,
        tools::all(),
        Toolbox { workspace, redactor: Redactor::new(held) },
        AuditLog::new(layout.tools_db()),
    ));
    match (command.http, tokens) {
        (Some(address), Some(tokens)) => {
            let address = address.unwrap_or(config.listen);
            http::serve(address, &config, Arc::clone(&gate), tokens, &layout, stop).await?;
        }
        _ => {
            let gone = CancellationToken::new();
            let server = Server::new(Arc::clone(&gate), config.progress_interval, gone.clone());
            stdio::serve(server, config.max_message_bytes, gone, stop).await?;
        }
    }
    // Calls that were told to stop are about to; an entry of each goes to the audit log.
    if tokio::time::timeout(STOPPING, gate.drained()).await.is_err() {
        tracing::warn!("a call did not stop in time");
    }
    Ok(ExitCode::SUCCESS)
}
