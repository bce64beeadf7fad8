//! Placeholders in what the model says: `{{user}}` is the last user text,
//! `{{last_tool_result}}` the text of the newest tool result (`none` if there
//! is none), `{{tool_results}}` their number, `{{session}}` the conversation
//! that the engine names in its headers.

use serde_json::Value;

use super::request::LlmRequest;

const KNOWN: [&str; 4] = ["user", "last_tool_result", "tool_results", "session"];

/// Whether all placeholders in `text` mean something.
pub(super) fn check(text: &str) -> Result<(), String> {
    match names(text).find(|name| !KNOWN.contains(name)) {
        None => Ok(()),
        Some(name) => {
            Err(format!("`{{{{{name}}}}}` means nothing; these do: {}", KNOWN.join(", ")))
        }
    }
}

/// The same for all texts in `value`.
pub(super) fn check_value(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => check(text),
        Value::Array(items) => items.iter().try_for_each(check_value),
        Value::Object(fields) => fields.values().try_for_each(check_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// `text` with the placeholders filled in.
///
/// One pass: what is filled in may hold braces, and they stay as they are.
pub(super) fn fill(text: &str, request: &LlmRequest) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = next(rest) {
        filled.push_str(before);
        filled.push_str(&value_of(name, request));
        rest = after;
    }
    filled + rest
}

/// The same for all texts in `value`.
pub(super) fn fill_value(value: &Value, request: &LlmRequest) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text, request)),
        Value::Array(items) => items.iter().map(|item| fill_value(item, request)).collect(),
        Value::Object(fields) => {
            let filled =
                |(key, value): (&String, &Value)| (key.clone(), fill_value(value, request));
            Value::Object(fields.iter().map(filled).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn value_of(name: &str, request: &LlmRequest) -> String {
    match name {
        "user" => request.user(),
        "last_tool_result" => request.last_tool_result().unwrap_or_else(|| "none".to_owned()),
        "tool_results" => request.tool_results().len().to_string(),
        "session" => request.session().unwrap_or("none").to_owned(),
        unknown => format!("{{{{{unknown}}}}}"),
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, name, after) = next(rest)?;
        rest = after;
        Some(name)
    })
}

/// The first placeholder: what is before it, its name, what is behind it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, behind) = text.split_once("{{")?;
    let (name, after) = behind.split_once("}}")?;
    Some((before, name.trim(), after))
}
