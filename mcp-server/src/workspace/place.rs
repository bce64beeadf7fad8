//! From a path that was asked for to a place on disk.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::spelling::{self, Alike};
use super::{Workspace, WorkspaceError, WorkspacePath, error};

/// Links that are followed on the way to one place.
const MOST_LINKS: usize = 16;

/// Folders of other programs, which no tool may change.
const CONTROL: [&str; 2] = [".git", ".obsidian"];

/// A place beneath the root, and what was there when it was found.
///
/// Its path is the real one: no link is on the way to it, names are spelled as
/// they are on disk. Whoever opens it asks the kernel for that very path,
/// links forbidden, so what was swapped in between is noticed, not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Relative to the root; empty for the root itself.
    pub path: PathBuf,
    /// What is there.
    pub kind: Kind,
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link that wasn't followed.
    Link,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device.
    Device,
    /// Nothing; its folder may be missing as well.
    Missing,
}

/// What to do with a link at the path's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Last {
    /// Go where it leads.
    Follow,
    /// Take the link itself.
    Keep,
}

impl Kind {
    /// As an error or a list says it.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link",
            Self::Pipe => "a named pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
            Self::Missing => "not there",
        }
    }
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Pipe,
            FileType::Socket => Self::Socket,
            _ => Self::Device,
        }
    }
}

impl Place {
    /// Says so if this belongs to a control folder.
    pub(super) fn writable(self) -> Result<Self, WorkspaceError> {
        match control_folder(&self.path) {
            Some(folder) => Err(WorkspaceError::Protected { path: self.path, folder }),
            None => Ok(self),
        }
    }
}

/// The control folder that `path` is or lies in. Case doesn't matter, since it
/// doesn't to the file systems of other machines that share the folder.
pub(super) fn control_folder(path: &Path) -> Option<String> {
    path.iter().filter_map(OsStr::to_str).find(|name| is_control(name)).map(str::to_owned)
}

pub(super) fn is_control(name: &str) -> bool {
    CONTROL.iter().any(|control| name.eq_ignore_ascii_case(control))
}

impl Workspace {
    /// Finds the place that `path` means.
    ///
    /// A name that isn't there is looked for by its looks: see `spelling`.
    pub fn locate(&self, path: &WorkspacePath, last: Last) -> Result<Place, WorkspaceError> {
        let relative = self.relative(path.as_path())?;
        // Mostly there are no links and every name is right: one call tells.
        match self.probe(&relative) {
            Ok((_, kind)) if kind != Kind::Link || last == Last::Keep => {
                return Ok(Place { path: relative, kind });
            }
            Ok(_) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
            Err(error) => return Err(error::explain(error, "find", &relative)),
        }
        self.walk_to(&relative, last)
    }

    /// `path` without the root's name before it.
    fn relative(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        if path.is_relative() {
            return Ok(path.to_owned());
        }
        self.names
            .iter()
            .find_map(|name| path.strip_prefix(name).ok())
            .map(Path::to_owned)
            .ok_or_else(|| WorkspaceError::Outside { path: path.display().to_string() })
    }

    fn probe(&self, path: &Path) -> Result<(OwnedFd, Kind), Errno> {
        let fd = self.openat2(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        Ok((fd, FileType::from_raw_mode(stat.st_mode).into()))
    }

    fn walk_to(&self, asked: &Path, last: Last) -> Result<Place, WorkspaceError> {
        let mut rest: VecDeque<OsString> = asked.iter().map(OsStr::to_owned).collect();
        let mut here = PathBuf::new();
        let mut links = 0;
        // The link that the path ends with, once it was followed.
        let mut end = None;
        while let Some(name) = rest.pop_front() {
            let next = here.join(&name);
            match self.probe(&next) {
                Ok((link, Kind::Link)) if !rest.is_empty() || last == Last::Follow => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(WorkspaceError::Link { path: next, leads: "to itself" });
                    }
                    if rest.is_empty() {
                        end = Some(next.clone());
                    }
                    here = self.follow(&link, &next, here, &mut rest)?;
                }
                Ok((_, kind)) if rest.is_empty() => return Ok(Place { path: next, kind }),
                Ok((_, Kind::Folder)) => here = next,
                Ok(_) => return Err(WorkspaceError::NotAFolder { path: next }),
                Err(Errno::NOENT) => {
                    if let Some(real) = self.looks_like(&here, &name)? {
                        rest.push_front(real);
                    } else if let Some(path) = end {
                        return Err(WorkspaceError::Link { path, leads: "nowhere" });
                    } else {
                        let path = rest.into_iter().fold(next, |path, name| path.join(name));
                        return Ok(Place { path, kind: Kind::Missing });
                    }
                }
                Err(error) => return Err(error::explain(error, "find", &next)),
            }
        }
        Ok(Place { path: here, kind: Kind::Folder })
    }

    /// Where the walk goes on after the link at `at`: puts the link's names in
    /// front of `rest`, gives the folder they count from.
    fn follow(
        &self,
        link: &OwnedFd,
        at: &Path,
        mut here: PathBuf,
        rest: &mut VecDeque<OsString>,
    ) -> Result<PathBuf, WorkspaceError> {
        let out = || WorkspaceError::Link { path: at.to_owned(), leads: "out of the workspace" };
        let target = rustix::fs::readlinkat(link, "", Vec::new())
            .map_err(|error| error::explain(error, "follow", at))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        let target = if target.is_absolute() {
            here = PathBuf::new();
            self.relative(&target).map_err(|_outside| out())?
        } else {
            target
        };
        let mut names = Vec::new();
        for part in target.components() {
            match part {
                Component::CurDir => {}
                Component::Normal(name) => names.push(name.to_owned()),
                // Names before a `..` would have to be resolved first, since
                // they may be links; no sane link is written like that.
                Component::ParentDir if names.is_empty() => {
                    if !here.pop() {
                        return Err(out());
                    }
                }
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(out());
                }
            }
        }
        for name in names.into_iter().rev() {
            rest.push_front(name);
        }
        Ok(here)
    }

    /// The one name in the folder `here` that looks like `name`.
    fn looks_like(&self, here: &Path, name: &OsStr) -> Result<Option<OsString>, WorkspaceError> {
        // A plain name has no other spelling; new files mostly have plain names.
        if name.is_ascii() && !name.as_encoded_bytes().contains(&b' ') {
            return Ok(None);
        }
        let dir = self.folder(here)?;
        let found = spelling::alike(&dir, name)
            .map_err(|error| error::explain(error, "look through", here))?;
        match found {
            Alike::One(real) => Ok(Some(real)),
            Alike::Several(names) => {
                Err(WorkspaceError::Ambiguous { path: here.join(name), names })
            }
            Alike::None(_) => Ok(None),
        }
    }

    /// A place where something is.
    pub(super) fn existing(
        &self,
        path: &WorkspacePath,
        last: Last,
    ) -> Result<Place, WorkspaceError> {
        let place = self.locate(path, last)?;
        if place.kind == Kind::Missing { Err(self.missing(place.path)) } else { Ok(place) }
    }

    /// A place where a regular file is. What is none isn't even opened: opening a
    /// device can do something.
    pub(super) fn existing_file(&self, path: &WorkspacePath) -> Result<Place, WorkspaceError> {
        let place = self.existing(path, Last::Follow)?;
        match place.kind {
            Kind::File => Ok(place),
            other => Err(WorkspaceError::NotAFile { path: place.path, is: other.in_words() }),
        }
    }

    /// The error for a place where nothing is, with names that come close.
    pub(super) fn missing(&self, path: PathBuf) -> WorkspaceError {
        let close = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => {
                self.folder(parent).ok().and_then(|dir| spelling::alike(&dir, name).ok()).map(
                    |alike| match alike {
                        Alike::None(close) | Alike::Several(close) => close,
                        Alike::One(name) => vec![name.to_string_lossy().into_owned()],
                    },
                )
            }
            _ => None,
        };
        WorkspaceError::Missing { path, close: close.unwrap_or_default() }
    }
}
