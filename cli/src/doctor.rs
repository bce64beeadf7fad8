//! `openpact doctor`: looks at everything and says what to do.
//!
//! [`machine`] is about the computer, [`files`] about the workspace, [`model`]
//! about who answers, [`running`] about what runs now. [`finding`] is how each
//! of them says what it saw. Nothing is changed, nothing is started for good.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use openpact_runtime::settings::Settings;
use tokio_util::sync::CancellationToken;

use crate::engine::settings::EngineSettings;
use crate::workspace::WorkspaceArgs;

mod files;
mod finding;
mod machine;
mod model;
mod running;

use finding::Verdict;

/// Looks at everything and says what to do. Exit code 1 if something has to be done.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    workspace: WorkspaceArgs,
    /// Prints an array of objects `{check, verdict, text, advice}` instead.
    #[arg(long)]
    json: bool,
}

/// Runs `openpact doctor`.
pub async fn run(args: Args, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let layout = args.workspace.layout()?;
    let look = async {
        let mut found = machine::look(&layout).await;
        found.extend(files::look(&layout));
        found.extend(files::configuration(&layout).await);
        // Wrong settings were told by now; the rest is looked at with the defaults.
        let settings = Settings::load(&layout.config_file());
        let settings = settings.and_then(|all| Ok((all.section("engine")?, all.written())));
        let (engine, written): (EngineSettings, _) = settings.unwrap_or_default();
        found.extend(machine::engine(&engine).await);
        found.extend(model::look(&engine).await);
        found.extend(running::look(&layout, &engine, &written).await);
        found
    };
    let found = tokio::select! {
        found = look => found,
        () = stop.cancelled() => return Ok(ExitCode::FAILURE),
    };
    let text = if args.json { finding::as_json(&found) } else { finding::as_text(&found) };
    std::io::stdout().write_all(text.as_bytes()).context("write to standard output")?;
    let failed = found.iter().any(|finding| finding.verdict == Verdict::Failed);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
