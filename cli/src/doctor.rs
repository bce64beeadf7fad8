//! `openpact doctor`: looks at everything and says what to do.

use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use crate::workspace::WorkspaceArgs;

/// Looks at everything and says what to do. Exit code 1 if something has to be done.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

/// Runs `openpact doctor`.
pub async fn run(args: Args, _stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let _layout = args.workspace.layout()?;
    Ok(ExitCode::SUCCESS)
}
