//! What this program asks the orchestrator.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use openpact_proto::control::v1::control_client::ControlClient;
use openpact_proto::control::v1::{GetStatusRequest, GetStatusResponse};
use openpact_runtime::key;
use openpact_runtime::layout::Layout;
use secrecy::ExposeSecret as _;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::up::stale;

/// How long the orchestrator may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the orchestrator of a workspace listens, if one runs.
#[must_use]
pub fn address(layout: &Layout) -> Option<SocketAddr> {
    stale::address(layout, "orchestrator")
}

/// Shows the operator's token with each request.
#[derive(Clone)]
pub(crate) struct Bearer(AsciiMetadataValue);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// A client of the orchestrator of a workspace.
pub(crate) async fn connect(
    layout: &Layout,
) -> anyhow::Result<ControlClient<InterceptedService<Channel, Bearer>>> {
    let address = address(layout).with_context(|| {
        format!("nothing runs in {}: start it with `openpact up`", layout.root().display())
    })?;
    let token = key::read(&layout.keys().join(key::OPERATOR))?;
    let mut bearer: AsciiMetadataValue =
        format!("Bearer {}", token.expose_secret()).parse().context("read the operator's token")?;
    bearer.set_sensitive(true);
    let channel = Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(PATIENCE)
        .timeout(PATIENCE)
        .connect()
        .await
        .with_context(|| format!("the orchestrator does not answer at {address}"))?;
    Ok(ControlClient::with_interceptor(channel, Bearer(bearer)))
}

/// What runs in a workspace, and whether a message would be answered.
pub async fn status(layout: &Layout) -> anyhow::Result<GetStatusResponse> {
    let status = connect(layout).await?.get_status(GetStatusRequest {}).await;
    Ok(status.context("ask the orchestrator how it is")?.into_inner())
}
