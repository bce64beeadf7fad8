//! What is wrong with the settings, and where.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::tree::{Kind, Node, Origin};

/// What is wrong with the settings: the file and line or the environment
/// variable, what stands there, and what should.
///
/// A process that gets one ends with exit code 2.
#[derive(Debug)]
pub struct SettingsError(Box<Parts>);

/// Boxed, so that an `Ok` isn't as large as an error.
#[derive(Debug, Default)]
struct Parts {
    file: Option<PathBuf>,
    origin: Option<Origin>,
    /// Keys from the section down to the value, outermost first.
    path: Vec<String>,
    /// The name that nobody knows, and of what: `key`, `section`.
    unknown: Option<(&'static str, String)>,
    message: String,
    source: Option<io::Error>,
}

impl SettingsError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Parts { message: message.into(), ..Parts::default() }))
    }

    /// A name that nobody knows, and the known one that comes nearest.
    pub(super) fn unknown(what: &'static str, name: &str, known: &[&str]) -> Self {
        let mut error = Self::new(instead(name, known));
        error.0.unknown = Some((what, name.to_owned()));
        error
    }

    pub(super) fn caused_by(mut self, source: io::Error) -> Self {
        self.0.source = Some(source);
        self
    }

    /// Says where; what was said first, nearest to the problem, stays.
    pub(super) fn at(mut self, origin: &Origin) -> Self {
        self.0.origin.get_or_insert_with(|| origin.clone());
        self
    }

    /// Says below which key.
    pub(super) fn within(mut self, key: &str) -> Self {
        self.0.path.insert(0, key.to_owned());
        self
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.0.file.get_or_insert_with(|| file.to_owned());
        self
    }

    /// Adds what stands at `node`, unless that was said or isn't for showing.
    pub(super) fn found(mut self, node: &Node) -> Self {
        if self.0.origin.is_none()
            && self.0.unknown.is_none()
            && let Kind::Scalar(scalar) = &node.kind
        {
            let found = node.found();
            if scalar.hidden {
                self.0.message = self.0.message.replace(scalar.text.as_str(), "…");
            } else if !self.0.message.contains(&found) {
                self.0.message.push_str(&format!(", found {found}"));
            }
        }
        self.at(&node.origin)
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.origin, &self.0.file) {
            (Some(Origin::Variable(name)), _) => write!(f, "environment variable `{name}`: ")?,
            (Some(Origin::Line(line)), Some(file)) => write!(f, "{}:{line}: ", file.display())?,
            (None, Some(file)) => write!(f, "{}: ", file.display())?,
            (Some(Origin::Line(_)) | None, None) => {}
        }
        let path = self.0.path.join(".");
        match &self.0.unknown {
            Some((what, name)) if path.is_empty() => write!(f, "unknown {what} `{name}`: ")?,
            Some((what, name)) => write!(f, "unknown {what} `{path}.{name}`: ")?,
            None if path.is_empty() => {}
            None => write!(f, "`{path}`: ")?,
        }
        f.write_str(&self.0.message)
    }
}

impl Error for SettingsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_ref().map(|source| source as &(dyn Error + 'static))
    }
}

/// "did you mean `model`?", or all there is to choose from.
pub(super) fn instead(name: &str, known: &[&str]) -> String {
    if let Some(near) = nearest(name, known) {
        return format!("did you mean `{near}`?");
    }
    if known.is_empty() {
        return "there is nothing to set here".to_owned();
    }
    let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
    format!("known are {}", known.join(", "))
}

/// The known name that somebody who wrote `name` most likely meant.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    let all = known.iter().map(|known| (strsim::osa_distance(&name, &plain(known)), *known));
    // A slip in every third letter is another word. Of two that are as near,
    // the one of the same length: letters are swapped more often than lost.
    all.filter(|(slips, known)| slips * 3 <= name.len().max(known.len()))
        .min_by_key(|(slips, known)| (*slips, known.len().abs_diff(name.len())))
        .map(|(_, known)| known)
}
