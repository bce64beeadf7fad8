//! `openpact config`: looks at the configuration without starting anything.

use std::io::Write as _;
use std::process::ExitCode;

use openpact_runtime::Usage;
use openpact_runtime::layout::Layout;
use openpact_runtime::settings::Settings;
use tokio_util::sync::CancellationToken;

use crate::engine::model::Model;
use crate::engine::settings::EngineSettings;
use crate::environment;
use crate::workspace::WorkspaceArgs;

/// Programs that have a section of their own, and its name.
const PROGRAMS: [(&str, &str); 2] =
    [("openpact-orchestrator", "orchestrator"), ("openpact-mcp", "mcp")];

/// Looks at the configuration.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Says what is wrong with the configuration, if anything: exit code 2.
    Check(WorkspaceArgs),
}

/// Runs `openpact config`.
pub async fn run(command: Command, _stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let Command::Check(workspace) = command;
    let layout = workspace.layout()?;
    let mut fine = true;
    for (section, problem) in check(&layout).await? {
        let _written = match problem {
            None => writeln!(std::io::stdout(), "{section}: fine"),
            Some(problem) => {
                fine = false;
                writeln!(std::io::stderr(), "{section}: {problem}")
            }
        };
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// Each section, and what is wrong with it.
pub(crate) async fn check(layout: &Layout) -> anyhow::Result<Vec<(&'static str, Option<String>)>> {
    let mut found = vec![("engine", engine(layout).err().map(|error| chain(&error)))];
    for (name, section) in PROGRAMS {
        let mut command = tokio::process::Command::new(environment::sibling(name)?);
        command.arg("--workspace").arg(layout.root()).arg("--check-config");
        let output = command.stdin(std::process::Stdio::null()).kill_on_drop(true).output().await?;
        let says = String::from_utf8_lossy(&output.stderr);
        let says = says.trim().trim_start_matches(name).trim_start_matches(": ").to_owned();
        found.push((section, (!output.status.success()).then_some(says)));
    }
    Ok(found)
}

/// The settings of the engine, and whether they name a model that can be asked.
fn engine(layout: &Layout) -> anyhow::Result<()> {
    let settings: EngineSettings = Settings::load(&layout.config_file())?.section("engine")?;
    settings.check()?;
    Model::from_settings(&settings).map_err(|error| Usage(error.to_string()))?;
    Ok(())
}

fn chain(error: &anyhow::Error) -> String {
    openpact_runtime::chain(error.as_ref())
}
