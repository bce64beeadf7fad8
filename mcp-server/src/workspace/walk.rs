//! Going through folders, never through links.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType};
use tokio_util::sync::CancellationToken;

use super::update::TEMPORARY;
use super::{Kind, Last, Place, Workspace, WorkspaceError, WorkspacePath, error, place, stat_in};

/// Entries of one folder that are looked at.
const MOST_ENTRIES: usize = 100_000;

/// Something that a walk came upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Relative to the root.
    pub path: PathBuf,
    /// What it is; a link is a link.
    pub kind: Kind,
    /// Size in bytes, for a file.
    pub bytes: u64,
    /// 1 for what is directly in the folder where the walk began.
    pub depth: usize,
}

/// Whether a walk goes into a folder that it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It does.
    Into,
    /// It goes on beside it.
    Past,
}

impl Workspace {
    /// Shows `visit` everything beneath the folder `from`, level by level, each
    /// folder's entries by name. `visit` says whether to enter a folder and
    /// when to stop.
    ///
    /// Links are shown, not followed, so a walk always ends. Control folders
    /// are shown, not entered.
    pub fn walk(
        &self,
        from: &WorkspacePath,
        stop: &CancellationToken,
        mut visit: impl FnMut(&Found) -> ControlFlow<(), Step>,
    ) -> Result<Place, WorkspaceError> {
        let start = self.existing(from, Last::Follow)?;
        if start.kind != Kind::Folder {
            return Err(WorkspaceError::NotAFolder { path: start.path });
        }
        let mut folders = VecDeque::from([(start.path.clone(), 1)]);
        while let Some((folder, depth)) = folders.pop_front() {
            if stop.is_cancelled() {
                return Err(WorkspaceError::Stopped);
            }
            let entries = match self.entries(&folder, depth) {
                // It was removed, replaced or is not ours to read: the walk goes on.
                Err(_) if depth > 1 => continue,
                entries => entries?,
            };
            for found in entries {
                match visit(&found) {
                    ControlFlow::Break(()) => return Ok(start),
                    ControlFlow::Continue(Step::Past) => {}
                    ControlFlow::Continue(Step::Into) => {
                        let name = found.path.file_name().and_then(OsStr::to_str);
                        if found.kind == Kind::Folder && !name.is_some_and(place::is_control) {
                            folders.push_back((found.path, depth + 1));
                        }
                    }
                }
            }
        }
        Ok(start)
    }

    /// What the folder holds, by name.
    fn entries(&self, folder: &Path, depth: usize) -> Result<Vec<Found>, WorkspaceError> {
        let failed = |error| error::explain(error, "list", folder);
        let dir = self.folder(folder)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&dir).map_err(failed)?.take(MOST_ENTRIES) {
            let entry = entry.map_err(failed)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if matches!(name.as_bytes(), b"." | b"..")
                || name.as_bytes().starts_with(TEMPORARY.as_bytes())
            {
                continue;
            }
            // Gone since: nothing to show.
            let Some(stat) = stat_in(&dir, Path::new(name)).map_err(failed)? else { continue };
            entries.push(Found {
                path: folder.join(name),
                kind: FileType::from_raw_mode(stat.st_mode).into(),
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                depth,
            });
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// The content of a file that a walk found.
    pub fn read_found(&self, found: &Found) -> Result<Vec<u8>, WorkspaceError> {
        self.whole(&found.path)
    }

    /// Where a link that a walk found leads, as it's written there.
    pub fn link_target(&self, found: &Found) -> Result<OsString, WorkspaceError> {
        let parent = self.folder(found.path.parent().unwrap_or(Path::new("")))?;
        let name = found.path.file_name().unwrap_or_default();
        rustix::fs::readlinkat(&parent, name, Vec::new())
            .map(|target| OsStr::from_bytes(target.as_bytes()).to_owned())
            .map_err(|error| error::explain(error, "read the link", &found.path))
    }
}
