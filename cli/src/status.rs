//! `openpact status`: how what runs in a workspace is doing.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use openpact_proto::control::v1::GetStatusResponse;
use tokio_util::sync::CancellationToken;

use crate::control;
use crate::workspace::WorkspaceArgs;

/// Says how what runs is doing. Exit code 1 if a message would not be answered.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// Runs `openpact status`.
pub async fn run(args: Args, _stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let status = control::status(&args.workspace.layout()?).await?;
    std::io::stdout().write_all(text(&status).as_bytes()).context("write to standard output")?;
    Ok(if status.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The status, for people to read.
fn text(status: &GetStatusResponse) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:<12} {value}").expect("a String takes everything");
    };
    line("openpact", &status.version);
    line("ready", if status.ready { "yes" } else { &status.reason });
    if let Some(engine) = &status.engine {
        let health = if engine.healthy { "healthy" } else { "not healthy" };
        line("engine", &format!("{health} {} {}", engine.version, engine.problem));
        line(
            "tools",
            if engine.tools_connected { "connected" } else { "not connected to the engine" },
        );
        line("model", if engine.model.is_empty() { "none" } else { &engine.model });
    }
    line("turns", &format!("{} running", status.running_turns));
    line("messages", &format!("{} waiting", status.waiting_messages));
    line("deliveries", &format!("{} pending", status.pending_deliveries));
    for frontend in &status.frontends {
        line("frontend", &format!("{} ({})", frontend.provider, frontend.client));
    }
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use openpact_proto::control::v1::{ConnectedFrontend, EngineStatus};

    use super::*;

    #[test]
    fn everything_has_its_line() {
        let status = GetStatusResponse {
            version: "0.1.0".into(),
            reason: "the engine is starting".into(),
            engine: Some(EngineStatus { version: "1.18.33".into(), ..EngineStatus::default() }),
            waiting_messages: 2,
            frontends: vec![ConnectedFrontend {
                provider: "terminal".into(),
                client: "openpact chat".into(),
                since: None,
            }],
            ..GetStatusResponse::default()
        };
        let expected = "\
openpact     0.1.0
ready        the engine is starting
engine       not healthy 1.18.33
tools        not connected to the engine
model        none
turns        0 running
messages     2 waiting
deliveries   0 pending
frontend     terminal (openpact chat)
";
        assert_eq!(text(&status), expected);
    }
}
