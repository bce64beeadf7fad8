//! OpenCode's REST interface: one method a call, each with a deadline and a size limit.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::wire::{Message, Status};

const CONNECT: Duration = Duration::from_secs(3);
/// The engine is one thread: a busy one answers late.
const ANSWER: Duration = Duration::from_secs(30);
/// The largest answer that is read: a long session's history.
const LARGEST: usize = 64 * 1024 * 1024;
/// How many of a session's newest messages are looked at first, and at most.
const PAGE: usize = 100;
const DEEPEST: usize = 1600;

/// Where the engine is.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// Always here.
    Fixed(String),
    /// At the address in this file, as `127.0.0.1:4096`; it may change.
    InFile(PathBuf),
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// No connection: the engine didn't get the request.
    #[error("the engine can't be reached at `{url}`")]
    Unreachable {
        url: String,
        #[source]
        source: anyhow::Error,
    },
    /// The connection broke: the engine may have got the request.
    #[error("the engine did not answer {call}")]
    Broken {
        call: &'static str,
        #[source]
        source: anyhow::Error,
    },
    /// There's no such session.
    #[error("the engine knows nothing of what {call} is about")]
    Missing { call: &'static str },
    /// The password is wrong.
    #[error("the engine refused the password: is another program at its address?")]
    Password,
    /// It answered with an error, or not as itself.
    #[error("the engine answered {call} with {status}: {body}")]
    Refused { call: &'static str, status: StatusCode, body: String },
}

/// The engine's interface.
pub(super) struct Api {
    http: reqwest::Client,
    endpoint: Endpoint,
    password: SecretString,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A part of a prompt.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum PromptPart<'a> {
    Text {
        text: &'a str,
    },
    /// `url` is always a `data:` URL: the engine would read any other from its disk.
    File {
        mime: &'a str,
        filename: &'a str,
        url: String,
    },
}

/// The body of `prompt_async`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt<'a> {
    #[serde(rename = "messageID")]
    pub(super) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<Model<'a>>,
    pub(super) system: &'a str,
    pub(super) parts: Vec<PromptPart<'a>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Model<'a> {
    #[serde(rename = "providerID")]
    pub(super) provider: &'a str,
    #[serde(rename = "modelID")]
    pub(super) model: &'a str,
}

/// A session as the engine made it.
#[derive(Debug, Deserialize)]
pub(super) struct NewSession {
    pub(super) id: String,
    pub(super) time: Created,
}

#[derive(Debug, Deserialize)]
pub(super) struct Created {
    pub(super) created: f64,
}

impl Api {
    pub(super) fn new(endpoint: Endpoint, password: SecretString) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { http, endpoint, password })
    }

    /// The engine's version.
    pub(super) async fn health(&self) -> Result<String, ApiError> {
        #[derive(Deserialize)]
        struct Health {
            version: String,
        }
        let health: Health = self.json(Method::GET, "/global/health", None, "health").await?;
        Ok(health.version)
    }

    /// Begins a session. With a title, or the engine asks the model for one.
    pub(super) async fn create_session(&self, title: &str) -> Result<NewSession, ApiError> {
        self.json(Method::POST, "/session", Some(json!({ "title": title })), "create session").await
    }

    /// Asks, without waiting for the answer.
    pub(super) async fn prompt(&self, session: &str, prompt: &Prompt<'_>) -> Result<(), ApiError> {
        let path = format!("/session/{}/prompt_async", segment(session));
        let request = self.request(Method::POST, &path)?.json(prompt);
        self.send(request, "prompt").await?;
        Ok(())
    }

    /// Whether the session is at work.
    pub(super) async fn is_busy(&self, session: &str) -> Result<bool, ApiError> {
        let statuses: std::collections::HashMap<String, Status> =
            self.json(Method::GET, "/session/status", None, "session status").await?;
        Ok(statuses.get(session).is_some_and(|status| status.kind != "idle"))
    }

    /// The session's newest messages, oldest first, back to `since` or further.
    pub(super) async fn messages(
        &self,
        session: &str,
        since: &str,
    ) -> Result<Vec<Message>, ApiError> {
        let mut limit = PAGE;
        loop {
            let messages = self.newest(session, limit).await?;
            let reached = messages.iter().any(|message| message.info.id.as_str() <= since);
            if reached || messages.len() < limit || limit >= DEEPEST {
                return Ok(messages);
            }
            limit *= 4;
        }
    }

    /// The `limit` newest messages, oldest first.
    pub(super) async fn newest(
        &self,
        session: &str,
        limit: usize,
    ) -> Result<Vec<Message>, ApiError> {
        let path = format!("/session/{}/message?limit={limit}", segment(session));
        self.json(Method::GET, &path, None, "messages").await
    }

    /// Stops what the session does. Fine if it does nothing.
    pub(super) async fn abort(&self, session: &str) -> Result<(), ApiError> {
        let path = format!("/session/{}/abort", segment(session));
        self.send(self.request(Method::POST, &path)?, "abort").await?;
        Ok(())
    }

    /// Refuses what the engine would wait for a person to allow.
    pub(super) async fn reject_permission(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("/permission/{}/reply", segment(id));
        let body = json!({"reply": "reject", "message": "This is not allowed here. Use the openpact_ tools."});
        self.send(self.request(Method::POST, &path)?.json(&body), "permission").await?;
        Ok(())
    }

    /// Turns down a question that the engine would wait for a person to answer.
    pub(super) async fn reject_question(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("/question/{}/reject", segment(id));
        self.send(self.request(Method::POST, &path)?, "question").await?;
        Ok(())
    }

    /// What is wrong with the engine's connection to the MCP server `name`, if anything.
    pub(super) async fn tools_problem(&self, name: &str) -> Result<Option<String>, ApiError> {
        let servers: Value = self.json(Method::GET, "/mcp", None, "MCP status").await?;
        let server = &servers[name];
        Ok(match server["status"].as_str() {
            Some("connected") => None,
            Some(status) => Some(match server["error"].as_str() {
                Some(error) => format!("{status}: {error}"),
                None => status.to_owned(),
            }),
            None => Some(format!("the engine's configuration has no MCP server `{name}`")),
        })
    }

    /// Connects the engine to the MCP server `name`. Look at the status for what came of it.
    pub(super) async fn connect_tools(&self, name: &str) -> Result<(), ApiError> {
        let path = format!("/mcp/{}/connect", segment(name));
        self.send(self.request(Method::POST, &path)?, "MCP connect").await?;
        Ok(())
    }

    /// How many tokens the model can take in; `None` if the engine doesn't know.
    pub(super) async fn window(
        &self,
        provider: &str,
        model: &str,
    ) -> Result<Option<u64>, ApiError> {
        let known: Value = self.json(Method::GET, "/config/providers", None, "providers").await?;
        let providers = known["providers"].as_array();
        let found = providers.and_then(|all| all.iter().find(|it| it["id"] == provider));
        Ok(found.and_then(|it| it["models"][model]["limit"]["context"].as_u64()))
    }

    /// The event stream.
    pub(super) async fn events(&self) -> Result<Response, ApiError> {
        let request = self.request(Method::GET, "/event")?;
        let sent = tokio::time::timeout(ANSWER, request.send()).await;
        let response = self.answered(sent, "events")?;
        check(response, "events").await
    }

    fn base(&self) -> Result<String, ApiError> {
        match &self.endpoint {
            Endpoint::Fixed(url) => Ok(url.trim_end_matches('/').to_owned()),
            Endpoint::InFile(path) => {
                let address = std::fs::read_to_string(path).map_err(|error| {
                    let url = path.display().to_string();
                    ApiError::Unreachable { url, source: error.into() }
                })?;
                Ok(format!("http://{}", address.trim()))
            }
        }
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ApiError> {
        let url = format!("{}{path}", self.base()?);
        let request = self.http.request(method, url);
        Ok(request.basic_auth("opencode", Some(self.password.expose_secret())))
    }

    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        call: &'static str,
    ) -> Result<T, ApiError> {
        let mut request = self.request(method, path)?;
        if let Some(body) = body {
            request = request.json(&body);
        }
        let body = self.send(request, call).await?;
        serde_json::from_slice(&body)
            .map_err(|error| ApiError::Broken { call, source: error.into() })
    }

    async fn send(&self, request: RequestBuilder, call: &'static str) -> Result<Vec<u8>, ApiError> {
        let exchange = async {
            let response = self.answered(Ok(request.send().await), call)?;
            let response = check(response, call).await?;
            read(response, LARGEST).await.map_err(|source| ApiError::Broken { call, source })
        };
        let late =
            |late: tokio::time::error::Elapsed| ApiError::Broken { call, source: late.into() };
        tokio::time::timeout(ANSWER, exchange).await.map_err(late)?
    }

    fn answered(
        &self,
        sent: Result<reqwest::Result<Response>, tokio::time::error::Elapsed>,
        call: &'static str,
    ) -> Result<Response, ApiError> {
        match sent {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() => {
                let url = self.base().unwrap_or_default();
                Err(ApiError::Unreachable { url, source: error.without_url().into() })
            }
            Ok(Err(error)) => Err(ApiError::Broken { call, source: error.without_url().into() }),
            Err(late) => Err(ApiError::Broken { call, source: late.into() }),
        }
    }
}

/// Tells a real answer from an error. The engine answers unknown paths with its
/// web page and 200, so the content type counts as well.
async fn check(response: Response, call: &'static str) -> Result<Response, ApiError> {
    let status = response.status();
    let html = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    match status {
        StatusCode::UNAUTHORIZED => Err(ApiError::Password),
        StatusCode::NOT_FOUND => Err(ApiError::Missing { call }),
        _ if status.is_success() && !html => Ok(response),
        _ => {
            let body = match read(response, 64 * 1024).await {
                Ok(body) => String::from_utf8_lossy(&body).chars().take(300).collect(),
                Err(error) => format!("{error:#}"),
            };
            Err(ApiError::Refused { call, status, body })
        }
    }
}

async fn read(response: Response, largest: usize) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        anyhow::ensure!(body.len() + chunk.len() <= largest, "the answer is over {largest} bytes");
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// An id as one segment of a path. Ids are the engine's and plain; anything
/// else in one can't steer the request.
fn segment(id: &str) -> String {
    id.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).collect()
}
