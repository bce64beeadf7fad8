//! One writer at a time in a folder, whichever process it's in.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::{WorkspaceError, error};

/// How long to wait before trying again, at first and at most.
const FIRST_WAIT: Duration = Duration::from_micros(500);
const LONGEST_WAIT: Duration = Duration::from_millis(16);

/// Holds an open folder for one writer. Dropping it lets the next one in.
///
/// The lock is on the folder itself, not on a file in it: nothing is left
/// behind, and it also covers files that don't exist yet. Only OpenPact's own
/// processes ask for it; others aren't kept out.
#[derive(Debug)]
pub(super) struct Locked(OwnedFd);

impl Locked {
    /// Waits for the folder `dir`, which is at `path`, until `stop` is cancelled.
    pub(super) fn wait(
        dir: OwnedFd,
        path: &Path,
        stop: &CancellationToken,
    ) -> Result<Self, WorkspaceError> {
        let mut wait = FIRST_WAIT;
        loop {
            // Asking again and again, since a wait in the kernel can't be cancelled.
            match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(dir)),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(error::explain(error, "lock the folder", path)),
            }
            if stop.is_cancelled() {
                return Err(WorkspaceError::Stopped);
            }
            thread::sleep(wait);
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    pub(super) fn dir(&self) -> &OwnedFd {
        &self.0
    }
}
