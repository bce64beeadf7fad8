//! The folder that file tools see, and the walls around it.
//!
//! Nothing else in this crate opens a file on the assistant's behalf. The root
//! is a file descriptor; every open goes through `openat2` with
//! `RESOLVE_BENEATH`, so it's the kernel that keeps a path inside, whatever is
//! renamed or linked meanwhile. Read `path` for what a path may look like,
//! `place` for how it becomes a place on disk, `update` for how a file is
//! changed without losing anybody's write.
//!
//! Symbolic links are followed while they stay beneath the root, and never
//! entered by recursive walks. Control folders (`.git`, `.obsidian`) can be
//! read, not written.

mod digest;
mod error;
mod lock;
mod path;
mod place;
mod remove;
mod spelling;
mod update;
mod walk;
mod window;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

pub use digest::{Digest, ExpectedDigest};
pub use error::WorkspaceError;
pub use path::{PathError, WorkspacePath};
pub use place::{Kind, Last, Place};
pub use update::{Current, Written};
pub use walk::{Found, Step};
pub(crate) use window::describe;
pub use window::{Span, Window};

/// The largest file that is held in memory to be written, edited or searched.
pub const LARGEST_FILE: u64 = 10 * 1024 * 1024;

/// What every path resolution of ours asks of the kernel.
const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// The folder that file tools see.
#[derive(Debug)]
pub struct Workspace {
    root: OwnedFd,
    /// The root as it was named and as it's really called: what absolute paths
    /// may begin with.
    names: [PathBuf; 2],
}

impl Workspace {
    /// Opens the folder `root`, which may itself be reached through a link.
    pub fn open(root: &Path) -> Result<Self, WorkspaceError> {
        let failed =
            |source| WorkspaceError::Io { doing: "open the folder", path: root.to_owned(), source };
        let named = std::path::absolute(root).map_err(failed)?;
        let real = std::fs::canonicalize(root).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd =
            rustix::fs::open(&real, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let workspace = Self { root: fd, names: [named, real] };
        workspace.folder(Path::new("")).map_err(|error| match error {
            WorkspaceError::Io { source, .. } if source.kind() == io::ErrorKind::Unsupported => {
                WorkspaceError::NoOpenat2
            }
            other => other,
        })?;
        Ok(workspace)
    }

    /// Opens a folder by its place, without following any link.
    fn folder(&self, path: &Path) -> Result<OwnedFd, WorkspaceError> {
        self.openat2(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
            .map_err(|error| error::explain(error, "open the folder", path))
    }

    /// Opens a regular file to read it; never waits for a pipe's other end.
    fn file(&self, path: &Path) -> Result<(File, Stat), WorkspaceError> {
        let failed = |error| error::explain(error, "open", path);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let fd = self.openat2(path, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&fd).map_err(failed)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((File::from(fd), stat)),
            other => Err(WorkspaceError::NotAFile {
                path: path.to_owned(),
                is: place::Kind::from(other).in_words(),
            }),
        }
    }

    /// A whole file, unless it's larger than [`LARGEST_FILE`].
    fn whole(&self, path: &Path) -> Result<Vec<u8>, WorkspaceError> {
        let (file, stat) = self.file(path)?;
        read_whole(file, &stat, path)
    }

    fn openat2(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        // The kernel answers EAGAIN when a rename elsewhere might have moved
        // the path while it looked.
        let mut again = 0;
        loop {
            match rustix::fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, mode, CONFINED) {
                Err(Errno::AGAIN | Errno::INTR) if again < 32 => again += 1,
                other => return other,
            }
        }
    }
}

fn read_whole(file: File, stat: &Stat, path: &Path) -> Result<Vec<u8>, WorkspaceError> {
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let too_large =
        || WorkspaceError::TooLarge { path: path.to_owned(), bytes: size, limit: LARGEST_FILE };
    if size > LARGEST_FILE {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
    file.take(LARGEST_FILE + 1).read_to_end(&mut content).map_err(|source| WorkspaceError::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    })?;
    // It may have grown since it was measured.
    if content.len() as u64 > LARGEST_FILE { Err(too_large()) } else { Ok(content) }
}

/// What is at `name` in the open folder `dir`, a link being a link.
fn stat_in(dir: &OwnedFd, name: &Path) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
