//! What the audit log will say about a call.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use openpact_store::audit::{Decision, Entry, Outcome};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::caller::Caller;
use crate::error::ToolError;
use crate::policy::Verdict;
use crate::tool::Answer;

/// Characters of a tool's name that are kept; a name that is no tool's can be anything.
const LONGEST_NAME: usize = 80;

/// An entry in the making.
#[derive(Debug)]
pub(super) struct Record {
    began: Instant,
    entry: Entry,
}

impl Record {
    pub(super) fn begin(caller: &Caller, tool: &str, arguments: &Map<String, Value>) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            began: Instant::now(),
            entry: Entry {
                at_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
                client: caller.label(),
                session: caller.session.clone(),
                call: caller.call.clone(),
                tool: tool.chars().take(LONGEST_NAME).collect(),
                arguments: digest(arguments),
                decision: Decision::None,
                rule: String::new(),
                outcome: Outcome::Refused,
                result_bytes: 0,
                duration: std::time::Duration::ZERO,
            },
        }
    }

    pub(super) fn decided(&mut self, verdict: &Verdict) {
        let (decision, rule) = match verdict {
            Verdict::Allow(rule) => (Decision::Allowed, rule),
            // Asking without anybody to ask is a no.
            Verdict::Deny(rule) | Verdict::Ask(rule) => (Decision::Denied, rule),
        };
        self.entry.decision = decision;
        self.entry.rule = rule.to_string();
    }

    pub(super) fn end(mut self, answer: &Result<Answer, ToolError>) -> Entry {
        match answer {
            Ok(answer) => {
                self.entry.outcome = Outcome::Done;
                self.entry.result_bytes = answer.bytes() as u64;
            }
            Err(error) => self.entry.outcome = error.outcome(),
        }
        self.entry.duration = self.began.elapsed();
        self.entry
    }
}

/// SHA-256 of the arguments, the same however their keys are ordered.
fn digest(arguments: &Map<String, Value>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hash_object(&mut hasher, arguments);
    hasher.finalize().into()
}

fn hash_object(hasher: &mut Sha256, object: &Map<String, Value>) {
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort();
    hasher.update(b"{");
    for key in keys {
        hash_text(hasher, key);
        hasher.update(b":");
        hash_value(hasher, &object[key]);
    }
    hasher.update(b"}");
}

/// Arguments were parsed with a depth limit, so recursion is bounded.
fn hash_value(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(object) => hash_object(hasher, object),
        Value::Array(values) => {
            hasher.update(b"[");
            for value in values {
                hash_value(hasher, value);
                hasher.update(b",");
            }
            hasher.update(b"]");
        }
        Value::String(text) => hash_text(hasher, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => hasher.update(value.to_string()),
    }
}

/// Length first, so that no text can look like two.
fn hash_text(hasher: &mut Sha256, text: &str) {
    hasher.update(format!("{}\"", text.len()));
    hasher.update(text);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_have_one_digest_whatever_the_order_of_their_keys() {
        #[rustfmt::skip]
        let cases: [(Value, Value, bool); 6] = [
            // one                                  other                               same?
            (json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"b": {"d": 3, "c": 2}, "a": 1}), true),
            (json!({"a": [1, 2]}),                  json!({"a": [2, 1]}),                false),
            (json!({"a": "1"}),                     json!({"a": 1}),                     false),
            (json!({"a": ["b", "c"]}),              json!({"a": ["bc"]}),                false),
            (json!({"a": null}),                    json!({}),                           false),
            (json!({}),                             json!({}),                           true),
        ];
        for (one, other, same) in cases {
            let digests = [&one, &other].map(|value| digest(value.as_object().unwrap()));
            assert_eq!(digests[0] == digests[1], same, "{one} {other}");
        }
    }
}
