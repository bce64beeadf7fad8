//! Where things are in a workspace folder.

use std::io;
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

    /// Makes the folders that are missing. `secure/` is for its owner alone.
    pub fn create(&self) -> io::Result<()> {
        file::create_dir(&self.root, 0o755)?;
        file::create_dir(&self.secure(), 0o700)?;
        file::create_dir(&self.keys(), 0o700)?;
        file::create_dir(&self.run(), 0o700)?;
        file::create_dir(&self.log(), 0o700)?;
        file::create_dir(&self.ai_data(), 0o755)?;
        file::create_dir(&self.cache(), 0o755)
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
