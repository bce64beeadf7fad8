//! One `up` a workspace.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use openpact_runtime::layout::Layout;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Held for as long as `up` runs; the kernel takes it back however that ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Why `up` may not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    /// Another one runs.
    #[error(
        "OpenPact already runs in this workspace{}: talk to it with `openpact chat`, or stop it first",
        process.map(|id| format!(" (process {id})")).unwrap_or_default()
    )]
    Taken {
        /// Its process, if it told.
        process: Option<u32>,
    },
    /// The file can't be used.
    #[error("could not lock `{}`", path.display())]
    File {
        /// The lock file.
        path: PathBuf,
        #[source]
        /// What the system said.
        source: io::Error,
    },
}

/// Where the lock of a workspace is.
fn path(layout: &Layout) -> PathBuf {
    layout.run().join("up.lock")
}

/// Whether an `up` seems to be running in a workspace. Doesn't touch the lock,
/// so that nobody who takes it is in the way of another.
pub(crate) fn is_held(layout: &Layout) -> bool {
    let holder = std::fs::read_to_string(path(layout)).ok();
    let holder = holder.and_then(|id| id.trim().parse().ok()).and_then(Pid::from_raw);
    holder.is_some_and(|process| match test_kill_process(process) {
        Ok(()) | Err(Errno::PERM) => true,
        Err(_) => false,
    })
}

impl Lock {
    /// Takes the lock of a workspace.
    pub(super) fn take(layout: &Layout) -> Result<Self, LockError> {
        let path = path(layout);
        let failed = |source: io::Error| LockError::File { path: path.clone(), source };
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let read = file.read_to_string(&mut holder);
                let process = read.ok().and_then(|_| holder.trim().parse().ok());
                return Err(LockError::Taken { process });
            }
            Err(error) => return Err(failed(error.into())),
        }
        file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_learns_who_was_first_until_that_one_ends() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path()).unwrap();
        layout.create().unwrap();
        assert!(!is_held(&layout));
        let first = Lock::take(&layout).unwrap();
        let text = Lock::take(&layout).unwrap_err().to_string();
        assert!(text.contains(&format!("(process {})", std::process::id())), "{text}");
        assert!(is_held(&layout));
        drop(first);
        Lock::take(&layout).unwrap();
    }
}
