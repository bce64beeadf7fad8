//! OpenCode as the engine, over its REST interface and its event stream.
//!
//! `api` asks, `events` listens, `view` puts together what is known of a turn,
//! `follow` brings one question to its end. How the engine behaves was measured
//! with version 1.18.

mod api;
mod events;
mod follow;
mod id;
mod view;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::SecretString;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

pub use self::api::Endpoint;
use self::api::{Api, ApiError, Model, Prompt, PromptPart};
use self::events::{Feed, Signal};
use self::follow::Follow;
use self::id::MessageIds;
use super::{Answer, Ask, Engine, EngineError, File, Health, ModelError, ProgressSender, Usage};

/// What the engine's configuration calls our MCP server.
const MCP_SERVER: &str = "openpact";

/// When a turn has to end.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long it may take in all.
    pub turn: Duration,
    /// How long nothing may happen.
    pub stall: Duration,
    /// How long an engine that is away is waited for.
    pub away: Duration,
    /// How long a provider that asks to wait is gone along with.
    pub provider: Duration,
    /// How many times the model may be called.
    pub steps: u32,
}

/// An OpenCode server.
#[derive(Debug)]
pub struct OpenCode {
    api: Arc<Api>,
    feed: Feed,
    ids: MessageIds,
    limits: Limits,
}

impl OpenCode {
    /// The engine at `endpoint`, and the work of listening to it until `stop`.
    pub fn new(
        endpoint: Endpoint,
        password: SecretString,
        limits: Limits,
        stop: CancellationToken,
    ) -> anyhow::Result<(Self, impl Future<Output = ()> + Send + 'static)> {
        let api = Arc::new(Api::new(endpoint, password)?);
        let (feed, work) = Feed::new(Arc::clone(&api), stop);
        Ok((Self { api, feed, ids: MessageIds::default(), limits }, work))
    }

    fn follow<'a>(
        &'a self,
        session: &'a str,
        question: &'a str,
        signals: broadcast::Receiver<Signal>,
        progress: &'a ProgressSender,
        stop: &'a CancellationToken,
    ) -> Follow<'a> {
        let (api, limits) = (&self.api, self.limits);
        Follow { api, limits, session, question, signals, progress, stop }
    }
}

#[async_trait]
impl Engine for OpenCode {
    async fn health(&self) -> Result<Health, EngineError> {
        let version = self.api.health().await?;
        let mut problem = self.api.tools_problem(MCP_SERVER).await?;
        if problem.is_some() {
            self.api.connect_tools(MCP_SERVER).await?;
            problem = self.api.tools_problem(MCP_SERVER).await?;
        }
        Ok(Health { version, tools: problem.map_or(Ok(()), Err) })
    }

    async fn create_session(&self, title: &str) -> Result<String, EngineError> {
        let session = self.api.create_session(title).await?;
        self.ids.synchronise(session.time.created);
        Ok(session.id)
    }

    fn message_id(&self) -> String {
        self.ids.fresh()
    }

    async fn answer(
        &self,
        ask: &Ask,
        progress: &ProgressSender,
        stop: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        // Listening comes first, so that nothing can happen unseen.
        let signals = self.feed.subscribe();
        let listening = tokio::select! {
            listening = self.feed.is_connected(self.limits.away) => listening,
            () = stop.cancelled() => return Err(EngineError::Stopped),
        };
        if !listening {
            let why = anyhow::anyhow!("its events can't be read");
            return Err(EngineError::Unreachable(why));
        }
        let prompt = Prompt {
            message: &ask.message,
            model: ask.model.as_deref().and_then(model),
            system: &ask.system,
            parts: parts(ask),
        };
        let unsure = match self.api.prompt(&ask.session, &prompt).await {
            Ok(()) => false,
            Err(error @ ApiError::Broken { .. }) => {
                tracing::debug!(error = %openpact_runtime::chain(&error), "asked, perhaps");
                true
            }
            Err(ApiError::Missing { .. }) => {
                return Err(EngineError::NoSession { session: ask.session.clone() });
            }
            Err(error) => return Err(error.into()),
        };
        self.follow(&ask.session, &ask.message, signals, progress, stop).run(unsure).await
    }

    async fn collect(
        &self,
        session: &str,
        message: &str,
        progress: &ProgressSender,
        stop: &CancellationToken,
    ) -> Result<Answer, EngineError> {
        let signals = self.feed.subscribe();
        self.follow(session, message, signals, progress, stop).run(true).await
    }

    async fn usage(&self, session: &str) -> Result<Option<Usage>, EngineError> {
        let messages = self.api.newest(session, 20).await?;
        let last = messages.iter().rev().find(|it| it.info.tokens.output > 0);
        let Some(info) = last.map(|message| &message.info) else { return Ok(None) };
        let window = self.api.window(&info.provider, &info.model).await?;
        Ok(Some(Usage { window_tokens: window.unwrap_or(0), ..view::usage(info) }))
    }
}

impl From<ApiError> for EngineError {
    fn from(error: ApiError) -> Self {
        match error {
            ApiError::Unreachable { .. } | ApiError::Broken { .. } | ApiError::Password => {
                Self::Unreachable(error.into())
            }
            ApiError::Missing { call } => Self::NoSession { session: call.to_owned() },
            // This engine answers 500 when the model or the agent is unknown.
            ApiError::Refused { call: "prompt", .. } => {
                Self::Model { kind: ModelError::Other, message: error.to_string() }
            }
            ApiError::Refused { .. } => Self::Unreachable(error.into()),
        }
    }
}

fn model(name: &str) -> Option<Model<'_>> {
    let (provider, model) = name.split_once('/')?;
    Some(Model { provider, model })
}

fn parts(ask: &Ask) -> Vec<PromptPart<'_>> {
    let text = PromptPart::Text { text: &ask.text };
    let files = ask.files.iter().map(|File { filename, mime, content }| {
        let url = format!("data:{mime};base64,{}", BASE64_STANDARD.encode(content));
        PromptPart::File { mime, filename, url }
    });
    std::iter::once(text).chain(files).collect()
}
