//! The routes, with the real engine's shapes and its surprises: a path it
//! doesn't know is a web page, an unknown id of the wrong form is its own fault.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::beat::Beat;
use super::run::Run;
use super::{Prompt, REMEMBERED, Shared, VERSION, event, id, session};
use crate::http::{Line, Writer, body};

type Engine = State<Arc<Shared>>;

/// The largest prompt that is read.
const LARGEST: usize = 64 * 1024 * 1024;
const HEARTBEAT: Duration = Duration::from_secs(10);

pub(super) fn routes(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/global/health", get(health))
        .route("/event", get(events))
        .route("/session", get(list_sessions).post(create_session))
        .route("/session/status", get(statuses))
        .route("/session/{id}", get(read_session).patch(rename_session).delete(delete_session))
        .route("/session/{id}/message", get(list_messages))
        .route("/session/{id}/prompt_async", post(prompt))
        .route("/session/{id}/abort", post(abort))
        .route("/permission", get(permissions))
        .route("/permission/{id}/reply", post(answer_permission))
        .route("/question", get(questions))
        .route("/question/{id}/reply", post(answer_question))
        .route("/question/{id}/reject", post(answer_question))
        .route("/mcp", get(mcp))
        .route("/mcp/{name}/connect", post(connect_mcp))
        .fallback(web_page)
        .method_not_allowed_fallback(web_page)
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(middleware::from_fn_with_state(Arc::clone(shared), authenticate))
        .with_state(Arc::clone(shared))
}

async fn authenticate(State(engine): Engine, request: Request, next: Next) -> Response {
    {
        let mut world = engine.world();
        if world.requests.len() == REMEMBERED {
            world.requests.pop_front();
        }
        world.requests.push_back(format!("{} {}", request.method(), request.uri().path()));
    }
    let wanted = BASE64_STANDARD.encode(format!("opencode:{}", engine.password));
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    if given.and_then(|value| value.strip_prefix("Basic ")) == Some(&wanted) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"Secure Area\"")];
    (StatusCode::UNAUTHORIZED, challenge).into_response()
}

async fn web_page() -> Html<&'static str> {
    Html("<!doctype html><html><body>OpenCode</body></html>")
}

async fn health(State(engine): Engine) -> Json<Value> {
    Json(json!({"healthy": engine.world().healthy, "version": VERSION}))
}

async fn events(State(engine): Engine, ConnectInfo(line): ConnectInfo<Line>) -> Response {
    let (writer, body) = body(line);
    let (heard, life) = {
        let world = engine.world();
        (world.events.listen(), world.life.clone())
    };
    engine.bell.ring();
    life.tasks.spawn(async move {
        tokio::select! {
            () = tell(writer, heard) => {}
            () = life.stop.cancelled() => {}
        }
        engine.bell.ring();
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Writes events until the client leaves, falls behind, or the stream is ended.
async fn tell(writer: Writer, mut heard: tokio::sync::broadcast::Receiver<String>) {
    if writer.write(event::frame("server.connected", &json!({}))).await.is_err() {
        return;
    }
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.reset();
    loop {
        let frame = tokio::select! {
            frame = heard.recv() => match frame {
                Ok(frame) => frame,
                Err(RecvError::Closed | RecvError::Lagged(_)) => return,
            },
            _ = heartbeat.tick() => event::frame("server.heartbeat", &json!({})),
            _gone = writer.closed() => return,
        };
        if writer.write(frame).await.is_err() {
            return;
        }
    }
}

#[derive(Deserialize)]
struct NewSession {
    title: Option<String>,
}

async fn create_session(State(engine): Engine, bytes: Bytes) -> Result<Json<Value>, Refusal> {
    let title = if bytes.is_empty() {
        None
    } else {
        serde_json::from_slice::<NewSession>(&bytes).map_err(|_| server_error())?.title
    };
    let mut world = engine.world();
    let info = world.sessions.create(title.as_deref());
    world.events.send("session.created", &json!({"sessionID": info["id"], "info": info}));
    drop(world);
    engine.bell.ring();
    Ok(Json(info))
}

async fn list_sessions(State(engine): Engine) -> Json<Value> {
    Json(engine.world().sessions.shown().into())
}

async fn statuses(State(engine): Engine) -> Json<Value> {
    Json(engine.world().sessions.statuses())
}

async fn read_session(
    State(engine): Engine,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let mut world = engine.world();
    let session = world.sessions.get(&id).ok_or_else(|| no_session(&id))?;
    Ok(Json(session.info.clone()))
}

async fn rename_session(
    State(engine): Engine,
    Path(id): Path<String>,
    Json(change): Json<Value>,
) -> Result<Json<Value>, Refusal> {
    let mut world = engine.world();
    let session = world.sessions.get(&id).ok_or_else(|| no_session(&id))?;
    if let Some(title) = change.get("title") {
        session.info["title"] = title.clone();
    }
    Ok(Json(session.info.clone()))
}

async fn delete_session(
    State(engine): Engine,
    Path(id): Path<String>,
) -> Result<Json<bool>, Refusal> {
    let removed = engine.world().sessions.remove(&id);
    // What runs, runs on: deleting doesn't abort.
    removed.map(|_| Json(true)).ok_or_else(|| no_session(&id))
}

#[derive(Deserialize)]
struct Page {
    limit: Option<usize>,
    before: Option<String>,
}

async fn list_messages(
    State(engine): Engine,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Response, Refusal> {
    let mut world = engine.world();
    let session = world.sessions.get(&id).ok_or_else(|| no_session(&id))?;
    let known = &session.messages;
    let at = |before: String| known.iter().position(|message| message.id() == before);
    let end = page.before.and_then(at).unwrap_or(known.len());
    let start = page.limit.map_or(0, |limit| end.saturating_sub(limit));
    let shown: Vec<_> = known[start..end].iter().map(session::Message::shown).collect();
    let mut response = Json(shown).into_response();
    if start > 0
        && let Ok(cursor) = known[start].id().parse()
    {
        response.headers_mut().insert("x-next-cursor", cursor);
    }
    Ok(response)
}

async fn prompt(
    State(engine): Engine,
    ConnectInfo(line): ConnectInfo<Line>,
    Path(id): Path<String>,
    headers: HeaderMap,
    bytes: Bytes,
) -> Result<Response, Refusal> {
    let at = Instant::now();
    if !headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
    {
        return Err(Refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, Value::Null));
    }
    let content: Value = serde_json::from_slice(&bytes).map_err(|_| server_error())?;
    if !content["parts"].is_array() {
        let data = json!({"message": "Missing key\n  at [\"parts\"]", "kind": "Payload"});
        let error = json!({"name": "BadRequest", "data": data});
        return Err(Refusal(StatusCode::BAD_REQUEST, error));
    }
    let prompt = remembered(at, &id, content);
    let beats = take(&engine, &prompt)?;
    let cut = match beats.first() {
        Some(Beat::Swallow) => return Ok(StatusCode::NO_CONTENT.into_response()),
        Some(Beat::Refuse(status)) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            return Err(unknown_error(status));
        }
        first => first == Some(&Beat::Cut),
    };
    Run::start(&engine, &prompt, beats);
    if cut {
        let (writer, body) = body(line);
        writer.cut().await;
        return Ok(body.into_response());
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Remembers a prompt and says what is to happen.
fn take(engine: &Shared, prompt: &Prompt) -> Result<Vec<Beat>, Refusal> {
    let mut world = engine.world();
    world.sessions.get(&prompt.session).ok_or_else(|| no_session(&prompt.session))?;
    if world.prompts.len() == REMEMBERED {
        world.prompts.pop_front();
    }
    world.prompts.push_back(prompt.clone());
    let rule = world.rules.iter().find(|(text, _)| prompt.text.contains(text));
    let beats = match rule.map(|(_, beats)| beats.clone()) {
        Some(beats) => beats,
        None => {
            let echo = || vec![Beat::Say(format!("echo: {}", prompt.text))];
            world.next.pop_front().unwrap_or_else(echo)
        }
    };
    drop(world);
    engine.bell.ring();
    Ok(beats)
}

fn remembered(at: Instant, session: &str, body: Value) -> Prompt {
    let parts = body["parts"].as_array().into_iter().flatten();
    let texts: Vec<_> = parts.filter_map(|part| part["text"].as_str()).collect();
    let of = |key: &str| body[key].as_str().map(str::to_owned);
    let model = &body["model"];
    let model = model["modelID"]
        .as_str()
        .map(|id| format!("{}/{id}", model["providerID"].as_str().unwrap_or_default()));
    Prompt {
        at,
        session: session.to_owned(),
        message_id: of("messageID"),
        text: texts.join("\n"),
        system: of("system"),
        model,
        body,
    }
}

/// `true` for any session, known or not.
async fn abort(State(engine): Engine, Path(id): Path<String>) -> Json<bool> {
    let mut world = engine.world();
    world.aborts.push(id.clone());
    if let Some(session) = world.sessions.get(&id) {
        session.abort.cancel();
    }
    drop(world);
    engine.bell.ring();
    Json(true)
}

async fn permissions(State(engine): Engine) -> Json<Value> {
    let waiting = engine.world().permissions.iter().map(|(_, shown)| shown.clone()).collect();
    Json(Value::Array(waiting))
}

async fn answer_permission(
    State(engine): Engine,
    Path(id): Path<String>,
    Json(reply): Json<Value>,
) -> Result<Json<bool>, Refusal> {
    let mut world = engine.world();
    let Some(at) = world.permissions.iter().position(|(known, _)| *known == id) else {
        return Err(not_found("PermissionNotFoundError"));
    };
    let (_, shown) = world.permissions.remove(at);
    let replied =
        json!({"sessionID": shown["sessionID"], "requestID": id, "reply": reply["reply"]});
    world.events.send("permission.replied", &replied);
    drop(world);
    engine.bell.ring();
    Ok(Json(true))
}

async fn questions(State(engine): Engine) -> Json<Value> {
    let waiting = engine.world().questions.iter().map(|(_, shown)| shown.clone()).collect();
    Json(Value::Array(waiting))
}

async fn answer_question(
    State(engine): Engine,
    Path(id): Path<String>,
) -> Result<Json<bool>, Refusal> {
    let mut world = engine.world();
    let Some(at) = world.questions.iter().position(|(known, _)| *known == id) else {
        return Err(not_found("QuestionNotFoundError"));
    };
    world.questions.remove(at);
    drop(world);
    engine.bell.ring();
    Ok(Json(true))
}

async fn mcp(State(engine): Engine) -> Json<Value> {
    let world = engine.world();
    let shown = world.mcp.iter().map(|(name, mcp)| {
        let mut status = json!({"status": mcp.status});
        if mcp.status == "failed" {
            status["error"] = json!("Connection closed");
        }
        (name.clone(), status)
    });
    Json(Value::Object(shown.collect()))
}

/// `true` even if it didn't help: `GET /mcp` tells.
async fn connect_mcp(
    State(engine): Engine,
    Path(name): Path<String>,
) -> Result<Json<bool>, Refusal> {
    let mut world = engine.world();
    let Some(mcp) = world.mcp.get_mut(&name) else {
        return Err(not_found("McpServerNotFoundError"));
    };
    mcp.status = if mcp.reachable { "connected" } else { "failed" }.to_owned();
    world.events.send("mcp.tools.changed", &json!({"server": name}));
    Ok(Json(true))
}

/// A request that failed, in the engine's words.
struct Refusal(StatusCode, Value);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

fn no_session(id: &str) -> Refusal {
    if !id.starts_with("ses") {
        return server_error();
    }
    let data = json!({"message": format!("Session not found: {id}")});
    Refusal(StatusCode::NOT_FOUND, json!({"name": "NotFoundError", "data": data}))
}

fn not_found(tag: &str) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, json!({"_tag": tag, "message": tag}))
}

fn server_error() -> Refusal {
    unknown_error(StatusCode::INTERNAL_SERVER_ERROR)
}

fn unknown_error(status: StatusCode) -> Refusal {
    let message = "Unexpected server error. Check server logs for details.";
    let data = json!({"message": message, "ref": id::fresh("err")});
    Refusal(status, json!({"name": "UnknownError", "data": data}))
}
