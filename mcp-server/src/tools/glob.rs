//! Patterns of paths.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use unicode_normalization::UnicodeNormalization as _;

use crate::error::ToolError;

/// A pattern of paths relative to the root. Without a `/` in it, it's one of
/// names, in any folder.
#[derive(Debug)]
pub(super) struct PathGlob(GlobMatcher);

impl PathGlob {
    pub(super) fn parse(pattern: &str) -> Result<Self, ToolError> {
        let composed: String = pattern.nfc().collect();
        let anywhere = if composed.contains('/') { composed } else { format!("**/{composed}") };
        let glob = GlobBuilder::new(anywhere.trim_start_matches("./"))
            .literal_separator(true)
            .build()
            .map_err(|error| ToolError::Pattern {
                pattern: pattern.to_owned(),
                kind: "glob pattern",
                problem: error.kind().to_string(),
            })?;
        Ok(Self(glob.compile_matcher()))
    }

    /// Whether the path matches, however its letters are composed.
    pub(super) fn matches(&self, path: &Path) -> bool {
        match path.to_str() {
            Some(text) if !text.is_ascii() => self.0.is_match(text.nfc().collect::<String>()),
            _ => self.0.is_match(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_names_or_of_paths() {
        #[rustfmt::skip]
        let cases: [(&str, &str, bool); 8] = [
            // pattern            path                    matches
            ("*.md",              "a.md",                 true),
            ("*.md",              "deep/er/a.md",         true),
            ("notes/*.md",        "notes/a.md",           true),
            ("notes/*.md",        "notes/deep/a.md",      false),
            ("notes/**/*.md",     "notes/deep/a.md",      true),
            ("*.{md,txt}",        "a.txt",                true),
            ("caf\u{e9}.md",      "x/cafe\u{301}.md",     true),
            ("*.md",              "a.txt",                false),
        ];
        for (pattern, path, matches) in cases {
            let glob = PathGlob::parse(pattern).unwrap();
            assert_eq!(glob.matches(Path::new(path)), matches, "{pattern} {path}");
        }
        assert!(PathGlob::parse("[").is_err());
    }
}
