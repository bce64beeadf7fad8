//! Why a call has no result, and who gets to read that.

use std::io;
use std::time::Duration;

use openpact_store::audit::{AuditError, Outcome};
use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};

use crate::edit::EditError;
use crate::workspace::WorkspaceError;

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// There's no such tool.
    #[error("there is no tool `{name}`{}", match close { Some(close) => format!("; close to it: `{close}`"), None => String::new() })]
    Unknown {
        /// What was asked for.
        name: String,
        /// A tool with nearly that name.
        close: Option<String>,
    },
    /// The arguments don't fit the tool.
    #[error("`{tool}` can't take these arguments: {problem}; it takes {takes}")]
    Arguments {
        /// The tool.
        tool: &'static str,
        /// What is wrong with which argument.
        problem: String,
        /// The arguments it does take.
        takes: String,
    },
    /// The policy forbids it.
    #[error("`{tool}` is not allowed here: {rule}")]
    Denied {
        /// The tool.
        tool: String,
        /// The rule that forbids it.
        rule: String,
    },
    /// A person would have to approve it, and there's nobody to ask.
    #[error(
        "`{tool}` needs a person's approval ({rule}), and nobody can be asked here: it was not \
             run; whoever runs OpenPact can allow it with `mcp.allow` in the settings"
    )]
    NoApprover {
        /// The tool.
        tool: String,
        /// The rule that asks.
        rule: String,
    },
    /// Too much is going on.
    #[error("{limit} calls are waiting already: try again in a moment")]
    Busy {
        /// How many may wait.
        limit: usize,
    },
    /// It took too long.
    #[error("the call was stopped after {}: ask for less at once", humane(*after))]
    TimedOut {
        /// How long it ran.
        after: Duration,
    },
    /// The client took it back, or left.
    #[error("the call was cancelled")]
    Cancelled,
    /// The text has a mark where a secret was.
    #[error(
        "{what} holds `[REDACTED:`, the mark that stands where a secret was taken out: writing \
             it would destroy the secret. Change only the text around it, with an edit that leaves \
             the mark out"
    )]
    Redacted {
        /// `` `content` ``
        what: String,
    },
    /// A pattern can't be used.
    #[error("`{pattern}` is no {kind}: {problem}")]
    Pattern {
        /// What was given.
        pattern: String,
        /// `regular expression`, `glob pattern`
        kind: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// Two arguments contradict each other, or one says nothing.
    #[error("{0}")]
    Senseless(&'static str),
    /// The file isn't one of the assistant's memory.
    #[error(
        "`{file}` is no memory file: these are `SOUL.md`, `USER.md`, `MEMORY.md` and \
             `memory/<name>.md`"
    )]
    NotMemory {
        /// What was given.
        file: String,
    },
    /// Something about files.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Something about an edit.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The call can't be recorded.
    #[error("calls can't be recorded at this moment, so none is run")]
    NotRecorded(#[source] AuditError),
    /// The call ran, but that couldn't be recorded.
    #[error("the call was carried out, but could not be recorded; its result is withheld")]
    RecordLost(#[source] AuditError),
    /// The tool's code failed.
    #[error("`{tool}` failed inside: this is a fault of OpenPact's; other tools still work")]
    Panicked {
        /// The tool.
        tool: &'static str,
    },
}

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    /// The client's programmer: a protocol error.
    Client,
    /// The model: it reads it and tries otherwise.
    Model,
    /// The operator: it goes to the log as well.
    Operator,
}

impl ToolError {
    /// How the audit log calls this.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Unknown { .. }
            | Self::Arguments { .. }
            | Self::Denied { .. }
            | Self::NoApprover { .. }
            | Self::Busy { .. }
            | Self::NotRecorded(_) => Outcome::Refused,
            Self::TimedOut { .. } => Outcome::TimedOut,
            Self::Cancelled | Self::Workspace(WorkspaceError::Stopped) => Outcome::Cancelled,
            Self::Redacted { .. }
            | Self::Pattern { .. }
            | Self::Senseless(_)
            | Self::NotMemory { .. }
            | Self::Workspace(_)
            | Self::Edit(_)
            | Self::RecordLost(_)
            | Self::Panicked { .. } => Outcome::Failed,
        }
    }

    fn audience(&self) -> Audience {
        match self {
            Self::Unknown { .. } => Audience::Client,
            Self::Arguments { .. }
            | Self::Denied { .. }
            | Self::NoApprover { .. }
            | Self::Busy { .. }
            | Self::TimedOut { .. }
            | Self::Cancelled
            | Self::Redacted { .. }
            | Self::Pattern { .. }
            | Self::Senseless(_)
            | Self::NotMemory { .. }
            | Self::Edit(_) => Audience::Model,
            Self::Workspace(WorkspaceError::Io { .. } | WorkspaceError::NoOpenat2)
            | Self::NotRecorded(_)
            | Self::RecordLost(_)
            | Self::Panicked { .. } => Audience::Operator,
            Self::Workspace(_) => Audience::Model,
        }
    }

    /// The text for the model. A full disk or missing rights are named, since
    /// it can tell its user; what else the system said is for the log.
    fn for_model(&self) -> String {
        match self {
            Self::Workspace(WorkspaceError::Io { source, .. }) => {
                let why = match source.kind() {
                    io::ErrorKind::PermissionDenied => "the system denies permission",
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full",
                    io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only",
                    io::ErrorKind::CrossesDevices => "it lies on another disk",
                    _ => "the log says more",
                };
                format!("{self}: {why}")
            }
            _ => self.to_string(),
        }
    }
}

impl IntoCallToolResult for ToolError {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        match self.audience() {
            Audience::Client => return Err(ErrorData::invalid_params(self.to_string(), None)),
            Audience::Model => {}
            Audience::Operator => {
                tracing::error!(error = %openpact_runtime::chain(&self), "a tool call failed");
            }
        }
        Ok(CallToolResult::error(vec![ContentBlock::text(self.for_model())]).into())
    }
}

fn humane(time: Duration) -> String {
    if time.as_secs() > 0 { format!("{} s", time.as_secs()) } else { format!("{time:?}") }
}
