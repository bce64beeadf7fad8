//! Paths as they're asked for.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The longest name and path that Linux takes, in bytes.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4095;

/// A path as a caller gives it.
///
/// Holding one is the proof: it has no `..`, no NUL and no name that the
/// system can't take, because [`WorkspacePath::parse`] is the only way to make
/// one, from JSON as well. It's relative to the root, or absolute; whether an
/// absolute one lies beneath the root is for [`super::Workspace`] to tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkspacePath(PathBuf);

/// Why a text is no path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It holds a NUL character.
    #[error("a path can't hold a NUL character")]
    Nul,
    /// It tries to climb.
    #[error("`{0}` holds `..`: give the path from the workspace's root down")]
    Climbs(String),
    /// A name or the whole is too long.
    #[error("`{0}…` is too long: a name has at most 255 bytes, a path 4095")]
    TooLong(String),
}

impl WorkspacePath {
    /// Checks and tidies `text`: `./a//b/` is `a/b`, an empty text is the root.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.contains('\0') {
            return Err(PathError::Nul);
        }
        let too_long = || PathError::TooLong(text.chars().take(40).collect());
        if text.len() > LONGEST_PATH {
            return Err(too_long());
        }
        let mut path = PathBuf::from(if text.starts_with('/') { "/" } else { "" });
        for name in text.split('/').filter(|name| !matches!(*name, "" | ".")) {
            if name == ".." {
                return Err(PathError::Climbs(text.to_owned()));
            }
            if name.len() > LONGEST_NAME {
                return Err(too_long());
            }
            path.push(name);
        }
        Ok(Self(path))
    }

    /// The root itself.
    #[must_use]
    pub fn root() -> Self {
        Self(PathBuf::new())
    }

    /// The path as it was given, tidied.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<String> for WorkspacePath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<WorkspacePath> for String {
    fn from(path: WorkspacePath) -> Self {
        path.to_string()
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl JsonSchema for WorkspacePath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Path".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_are_tidied_or_refused() {
        let long = "x".repeat(256);
        let many = "a/".repeat(2100);
        #[rustfmt::skip]
        let cases: [(&str, Option<&str>); 14] = [
            // given            path
            ("notes.md",        Some("notes.md")),
            ("./a//b/",         Some("a/b")),
            ("",                Some("")),
            (".",               Some("")),
            ("/etc/passwd",     Some("/etc/passwd")),
            ("/",               Some("/")),
            ("a/...",           Some("a/...")),
            ("..a/b..",         Some("..a/b..")),
            ("..",              None),
            ("a/../b",          None),
            ("/a/..",           None),
            ("a\0b",            None),
            (&long,             None),
            (&many,             None),
        ];
        for (given, path) in cases {
            let parsed = WorkspacePath::parse(given).ok();
            assert_eq!(parsed.as_ref().and_then(|p| p.as_path().to_str()), path, "{given:?}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_path_never_climbs_and_parses_to_itself(text in "(/|\\.|a|é|\0|\\.\\.){0,12}") {
            if let Ok(path) = WorkspacePath::parse(&text) {
                let climbs = path.as_path().components()
                    .any(|part| part == std::path::Component::ParentDir);
                prop_assert!(!climbs);
                prop_assert_eq!(WorkspacePath::parse(&path.to_string()).unwrap(), path);
            }
        }
    }
}
