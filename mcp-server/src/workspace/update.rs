//! Changing a file so that nobody's write is lost and no crash leaves half of one.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::lock::Locked;
use super::{
    CONFINED, Digest, Kind, Last, Place, Workspace, WorkspaceError, WorkspacePath, error, place,
    stat_in,
};

/// Our half-written files begin like this. They show up in no list, and no
/// tool may name one.
pub(super) const TEMPORARY: &str = ".openpact-tmp-";

/// Bytes written between two looks at whether the caller still wants it.
const CHUNK: usize = 1024 * 1024;
/// How often a place that changes under our hands is looked for again.
const TRIES: usize = 4;

/// The file that is about to be changed, held so that nobody else changes it.
#[derive(Debug)]
pub struct Current<'a> {
    workspace: &'a Workspace,
    /// Where it is.
    pub path: &'a Path,
    /// Whether there is a file already.
    pub exists: bool,
}

/// What a change came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file, as it's spelled on disk.
    pub path: PathBuf,
    /// Its digest now.
    pub digest: Digest,
    /// Its size now, in bytes.
    pub bytes: usize,
    /// Whether it was made by this.
    pub created: bool,
}

impl Current<'_> {
    /// Its bytes.
    pub fn read(&self) -> Result<Vec<u8>, WorkspaceError> {
        self.workspace.whole(self.path)
    }
}

impl Workspace {
    /// Replaces the file at `path` by what `change` makes of it.
    ///
    /// From before `change` reads to after the new content has its name, no
    /// other writer of ours, in this process or another, gets at the folder.
    /// The file is the old one or the new one at any time, its permissions and
    /// owner stay, and a link to it stays a link. Missing folders are made.
    pub fn update<E: From<WorkspaceError>>(
        &self,
        path: &WorkspacePath,
        stop: &CancellationToken,
        change: impl FnOnce(&Current<'_>) -> Result<Vec<u8>, E>,
    ) -> Result<Written, E> {
        for _ in 0..TRIES {
            let place = self.locate(path, Last::Follow)?.writable()?;
            let Some((parent, name)) = split(&place)? else {
                return Err(not_a_file(place.path, Kind::Folder).into());
            };
            self.make_folders(parent)?;
            let locked = Locked::wait(self.folder(parent)?, parent, stop)?;
            // Now that we hold the folder: is it still what was found?
            let before = stat_in(locked.dir(), Path::new(name))
                .map_err(|error| error::explain(error, "look at", &place.path))?;
            let kind = before.as_ref().map_or(Kind::Missing, kind_of);
            match kind {
                Kind::File | Kind::Missing => {}
                Kind::Link => continue,
                other => return Err(not_a_file(place.path, other).into()),
            }
            let current =
                Current { workspace: self, path: &place.path, exists: kind == Kind::File };
            let content = change(&current)?;
            replace(&locked, name, &content, before.as_ref(), stop, &place.path)?;
            return Ok(Written {
                digest: Digest::of(&content),
                bytes: content.len(),
                created: kind == Kind::Missing,
                path: place.path,
            });
        }
        Err(WorkspaceError::Unsteady { path: path.as_path().to_owned() }.into())
    }

    /// Makes the folder `path` and those above it where they're missing.
    pub(super) fn make_folders(&self, path: &Path) -> Result<(), WorkspaceError> {
        let mut here = PathBuf::new();
        for name in path {
            let dir = self.folder(&here)?;
            here.push(name);
            match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error::explain(error, "make the folder", &here)),
            }
        }
        Ok(())
    }
}

/// The folder and the name of a place that may be written; `None` for the root.
pub(super) fn split(place: &Place) -> Result<Option<(&Path, &OsStr)>, WorkspaceError> {
    let (Some(parent), Some(name)) = (place.path.parent(), place.path.file_name()) else {
        return Ok(None);
    };
    let text = name.to_string_lossy();
    // A line break in a name would let a file pass for several in a list.
    if text.starts_with(TEMPORARY)
        || (place.kind == Kind::Missing && text.chars().any(char::is_control))
    {
        return Err(WorkspaceError::Protected {
            path: place.path.clone(),
            folder: text.escape_default().to_string(),
        });
    }
    Ok(Some((parent, name)))
}

fn kind_of(stat: &Stat) -> Kind {
    FileType::from_raw_mode(stat.st_mode).into()
}

fn not_a_file(path: PathBuf, kind: place::Kind) -> WorkspaceError {
    WorkspaceError::NotAFile { path, is: kind.in_words() }
}

/// Writes `content` under another name, then gives it the name `name`.
fn replace(
    folder: &Locked,
    name: &OsStr,
    content: &[u8],
    before: Option<&Stat>,
    stop: &CancellationToken,
    path: &Path,
) -> Result<(), WorkspaceError> {
    let dir = folder.dir();
    let temporary = temporary_for(name);
    let failed = |source| WorkspaceError::Io { doing: "write", path: path.to_owned(), source };
    let written = write_beside(dir, &temporary, content, before, stop, path).and_then(|()| {
        // Who makes a file must not replace one that appeared meanwhile.
        let flags = if before.is_some() { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(dir, &temporary, dir, name, flags) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(WorkspaceError::Exists { path: path.to_owned() }),
            Err(error) => Err(failed(error.into())),
        }
    });
    if written.is_err() {
        match rustix::fs::unlinkat(dir, &temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => tracing::warn!(%error, "a temporary file stays behind"),
        }
    }
    written?;
    rustix::fs::fsync(dir).map_err(|error| failed(error.into()))
}

fn write_beside(
    dir: &OwnedFd,
    temporary: &OsString,
    content: &[u8],
    before: Option<&Stat>,
    stop: &CancellationToken,
    path: &Path,
) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::Io { doing: "write", path: path.to_owned(), source };
    // We hold the folder: one that is there was left by a writer that was killed.
    match rustix::fs::unlinkat(dir, temporary, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(failed(error.into())),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = rustix::fs::openat2(dir, temporary, flags, mode, CONFINED)
        .map_err(|error| failed(error.into()))?;
    let mut file = File::from(file);
    if let Some(before) = before {
        keep_owner_and_mode(&file, before).map_err(failed)?;
    }
    for chunk in content.chunks(CHUNK) {
        if stop.is_cancelled() {
            return Err(WorkspaceError::Stopped);
        }
        file.write_all(chunk).map_err(failed)?;
    }
    file.sync_all().map_err(failed)
}

fn keep_owner_and_mode(file: &File, before: &Stat) -> io::Result<()> {
    let owner = (Some(Uid::from_raw(before.st_uid)), Some(Gid::from_raw(before.st_gid)));
    match rustix::fs::fchown(file.as_fd(), owner.0, owner.1) {
        // Only root can give files away; then the file becomes the writer's.
        Ok(()) | Err(Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    // After the owner, since a change of owner clears bits of the mode.
    let mode = Mode::from_raw_mode(before.st_mode & 0o7777);
    rustix::fs::fchmod(file.as_fd(), mode).map_err(Into::into)
}

/// The same for the same file each time, so that what a killed writer leaves
/// is found by the next one.
fn temporary_for(name: &OsStr) -> OsString {
    format!("{TEMPORARY}{}", Digest::of(name.as_encoded_bytes())).into()
}
