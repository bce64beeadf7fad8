//! MCP over streamable HTTP.
//!
//! `/mcp` is for whoever shows a token, `/health` for everybody. What comes
//! before rmcp sees a request is in `guard`.

mod guard;
mod seal;
mod session;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::routing::{any_service, get};
use axum::serve::ListenerExt as _;
use openpact_runtime::layout::Layout;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::gate::Gate;
use crate::server::Server;
use crate::token::Tokens;

use guard::Guard;
use seal::Seal;
use session::{SealedStore, Sessions};

/// The name under which the address is written for others to find.
const PROCESS: &str = "mcp";
/// How long open answers may run on after a stop signal.
const GRACE: Duration = Duration::from_secs(2);

/// Serves clients at `address` until `stop` is cancelled.
pub(crate) async fn serve(
    address: SocketAddr,
    config: &Config,
    gate: Arc<Gate>,
    tokens: Tokens,
    layout: &Layout,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listen on {address}: choose another address or `:0`"))?;
    let address = listener.local_addr().context("learn the address that is listened on")?;
    let file = layout.address_file(PROCESS);
    openpact_runtime::file::write_atomic(&file, format!("{address}\n").as_bytes(), 0o600)
        .with_context(|| format!("write `{}`", file.display()))?;
    tracing::info!(%address, "MCP over HTTP is ready");

    let router = router(address, config, gate, tokens, &stop);
    // Answers are small and someone waits for each: never hold one back for more.
    let listener = listener.tap_io(|connection| {
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays slow");
        }
    });
    let serving =
        axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let served = openpact_runtime::until_stopped(serving.into_future(), &stop, GRACE).await;
    match std::fs::remove_file(&file) {
        Ok(()) => {}
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "the address file stays behind");
        }
    }
    match served {
        Some(served) => served.context("serve HTTP"),
        None => {
            tracing::warn!(grace = ?GRACE, "open connections were cut off");
            Ok(())
        }
    }
}

fn router(
    address: SocketAddr,
    config: &Config,
    gate: Arc<Gate>,
    tokens: Tokens,
    stop: &CancellationToken,
) -> Router {
    let seal = Arc::new(Seal::new(tokens.session_key()));
    let sessions = Sessions::new(Arc::clone(&seal), config.max_sessions, config.session_idle);
    let guard = Arc::new(Guard::new(address, config, tokens));
    let progress = config.progress_interval;
    let gone = stop.clone();
    let mut mcp = StreamableHttpServerConfig::default()
        // The guard has checked both, with our own lists.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_max_request_body_bytes(config.max_message_bytes)
        .with_cancellation_token(stop.child_token());
    mcp.session_store = Some(Arc::new(SealedStore::new(seal)));
    let service = StreamableHttpService::new(
        move || Ok(Server::new(Arc::clone(&gate), progress, gone.clone())),
        Arc::new(sessions),
        mcp,
    );
    Router::new()
        .route("/mcp", any_service(service))
        .route_layer(axum::middleware::from_fn_with_state(guard, guard::admit))
        .route("/health", get(|| async { "ok\n" }))
}
