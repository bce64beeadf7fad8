//! Why a file can't be had.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{Digest, PathError};

/// Why something in the workspace can't be read or changed.
///
/// All but [`WorkspaceError::Io`], [`WorkspaceError::NoOpenat2`] and
/// [`WorkspaceError::Stopped`] are for whoever named the path to mend.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path itself is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It leads out of the workspace.
    #[error(
        "`{path}` is outside the workspace: only what is in the workspace can be reached, \
             by a path relative to its root, such as `notes/today.md`"
    )]
    Outside {
        /// The path as it was asked for.
        path: String,
    },
    /// It leads through a link that can't be followed.
    #[error("`{}` is a symbolic link that leads {leads}", path.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// `out of the workspace`, `nowhere`, `to itself`
        leads: &'static str,
    },
    /// There's nothing there.
    #[error("there is no file or folder `{}`{}", path.display(), perhaps(close))]
    Missing {
        /// What was looked for.
        path: PathBuf,
        /// Names beside it that look much like it.
        close: Vec<String>,
    },
    /// Several names look the same as the one that was asked for.
    #[error("`{}` could be any of {}: these names differ only in how their characters are \
             encoded; rename one of them", path.display(), list(names))]
    Ambiguous {
        /// What was looked for.
        path: PathBuf,
        /// The names, with what can't be seen written out.
        names: Vec<String>,
    },
    /// It's no regular file.
    #[error("`{}` is {is}, not a regular file", path.display())]
    NotAFile {
        /// What was asked for.
        path: PathBuf,
        /// `a folder`, `a device`
        is: &'static str,
    },
    /// It's no folder.
    #[error("`{}` is not a folder", path.display())]
    NotAFolder {
        /// What was asked for.
        path: PathBuf,
    },
    /// It belongs to another program.
    #[error("`{}` is in `{folder}`, a control folder that tools may read but not change",
            path.display())]
    Protected {
        /// What was asked for.
        path: PathBuf,
        /// `.git`
        folder: String,
    },
    /// Something is there already.
    #[error("`{}` exists already", path.display())]
    Exists {
        /// What was to be made.
        path: PathBuf,
    },
    /// The folder isn't empty.
    #[error("the folder `{}` is not empty: delete it with `recursive`", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// It's not as it was when it was read.
    #[error("`{}` has changed since it was read: {}; read it again", path.display(), match now {
        Some(now) => format!("its digest is now {now}"),
        None => "it is gone".into(),
    })]
    Changed {
        /// The file.
        path: PathBuf,
        /// What it is now, if it's still there.
        now: Option<Digest>,
    },
    /// It's not text.
    #[error("`{}` is not UTF-8 text ({why}): it was left as it is", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        why: &'static str,
    },
    /// It's larger than what is handled in one piece.
    #[error("`{}` has {bytes} bytes, more than the {limit} that can be handled in one piece",
            path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// It changed under our hands, again and again.
    #[error("`{}` is being changed by others at this moment: try again", path.display())]
    Unsteady {
        /// What was asked for.
        path: PathBuf,
    },
    /// The caller no longer wants it.
    #[error("the call was cancelled")]
    Stopped,
    /// The kernel is too old or forbids the call.
    #[error(
        "this system has no `openat2` (Linux 5.6 or newer; a container's seccomp profile may \
             forbid it), without which files can't be confined"
    )]
    NoOpenat2,
    /// The system said no.
    #[error("could not {doing} `{}`", path.display())]
    Io {
        /// `open`, `write`
        doing: &'static str,
        /// What it was about.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What an `Errno` of a confined open means.
pub(super) fn explain(error: Errno, doing: &'static str, path: &Path) -> WorkspaceError {
    let path = path.to_owned();
    match error {
        Errno::NOENT => WorkspaceError::Missing { path, close: Vec::new() },
        Errno::NOTDIR => WorkspaceError::NotAFolder { path },
        // The place had no link in it when it was found.
        Errno::LOOP | Errno::AGAIN | Errno::XDEV => WorkspaceError::Unsteady { path },
        Errno::NOSYS => {
            WorkspaceError::Io { doing, path, source: io::ErrorKind::Unsupported.into() }
        }
        error => WorkspaceError::Io { doing, path, source: error.into() },
    }
}

fn perhaps(close: &[String]) -> String {
    if close.is_empty() { String::new() } else { format!("; close to it: {}", list(close)) }
}

fn list(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
