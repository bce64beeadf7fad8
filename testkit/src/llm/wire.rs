//! What goes over the wire, as OpenAI's chat completions have it.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A refusal.
#[derive(Debug, Clone)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    kind: &'static str,
    param: Option<String>,
    code: Option<String>,
    retry_after: Option<u64>,
}

impl ApiError {
    pub(super) fn bad(message: &str, param: Option<&str>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            message: message.to_owned(),
            kind: "invalid_request_error",
            param: param.map(str::to_owned),
            code: None,
            retry_after: None,
        }
    }

    pub(super) fn unknown_model(model: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            code: Some("model_not_found".to_owned()),
            ..Self::bad(
                &format!("The model `{model}` does not exist or you do not have access to it."),
                None,
            )
        }
    }

    pub(super) fn unknown_url(path: &str) -> Self {
        let message = format!("Invalid URL ({path})");
        Self { status: StatusCode::NOT_FOUND, ..Self::bad(&message, None) }
    }

    /// No key, or not the right one.
    pub(super) fn unauthorized(key: Option<&str>) -> Self {
        let message = match key {
            None => "You didn't provide an API key. You need to provide your API key in an \
                     Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
                .to_owned(),
            Some(key) => format!("Incorrect API key provided: {}.", masked(key)),
        };
        let code = key.map(|_| "invalid_api_key".to_owned());
        Self { status: StatusCode::UNAUTHORIZED, code, ..Self::bad(&message, None) }
    }

    /// The refusal a script asks for.
    pub(super) fn scripted(
        status: StatusCode,
        retry_after: Option<u64>,
        message: Option<&str>,
        code: Option<&str>,
    ) -> Self {
        let (kind, usual, usual_code) = match status.as_u16() {
            401 => ("invalid_request_error", "Incorrect API key provided.", "invalid_api_key"),
            429 => ("requests", "Rate limit reached for requests.", "rate_limit_exceeded"),
            400..500 => ("invalid_request_error", "The request was refused.", ""),
            503 => ("server_error", "The engine is currently overloaded, please try later.", ""),
            _ => ("server_error", "The server had an error while processing your request.", ""),
        };
        let code = code.unwrap_or(usual_code);
        Self {
            status,
            kind,
            code: Some(code.to_owned()).filter(|code| !code.is_empty()),
            retry_after,
            ..Self::bad(message.unwrap_or(usual), None)
        }
    }

    pub(super) fn body(&self) -> Value {
        json!({"error": {
            "message": self.message, "type": self.kind, "param": self.param, "code": self.code,
        }})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// A key as error texts and remembered headers may show it.
pub(super) fn masked(key: &str) -> String {
    let shown: String = key.chars().take(3).collect();
    format!("{shown}***")
}

/// What the model has said so far: makes chunks of a stream, or one answer.
#[derive(Debug)]
pub(super) struct Completion {
    id: String,
    model: String,
    created: u64,
    prompt_tokens: usize,
    text: String,
    reasoning: String,
    calls: Vec<Value>,
}

impl Completion {
    pub(super) fn new(id: String, model: &str, prompt: usize) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            id,
            model: model.to_owned(),
            created: now.map_or(0, |since| since.as_secs()),
            prompt_tokens: tokens(prompt),
            text: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
        }
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// How the stream begins.
    pub(super) fn first(&self) -> Value {
        self.chunk(&json!({"role": "assistant", "content": ""}), None)
    }

    pub(super) fn say(&mut self, piece: &str) -> Value {
        self.text.push_str(piece);
        self.chunk(&json!({"content": piece}), None)
    }

    pub(super) fn think(&mut self, piece: &str) -> Value {
        self.reasoning.push_str(piece);
        self.chunk(&json!({"reasoning_content": piece}), None)
    }

    /// A tool call begins; its arguments follow through [`Completion::argue`].
    pub(super) fn call(&mut self, id: &str, tool: &str, arguments: &str) -> Value {
        let index = self.calls.len();
        self.calls.push(json!({"id": id, "type": "function",
            "function": {"name": tool, "arguments": arguments}}));
        let start = json!({"index": index, "id": id, "type": "function",
            "function": {"name": tool, "arguments": ""}});
        self.chunk(&json!({"tool_calls": [start]}), None)
    }

    /// A piece of the newest call's arguments.
    pub(super) fn argue(&self, piece: &str) -> Value {
        let index = self.calls.len().saturating_sub(1);
        let call = json!({"index": index, "function": {"arguments": piece}});
        self.chunk(&json!({"tool_calls": [call]}), None)
    }

    pub(super) fn finish(&self, reason: &str) -> Value {
        self.chunk(&json!({}), Some(reason))
    }

    /// The chunk that has no choice, only the count.
    pub(super) fn usage_chunk(&self) -> Value {
        let mut chunk = self.chunk(&json!({}), None);
        chunk["choices"] = json!([]);
        chunk["usage"] = self.usage();
        chunk
    }

    /// The whole answer, for who didn't ask for a stream.
    pub(super) fn whole(&self, reason: &str) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text, "refusal": null});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = self.reasoning.clone().into();
        }
        if self.has_calls() {
            message["tool_calls"] = self.calls.clone().into();
        }
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created,
            "model": self.model, "usage": self.usage(), "system_fingerprint": null,
            "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        })
    }

    fn usage(&self) -> Value {
        let arguments: usize = self.calls.iter().map(|call| call.to_string().len()).sum();
        let reasoning = tokens(self.reasoning.len());
        let completion = tokens(self.text.len() + arguments) + reasoning;
        json!({
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        })
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created,
            "model": self.model, "system_fingerprint": null, "usage": null,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        })
    }
}

/// About four bytes are a token.
fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(4)
}

/// `text` in pieces of about so many characters; all of it, none empty.
pub(crate) fn pieces(text: &str, length: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    for (count, end) in ends.enumerate() {
        if (count + 1) % length.max(1) == 0 || end == text.len() {
            pieces.push(&text[start..end]);
            start = end;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_text_and_halve_no_character() {
        #[rustfmt::skip]
        let cases: [(&str, usize, &[&str]); 4] = [
            ("",       3, &[]),
            ("abc",    3, &["abc"]),
            ("abcd",   3, &["abc", "d"]),
            ("ééé",    2, &["éé", "é"]),
        ];
        for (text, length, expected) in cases {
            assert_eq!(pieces(text, length), expected, "{text:?}");
        }
    }
}
