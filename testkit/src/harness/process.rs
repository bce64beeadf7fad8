//! One real program.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::output::Output;
use super::{NotBuilt, binary, environment, orphan};
use crate::wait::NotSeen;

/// The variable that marks all that a test's program starts.
const MARK: &str = "OPENPACT_TESTKIT";

/// How often a file that another process writes is looked at.
const TICK: Duration = Duration::from_millis(10);

/// A program to start: the test's own environment without what would change
/// OpenPact's settings, no standard input, a process group of its own.
#[derive(Debug)]
pub struct Program {
    name: String,
    command: Command,
    marks: Vec<String>,
}

/// A program that can't be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It isn't there.
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// The system refused.
    #[error("could not start `{program}`")]
    Refused {
        /// Which one.
        program: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// A program did not do what was waited for.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// It ended.
    #[error("`{program}` ended with {status}; it wrote:\n{wrote}")]
    Exited {
        /// Which one.
        program: String,
        /// How.
        status: ExitStatus,
        /// All of its output that was kept.
        wrote: String,
    },
    /// It runs on, but the time is up.
    #[error("waiting for `{program}`")]
    Late {
        /// Which one.
        program: String,
        /// How long was waited, and what it wrote.
        #[source]
        source: NotSeen,
    },
}

impl Program {
    /// The program in the file `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mark = openpact_runtime::id::fresh();
        let mut command = Command::new(path);
        for name in environment::foreign() {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env(MARK, &mark).process_group(0);
        Self { name, command, marks: vec![mark] }
    }

    /// One of OpenPact's own, as `openpact-mcp`.
    pub fn ours(name: &str) -> Result<Self, NotBuilt> {
        Ok(Self::new(&binary(name)?))
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// An environment of nothing; what is set later is all there is.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.command.env_clear().env(MARK, &self.marks[0]);
        self
    }

    /// Its working directory.
    #[must_use]
    pub fn current_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// A text that the command line or environment of everything it starts has,
    /// and of nothing else: the path of its temporary folder. Needed if it
    /// starts programs with an environment of their own.
    #[must_use]
    pub fn mark(mut self, mark: impl Into<String>) -> Self {
        self.marks.push(mark.into());
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Result<Process, StartError> {
        let program = self.name.clone();
        let refused = |source| StartError::Refused { program: program.clone(), source };
        let mut child = self.command.spawn().map_err(refused)?;
        let pid = Pid::from_child(&child);
        // Before anyone waits for it, so the id can't be another's by now.
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(error) => {
                child.kill().and_then(|()| child.wait()).map_err(refused)?;
                return Err(refused(error.into()));
            }
        };
        let output = Output::new();
        if let Some(stdout) = child.stdout.take() {
            output.read("stdout", stdout);
        }
        if let Some(stderr) = child.stderr.take() {
            output.read("stderr", stderr);
        }
        let status = Arc::new(Mutex::new(None));
        let (ended, told) = (Arc::clone(&status), Arc::clone(&output));
        thread::spawn(move || {
            let ended_with = child.wait().ok();
            *ended.lock().unwrap_or_else(PoisonError::into_inner) = ended_with;
            told.bell.ring();
        });
        Ok(Process { name: self.name, pid, handle, marks: self.marks, output, status })
    }
}

/// A running program. Dropping it kills it, its process group, and whatever
/// else it started; a test that panics prints what it wrote.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: Pid,
    handle: OwnedFd,
    marks: Vec<String>,
    output: Arc<Output>,
    status: Arc<Mutex<Option<ExitStatus>>>,
}

impl Process {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// How it ended; `None` while it runs.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lines it wrote to its standard output, as far as they were kept.
    #[must_use]
    pub fn stdout(&self) -> Vec<String> {
        self.output.of("stdout")
    }

    /// The lines it wrote to its standard error, as far as they were kept.
    #[must_use]
    pub fn stderr(&self) -> Vec<String> {
        self.output.of("stderr")
    }

    /// Waits for a line of its standard output in which `find` finds something;
    /// one that was written earlier will do.
    pub async fn line<T>(
        &self,
        within: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, Ended> {
        self.until(within, || self.stdout().iter().find_map(|line| find(line))).await
    }

    /// Waits for an address in a file: one line, `127.0.0.1:7410`.
    pub async fn address(&self, within: Duration, file: &Path) -> Result<SocketAddr, Ended> {
        let read = || std::fs::read_to_string(file).ok()?.trim().parse().ok();
        let polled = async {
            loop {
                if let Some(address) = read() {
                    return address;
                }
                tokio::time::sleep(TICK).await;
            }
        };
        tokio::select! {
            address = polled => Ok(address),
            ended = self.until(within, || None::<SocketAddr>) => ended,
        }
    }

    /// Waits until `look` finds something. It's asked whenever the program
    /// wrote a line.
    pub async fn until<T>(
        &self,
        within: Duration,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, Ended> {
        let seen = self.output.wait(within, || match look() {
            Some(found) => Some(Ok(found)),
            // What it wrote last may not have been read yet.
            None => self.status().filter(|_| self.output.is_closed()).map(Err),
        });
        match seen.await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(status)) => {
                let (program, wrote) = (self.name.clone(), self.output.told());
                Err(Ended::Exited { program, status, wrote })
            }
            Err(source) => Err(Ended::Late { program: self.name.clone(), source }),
        }
    }

    /// Waits for its end, and until all of its output has been read.
    pub async fn exited(&self, within: Duration) -> Result<ExitStatus, Ended> {
        let seen = self.output.wait(within, || self.status().filter(|_| self.output.is_closed()));
        seen.await.map_err(|source| Ended::Late { program: self.name.clone(), source })
    }

    /// Sends it a signal; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) {
        match pidfd_send_signal(&self.handle, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => {
                tracing::warn!(program = self.name, %error, "a signal was not delivered");
            }
        }
    }

    /// Asks it to end and waits for that.
    pub async fn stop(&self, within: Duration) -> Result<ExitStatus, Ended> {
        self.signal(Signal::TERM);
        self.exited(within).await
    }

    /// Kills it, and it alone.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            tell(&format!(
                "--- {} (process {}) wrote:\n{}",
                self.name,
                self.pid(),
                self.output.told()
            ));
        }
        if self.status().is_none() {
            // The group may have ended since.
            let _killed = kill_process_group(self.pid, Signal::KILL);
        }
        orphan::end(&self.marks);
    }
}

#[expect(clippy::print_stderr, reason = "the test runner shows it with the failed test")]
fn tell(text: &str) {
    eprintln!("{text}");
}
