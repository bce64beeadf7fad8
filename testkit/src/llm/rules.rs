//! Picks the rule that answers a request.

use regex::Regex;

use super::request::LlmRequest;
use super::script::{Rule, Script, ScriptError, Step, text};

/// A script, and how often each of its rules has been used.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) script: Script,
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    pattern: Option<Regex>,
    /// How often its conditions were met.
    met: usize,
    /// How often it answered.
    used: usize,
}

/// An answer that was picked.
#[derive(Debug, PartialEq)]
pub(super) struct Picked {
    /// The rule, from 1; `None` for what the model says by itself.
    pub(super) rule: Option<usize>,
    pub(super) steps: Vec<Step>,
}

impl Rules {
    pub(super) fn new(script: Script) -> Result<Self, ScriptError> {
        script.check()?;
        let known = |rule: &Rule| Known {
            // `check` has compiled it.
            pattern: rule.when.user_matches.as_deref().and_then(|it| Regex::new(it).ok()),
            met: 0,
            used: 0,
        };
        Ok(Self { known: script.rules.iter().map(known).collect(), script })
    }

    /// The answer of the first rule that applies.
    pub(super) fn pick(&mut self, request: &LlmRequest) -> Picked {
        // The engine asks for titles behind its user's back; no rule means that.
        if request.system().contains("You are a title generator") {
            return Picked { rule: None, steps: vec![text("A conversation")] };
        }
        for (index, (rule, known)) in self.script.rules.iter().zip(&mut self.known).enumerate() {
            if !applies(rule, known.pattern.as_ref(), request) {
                continue;
            }
            known.met += 1;
            let wrong_time = rule.nth.is_some_and(|nth| nth != known.met);
            let used_up = rule.times.is_some_and(|times| known.used >= times);
            if wrong_time || used_up {
                continue;
            }
            known.used += 1;
            let steps = rule.steps(request.round()).to_vec();
            return Picked { rule: Some(index + 1), steps };
        }
        Picked { rule: None, steps: vec![text("echo: {{user}}")] }
    }
}

fn applies(rule: &Rule, pattern: Option<&Regex>, request: &LlmRequest) -> bool {
    let when = &rule.when;
    let user = request.user();
    when.user.as_ref().is_none_or(|part| user.contains(part))
        && pattern.is_none_or(|pattern| pattern.is_match(&user))
        && when.system.as_ref().is_none_or(|part| request.system().contains(part))
        && when.tool_results.is_none_or(|count| request.tool_results().len() == count)
        && when.tool_result.as_ref().is_none_or(|part| {
            request.last_tool_result().is_some_and(|result| result.contains(part))
        })
        && when.tool.as_ref().is_none_or(|tool| request.tools.contains(tool))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(messages: &serde_json::Value) -> LlmRequest {
        LlmRequest {
            at: std::time::Instant::now(),
            headers: std::collections::BTreeMap::new(),
            body: json!({"messages": messages}),
            tools: vec!["t".to_owned()],
            rule: None,
        }
    }

    fn user(said: &str) -> LlmRequest {
        asked(&json!([{"role": "user", "content": said}]))
    }

    fn told(picked: &Picked) -> &str {
        match &picked.steps[..] {
            [Step::Text(text)] => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_rule_that_applies_answers_as_often_as_it_may() {
        let script = Script::from([
            Rule::user("twice").times(2).reply([text("one of two")]),
            Rule::user("twice").nth(2).reply([text("second try after")]),
            Rule::matching("^re(ge)?x$").reply([text("matched")]),
        ]);
        let mut rules = Rules::new(script).unwrap();
        #[rustfmt::skip]
        let said = [
            ("twice",    "one of two"),
            ("twice",    "one of two"),
            ("twice",    "echo: {{user}}"),
            ("twice",    "second try after"),
            ("twice",    "echo: {{user}}"),
            ("regex",    "matched"),
            ("regexes",  "echo: {{user}}"),
        ];
        for (index, (asked, told_)) in said.into_iter().enumerate() {
            assert_eq!(told(&rules.pick(&user(asked))), told_, "{index}: {asked}");
        }
    }

    #[test]
    fn rounds_follow_the_models_own_answers_and_the_last_repeats() {
        let script = Script::from([Rule::any().round([text("first")]).round([text("then")])]);
        let mut rules = Rules::new(script).unwrap();
        let call = json!({"role": "assistant", "content": "", "tool_calls": []});
        let tool = json!({"role": "tool", "content": "result"});
        let user = json!({"role": "user", "content": "hi"});
        #[rustfmt::skip]
        let cases = [
            (json!([user]),                                 "first"),
            (json!([user, call, tool]),                     "then"),
            (json!([user, call, tool, call, tool]),         "then"),
            (json!([user, call, tool, call, user]),         "first"),
        ];
        for (messages, expected) in cases {
            assert_eq!(told(&rules.pick(&asked(&messages))), expected, "{messages}");
        }
    }

    #[test]
    fn a_title_is_never_a_rules_business() {
        let mut rules = Rules::new(Script::from([Rule::any().reply([Step::Hang])])).unwrap();
        let title = asked(&json!([
            {"role": "system", "content": "You are a title generator. You output ONLY a title."},
            {"role": "user", "content": "hi"},
        ]));
        assert_eq!(told(&rules.pick(&title)), "A conversation");
    }
}
