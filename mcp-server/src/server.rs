//! MCP on one side, [`Gate`] on the other: translates, decides nothing.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::request::Parts;
use rmcp::handler::server::tool::IntoCallToolResult as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, Implementation, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::caller::Door;
use crate::gate::{Gate, Request};
use crate::policy::Effect;
use crate::tool::Entry;

/// What a client shows its model about all tools together.
const INSTRUCTIONS: &str = "Tools for the user's workspace: a folder of files and notes. Paths are \
    relative to its root. `memory_*` is what you remember between conversations: read it before you \
    say that you don't know, and write down what the user wants remembered.";

/// Methods with parameters that rmcp hands on as unknown if these don't fit.
const KNOWN_METHODS: [&str; 4] = ["initialize", "tools/call", "logging/setLevel", "tools/list"];

/// The MCP server of one connection.
#[derive(Debug, Clone)]
pub struct Server {
    gate: Arc<Gate>,
    progress_interval: Duration,
    /// Cancelled when the connection is gone and nobody waits for answers.
    gone: CancellationToken,
}

impl Server {
    /// A server that hands calls to `gate` until `gone` is cancelled.
    #[must_use]
    pub fn new(gate: Arc<Gate>, progress_interval: Duration, gone: CancellationToken) -> Self {
        Self { gate, progress_interval, gone }
    }

    /// Runs the call to its end, telling the client now and then that it's
    /// still running, if the client gave a token for that.
    async fn run(&self, request: Request, progress: Option<Progress>) -> CallResult {
        let stop = request.stop.clone();
        let mut call = Box::pin(self.gate.call(request));
        let mut progress = progress;
        loop {
            tokio::select! {
                answer = &mut call => return match answer {
                    Ok(answer) => {
                        let texts = answer.into_texts().into_iter().map(ContentBlock::text);
                        Ok(CallToolResult::success(texts.collect()).into())
                    }
                    Err(error) => error.into_call_tool_result(),
                },
                () = self.gone.cancelled(), if !stop.is_cancelled() => stop.cancel(),
                () = Progress::tell(&mut progress) => {}
            }
        }
    }
}

type CallResult = Result<CallToolResponse, ErrorData>;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("openpact", env!("CARGO_PKG_VERSION")).with_title("OpenPact"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        mut request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        // What was agreed upon counts, not what was asked for: clients that say
        // `initialize` twice would otherwise be held to a revision without it.
        request.protocol_version = result.protocol_version.clone();
        context.peer.set_peer_info(request);
        Ok(result)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.gate.registry().entries().map(listed).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.gate.registry().find(name).map(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> CallResult {
        let progress = context
            .meta
            .get_progress_token()
            .map(|token| Progress::new(token, context.peer.clone(), self.progress_interval));
        let request = Request {
            tool: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            door: door(&context),
            client: context.client_info().map(|client| client.name),
            stop: context.ct.child_token(),
        };
        self.run(request, progress).await
    }

    #[expect(deprecated, reason = "clients of the older revisions send it before anything else")]
    async fn set_level(
        &self,
        _request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // We log to standard error only; a client that wants to hear less hears nothing.
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        if KNOWN_METHODS.contains(&method.as_str()) {
            let message = format!("the parameters of `{method}` don't fit the method");
            return Err(ErrorData::invalid_params(message, None));
        }
        let message: Cow<'static, str> = format!("there is no method `{method}`").into();
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, message, None))
    }
}

/// How the client came in: HTTP requests carry what their token opened.
fn door(context: &RequestContext<RoleServer>) -> Door {
    context
        .extensions
        .get::<Parts>()
        .map_or(Door::Stdio, |parts| parts.extensions.get().copied().unwrap_or(Door::Token))
}

fn listed(entry: &Entry) -> Tool {
    let described = entry.described();
    let annotations = ToolAnnotations::new()
        .read_only(entry.effect == Effect::Read)
        .destructive(entry.destructive)
        .idempotent(entry.idempotent)
        .open_world(entry.effect == Effect::External);
    Tool::new(entry.name, described.description.clone(), described.schema.clone())
        .with_annotations(annotations)
}

/// Tells a client that its call is still running.
struct Progress {
    token: ProgressToken,
    peer: Peer<RoleServer>,
    interval: Interval,
    began: Instant,
}

impl Progress {
    fn new(token: ProgressToken, peer: Peer<RoleServer>, every: Duration) -> Self {
        let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { token, peer, interval, began: Instant::now() }
    }

    /// Waits until it's time and tells; for ever if there's nobody to tell.
    async fn tell(progress: &mut Option<Self>) {
        let Some(Self { token, peer, interval, began }) = progress else {
            return std::future::pending().await;
        };
        interval.tick().await;
        // Seconds, since nobody knows how much there is to do.
        let seconds = began.elapsed().as_secs_f64();
        let told =
            ProgressNotificationParam::new(token.clone(), seconds).with_message("still running");
        if let Err(error) = peer.notify_progress(told).await {
            tracing::debug!(%error, "progress reaches nobody");
        }
    }
}
