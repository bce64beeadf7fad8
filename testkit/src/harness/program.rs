//! One program, its output kept and its end certain.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::wait::{Bell, NotSeen};

/// Lines of output that are kept; older ones are forgotten.
const LINES: usize = 2_000;
/// The longest line that is kept.
const LINE: u64 = 16 * 1024;
/// How long a program may take to end when told to.
const GRACE: Duration = Duration::from_secs(25);

/// A program that runs. Dropping it ends it and everything it started.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    output: Arc<Output>,
}

#[derive(Debug)]
struct Output {
    lines: Mutex<VecDeque<Line>>,
    bell: Bell,
}

#[derive(Debug, Clone)]
struct Line {
    is_error: bool,
    text: String,
}

/// The path of one of OpenPact's programs, built by the same cargo that built this.
pub fn binary(name: &str) -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe().context("find this program")?;
    // …/target/debug/deps/test-0123 or …/target/release/openpact-bench
    let folders = this.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
    found.with_context(|| format!("`{name}` is not built: run `cargo build --workspace` first"))
}

impl Program {
    /// Starts `command` as the head of a process group of its own.
    pub fn start(name: &str, mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.process_group(0).spawn().with_context(|| format!("start {name}"))?;
        let output = Arc::new(Output { lines: Mutex::default(), bell: Bell::new() });
        let out = child.stdout.take().context("its output was asked for")?;
        let err = child.stderr.take().context("its errors were asked for")?;
        keep(out, false, &output);
        keep(err, true, &output);
        Ok(Self { name: name.to_owned(), child, output })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line on standard output.
    pub async fn prints(&self, line: &str, within: Duration) -> Result<(), NotSeen> {
        let look = || {
            let lines = self.output.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.iter().any(|it| !it.is_error && it.text == line).then_some(())
        };
        let instead = || format!("`{line}` from {}, but:\n{}", self.name, self.said());
        self.output.bell.wait(within, look, instead).await
    }

    /// What it wrote, errors and all.
    #[must_use]
    pub fn said(&self) -> String {
        let lines = self.output.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Asks it to end, as Ctrl-C or a service manager does, and waits.
    pub fn end(&mut self) -> anyhow::Result<std::process::ExitStatus> {
        self.signal(Signal::TERM);
        let until = Instant::now() + GRACE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        anyhow::bail!("{} did not end within {GRACE:?}:\n{}", self.name, self.said())
    }

    /// Ends it with no warning.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.child.id().try_into().ok().and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _gone = kill_process(pid, signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let ended = matches!(self.child.try_wait(), Ok(Some(_))) || self.end().is_ok();
        let group = self.child.id().try_into().ok().and_then(Pid::from_raw);
        if let Some(group) = group.filter(|_| !ended) {
            let _gone = kill_process_group(group, Signal::KILL);
            drop(self.child.wait());
        }
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "it's what explains the failure")]
            {
                eprintln!("---- {} said:\n{}", self.name, self.said());
            }
        }
    }
}

/// Reads on a thread of its own, since a pipe that nobody reads stops its writer.
fn keep(from: impl Read + Send + 'static, is_error: bool, output: &Arc<Output>) {
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            match from.by_ref().take(LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            let mut lines = output.lines.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == LINES {
                lines.pop_front();
            }
            lines.push_back(Line { is_error, text });
            drop(lines);
            output.bell.ring();
        }
    });
}
