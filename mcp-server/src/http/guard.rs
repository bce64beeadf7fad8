//! What every request to `/mcp` must pass before anybody reads it.
//!
//! First where it comes from: a web page that a person has open must not reach
//! a server on the same machine, whatever name its address was given. Then
//! who sends it. Then whether it's a message of a size we take.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode};

use crate::caller::Door;
use crate::config::Config;
use crate::message::{self, BadMessage, Received};
use crate::token::Tokens;

use super::session;

/// How long a client may take to send a request's body.
const SENDING: Duration = Duration::from_secs(30);
/// What a client that accepts anything is taken to accept.
const ACCEPTED: &str = "application/json, text/event-stream";

/// Knows which requests are let in.
#[derive(Debug)]
pub(super) struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    tokens: Tokens,
    max_message_bytes: usize,
}

impl Guard {
    /// A guard for the server that listens on `address`.
    pub(super) fn new(address: SocketAddr, config: &Config, tokens: Tokens) -> Self {
        let mut hosts: Vec<String> =
            ["localhost", "127.0.0.1", "::1"].into_iter().map(str::to_owned).collect();
        if !address.ip().is_unspecified() {
            hosts.push(address.ip().to_string());
        }
        hosts.extend(config.allowed_hosts.iter().map(|host| host.to_ascii_lowercase()));
        Self {
            hosts,
            origins: config.allowed_origins.clone(),
            tokens,
            max_message_bytes: config.max_message_bytes,
        }
    }

    fn may_come_from(&self, request: &Request) -> bool {
        let headers = request.headers();
        let host = match headers.get(HOST) {
            Some(host) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            None => request.uri().authority().cloned(),
        };
        let known = |host: Authority| {
            let name = host.host().trim_matches(['[', ']']).to_ascii_lowercase();
            self.hosts.contains(&name)
        };
        // Only browsers send an origin, and only to say which page is asking.
        let origin = headers.get(ORIGIN).is_none_or(|origin| {
            self.origins.iter().any(|allowed| origin.as_bytes() == allowed.as_bytes())
        });
        host.is_some_and(known) && origin
    }

    fn door(&self, headers: &HeaderMap) -> Option<Door> {
        let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| self.tokens.door(token.trim())).flatten()
    }
}

/// Lets a request through, or answers it.
pub(super) async fn admit(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response {
    if !guard.may_come_from(&request) {
        return (StatusCode::FORBIDDEN, "requests for this host or from this origin are refused\n")
            .into_response();
    }
    let Some(door) = guard.door(request.headers()) else {
        let challenge = [(WWW_AUTHENTICATE, "Bearer")];
        return (StatusCode::UNAUTHORIZED, challenge, "a bearer token is needed\n").into_response();
    };
    request.extensions_mut().insert(door);
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    match read_message(&guard, request).await {
        Ok((request, message)) => session::opening(&message, next.run(request)).await,
        Err(answer) => *answer,
    }
}

/// Reads the whole body and makes sure that it's one message.
async fn read_message(
    guard: &Guard,
    request: Request,
) -> Result<(Request, ClientJsonRpcMessage), Box<Response>> {
    let (mut parts, body) = request.into_parts();
    if !is_plain_json(&parts.headers) {
        let text = "the body must be application/json, not compressed\n";
        return Err(Box::new((StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into_response()));
    }
    let bytes = read_body(body, guard.max_message_bytes).await?;
    let message = match message::parse(&bytes) {
        Received::Message(message) => *message,
        Received::Nothing => return Err(Box::new(StatusCode::ACCEPTED.into_response())),
        Received::Bad(bad) => return Err(refused(StatusCode::BAD_REQUEST, &bad)),
    };
    if accepts_anything(&parts.headers) {
        parts.headers.insert(ACCEPT, HeaderValue::from_static(ACCEPTED));
    }
    Ok((Request::from_parts(parts, Body::from(bytes)), message))
}

async fn read_body(body: Body, limit: usize) -> Result<Bytes, Box<Response>> {
    match tokio::time::timeout(SENDING, axum::body::to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_too_long)) => {
            let message = "the message is longer than `mcp.max_message_bytes` allows";
            let bad = BadMessage::new(ErrorCode::INVALID_REQUEST, message);
            Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &bad))
        }
        Err(_late) => Err(Box::new(StatusCode::REQUEST_TIMEOUT.into_response())),
    }
}

fn refused(status: StatusCode, bad: &BadMessage) -> Box<Response> {
    let json = [(CONTENT_TYPE, "application/json")];
    Box::new((status, json, bad.to_json()).into_response())
}

fn is_plain_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.map(|value| value.split(';').next().unwrap_or_default().trim());
    essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"))
        && headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity")
}

fn accepts_anything(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    !headers.contains_key(ACCEPT) || accepted.any(|value| value.contains("*/*"))
}
