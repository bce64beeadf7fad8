//! The routes, and what is checked before an answer is given.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::play::Answer;
use super::request::{self, LlmRequest};
use super::rules::Picked;
use super::script::Step;
use super::wire::{ApiError, masked};
use super::{REMEMBERED, Shared};
use crate::http::{Line, body};

/// The largest request that is read.
const LARGEST: usize = 64 * 1024 * 1024;

#[derive(Clone)]
struct Service {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

pub(super) fn routes(shared: &Arc<Shared>, tasks: TaskTracker, stop: CancellationToken) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(models))
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(Service { shared: Arc::clone(shared), tasks, stop })
}

async fn unknown(uri: axum::http::Uri) -> ApiError {
    ApiError::unknown_url(uri.path())
}

async fn models(State(service): State<Service>, headers: HeaderMap) -> Result<Response, ApiError> {
    service.authorize(&headers)?;
    let memory = service.shared.memory();
    let model =
        |id: &String| json!({"id": id, "object": "model", "created": 0, "owned_by": "fake"});
    let data: Vec<_> = memory.rules.script.models.iter().map(model).collect();
    Ok(axum::Json(json!({"object": "list", "data": data})).into_response())
}

async fn complete(
    State(service): State<Service>,
    ConnectInfo(line): ConnectInfo<Line>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, ApiError> {
    let (request, picked) = service.understand(&headers, &bytes).inspect_err(|refused| {
        service.shared.complain(format!("refused with {}: {}", refused.status, refused.message));
        service.shared.bell.ring();
    })?;
    if let [Step::Status { code, retry_after, message, error_code }] = &picked.steps[..] {
        let status = StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (message, code) = (message.as_deref(), error_code.as_deref());
        return Err(ApiError::scripted(status, *retry_after, message, code));
    }
    if let [Step::Hang] = &picked.steps[..] {
        // The client's leaving drops this handler.
        service.stop.cancelled().await;
        return Err(ApiError::bad("the fake model was stopped", None));
    }
    let streamed = request.body["stream"] == Value::Bool(true);
    let (writer, body) = body(line);
    let answer = Answer::new(Arc::clone(&service.shared), request, picked.steps, writer);
    let stop = service.stop.clone();
    service.tasks.spawn(async move {
        tokio::select! {
            () = answer.give() => {}
            () = stop.cancelled() => {}
        }
    });
    let kind = if streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
    Ok(([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], body).into_response())
}

impl Service {
    /// Holds a request to the rules, remembers it and picks its answer.
    fn understand(
        &self,
        headers: &HeaderMap,
        bytes: &Bytes,
    ) -> Result<(LlmRequest, Picked), ApiError> {
        self.authorize(headers)?;
        let body: Value = serde_json::from_slice(bytes).map_err(|_| {
            ApiError::bad(
                "We could not parse the JSON body of your request. (HINT: This likely means you \
                 aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, \
                 but what was sent was not valid JSON.)",
                None,
            )
        })?;
        let mut memory = self.shared.memory();
        let tools = request::check(&body, &memory.rules.script.models)?;
        let headers = remembered(headers);
        let mut request = LlmRequest { at: Instant::now(), headers, body, tools, rule: None };
        let picked = memory.rules.pick(&request);
        request.rule = picked.rule;
        if memory.requests.len() == REMEMBERED {
            memory.requests.pop_front();
        }
        memory.requests.push_back(request.clone());
        drop(memory);
        self.shared.bell.ring();
        check_calls(&request, &picked)?;
        Ok((request, picked))
    }

    fn authorize(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = header.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
        let key = key.filter(|key| !key.is_empty());
        match &self.shared.memory().rules.script.key {
            Some(wanted) if key != Some(wanted.as_str()) => Err(ApiError::unauthorized(key)),
            _ => Ok(()),
        }
    }
}

/// A script that calls a tool nobody offered tests something else than it seems to.
fn check_calls(request: &LlmRequest, picked: &Picked) -> Result<(), ApiError> {
    let Some(rule) = picked.rule else { return Ok(()) };
    for step in &picked.steps {
        match step {
            Step::Call { tool, unoffered: false, .. } if !request.tools.contains(tool) => {
                let text = format!(
                    "the fake model's rule {rule} calls the tool `{tool}`, but the request offers \
                     only [{}]: set `unoffered` if that is meant",
                    request.tools.join(", ")
                );
                return Err(ApiError::bad(&text, None));
            }
            _ => {}
        }
    }
    Ok(())
}

fn remembered(headers: &HeaderMap) -> BTreeMap<String, String> {
    let shown = |(name, value): (&header::HeaderName, &header::HeaderValue)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        let value = if name == header::AUTHORIZATION {
            masked(value.trim_start_matches("Bearer "))
        } else {
            value.into_owned()
        };
        (name.to_string(), value)
    };
    headers.iter().map(shown).collect()
}
