//! Which files are memory.

use std::fmt;
use std::path::Component;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::error::ToolError;
use crate::workspace::WorkspacePath;

const AT_THE_ROOT: [&str; 3] = ["SOUL.md", "USER.md", "MEMORY.md"];
const FOLDER: &str = "memory";

/// A memory file: `SOUL.md`, `USER.md`, `MEMORY.md` or `memory/<name>.md`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MemoryFile(WorkspacePath);

impl MemoryFile {
    /// Where it is in the workspace.
    #[must_use]
    pub fn path(&self) -> &WorkspacePath {
        &self.0
    }
}

impl TryFrom<String> for MemoryFile {
    type Error = ToolError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let not_memory = || ToolError::NotMemory { file: text.chars().take(80).collect() };
        let path = WorkspacePath::parse(&text).map_err(|_no_path| not_memory())?;
        let names: Vec<&str> = path
            .as_path()
            .components()
            .map(|part| match part {
                Component::Normal(name) => name.to_str().unwrap_or_default(),
                _ => "",
            })
            .collect();
        match names.as_slice() {
            [name] if AT_THE_ROOT.contains(name) => Ok(Self(path)),
            [FOLDER, name] if name.len() > 3 && name.ends_with(".md") && !name.starts_with('.') => {
                Ok(Self(path))
            }
            _ => Err(not_memory()),
        }
    }
}

impl fmt::Display for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for MemoryFile {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MemoryFile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_files_are_memory() {
        #[rustfmt::skip]
        let cases: [(&str, bool); 13] = [
            // file                      is memory
            ("MEMORY.md",                true),
            ("./USER.md",                true),
            ("memory/2026-01-31.md",     true),
            ("memory/people and so.md",  true),
            ("memory.md",                false),
            ("memory/",                  false),
            ("memory/.md",               false),
            ("memory/.hidden.md",        false),
            ("memory/a/b.md",            false),
            ("memory/a.txt",             false),
            ("notes/MEMORY.md",          false),
            ("/MEMORY.md",               false),
            ("memory/../x.md",           false),
        ];
        for (file, is) in cases {
            assert_eq!(MemoryFile::try_from(file.to_owned()).is_ok(), is, "{file}");
        }
    }
}
