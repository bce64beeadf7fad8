//! Removing and moving.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::lock::Locked;
use super::update::split;
use super::{
    CONFINED, Kind, Last, Place, Workspace, WorkspaceError, WorkspacePath, error, place, stat_in,
};

impl Workspace {
    /// Removes a file, a link (never what it leads to), an empty folder, or
    /// with `recursive` a folder and all in it. Gives what was removed and how
    /// many things that were.
    pub fn remove(
        &self,
        path: &WorkspacePath,
        recursive: bool,
        stop: &CancellationToken,
    ) -> Result<(Place, usize), WorkspaceError> {
        let place = self.existing(path, Last::Keep)?.writable()?;
        let Some((parent, name)) = split(&place)? else { return Err(the_root()) };
        let locked = Locked::wait(self.folder(parent)?, parent, stop)?;
        let failed = |error| error::explain(error, "delete", &place.path);
        if place.kind != Kind::Folder {
            rustix::fs::unlinkat(locked.dir(), name, AtFlags::empty()).map_err(failed)?;
            return Ok((settled(&locked, place)?, 1));
        }
        let mut removed = 0;
        if recursive {
            self.refuse_control_inside(&place, stop)?;
            let inside = open_in(locked.dir(), name).map_err(failed)?;
            removed = empty(&inside, &place.path, stop)?;
        }
        match rustix::fs::unlinkat(locked.dir(), name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok((settled(&locked, place)?, removed + 1)),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                Err(WorkspaceError::NotEmpty { path: place.path })
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Moves or renames. What is at `to` is replaced only with `overwrite`, and
    /// only a file by a file. Folders that are missing above `to` are made.
    pub fn rename(
        &self,
        from: &WorkspacePath,
        to: &WorkspacePath,
        overwrite: bool,
        stop: &CancellationToken,
    ) -> Result<(Place, Place), WorkspaceError> {
        let from = self.existing(from, Last::Keep)?.writable()?;
        let mut to = self.locate(to, Last::Keep)?.writable()?;
        let Some((from_parent, from_name)) = split(&from)? else { return Err(the_root()) };
        if to.kind == Kind::Folder && from.kind != Kind::Folder {
            // As `mv` does: into the folder.
            to = self.inside(&to, from_name)?.writable()?;
        }
        let Some((to_parent, to_name)) = split(&to)? else {
            return Err(WorkspaceError::Exists { path: to.path });
        };
        self.make_folders(to_parent)?;
        let (from_dir, to_dir) = self.lock_both(from_parent, to_parent, stop)?;
        let to_dir = to_dir.as_ref().unwrap_or(&from_dir);
        let flags = if overwrite { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        let result =
            rustix::fs::renameat_with(from_dir.dir(), from_name, to_dir.dir(), to_name, flags);
        match result {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY) => {
                return Err(WorkspaceError::Exists { path: to.path });
            }
            Err(error) => return Err(error::explain(error, "move", &from.path)),
        }
        for dir in [from_dir.dir(), to_dir.dir()] {
            rustix::fs::fsync(dir).map_err(|error| error::explain(error, "move", &from.path))?;
        }
        Ok((from, to))
    }

    fn inside(&self, folder: &Place, name: &OsStr) -> Result<Place, WorkspaceError> {
        let path = folder.path.join(name);
        let dir = self.folder(&folder.path)?;
        let stat = stat_in(&dir, Path::new(name))
            .map_err(|error| error::explain(error, "look at", &path))?;
        let kind = stat.map_or(Kind::Missing, |stat| FileType::from_raw_mode(stat.st_mode).into());
        Ok(Place { path, kind })
    }

    /// Both folders, the second only if it's another one.
    ///
    /// In the order of their paths, so that two moves across each other don't
    /// wait for ever.
    fn lock_both(
        &self,
        from: &Path,
        to: &Path,
        stop: &CancellationToken,
    ) -> Result<(Locked, Option<Locked>), WorkspaceError> {
        let lock = |path: &Path| Locked::wait(self.folder(path)?, path, stop);
        if from == to {
            Ok((lock(from)?, None))
        } else if from < to {
            let first = lock(from)?;
            Ok((first, Some(lock(to)?)))
        } else {
            let first = lock(to)?;
            Ok((lock(from)?, Some(first)))
        }
    }

    /// A repository isn't deleted along with the folder it's in.
    fn refuse_control_inside(
        &self,
        place: &Place,
        stop: &CancellationToken,
    ) -> Result<(), WorkspaceError> {
        let from = WorkspacePath::parse(&place.path.to_string_lossy())?;
        let mut inside = None;
        self.walk(&from, stop, |found| match place::control_folder(&found.path) {
            Some(folder) => {
                inside = Some((found.path.clone(), folder));
                std::ops::ControlFlow::Break(())
            }
            None => std::ops::ControlFlow::Continue(super::Step::Into),
        })?;
        match inside {
            Some((path, folder)) => Err(WorkspaceError::Protected { path, folder }),
            None => Ok(()),
        }
    }
}

/// `place`, once the disk knows that it's gone.
fn settled(folder: &Locked, place: Place) -> Result<Place, WorkspaceError> {
    rustix::fs::fsync(folder.dir())
        .map_err(|error| error::explain(error, "delete", &place.path))?;
    Ok(place)
}

/// Removes what is in the open folder, at `path`; links as links. Doesn't
/// recurse on the stack: a folder can be deeper than that is.
fn empty(dir: &OwnedFd, path: &Path, stop: &CancellationToken) -> Result<usize, WorkspaceError> {
    let failed = |error| error::explain(error, "delete from", path);
    let mut removed = 0;
    let mut open = vec![(rustix::io::dup(dir).map_err(failed)?, PathBuf::new())];
    while let Some((here, name)) = open.pop() {
        if stop.is_cancelled() {
            return Err(WorkspaceError::Stopped);
        }
        let mut deeper = None;
        let before = removed;
        for entry in Dir::read_from(&here).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let inside = OsStr::from_bytes(entry.file_name().to_bytes());
            if matches!(inside.as_bytes(), b"." | b"..") {
                continue;
            }
            match rustix::fs::unlinkat(&here, inside, AtFlags::empty()) {
                Ok(()) => removed += 1,
                Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    deeper = Some(PathBuf::from(inside));
                    break;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        if let Some(inside) = deeper {
            let next = open_in(&here, inside.as_os_str()).map_err(failed)?;
            open.push((here, name));
            open.push((next, inside));
        } else if removed > before {
            // Some file systems skip entries while others are being removed.
            open.push((here, name));
        } else if let Some((parent, _)) = open.last() {
            rustix::fs::unlinkat(parent, &name, AtFlags::REMOVEDIR).map_err(failed)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn open_in(dir: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat2(dir, name, flags, Mode::empty(), CONFINED)
}

fn the_root() -> WorkspaceError {
    WorkspaceError::Protected { path: PathBuf::from("."), folder: "the workspace's root".into() }
}
