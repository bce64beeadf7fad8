//! Where things are in a workspace folder.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::file;

/// The folder that holds everything of one OpenPact, and the names in it.
///
/// ```text
/// secure/config.yaml        settings
/// secure/data/openpact.db   the orchestrator's state
/// secure/data/tools.db      the MCP server's state
/// secure/data/keys/         tokens and passwords between processes
/// secure/run/               addresses and process ids of what runs now
/// secure/log/               what it says
/// ai-data/                  all that the assistant's file tools see
/// engine/                   the engine's own state
/// cache/                    can be thrown away
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of the workspace in `root`, which is made absolute.
    pub fn new(root: &Path) -> io::Result<Self> {
        Ok(Self { root: std::path::absolute(root)? })
    }

    /// Makes the folders that are missing. `secure/` is for its owner alone, also
    /// if it was there and wasn't.
    pub fn create(&self) -> io::Result<()> {
        let folders = [
            (self.root.clone(), 0o755),
            (self.secure(), 0o700),
            (self.keys(), 0o700),
            (self.run(), 0o700),
            (self.log(), 0o700),
            (self.ai_data(), 0o755),
            (self.cache(), 0o755),
        ];
        for (folder, mode) in folders {
            file::create_dir(&folder, mode).map_err(|source| named(&folder, source))?;
        }
        let secure = self.secure();
        close(&secure).map_err(|source| named(&secure, source))
    }

    /// The workspace folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What the assistant has no path to.
    #[must_use]
    pub fn secure(&self) -> PathBuf {
        self.root.join("secure")
    }

    /// The one configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.secure().join("config.yaml")
    }

    /// The orchestrator's database.
    #[must_use]
    pub fn state_db(&self) -> PathBuf {
        self.secure().join("data/openpact.db")
    }

    /// The MCP server's database.
    #[must_use]
    pub fn tools_db(&self) -> PathBuf {
        self.secure().join("data/tools.db")
    }

    /// Tokens and passwords, each in a file of its own. See [`crate::key`].
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.secure().join("data/keys")
    }

    /// Addresses of what runs now. See [`Layout::address_file`].
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.secure().join("run")
    }

    /// Where a process writes the address it listens on, as `127.0.0.1:7410`
    /// and a line break, once it listens: `orchestrator`, `mcp`, `engine`.
    #[must_use]
    pub fn address_file(&self, process: &str) -> PathBuf {
        self.run().join(format!("{process}.addr"))
    }

    /// Where `up` writes the process id of a process that it keeps running.
    #[must_use]
    pub fn pid_file(&self, process: &str) -> PathBuf {
        self.run().join(format!("{process}.pid"))
    }

    /// What processes that `up` keeps running say. See [`Layout::log_file`].
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.secure().join("log")
    }

    /// Where `up` keeps what a process writes to its standard error.
    #[must_use]
    pub fn log_file(&self, process: &str) -> PathBuf {
        self.log().join(format!("{process}.log"))
    }

    /// All that workspace and memory tools see.
    #[must_use]
    pub fn ai_data(&self) -> PathBuf {
        self.root.join("ai-data")
    }

    /// The engine's own state; the one folder the engine may write to.
    #[must_use]
    pub fn engine(&self) -> PathBuf {
        self.root.join("engine")
    }

    /// Indexes that can be built again.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }
}

/// Takes from `folder` what others than its owner may do there.
fn close(folder: &Path) -> io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode & 0o700))
}

/// What the system said, with the folder it said it of.
fn named(folder: &Path, source: io::Error) -> io::Error {
    io::Error::new(source.kind(), FolderError { folder: folder.to_owned(), source })
}

#[derive(Debug, thiserror::Error)]
#[error("could not make the folder `{}`", folder.display())]
struct FolderError {
    folder: PathBuf,
    #[source]
    source: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_closed_to_others_from_the_start_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path()).unwrap();
        for _ in 0..2 {
            layout.create().unwrap();
            for (path, mode) in [(layout.secure(), 0o700), (layout.ai_data(), 0o755)] {
                let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
                // The umask may have taken more.
                assert_eq!(found & !mode, 0, "{}", path.display());
            }
            fs::set_permissions(layout.secure(), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ai-data"), "").unwrap();
        let error = Layout::new(folder.path()).unwrap().create().unwrap_err();
        let said = crate::chain(&error);
        assert!(said.contains("ai-data`: "), "{said}");
    }
}
