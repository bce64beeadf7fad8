//! One JSON-RPC message from bytes, or the error that answers them.

use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ErrorData};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// What bytes turned out to be.
#[derive(Debug)]
pub(crate) enum Received {
    /// A message that rmcp understands.
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that wants an answer: a blank line, a notification nobody knows.
    Nothing,
    /// Something to be answered with an error.
    Bad(BadMessage),
}

/// An error to answer, with the id that was given, to the letter.
#[derive(Debug)]
pub(crate) struct BadMessage {
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) error: ErrorData,
}

impl BadMessage {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { id: None, error: ErrorData::new(code, message.into(), None) }
    }

    /// The error as a JSON-RPC message, without a line break.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let id = self.id.as_deref().map_or("null", RawValue::get);
        let error = serde_json::to_string(&self.error).expect("an error is plain data");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
    }
}

/// As much of a message as can be told when the rest can't be read.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
}

/// An id of `null` is there, too, and makes a message a request.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads one message.
pub(crate) fn parse(bytes: &[u8]) -> Received {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii();
    if bytes.is_empty() {
        return Received::Nothing;
    }
    match serde_json::from_slice(bytes) {
        Ok(message) => Received::Message(Box::new(message)),
        Err(error) => explain(bytes, &error),
    }
}

fn explain(bytes: &[u8], error: &serde_json::Error) -> Received {
    let broken = matches!(error.classify(), Category::Syntax | Category::Eof);
    if bytes.first() == Some(&b'[') && !broken {
        let message = "batches are not supported: send one message at a time";
        return Received::Bad(BadMessage::new(ErrorCode::INVALID_REQUEST, message));
    }
    // Text that no string can hold, such as half a surrogate pair, doesn't
    // hide whom to answer.
    let Ok(outline) = serde_json::from_slice::<Outline<'_>>(bytes) else {
        return Received::Bad(if broken {
            BadMessage::new(ErrorCode::PARSE_ERROR, format!("not JSON: {error}"))
        } else {
            BadMessage::new(ErrorCode::INVALID_REQUEST, "not a JSON-RPC message")
        });
    };
    match outline {
        Outline { id: None, method: Some(_) } => Received::Nothing,
        Outline { id, method } => {
            let id = id.filter(|id| id.get().starts_with(['"', '-']) || starts_with_digit(id));
            let (code, message) = if broken {
                (ErrorCode::PARSE_ERROR, format!("not JSON: {error}"))
            } else if method.is_some() {
                (ErrorCode::INVALID_REQUEST, "an id is a string or a whole number".to_owned())
            } else {
                (ErrorCode::INVALID_REQUEST, "not a JSON-RPC message".to_owned())
            };
            let mut bad = BadMessage::new(code, message);
            bad.id = id.map(ToOwned::to_owned);
            Received::Bad(bad)
        }
    }
}

fn starts_with_digit(id: &RawValue) -> bool {
    id.get().starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_answered_or_ignored() {
        #[rustfmt::skip]
        let cases: [(&str, &[u8], &str); 18] = [
            // what it is              bytes                                              answer
            ("a request",              br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,    "message"),
            ("with a BOM and CR",      b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r", "message"),
            ("a notification",         br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "message"),
            ("a blank line",           b"  \r",                                           "nothing"),
            ("no JSON",                b"hello",                                          "null -32700"),
            ("half of it",             br#"{"jsonrpc":"2.0","id":1"#,                     "null -32700"),
            ("invalid UTF-8",          b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "null -32700"),
            ("a lone surrogate",       br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#, "1 -32700"),
            ("a batch",                br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,  "null -32600"),
            ("a number",               b"1",                                              "null -32600"),
            ("no message",             br#"{"id":1}"#,                                    "1 -32600"),
            ("an id of null",          br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "null -32600"),
            ("an id of 1e3",           br#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#,  "message"),
            ("an id of 1.5",           br#"{"jsonrpc":"2.0","id":1.50,"method":"ping"}"#, "1.50 -32600"),
            ("an id beyond i64",       br#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#, "9223372036854775808 -32600"),
            ("an id of 2^53+1",        br#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#, "message"),
            ("an object as id",        br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,   "null -32600"),
            ("very deep",              &[b'['; 100_000],                                  "null -32700"),
        ];
        for (what, bytes, answer) in cases {
            let received = match parse(bytes) {
                Received::Message(_) => "message".to_owned(),
                Received::Nothing => "nothing".to_owned(),
                Received::Bad(bad) => {
                    let json: serde_json::Value = serde_json::from_slice(&bad.to_json()).unwrap();
                    assert_eq!(json["jsonrpc"], "2.0", "{what}");
                    let id = bad.id.as_deref().map_or("null", RawValue::get);
                    format!("{id} {}", json["error"]["code"])
                }
            };
            assert_eq!(received, answer, "{what}");
        }
    }
}
