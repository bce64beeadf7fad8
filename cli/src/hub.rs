//! A terminal's connection to the orchestrator of a workspace.
//!
//! [`Orchestrator`] finds it, [`terminal`] is the terminal as a frontend,
//! [`ask`] is one message and its answer, [`aside`] what is said besides.

pub(crate) mod aside;
pub(crate) mod ask;
pub(crate) mod terminal;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use openpact_frontend::hub::LocateError;
use openpact_frontend::message::{Place, User};
use openpact_frontend::{Config, Hub, Link, Target, attach};
use openpact_proto::control::v1::{ListMessagesRequest, Message};
use openpact_proto::frontend::v1 as wire;
use openpact_runtime::layout::Layout;
use openpact_runtime::settings::Settings;
use openpact_runtime::{Usage, key};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::terminal::{Event, Terminal};
use crate::up::lock;
use crate::{control, environment};

/// What terminals are called among the frontends.
const PROVIDER: &str = "terminal";
/// How many events may wait to be shown.
const EVENTS: usize = 64;
/// How long an orchestrator that nobody keeps running may take to be there.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest log of a terminal that is kept; then it begins anew.
const LONGEST_LOG: u64 = 1024 * 1024;

/// Which conversation of a workspace, as `chat` and `send` take it.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ChannelArgs {
    /// The conversation; each name has its own sessions and its own memory of what was said.
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = checked_name)]
    pub(crate) channel: String,
    /// A thread within it.
    #[arg(long, value_name = "NAME", default_value = "", value_parser = checked_name)]
    pub(crate) thread: String,
}

impl Default for ChannelArgs {
    fn default() -> Self {
        Self { channel: "main".into(), thread: String::new() }
    }
}

impl ChannelArgs {
    pub(crate) fn place(&self) -> Place {
        Place { channel: self.channel.clone(), thread: self.thread.clone() }
    }
}

fn checked_name(name: &str) -> Result<String, String> {
    if name.len() > 256 || name.chars().any(char::is_control) {
        return Err("a name has at most 256 printable bytes".into());
    }
    Ok(name.to_owned())
}

/// The orchestrator of a workspace.
#[derive(Debug, Clone)]
pub(crate) struct Orchestrator {
    layout: Layout,
}

/// A terminal that is a frontend of the orchestrator.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Takes messages.
    pub(crate) hub: Hub,
    /// What is to be shown.
    pub(crate) events: mpsc::Receiver<Event>,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl Orchestrator {
    /// The one of `layout`; a usage error if nothing is to be found there.
    pub(crate) fn of(layout: Layout) -> anyhow::Result<Self> {
        let found = Self { layout };
        if address(&found.layout)?.is_none() && !lock::is_held(&found.layout) {
            return Err(found.nothing_runs().into());
        }
        Ok(found)
    }

    fn nothing_runs(&self) -> Usage {
        let root = self.layout.root().display();
        Usage(format!("OpenPact does not run in `{root}`: start it with `openpact up`"))
    }

    /// Attaches a terminal as the frontend of one channel, until `stop`.
    pub(crate) fn attach(&self, client: &str, channel: &str, stop: &CancellationToken) -> Attached {
        let layout = self.layout.clone();
        let locate = Arc::new(move || target(&layout));
        let client = format!("{client} {}", env!("CARGO_PKG_VERSION"));
        let mut config = Config::new(PROVIDER, client, locate);
        config.channels = vec![channel.to_owned()];
        config.longest_pause = Duration::from_secs(1);
        let (sender, events) = mpsc::channel(EVENTS);
        let stop = stop.child_token();
        let (hub, served) = attach(config, Terminal::new(sender), stop.clone());
        Attached { hub, events, stop, served: tokio::spawn(served) }
    }

    /// Waits for the connection. An orchestrator that `up` keeps running may be
    /// restarting and gets until `deadline`, any other only a moment.
    pub(crate) async fn connected(&self, hub: &Hub, deadline: Instant) -> anyhow::Result<()> {
        let mut link = hub.link();
        let moment = Instant::now() + PATIENCE;
        loop {
            let now = link.borrow_and_update().clone();
            match now {
                Link::Up { .. } => return Ok(()),
                Link::Down { why, refused: true } => {
                    let hint = "is `--workspace` the one that the running OpenPact uses?";
                    return Err(Usage(format!("the orchestrator refused us: {why}; {hint}")).into());
                }
                Link::Connecting | Link::Down { .. } => {}
            }
            let until = if lock::is_held(&self.layout) { deadline } else { moment };
            if tokio::time::timeout_at(until.min(Instant::now() + PATIENCE), link.changed())
                .await
                .is_err()
                && Instant::now() >= until
            {
                return Err(self.nothing_runs().into());
            }
        }
    }

    /// The newest messages of the channel's current session, oldest first.
    pub(crate) async fn messages(&self, place: &Place, limit: u32) -> anyhow::Result<Vec<Message>> {
        let place = Some(wire::Place {
            provider: PROVIDER.into(),
            channel: place.channel.clone(),
            thread: place.thread.clone(),
        });
        let request = ListMessagesRequest { session: String::new(), place, limit };
        let mut client = control::connect(&self.layout).await?;
        let listed = client.list_messages(request).await;
        Ok(listed.context("ask for the last messages")?.into_inner().messages)
    }

    /// Sends this process's log into a file of the workspace from here on, for
    /// the terminal belongs to somebody who reads answers.
    pub(crate) fn keep_log(&self, name: &str) -> anyhow::Result<()> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = self.layout.log_file(name);
        let is_long = path.metadata().is_ok_and(|about| about.len() > LONGEST_LOG);
        let mut options = std::fs::File::options();
        options.create(true).append(!is_long).write(true).truncate(is_long).mode(0o600);
        let file = options.open(&path).with_context(|| format!("open `{}`", path.display()))?;
        openpact_runtime::divert_logs(Some(file));
        Ok(())
    }
}

impl Attached {
    /// Confirms what was shown and ends the connection.
    pub(crate) async fn detach(self) {
        self.stop.cancel();
        // What nobody shows any more isn't waited for.
        drop(self.events);
        if let Err(error) = self.served.await {
            tracing::error!(%error, "the connection's task panicked");
        }
    }
}

/// Who sits at this terminal.
pub(crate) fn user() -> User {
    let id = rustix::process::getuid().as_raw().to_string();
    let name = environment::variable("USER").unwrap_or_else(|| format!("user {id}"));
    User { id, name }
}

fn target(layout: &Layout) -> Result<Target, LocateError> {
    let address = address(layout)?.ok_or("the orchestrator is not running")?;
    let token = key::read(&layout.keys().join(key::OPERATOR))?;
    Ok(Target { url: format!("http://{address}"), token })
}

/// Where the orchestrator listens: as it wrote down itself, else as configured.
fn address(layout: &Layout) -> anyhow::Result<Option<SocketAddr>> {
    if let Some(address) = control::address(layout) {
        return Ok(Some(address));
    }
    let settings = Settings::load(&layout.config_file())?;
    let listen: Option<SocketAddr> = settings.value("orchestrator", "listen")?;
    Ok(listen.filter(|address| address.port() != 0))
}
