//! Fetches the pinned engine from the npm registry.
//!
//! One copy a person and version, in `~/.local/share/openpact/engine/<version>`,
//! shared by all workspaces. It's fetched into a folder beside and renamed, so
//! it's whole or not there; npm checks it against the digests in our lock file.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use openpact_runtime::file;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::sandbox::{Level, Sandbox};
use crate::{child, environment};

mod fetch;
pub mod pin;

pub use fetch::FetchError;

/// How often the size of what was fetched is looked at.
const TICK: Duration = Duration::from_millis(250);

/// How long the engine may take to tell its version.
const LONGEST_TRY: Duration = Duration::from_secs(60);

/// Where the engine is on this machine, or shall be.
#[derive(Debug, Clone)]
pub struct Installation {
    folder: PathBuf,
}

/// How an installation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Another process installs it at this moment.
    Waiting,
    /// So many bytes are on the disk.
    Fetched(u64),
    /// It's there, and is being tried.
    Trying,
}

/// Why there's no engine.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There's none for this machine.
    #[error(
        "OpenCode is not made for {} on {}: set `engine.binary` to one that runs here",
        std::env::consts::ARCH,
        std::env::consts::OS
    )]
    Machine,
    /// npm is needed to fetch it.
    #[error(
        "`{program}` is not on the PATH, and fetching the engine needs it: install Node.js 20 or newer \
         (https://nodejs.org), or set `engine.binary` to OpenCode {}",
        pin::version()
    )]
    Missing {
        /// `npm` or `node`
        program: &'static str,
    },
    /// npm didn't get it.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It was fetched and isn't what was asked for.
    #[error(
        "the engine in `{}` is {found}, and this OpenPact works with OpenCode {}: remove it, or set \
         `engine.binary` to one of that version",
        binary.display(),
        pin::version()
    )]
    Version {
        /// Its program.
        binary: PathBuf,
        /// What it said when it was asked for its version.
        found: String,
    },
    /// It doesn't run on this machine.
    #[error(
        "the engine `{}` does not run here: {says}. It needs glibc and a processor with AVX2; \
         `engine.binary` can name another build of OpenCode {}",
        binary.display(),
        pin::version()
    )]
    DoesNotRun {
        /// Its program.
        binary: PathBuf,
        /// How it ended.
        says: String,
    },
    /// The disk didn't do what it had to.
    #[error("could not {doing} `{}`", path.display())]
    File {
        /// `make`, `write`, …
        doing: &'static str,
        /// What it was about.
        path: PathBuf,
        #[source]
        /// What the system said.
        source: io::Error,
    },
    /// The person changed their mind.
    #[error("stopped while the engine was being installed")]
    Stopped,
}

impl Installation {
    /// Where the pinned version is or shall be for this person.
    pub fn of_this_user() -> anyhow::Result<Self> {
        let base = environment::data_home()?.join("openpact/engine");
        Ok(Self { folder: base.join(pin::version()) })
    }

    /// The same in the folder `base`.
    #[must_use]
    pub fn below(base: &Path) -> Self {
        Self { folder: base.join(pin::version()) }
    }

    /// The folder of this version.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The engine's program, if it's there.
    #[must_use]
    pub fn binary(&self) -> Option<PathBuf> {
        Some(binary_in(&self.folder)?).filter(|binary| environment::is_program(binary))
    }

    /// The engine's program; fetches it if it isn't there. Of two that do so
    /// at once, one waits for the other.
    pub async fn ensure(
        &self,
        openpact: &Path,
        stop: &CancellationToken,
        mut progress: impl FnMut(Progress),
    ) -> Result<PathBuf, InstallError> {
        if let Some(binary) = self.binary() {
            return Ok(binary);
        }
        if pin::package().is_none() {
            return Err(InstallError::Machine);
        }
        let npm = environment::on_path("npm").ok_or(InstallError::Missing { program: "npm" })?;
        environment::on_path("node").ok_or(InstallError::Missing { program: "node" })?;
        let base = self.folder.parent().expect("the folder is named for its version");
        file::create_dir(base, 0o755).map_err(failed("make", base))?;
        let _lock = self.lock(stop, &mut progress).await?;
        // Whoever held the lock may have done it.
        if let Some(binary) = self.binary() {
            return Ok(binary);
        }
        self.clean()?;
        let beside = self.beside("part");
        let installed = self.fetch_into(openpact, &npm, &beside, stop, &mut progress).await;
        if installed.is_err() {
            remove(&beside)?;
        }
        installed
    }

    async fn fetch_into(
        &self,
        openpact: &Path,
        npm: &Path,
        beside: &Path,
        stop: &CancellationToken,
        progress: &mut impl FnMut(Progress),
    ) -> Result<PathBuf, InstallError> {
        fs::create_dir(beside).map_err(failed("make", beside))?;
        for (name, content) in [("package.json", pin::PACKAGE), ("package-lock.json", pin::LOCK)] {
            let path = beside.join(name);
            fs::write(&path, content).map_err(failed("write", &path))?;
        }
        let fetch = fetch::fetch(npm, beside, stop);
        let mut fetch = std::pin::pin!(fetch);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                done = &mut fetch => break done?,
                _ = tick.tick() => progress(Progress::Fetched(size(beside))),
            }
        }
        progress(Progress::Trying);
        let binary = binary_in(beside).ok_or(InstallError::Machine)?;
        verify(openpact, &binary, Level::BestEffort).await?;
        fs::rename(beside, &self.folder).map_err(failed("rename", beside))?;
        binary_in(&self.folder).ok_or(InstallError::Machine)
    }

    /// Holds off everyone else until it's dropped.
    async fn lock(
        &self,
        stop: &CancellationToken,
        progress: &mut impl FnMut(Progress),
    ) -> Result<File, InstallError> {
        let path = self.beside("lock");
        let mut open = File::options();
        let open = open.create(true).truncate(false).write(true).open(&path);
        let lock = open.map_err(failed("open", &path))?;
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(lock),
                Err(Errno::WOULDBLOCK | Errno::INTR) => progress(Progress::Waiting),
                Err(error) => return Err(failed("lock", &path)(error.into())),
            }
            tokio::select! {
                () = stop.cancelled() => return Err(InstallError::Stopped),
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// A name next to the folder: `1.18.33.part`.
    fn beside(&self, what: &str) -> PathBuf {
        let mut path = self.folder.clone();
        path.as_mut_os_string().push(format!(".{what}"));
        path
    }

    /// Removes what an installation left that was killed, or that lacks its program.
    fn clean(&self) -> Result<(), InstallError> {
        remove(&self.beside("part"))?;
        remove(&self.folder)
    }
}

/// Asks the engine's program for its version, and refuses any but the pinned one.
///
/// It's confined while it answers: nobody knows yet what it is.
pub async fn verify(openpact: &Path, binary: &Path, level: Level) -> Result<(), InstallError> {
    let does_not_run = |says: String| InstallError::DoesNotRun { binary: binary.to_owned(), says };
    // It writes to its home even for this.
    let home = std::env::temp_dir().join(format!("openpact-{}", openpact_runtime::id::fresh()));
    file::create_dir(&home, 0o700).map_err(failed("make", &home))?;
    let mut sandbox = Sandbox::of_program(binary);
    sandbox.write.push(home.clone());
    let mut command = child::confined(openpact, level, &sandbox, binary);
    command.arg("--version").env_clear().env("HOME", &home).env("TMPDIR", &home);
    command.current_dir(&home).stdin(Stdio::null());
    let asked = tokio::process::Command::from(command).kill_on_drop(true).output();
    let answer = tokio::time::timeout(LONGEST_TRY, asked).await;
    remove(&home)?;
    let output = answer
        .map_err(|_| does_not_run("it did not tell its version within a minute".into()))?
        .map_err(|error| does_not_run(error.to_string()))?;
    if !output.status.success() {
        let says = String::from_utf8_lossy(&output.stderr);
        let says = says.lines().last().unwrap_or_default();
        return Err(does_not_run(format!("{} {says}", output.status).trim().to_owned()));
    }
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if found == pin::version() {
        return Ok(());
    }
    Err(InstallError::Version { binary: binary.to_owned(), found: format!("version {found:?}") })
}

fn binary_in(folder: &Path) -> Option<PathBuf> {
    Some(folder.join("node_modules").join(pin::package()?).join("bin/opencode"))
}

fn remove(folder: &Path) -> Result<(), InstallError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> InstallError {
    move |source| InstallError::File { doing, path: path.to_owned(), source }
}

/// Bytes in the files below `folder`. What comes and goes meanwhile isn't counted.
fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .filter_map(Result::ok)
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => size(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}
