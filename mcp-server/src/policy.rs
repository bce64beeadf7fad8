//! Which calls may run.
//!
//! The order is deny, allow, ask, and then what ships: reading, and writing
//! inside the workspace, is allowed; whatever else leaves asks a person.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use serde::Deserialize;

use crate::config::Config;

/// What a tool does to the world. This is what the shipped policy goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It reads what was configured to be read.
    Read,
    /// It changes something inside the workspace.
    Write,
    /// It changes or tells something outside.
    External,
}

/// A pattern of tool names, as the settings have it.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct ToolGlob {
    text: String,
    matcher: GlobMatcher,
}

/// What the policy says about a call, and the rule that says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may run.
    Allow(Rule),
    /// It may not.
    Deny(Rule),
    /// Only if a person says so.
    Ask(Rule),
}

/// A rule, in words that an operator finds again in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// A pattern in one of the lists of the section `mcp`.
    Listed {
        /// `deny`, `allow`, `ask`
        list: &'static str,
        /// The pattern.
        pattern: String,
    },
    /// What ships.
    Shipped(&'static str),
}

/// The rules in force.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    deny: Vec<ToolGlob>,
    allow: Vec<ToolGlob>,
    ask: Vec<ToolGlob>,
}

impl Policy {
    /// The rules that `config` has, before those that ship.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self { deny: config.deny.clone(), allow: config.allow.clone(), ask: config.ask.clone() }
    }

    /// What holds for a call of `tool`.
    #[must_use]
    pub fn decide(&self, tool: &str, effect: Effect) -> Verdict {
        if let Some(rule) = listed("deny", &self.deny, tool) {
            return Verdict::Deny(rule);
        }
        if let Some(rule) = listed("allow", &self.allow, tool) {
            return Verdict::Allow(rule);
        }
        if let Some(rule) = listed("ask", &self.ask, tool) {
            return Verdict::Ask(rule);
        }
        match effect {
            Effect::Read => Verdict::Allow(Rule::Shipped("reading is allowed")),
            Effect::Write => {
                Verdict::Allow(Rule::Shipped("writing inside the workspace is allowed"))
            }
            Effect::External => Verdict::Ask(Rule::Shipped("what leaves needs an approval")),
        }
    }
}

fn listed(list: &'static str, globs: &[ToolGlob], tool: &str) -> Option<Rule> {
    globs
        .iter()
        .find(|glob| glob.matcher.is_match(tool))
        .map(|glob| Rule::Listed { list, pattern: glob.text.clone() })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed { list, pattern } => write!(f, "`mcp.{list}` has `{pattern}`"),
            Self::Shipped(rule) => f.write_str(rule),
        }
    }
}

impl TryFrom<String> for ToolGlob {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let named = |c: char| c.is_ascii_alphanumeric() || "_*?[]{},-".contains(c);
        if text.is_empty() || !text.chars().all(named) {
            return Err(format!("`{text}` is no pattern of tool names, such as `workspace_*`"));
        }
        match GlobBuilder::new(&text).build() {
            Ok(glob) => Ok(Self { matcher: glob.compile_matcher(), text }),
            Err(error) => Err(format!("`{text}` is no pattern of tool names: {}", error.kind())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn globs(patterns: &[&str]) -> Vec<ToolGlob> {
        patterns.iter().map(|text| ToolGlob::try_from((*text).to_owned()).unwrap()).collect()
    }

    /// The three lists, the tool's effect, the verdict.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str], Effect, &'a str);

    #[test]
    fn deny_comes_before_allow_before_ask_before_what_ships() {
        #[rustfmt::skip]
        let cases: [Case<'_>; 8] = [
            // deny              allow            ask             effect            verdict
            (&[],                &[],             &[],            Effect::Read,     "allow: reading is allowed"),
            (&[],                &[],             &[],            Effect::Write,    "allow: writing inside the workspace is allowed"),
            (&[],                &[],             &[],            Effect::External, "ask: what leaves needs an approval"),
            (&["workspace_*"],   &["*"],          &["*"],         Effect::Read,     "deny: `mcp.deny` has `workspace_*`"),
            (&["memory_*"],      &["*_write"],    &["*"],         Effect::External, "allow: `mcp.allow` has `*_write`"),
            (&["memory_*"],      &["*_read"],     &["*"],         Effect::Read,     "ask: `mcp.ask` has `*`"),
            (&["workspace"],     &[],             &[],            Effect::Read,     "allow: reading is allowed"),
            (&["{a,workspace}_write"], &[],       &[],            Effect::Read,     "deny: `mcp.deny` has `{a,workspace}_write`"),
        ];
        for (deny, allow, ask, effect, said) in cases {
            let policy = Policy { deny: globs(deny), allow: globs(allow), ask: globs(ask) };
            let verdict = match policy.decide("workspace_write", effect) {
                Verdict::Allow(rule) => format!("allow: {rule}"),
                Verdict::Deny(rule) => format!("deny: {rule}"),
                Verdict::Ask(rule) => format!("ask: {rule}"),
            };
            assert_eq!(verdict, said, "{deny:?} {allow:?} {ask:?}");
        }
    }

    #[test]
    fn a_pattern_that_can_name_no_tool_is_refused() {
        for text in ["", "workspace write", "a/b", "[", "{a", "\u{e9}"] {
            assert!(ToolGlob::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
