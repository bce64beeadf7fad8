//! A request as it was understood, and the rules it must keep.

use std::collections::BTreeMap;

use serde_json::Value;

use super::wire::ApiError;

/// What the model was asked. Kept by the fake for tests to look at.
#[derive(Debug, Clone)]
pub struct LlmRequest {
    /// When it had been read.
    pub at: std::time::Instant,
    /// Headers by name; the key is masked.
    pub headers: BTreeMap<String, String>,
    /// The whole body.
    pub body: Value,
    /// Names of the tools that were offered.
    pub tools: Vec<String>,
    /// Which rule answered it, from 1. `None`: the echo, or a refusal.
    pub rule: Option<usize>,
}

impl LlmRequest {
    /// The messages, oldest first, as they were sent.
    #[must_use]
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The model that was asked for.
    #[must_use]
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// All system texts.
    #[must_use]
    pub fn system(&self) -> String {
        let system = |message: &&Value| role(message) == "system" || role(message) == "developer";
        let texts: Vec<_> = self.messages().iter().filter(system).map(text_of).collect();
        texts.join("\n")
    }

    /// The last text that a user wrote.
    #[must_use]
    pub fn user(&self) -> String {
        self.last_user().map(|index| text_of(&self.messages()[index])).unwrap_or_default()
    }

    /// The tool results since the last user text, oldest first.
    #[must_use]
    pub fn tool_results(&self) -> Vec<String> {
        self.since_user().filter(|message| role(message) == "tool").map(text_of).collect()
    }

    /// The newest tool result since the last user text.
    #[must_use]
    pub fn last_tool_result(&self) -> Option<String> {
        self.tool_results().pop()
    }

    /// How often the model has answered since the last user text.
    pub(super) fn round(&self) -> usize {
        self.since_user().filter(|message| role(message) == "assistant").count()
    }

    /// The engine's name for the conversation.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.headers.get("x-session-id").map(String::as_str)
    }

    fn last_user(&self) -> Option<usize> {
        let wrote = |message: &Value| {
            // An image that a tool returned is shown to the model as a user's message.
            role(message) == "user" && !text_of(message).starts_with("Attached media from tool")
        };
        self.messages().iter().rposition(wrote)
    }

    fn since_user(&self) -> impl Iterator<Item = &Value> {
        let from = self.last_user().map_or(0, |index| index + 1);
        self.messages()[from..].iter()
    }
}

/// The text of a message: its content, or the text parts of it.
fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

/// Holds a body to the rules of the real API. Returns the tools it offers.
pub(super) fn check(body: &Value, models: &[String]) -> Result<Vec<String>, ApiError> {
    let Some(model) = body["model"].as_str() else {
        return Err(ApiError::bad("you must provide a model parameter", None));
    };
    if !models.iter().any(|known| known == model) {
        return Err(ApiError::unknown_model(model));
    }
    check_messages(&body["messages"])?;
    if body.get("stream_options").is_some_and(|options| !options.is_null())
        && body["stream"] != Value::Bool(true)
    {
        return Err(ApiError::bad(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            Some("stream_options"),
        ));
    }
    let tools = check_tools(&body["tools"])?;
    if tools.is_empty() && body.get("tool_choice").is_some_and(|choice| choice != "none") {
        return Err(ApiError::bad(
            "'tool_choice' is only allowed when 'tools' are specified.",
            Some("tool_choice"),
        ));
    }
    Ok(tools)
}

fn check_messages(messages: &Value) -> Result<(), ApiError> {
    let Some(messages) = messages.as_array() else {
        return Err(ApiError::bad("Missing required parameter: 'messages'.", Some("messages")));
    };
    if messages.is_empty() {
        return Err(ApiError::bad(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got \
             an empty array instead.",
            Some("messages"),
        ));
    }
    // The calls of the last assistant message that no tool message has answered yet.
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let param = format!("messages.[{index}].role");
        if role(message) == "tool" {
            let call = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|id| *id == call) else {
                return Err(ApiError::bad(
                    "Invalid parameter: messages with role 'tool' must be a response to a \
                     preceeding message with 'tool_calls'.",
                    Some(&param),
                ));
            };
            open.remove(at);
            continue;
        }
        answered(&open)?;
        match role(message) {
            "assistant" => open = calls_of(message, index)?,
            "system" | "developer" | "user" => check_content(message, index)?,
            other => {
                return Err(ApiError::bad(
                    &format!(
                        "Invalid value: '{other}'. Supported values are: 'system', 'assistant', \
                         'user', 'function', 'tool', and 'developer'."
                    ),
                    Some(&param),
                ));
            }
        }
    }
    answered(&open)
}

fn answered(open: &[&str]) -> Result<(), ApiError> {
    if open.is_empty() {
        return Ok(());
    }
    let text = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(ApiError::bad(&text, Some("messages")))
}

fn calls_of(message: &Value, index: usize) -> Result<Vec<&str>, ApiError> {
    let Some(calls) = message["tool_calls"].as_array().filter(|calls| !calls.is_empty()) else {
        return check_content(message, index).map(|()| Vec::new());
    };
    let id_of = |call: &'_ Value| -> bool {
        call["id"].is_string()
            && call["type"] == "function"
            && call["function"]["name"].is_string()
            && call["function"]["arguments"].is_string()
    };
    if !calls.iter().all(id_of) {
        return Err(ApiError::bad(
            "Invalid 'tool_calls': each needs an 'id', 'type': 'function', and a 'function' with \
             a 'name' and 'arguments' as a string.",
            Some(&format!("messages.[{index}].tool_calls")),
        ));
    }
    Ok(calls.iter().filter_map(|call| call["id"].as_str()).collect())
}

fn check_content(message: &Value, index: usize) -> Result<(), ApiError> {
    let fine = match &message["content"] {
        Value::String(_) => true,
        Value::Array(parts) => {
            !parts.is_empty() && parts.iter().all(|part| part["type"].is_string())
        }
        _ => false,
    };
    if fine {
        return Ok(());
    }
    Err(ApiError::bad(
        "Invalid value for 'content': expected a string, got null.",
        Some(&format!("messages.[{index}].content")),
    ))
}

/// The most tools the real API takes.
const MOST_TOOLS: usize = 128;

fn check_tools(tools: &Value) -> Result<Vec<String>, ApiError> {
    let none = Vec::new();
    let tools = tools.as_array().unwrap_or(&none);
    if tools.len() > MOST_TOOLS {
        let text = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}, \
             but got an array with length {} instead.",
            tools.len()
        );
        return Err(ApiError::bad(&text, Some("tools")));
    }
    tools.iter().enumerate().map(|(index, tool)| check_tool(index, tool)).collect()
}

fn check_tool(index: usize, tool: &Value) -> Result<String, ApiError> {
    let param = format!("tools[{index}].function.name");
    let Some(name) = tool["function"]["name"].as_str() else {
        return Err(ApiError::bad(
            &format!("Missing required parameter: '{param}'."),
            Some(&param),
        ));
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(allowed) {
        let text = format!(
            "Invalid '{param}': string does not match pattern. Expected a string that matches \
             the pattern '^[a-zA-Z0-9_-]{{1,64}}$'."
        );
        return Err(ApiError::bad(&text, Some(&param)));
    }
    let parameters = &tool["function"]["parameters"];
    if !parameters.is_null() && parameters["type"] != "object" {
        let text = format!(
            "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \
             \"object\"', got 'type: {}'.",
            parameters["type"]
        );
        return Err(ApiError::bad(&text, Some(&format!("tools[{index}].function.parameters"))));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(messages: &Value, more: &Value) -> Result<Vec<String>, String> {
        let mut body = json!({"model": "m", "messages": messages});
        if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
            body.extend(more.clone());
        }
        check(&body, &["m".to_owned()]).map_err(|error| error.message)
    }

    #[test]
    fn messages_keep_the_rules_of_the_real_api() {
        let call = |id: &str| {
            json!({"role": "assistant", "content": null, "tool_calls":
                [{"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}}]})
        };
        let user = json!({"role": "user", "content": "hi"});
        let answer = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "ok"});
        #[rustfmt::skip]
        let cases = [
            // what it shows              the messages                                    refused with
            ("a question",                json!([user]),                                  None),
            ("an answered call",          json!([user, call("a"), answer("a")]),          None),
            ("an answer to nothing",      json!([user, answer("a")]),                     Some("must be a response to a preceeding")),
            ("an answer to another call", json!([user, call("a"), answer("b")]),          Some("must be a response to a preceeding")),
            ("a call without an answer",  json!([user, call("a"), user]),                 Some("did not have response messages: a")),
            ("the same at the end",       json!([user, call("a")]),                       Some("did not have response messages: a")),
            ("no messages",               json!([]),                                      Some("empty array")),
            ("no array",                  json!(null),                                    Some("Missing required parameter")),
            ("a role nobody has",         json!([{"role": "boss", "content": "x"}]),      Some("Invalid value: 'boss'")),
            ("nothing said",              json!([{"role": "assistant"}]),                 Some("got null")),
        ];
        for (shows, messages, refused) in cases {
            match (checked(&messages, &json!({})), refused) {
                (Ok(_), None) => {}
                (Err(said), Some(part)) => assert!(said.contains(part), "{shows}: {said}"),
                (other, _) => panic!("{shows}: {other:?}"),
            }
        }
    }

    #[test]
    fn tools_keep_the_rules_of_the_real_api() {
        let tool = |name: &str, kind: &str| {
            json!({"tools": [{"type": "function", "function":
                {"name": name, "parameters": {"type": kind}}}]})
        };
        let messages = json!([{"role": "user", "content": "hi"}]);
        #[rustfmt::skip]
        let cases = [
            // what is sent                                 refused with
            (tool("fine_name", "object"),                   None),
            (tool("has space", "object"),                   Some("does not match pattern")),
            (tool(&"x".repeat(65), "object"),               Some("does not match pattern")),
            (tool("fine_name", "string"),                   Some("must be a JSON Schema")),
            (json!({"tool_choice": "auto"}),                Some("only allowed when 'tools'")),
            (json!({"stream_options": {}}),                 Some("only allowed when 'stream'")),
        ];
        for (more, refused) in cases {
            match (checked(&messages, &more), refused) {
                (Ok(names), None) => assert_eq!(names, ["fine_name"]),
                (Err(said), Some(part)) => assert!(said.contains(part), "{said}"),
                (other, _) => panic!("{more}: {other:?}"),
            }
        }
    }
}
