//! Settings from `config.yaml` and the environment.
//!
//! [`Settings::load`] reads the file into a tree in which every value knows its
//! line ([`tree`]), lays the environment's `OPENPACT_<SECTION>_<KEY>` over it
//! ([`environment`]), and [`Settings::section`] fills in `${VAR}` and `file:`
//! ([`reference`]) before it makes a typed struct of it ([`typed`]). Whatever is
//! wrong is told with its place and the way out ([`SettingsError`]).

pub mod bytes;
pub mod duration;
mod environment;
mod error;
mod reference;
pub mod secret;
mod tree;
mod typed;

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

pub use error::SettingsError;

use environment::Environment;
use tree::{Kind, Node, Origin};

/// The sections of `config.yaml`, each read by one process.
pub const SECTIONS: [&str; 3] = ["engine", "orchestrator", "mcp"];

/// The longest configuration file that is read: 1 MiB.
const LONGEST_FILE: u64 = 1024 * 1024;

/// The configuration file with the environment's changes applied.
///
/// Nothing it holds is printed by `Debug`, and a section's references to
/// secrets are followed only when that section is asked for: a process never
/// holds what belongs to another.
pub struct Settings {
    file: PathBuf,
    environment: Environment,
    root: Node,
}

impl Settings {
    /// Reads `file` and the process's environment; a file that doesn't exist is
    /// an empty one.
    ///
    /// Sections that no process has are refused here, keys in
    /// [`Settings::section`].
    pub fn load(file: &Path) -> Result<Self, SettingsError> {
        Self::load_with(file, std::env::vars_os())
    }

    /// [`Settings::load`] with another environment.
    pub fn load_with<K, V>(
        file: &Path,
        environment: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, SettingsError>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let environment = Environment::new(environment)?;
        let mut root = match read_file(file)? {
            Some(text) => tree::parse(&text).map_err(|error| error.in_file(file))?,
            None => Node::empty(),
        };
        if root.is_null() {
            root = Node::empty();
        }
        check_sections(&root).map_err(|error| error.in_file(file))?;
        environment.override_in(&mut root).map_err(|error| error.in_file(file))?;
        Ok(Self { file: file.to_owned(), environment, root })
    }

    /// The settings of one process: the section `name`, or its defaults.
    ///
    /// `T` says `#[serde(default, deny_unknown_fields)]`, so that what isn't
    /// written keeps its default and what isn't known is an error.
    pub fn section<T: DeserializeOwned + Default>(
        &self,
        name: &'static str,
    ) -> Result<T, SettingsError> {
        debug_assert!(SECTIONS.contains(&name), "`{name}` is missing in SECTIONS");
        match self.root.get(name).filter(|section| !section.is_null()) {
            Some(section) => self.read(section).map_err(|error| error.within(name)),
            None => Ok(T::default()),
        }
        .map_err(|error| error.in_file(&self.file))
    }

    /// One value of a section that is another process's, if it's written.
    pub fn value<T: DeserializeOwned>(
        &self,
        section: &'static str,
        key: &'static str,
    ) -> Result<Option<T>, SettingsError> {
        let node = self.root.get(section).and_then(|section| section.get(key));
        node.map(|node| self.read(node))
            .transpose()
            .map_err(|error| error.within(key).within(section).in_file(&self.file))
    }

    /// The value of `node`, with what it refers to.
    fn read<T: DeserializeOwned>(&self, node: &Node) -> Result<T, SettingsError> {
        let folder = self.file.parent().unwrap_or_else(|| Path::new("."));
        let node = reference::follow(node, &self.environment, folder)?;
        typed::read(&node)
    }

    /// Every value that is written somewhere, in the file's order: its path
    /// (`engine.model`), the value as it's written, and where that is.
    ///
    /// References are not followed and what looks like a secret is masked, so
    /// that all of it may be shown.
    pub fn written(&self) -> Vec<(String, String, String)> {
        let mut found = Vec::new();
        self.root.visit(&mut String::new(), &mut |path, node| {
            let place = match &node.origin {
                Origin::Line(line) => format!("{}:{line}", self.file.display()),
                Origin::Variable(name) => format!("environment variable {name}"),
            };
            found.push((path.to_owned(), node.shown(path), place));
        });
        found
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("file", &self.file).finish_non_exhaustive()
    }
}

/// The text of the file; `None` if there is no such file.
fn read_file(path: &Path) -> Result<Option<zeroize::Zeroizing<String>>, SettingsError> {
    match read_text(path, LONGEST_FILE) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => {
            Err(SettingsError::new("could not read the settings").caused_by(source).in_file(path))
        }
    }
}

/// Reads a regular file of at most `longest` bytes of UTF-8.
fn read_text(path: &Path, longest: u64) -> io::Result<zeroize::Zeroizing<String>> {
    // Asked before it's opened: opening a named pipe would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = zeroize::Zeroizing::new(Vec::new());
    File::open(path)?.take(longest + 1).read_to_end(&mut text)?;
    if text.len() as u64 > longest {
        return Err(io::Error::other(format!("it is longer than {longest} bytes")));
    }
    match std::str::from_utf8(&text) {
        Ok(text) => Ok(zeroize::Zeroizing::new(text.trim_start_matches('\u{feff}').to_owned())),
        Err(error) => {
            let line = 1 + text[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
            Err(io::Error::other(format!("line {line} is not UTF-8: save the file as UTF-8")))
        }
    }
}

fn check_sections(root: &Node) -> Result<(), SettingsError> {
    let Kind::Map(sections) = &root.kind else {
        return Err(SettingsError::new(format!(
            "expected sections such as `engine:` with keys below, found {}",
            root.found()
        ))
        .at(&root.origin));
    };
    for (name, section) in sections {
        if !SECTIONS.contains(&name.text.as_str()) {
            return Err(SettingsError::unknown("section", &name.text, &SECTIONS).at(&name.origin));
        }
        if !matches!(section.kind, Kind::Map(_)) && !section.is_null() {
            return Err(SettingsError::new(format!(
                "expected keys and values, found {}",
                section.found()
            ))
            .at(&section.origin)
            .within(&name.text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
