//! `openpact chat`: a conversation in the terminal.
//!
//! [`talk`] is the loop on a terminal: [`keys`] become actions, [`view`] is what
//! they and the orchestrator's events change, [`screen`] draws it. [`editor`],
//! [`history`] and [`complete`] are the input; [`look`], [`markdown`] and
//! [`plain`] are how text is shown. Without a terminal it's [`lines`].

mod complete;
mod editor;
mod history;
mod keys;
mod lines;
mod look;
mod markdown;
pub(crate) mod plain;
mod screen;
mod talk;
mod view;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::environment;
use crate::hub::aside::Aside;
use crate::hub::ask::Asker;
use crate::hub::{Attached, ChannelArgs, Orchestrator, user};
use crate::workspace::WorkspaceArgs;

/// How long an orchestrator that is being restarted is waited for at the start.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many earlier messages are shown at the start.
const EARLIER: u32 = 10;

/// Talks with a running OpenPact.
///
/// On a terminal: Enter sends, Alt+Enter, Shift+Enter or a backslash at the end
/// begin a new line, Ctrl-C stops the answer, Ctrl-D leaves. Else each line of
/// standard input is a message, and answers go to standard output.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    #[command(flatten)]
    workspace: WorkspaceArgs,
    #[command(flatten)]
    channel: ChannelArgs,
}

impl Args {
    /// The main conversation of a workspace.
    #[must_use]
    pub fn of(workspace: WorkspaceArgs) -> Self {
        Self { workspace, channel: ChannelArgs::default() }
    }
}

/// Runs `openpact chat`.
pub async fn run(args: Args, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let orchestrator = Orchestrator::of(args.workspace.layout()?)?;
    let is_dumb = environment::variable("TERM").is_some_and(|terminal| terminal == "dumb");
    let on_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !is_dumb;
    if on_terminal || environment::variable("OPENPACT_LOG").is_none() {
        orchestrator.keep_log("chat")?;
    }
    let mut attached = orchestrator.attach("openpact chat", &args.channel.channel, &stop);
    let chatted = chat(&args.channel, &orchestrator, &mut attached, on_terminal, stop).await;
    attached.detach().await;
    openpact_runtime::divert_logs(None);
    chatted
}

async fn chat(
    channel: &ChannelArgs,
    orchestrator: &Orchestrator,
    attached: &mut Attached,
    on_terminal: bool,
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let place = channel.place();
    tokio::select! {
        connected = orchestrator.connected(&attached.hub, Instant::now() + PATIENCE) => connected?,
        () = stop.cancelled() => return Ok(ExitCode::FAILURE),
    }
    if !on_terminal {
        let (hub, events) = (&attached.hub, &mut attached.events);
        let mut aside = Aside::new(false);
        let asker =
            Asker { hub, events, aside: &mut aside, place, user: user(), stop: stop.clone() };
        return lines::run(asker, stop).await;
    }
    let earlier = match orchestrator.messages(&place, EARLIER).await {
        Ok(earlier) => earlier,
        Err(error) => {
            // A chat without its past is better than none.
            tracing::warn!(error = %openpact_runtime::chain(error.as_ref()), "no history");
            Vec::new()
        }
    };
    talk::run(attached, place, &earlier, stop).await
}
