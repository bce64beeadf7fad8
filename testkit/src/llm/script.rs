//! What the model is told to say: rules that pick an answer, and the steps of it.

use std::path::Path;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::template;

/// What a fake model knows.
///
/// As JSON, for `openpact-fake-llm --script FILE`:
///
/// ```
/// # let json = r#"
/// {
///   "models": ["fake-model"],
///   "key": "sk-right",
///   "rules": [
///     {"when": {"user": "down"}, "times": 1, "reply": [{"status": {"code": 503}}]},
///     {"when": {"user": "note"}, "rounds": [
///       [{"call": {"tool": "openpact_workspace_write",
///                  "arguments": {"path": "note.txt", "text": "{{user}}"}}}],
///       [{"text": "The tool said: {{last_tool_result}}"}]
///     ]}
///   ]
/// }
/// # "#;
/// # openpact_testkit::llm::Script::parse(json).unwrap();
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Models it answers for; any other is a 404.
    pub models: Vec<String>,
    /// The key it wants. Without one, any key or none will do, as with a local server.
    pub key: Option<String>,
    /// The first rule that applies answers. When none does, the answer is
    /// `echo: <the last user text>`.
    pub rules: Vec<Rule>,
}

impl Default for Script {
    fn default() -> Self {
        Self { models: vec![super::MODEL.to_owned()], key: None, rules: Vec::new() }
    }
}

/// When to say what.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// All of it must be so.
    pub when: When,
    /// Applies so many times, then never again.
    pub times: Option<usize>,
    /// Applies only the so-manyth time that [`Rule::when`] is so, from 1.
    pub nth: Option<usize>,
    /// What is said.
    pub reply: Vec<Step>,
    /// Instead of [`Rule::reply`]: what is said first, what once the model's
    /// first tool calls are answered, and so on. The last one repeats.
    pub rounds: Vec<Vec<Step>>,
}

/// Conditions; what isn't given doesn't matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The last user text contains this.
    pub user: Option<String>,
    /// The last user text matches this regular expression.
    pub user_matches: Option<String>,
    /// The system text contains this.
    pub system: Option<String>,
    /// So many tool results came since the last user text.
    pub tool_results: Option<usize>,
    /// The last of them contains this.
    pub tool_result: Option<String>,
    /// This tool is offered.
    pub tool: Option<String>,
}

/// One thing that happens in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Says the text, a few words at a time. `{{user}}` and
    /// `{{last_tool_result}}` are filled in; see [`template`](super::template).
    Text(String),
    /// Says the text with a pause between its pieces.
    Slow {
        /// As in [`Step::Text`].
        text: String,
        /// In how many pieces.
        pieces: usize,
        /// The pause after each, in milliseconds.
        pace_ms: u64,
    },
    /// Thinks aloud, as `reasoning_content`.
    Reasoning(String),
    /// Calls a tool; the arguments come in pieces that cut words in two.
    Call {
        /// The tool's name as it's offered to the model.
        tool: String,
        /// Texts in it are filled in as in [`Step::Text`].
        #[serde(default)]
        arguments: Value,
        /// These very characters instead, even if they're no JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
        /// The tool may be one that wasn't offered. Otherwise that's a mistake
        /// in the script, and answered with a 400 that says so.
        #[serde(default)]
        unoffered: bool,
    },
    /// Waits, in milliseconds.
    WaitMs(u64),
    /// Waits until the test releases it: [`FakeLlm::release`](super::FakeLlm::release).
    Hold(String),
    /// Refuses with this status instead of an answer. Must come first.
    Status {
        /// 401, 429, 500, 503, …
        code: u16,
        /// Seconds, for the header `retry-after`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u64>,
        /// What the error says; there is a fitting text for each code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The error's code, such as `context_length_exceeded`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
    },
    /// Says no more until the client leaves. As the first step, not even headers.
    Hang,
    /// Resets the connection.
    Cut,
    /// Ends the stream in good manners, but with no finish reason.
    End,
    /// Sends a frame that isn't JSON and ends.
    Garbage,
    /// Sends `{"error": …}` within the stream and ends.
    Error(String),
    /// Ends with this reason: `length`, `content_filter`, … Without this step
    /// it's `stop`, or `tool_calls` if there was a call.
    Finish(String),
}

impl Step {
    /// Nothing can follow it.
    fn is_last(&self) -> bool {
        match self {
            Self::Status { .. }
            | Self::Hang
            | Self::Cut
            | Self::End
            | Self::Garbage
            | Self::Error(_)
            | Self::Finish(_) => true,
            Self::Text(_)
            | Self::Slow { .. }
            | Self::Reasoning(_)
            | Self::Call { .. }
            | Self::WaitMs(_)
            | Self::Hold(_) => false,
        }
    }
}

/// Says `text`.
#[must_use]
pub fn text(text: impl Into<String>) -> Step {
    Step::Text(text.into())
}

/// Says `text` in `pieces`, with a pause after each.
#[must_use]
pub fn slow(text: impl Into<String>, pieces: usize, pace: Duration) -> Step {
    let pace_ms = u64::try_from(pace.as_millis()).unwrap_or(u64::MAX);
    Step::Slow { text: text.into(), pieces, pace_ms }
}

/// Thinks `text`.
#[must_use]
pub fn reasoning(text: impl Into<String>) -> Step {
    Step::Reasoning(text.into())
}

/// Calls `tool`, as `openpact_workspace_read`.
#[must_use]
pub fn call(tool: impl Into<String>, arguments: Value) -> Step {
    Step::Call { tool: tool.into(), arguments, raw: None, unoffered: false }
}

/// Waits until [`FakeLlm::release`](super::FakeLlm::release).
#[must_use]
pub fn hold(name: impl Into<String>) -> Step {
    Step::Hold(name.into())
}

/// Refuses with the status `code`.
#[must_use]
pub fn status(code: u16) -> Step {
    Step::Status { code, retry_after: None, message: None, error_code: None }
}

/// Refuses with 429 for so many seconds.
#[must_use]
pub fn too_many(retry_after: u64) -> Step {
    Step::Status { code: 429, retry_after: Some(retry_after), message: None, error_code: None }
}

impl Rule {
    /// Applies always.
    #[must_use]
    pub fn any() -> Self {
        Self::default()
    }

    /// Applies when the last user text contains `text`.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self { when: When { user: Some(text.into()), ..When::default() }, ..Self::default() }
    }

    /// Applies when the last user text matches this regular expression.
    #[must_use]
    pub fn matching(pattern: impl Into<String>) -> Self {
        let when = When { user_matches: Some(pattern.into()), ..When::default() };
        Self { when, ..Self::default() }
    }

    /// And when so many tool results came since.
    #[must_use]
    pub fn tool_results(mut self, count: usize) -> Self {
        self.when.tool_results = Some(count);
        self
    }

    /// See [`Rule::times`].
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = Some(times);
        self
    }

    /// See [`Rule::nth`].
    #[must_use]
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = Some(nth);
        self
    }

    /// See [`Rule::reply`].
    #[must_use]
    pub fn reply(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.reply = steps.into_iter().collect();
        self
    }

    /// One more of [`Rule::rounds`].
    #[must_use]
    pub fn round(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.rounds.push(steps.into_iter().collect());
        self
    }

    /// What it says after so many answers of the model's since the last user text.
    pub(super) fn steps(&self, round: usize) -> &[Step] {
        match self.rounds.len() {
            0 => &self.reply,
            rounds => &self.rounds[round.min(rounds - 1)],
        }
    }

    fn check(&self) -> Result<(), String> {
        if !self.reply.is_empty() && !self.rounds.is_empty() {
            return Err("it has `reply` and `rounds`: use one".to_owned());
        }
        if let Some(pattern) = &self.when.user_matches {
            Regex::new(pattern).map_err(|error| format!("`user_matches`: {error}"))?;
        }
        if self.nth == Some(0) {
            return Err("`nth` counts from 1".to_owned());
        }
        std::iter::once(&self.reply).chain(&self.rounds).try_for_each(|steps| check(steps))
    }
}

fn check(steps: &[Step]) -> Result<(), String> {
    for (index, step) in steps.iter().enumerate() {
        if step.is_last() && index + 1 < steps.len() {
            return Err(format!("nothing can follow {step:?}"));
        }
        match step {
            Step::Status { .. } if index > 0 => {
                return Err("`status` must be the only step: the headers are gone by then".into());
            }
            Step::Status { code, .. } if !(400..600).contains(code) => {
                return Err(format!("{code} is not the status of an error"));
            }
            Step::Text(text) | Step::Slow { text, .. } | Step::Reasoning(text) => {
                template::check(text)?;
            }
            Step::Call { arguments, .. } => template::check_value(arguments)?,
            _ => {}
        }
    }
    Ok(())
}

/// A script that can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// There's no such file, or it can't be read.
    #[error("could not read the script `{path}`")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// It's not JSON, or has keys that mean nothing.
    #[error("the script is not one")]
    Malformed(#[source] serde_json::Error),
    /// A rule contradicts itself.
    #[error("rule {number} of the script: {problem}")]
    Rule {
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
}

impl Script {
    /// Reads a script from its JSON.
    pub fn parse(json: &str) -> Result<Self, ScriptError> {
        let script: Self = serde_json::from_str(json).map_err(ScriptError::Malformed)?;
        script.check()?;
        Ok(script)
    }

    /// Reads a script from a file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let json = std::fs::read_to_string(path).map_err(|source| ScriptError::Unreadable {
            path: path.display().to_string(),
            source,
        })?;
        Self::parse(&json)
    }

    /// Whether the rules can be followed.
    pub(super) fn check(&self) -> Result<(), ScriptError> {
        for (index, rule) in self.rules.iter().enumerate() {
            rule.check().map_err(|problem| ScriptError::Rule { number: index + 1, problem })?;
        }
        Ok(())
    }
}

impl FromIterator<Rule> for Script {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }
}

impl<const N: usize> From<[Rule; N]> for Script {
    fn from(rules: [Rule; N]) -> Self {
        rules.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_cannot_be_followed_says_which_rule_and_why() {
        #[rustfmt::skip]
        let cases = [
            // the rules                                                       what is said
            (r#"{"rules": [{"replies": []}]}"#,                                "unknown field `replies`"),
            (r#"{"rules": [{"reply": ["hang", {"text": "x"}]}]}"#,             "nothing can follow Hang"),
            (r#"{"rules": [{"reply": [{"text": "x"}, {"status": {"code": 500}}]}]}"#, "`status` must be the only step"),
            (r#"{"rules": [{"reply": [{"status": {"code": 200}}]}]}"#,         "200 is not the status of an error"),
            (r#"{"rules": [{"reply": [{"text": "{{usr}}"}]}]}"#,               "`{{usr}}` means nothing"),
            (r#"{"rules": [{}, {"when": {"user_matches": "("}}]}"#,            "rule 2 of the script: `user_matches`"),
            (r#"{"rules": [{"reply": ["cut"], "rounds": [["cut"]]}]}"#,        "use one"),
            (r#"{"rules": [{"nth": 0}]}"#,                                     "counts from 1"),
        ];
        for (json, said) in cases {
            let error = Script::parse(json).unwrap_err();
            let text = openpact_runtime::chain(&error);
            assert!(text.contains(said), "{json}: {text}");
        }
    }

    #[test]
    fn a_built_script_and_its_json_are_the_same() {
        let built = Script::from([
            Rule::user("a").times(1).reply([too_many(3)]),
            Rule::matching("^b$").tool_results(0).reply([
                reasoning("hm"),
                slow("ho", 2, Duration::from_millis(5)),
                call("t", serde_json::json!({"x": 1})),
                hold("here"),
                Step::Finish("length".into()),
            ]),
            Rule::any().nth(2).round([Step::Hang]).round([Step::Cut]),
        ]);
        let json = serde_json::to_string(&built).unwrap();
        assert_eq!(Script::parse(&json).unwrap().rules, built.rules);
    }
}
