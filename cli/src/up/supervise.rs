//! Keeps one process running.

use std::future::Future;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use openpact_runtime::file;
use openpact_runtime::layout::Layout;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backoff::Backoff;
use super::log::Log;
use super::report::{Report, Tone};

/// How often a process that starts is asked whether it's ready.
const ASK: Duration = Duration::from_millis(150);
/// How often one that is ready is asked whether it still is.
const LOOK: Duration = Duration::from_secs(15);
/// So many times in a row it may not answer. The engine is one thread and may be
/// busy; three minutes of silence are more than that.
const SILENCES: u32 = 6;
/// So many starts may fail before the first that doesn't.
const TRIES: u32 = 4;

/// What a process is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Whether it has started.
    Started,
    /// Whether it still answers.
    Alive,
}

/// Asks a process whether it's ready, and why not.
pub(super) type Probe = Box<
    dyn Fn(Asked) -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync,
>;

/// One process and how to keep it.
pub(super) struct Supervised {
    /// As its files in `secure/run` and `secure/log` are called.
    pub(super) name: &'static str,
    /// Makes the command that starts it.
    pub(super) command: Box<dyn Fn() -> anyhow::Result<std::process::Command> + Send + Sync>,
    /// Whether it's ready; then what there's to say about it.
    pub(super) probe: Probe,
    /// How long it may take to be ready.
    pub(super) start_timeout: Duration,
    /// How long it may take to end after a SIGTERM.
    pub(super) grace: Duration,
}

/// How a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It's being started.
    Starting,
    /// It's of use.
    Ready,
    /// It ended, and will be started again.
    Down,
}

/// Why a process is not started again.
#[derive(Debug, thiserror::Error)]
pub(super) enum SuperviseError {
    /// It says itself that its settings are wrong.
    #[error("{name} can't start with these settings: {says}")]
    Settings {
        /// Which.
        name: &'static str,
        /// The last it said.
        says: String,
    },
    /// It never came up.
    #[error("{name} does not start: it {how}. It said: {says} (all of it is in `{log}`)")]
    NeverReady {
        /// Which.
        name: &'static str,
        /// How it ended the last time.
        how: String,
        /// The last it said.
        says: String,
        /// Where the rest is.
        log: String,
    },
}

/// What all supervised processes share.
#[derive(Clone)]
pub(super) struct Surroundings {
    /// The workspace.
    pub(super) layout: Layout,
    /// Where changes are told.
    pub(super) report: Report,
}

/// How one life of a process went.
struct Life {
    how: String,
    was_ready: bool,
    settings: bool,
}

impl Supervised {
    /// Starts the process, and again whenever it ends, until `stop`. Then it's
    /// told to end and, after its grace, made to.
    pub(super) async fn keep(
        self,
        around: Surroundings,
        log: Log,
        state: watch::Sender<State>,
        stop: CancellationToken,
    ) -> Result<(), SuperviseError> {
        let mut backoff = Backoff::default();
        let mut ever_ready = false;
        let mut told = false;
        loop {
            state.send_replace(State::Starting);
            let life = self.live(&around, &log, &state, &stop, &mut told).await;
            self.forget(&around.layout);
            let Some(life) = life else { return Ok(()) };
            state.send_replace(State::Down);
            ever_ready |= life.was_ready;
            let wait = backoff.ended(life.was_ready, std::time::Instant::now());
            let last = log.take_last();
            let says = last_words(&last);
            if !ever_ready && life.settings {
                return Err(SuperviseError::Settings { name: self.name, says });
            }
            if !ever_ready && backoff.failures() >= TRIES {
                let log = around.layout.log_file(self.name).display().to_string();
                return Err(SuperviseError::NeverReady {
                    name: self.name,
                    how: life.how,
                    says,
                    log,
                });
            }
            told = true;
            let again = if wait.hopeless {
                "it ends again and again; starting it every half a minute".to_owned()
            } else {
                format!("starting it again in {:.1} s", wait.time.as_secs_f64())
            };
            let text = if life.was_ready { life.how } else { format!("{} ({says})", life.how) };
            around.report.say(Tone::Warning, self.name, &format!("it {text}; {again}"));
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = sleep(wait.time) => {}
            }
        }
    }

    /// One life. `None`: it was told to stop.
    async fn live(
        &self,
        around: &Surroundings,
        log: &Log,
        state: &watch::Sender<State>,
        stop: &CancellationToken,
        told: &mut bool,
    ) -> Option<Life> {
        let copies = TaskTracker::new();
        let mut child = match self.start(log, &copies) {
            Ok(child) => child,
            Err(error) => {
                let how =
                    format!("could not be started: {}", openpact_runtime::chain(error.as_ref()));
                return Some(Life { how, was_ready: false, settings: false });
            }
        };
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        self.remember(&around.layout, child.id());
        let mut was_ready = false;
        let hung = self.watch(around, state, &mut was_ready, told);
        let ended = tokio::select! {
            ended = child.wait() => Some(ended),
            () = stop.cancelled() => None,
            how = hung => {
                end(&mut child, group, Duration::ZERO).await;
                copies.close();
                copies.wait().await;
                return Some(Life { how, was_ready, settings: false });
            }
        };
        let grace = if ended.is_some() { Duration::ZERO } else { self.grace };
        // After its own end too: whatever it started goes with it.
        end(&mut child, group, grace).await;
        copies.close();
        // Closed by now, unless something that left the group holds on to them.
        if tokio::time::timeout(Duration::from_secs(1), copies.wait()).await.is_err() {
            tracing::debug!(process = self.name, "something still writes to its log");
        }
        ended.map(|ended| match ended {
            Ok(status) => {
                Life { how: how_it_ended(status), was_ready, settings: status.code() == Some(2) }
            }
            Err(error) => Life { how: format!("was lost: {error}"), was_ready, settings: false },
        })
    }

    /// Comes back only when the process has hung, with how.
    async fn watch(
        &self,
        around: &Surroundings,
        state: &watch::Sender<State>,
        was_ready: &mut bool,
        told: &mut bool,
    ) -> String {
        let started = Instant::now();
        let about = loop {
            let why = match (self.probe)(Asked::Started).await {
                Ok(about) => break about,
                Err(why) => why,
            };
            if started.elapsed() > self.start_timeout {
                return format!("was not ready after {} s: {why}", self.start_timeout.as_secs());
            }
            sleep(ASK).await;
        };
        *was_ready = true;
        state.send_replace(State::Ready);
        let text = if *told { "ready again" } else { "ready" };
        *told = false;
        around.report.say(Tone::Good, self.name, &format!("{text} {about}"));
        let mut silences = 0;
        loop {
            sleep(LOOK).await;
            match (self.probe)(Asked::Alive).await {
                Ok(_) => silences = 0,
                Err(why) if silences + 1 == SILENCES => return format!("hangs: {why}"),
                Err(_) => silences += 1,
            }
        }
    }

    fn start(&self, log: &Log, copies: &TaskTracker) -> anyhow::Result<Child> {
        let mut command = Command::from((self.command)()?);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Of its own, so that Ctrl-C reaches it through us, in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        copies.spawn(log.clone().copy(child.stdout.take().expect("it's piped")));
        copies.spawn(log.clone().copy(child.stderr.take().expect("it's piped")));
        Ok(child)
    }

    /// Notes the process id for whoever looks.
    fn remember(&self, layout: &Layout, id: Option<u32>) {
        let Some(id) = id else { return };
        let path = layout.pid_file(self.name);
        if let Err(error) = file::write_atomic(&path, format!("{id}\n").as_bytes(), 0o600) {
            tracing::warn!(process = self.name, %error, "its process id is not in secure/run");
        }
    }

    /// Removes what says that the process is there.
    fn forget(&self, layout: &Layout) {
        super::stale::remove(&layout.pid_file(self.name));
        super::stale::remove(&layout.address_file(self.name));
    }
}

/// Ends the process and all of its group: gently, and after `grace` surely.
async fn end(child: &mut Child, group: Option<Pid>, grace: Duration) {
    let signal = |signal| {
        if let Some(group) = group
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::trace!(%error, "nobody of the group is left");
        }
    };
    if !grace.is_zero() {
        signal(Signal::TERM);
        if let Err(error) = tokio::time::timeout(grace, child.wait()).await {
            tracing::debug!(%error, "it did not end when it was told to");
        }
    }
    signal(Signal::KILL);
    if let Err(error) = child.wait().await {
        tracing::debug!(%error, "it was lost");
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended by itself".to_owned(),
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(9)) => "was killed (signal 9: by a person, or for want of memory)".to_owned(),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The last line that says something, cut to a length for a status line.
fn last_words(lines: &[String]) -> String {
    let last = lines.iter().rev().find(|line| !line.trim().is_empty());
    last.map_or_else(|| "nothing".to_owned(), |line| line.trim().chars().take(400).collect())
}

#[cfg(test)]
mod tests;
