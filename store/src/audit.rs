//! The audit log of tool calls: append-only and hash-chained.
//!
//! [`AuditLog`] writes it, [`verify`] checks it, [`read`] shows it. Every entry
//! carries the SHA-256 of the one before it and of its own fields, so that an
//! entry that was changed, removed or slipped in later is found. What can't be
//! found is a log that was cut at its end: compare [`Verified::head`] with one
//! noted elsewhere. An entry says who called what and how it went, never the
//! contents.

mod chain;
mod log;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use log::AuditLog;
pub use table::{read, verify};

/// One tool call, as it's kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When the call came, in milliseconds since 1970.
    pub at_ms: i64,
    /// Who called: the kind of client and the name it gave itself.
    pub client: String,
    /// The engine's session, if the call carried a stamp that was believed.
    pub session: Option<String>,
    /// The engine's own id of the call, likewise.
    pub call: Option<String>,
    /// The tool's name as it was asked for.
    pub tool: String,
    /// SHA-256 of the canonical arguments.
    pub arguments: [u8; 32],
    /// What the policy said.
    pub decision: Decision,
    /// The rule that said so, in words.
    pub rule: String,
    /// How it went.
    pub outcome: Outcome,
    /// Bytes of text that were answered.
    pub result_bytes: u64,
    /// From the call's arrival to its answer.
    pub duration: Duration,
}

/// What the policy said about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allowed,
    /// It may not.
    Denied,
    /// It never came to a decision: no such tool, arguments that don't fit, too busy.
    None,
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The tool did what it was asked.
    Done,
    /// The tool ran and failed.
    Failed,
    /// The tool never ran.
    Refused,
    /// The client took the call back.
    Cancelled,
    /// The deadline passed.
    TimedOut,
}

/// An entry with its place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Counts from 1 without gaps.
    pub sequence: u64,
    /// The call.
    pub entry: Entry,
    /// SHA-256 over the previous hash, the sequence and the entry.
    pub hash: [u8; 32],
}

/// A chain that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// How many entries there are.
    pub entries: u64,
    /// The hash of the last one; zeros if there is none.
    pub head: [u8; 32],
}

/// Why the log can't be written or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuditError {
    /// The database can't be opened.
    #[error("could not open the audit log `{}`", path.display())]
    Open {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// The database can't be read or written.
    #[error("could not {doing} the audit log")]
    Database {
        /// `read`, `write`
        doing: &'static str,
        /// What SQLite said.
        #[source]
        source: Arc<rusqlite::Error>,
    },
    /// The chain doesn't hold from here on.
    #[error("the audit log was changed: entry {sequence} does not follow from the one before it")]
    Broken {
        /// The first entry that is wrong or missing.
        sequence: u64,
    },
    /// The log's thread has ended.
    #[error("the audit log is closed")]
    Closed,
}

impl Decision {
    const ALL: [Self; 3] = [Self::Allowed, Self::Denied, Self::None];

    /// The word that is kept.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::None => "none",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == word)
    }
}

impl Outcome {
    const ALL: [Self; 5] =
        [Self::Done, Self::Failed, Self::Refused, Self::Cancelled, Self::TimedOut];

    /// The word that is kept.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed out",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}
