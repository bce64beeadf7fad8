//! The gRPC server: who may come in, and what is translated into what.
//!
//! The only module that knows tonic and the wire types.

mod auth;
mod control;
mod convert;
mod frontend;
mod status;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use openpact_proto::control::v1::control_server::ControlServer;
use openpact_proto::frontend::v1::hub_server::HubServer;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;

pub use self::auth::{Keys, Role};
pub use self::control::Control;
pub use self::convert::Largest;
pub use self::frontend::FrontendHub;

/// A message with attachments, plus what surrounds them.
const OVERHEAD: u64 = 1024 * 1024;
/// A peer that doesn't answer pings for this long is gone.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// How many requests one connection may have open.
const STREAMS: u32 = 64;

/// Serves until `stop`.
///
/// `largest` is the largest message that frontends may send, in bytes.
pub async fn serve(
    listener: TcpListener,
    keys: Keys,
    hub: FrontendHub,
    control: Control,
    largest: u64,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<HubServer<FrontendHub>>().await;
    health.set_serving::<ControlServer<Control>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(openpact_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .context("describe the services")?;
    let largest = usize::try_from(largest.saturating_add(OVERHEAD)).unwrap_or(usize::MAX);
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(STREAMS)
        // Health is for everybody; the rest is behind the one interceptor.
        .add_service(health_service)
        .add_service(InterceptedService::new(reflection, keys.clone()))
        .add_service(InterceptedService::new(
            HubServer::new(hub).max_decoding_message_size(largest),
            keys.clone(),
        ))
        .add_service(InterceptedService::new(ControlServer::new(control), keys))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop.cancelled_owned())
        .await
        .context("serve gRPC")
}

/// Listens where the settings say.
pub async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "listen on {address}: if another program has the port, stop it or set \
             `orchestrator.listen` in config.yaml"
        )
    })
}
