//! `openpact.control.v1.Control`: what operators and the MCP server ask.

use std::sync::Arc;

use openpact_proto::control::v1 as wire;
use openpact_proto::control::v1::control_server;
use openpact_store::State;
use openpact_store::model::{DeliveryKind, NewDelivery};
use tonic::{Request, Response, Status};

use super::auth::{self, Role};
use super::convert;
use super::status::{invalid, of_store};
use crate::hub::Hub;
use crate::session::Sessions;

/// The largest page and the page that is given when none is asked for.
const LARGEST_PAGE: u32 = 500;
const PAGE: u32 = 50;
/// The longest text that is posted, in bytes.
const LONGEST_TEXT: usize = 256 * 1024;
/// How many entries a trace has.
const TRACE: u32 = 1000;

/// The control service.
#[derive(Clone)]
pub struct Control {
    /// What is asked about.
    pub store: Arc<dyn State>,
    /// Who is connected.
    pub hub: Hub,
    /// What can be stopped.
    pub sessions: Sessions,
    /// What is known of the engine.
    pub status: crate::status::Status,
    /// `provider/model`, or the engine's default.
    pub model: Option<String>,
}

#[tonic::async_trait]
impl control_server::Control for Control {
    async fn get_status(
        &self,
        request: Request<wire::GetStatusRequest>,
    ) -> Result<Response<wire::GetStatusResponse>, Status> {
        auth::require(&request, &[Role::Operator, Role::Frontend, Role::Tools])?;
        let counts = self.store.counts().await.map_err(|error| of_store(&error))?;
        let engine = self.status.engine.borrow().clone();
        let frontends = self.hub.frontends().into_iter().map(|it| wire::ConnectedFrontend {
            provider: it.provider,
            client: it.client,
            since: Some(convert::to_time(it.since)),
        });
        Ok(Response::new(wire::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").into(),
            ready: engine.problem.is_empty(),
            reason: engine.problem.clone(),
            engine: Some(wire::EngineStatus {
                healthy: engine.healthy,
                version: engine.version,
                tools_connected: engine.tools_connected,
                model: self.model.clone().unwrap_or_default(),
                problem: engine.problem,
            }),
            running_turns: counts.running_turns,
            waiting_messages: counts.waiting_messages,
            pending_deliveries: counts.pending_deliveries,
            frontends: frontends.collect(),
            started_at: Some(convert::to_time(self.status.started_at)),
        }))
    }

    async fn list_sessions(
        &self,
        request: Request<wire::ListSessionsRequest>,
    ) -> Result<Response<wire::ListSessionsResponse>, Status> {
        auth::require(&request, &[Role::Operator])?;
        let request = request.into_inner();
        let place = match request.place {
            Some(place) => Some(convert::place(Some(place), None)?),
            None => None,
        };
        let offset = match request.page_token.as_str() {
            "" => 0,
            token => token.parse().map_err(|_| invalid("`page_token` is not one of ours"))?,
        };
        let size = page(request.page_size)?;
        let found = self.store.sessions(place.as_ref(), offset, size).await;
        let found = found.map_err(|error| of_store(&error))?;
        let full = u32::try_from(found.len()).is_ok_and(|length| length == size);
        let next_page_token = if full { (offset + size).to_string() } else { String::new() };
        let sessions = found.into_iter().map(convert::to_session).collect();
        Ok(Response::new(wire::ListSessionsResponse { sessions, next_page_token }))
    }

    async fn list_messages(
        &self,
        request: Request<wire::ListMessagesRequest>,
    ) -> Result<Response<wire::ListMessagesResponse>, Status> {
        auth::require(&request, &[Role::Operator])?;
        let request = request.into_inner();
        let limit = page(request.limit)?;
        let session = if request.session.is_empty() {
            let place = convert::place(request.place, None)?;
            let channel = self.store.channel(&place).await.map_err(|error| of_store(&error))?;
            let Some(channel) = channel else {
                return Ok(Response::new(wire::ListMessagesResponse::default()));
            };
            channel.session
        } else {
            request.session
        };
        let lines = self.store.lines(&session, limit).await.map_err(|error| of_store(&error))?;
        let messages = lines.into_iter().map(|line| wire::Message {
            id: line.id,
            outgoing: line.outgoing,
            author: line.author,
            text: line.text,
            at: Some(convert::to_time(line.at)),
        });
        Ok(Response::new(wire::ListMessagesResponse { messages: messages.collect() }))
    }

    async fn send_text(
        &self,
        request: Request<wire::SendTextRequest>,
    ) -> Result<Response<wire::SendTextResponse>, Status> {
        auth::require(&request, &[Role::Operator, Role::Tools])?;
        let wire::SendTextRequest { place, text, request_id } = request.into_inner();
        if request_id.is_empty() || request_id.len() > 256 {
            return Err(invalid("`request_id` must be 1 to 256 bytes, and the same on a retry"));
        }
        if text.trim().is_empty() || text.len() > LONGEST_TEXT {
            return Err(invalid(format!("`text` must be 1 to {LONGEST_TEXT} bytes")));
        }
        let place = convert::place(place, None)?;
        let provider = place.provider.clone();
        let delivery = NewDelivery {
            place,
            kind: DeliveryKind::Notice,
            text,
            reply_to: String::new(),
            buttons: Vec::new(),
            answers: Vec::new(),
        };
        let queued = self.store.queue_delivery(&request_id, delivery).await;
        let delivery_id = queued.map_err(|error| of_store(&error))?;
        self.hub.wake(&provider);
        Ok(Response::new(wire::SendTextResponse { delivery_id }))
    }

    async fn stop_turn(
        &self,
        request: Request<wire::StopTurnRequest>,
    ) -> Result<Response<wire::StopTurnResponse>, Status> {
        auth::require(&request, &[Role::Operator])?;
        let place = convert::place(request.into_inner().place, None)?;
        let stopped = self.sessions.stop(&place);
        Ok(Response::new(wire::StopTurnResponse { stopped }))
    }

    async fn trace(
        &self,
        request: Request<wire::TraceRequest>,
    ) -> Result<Response<wire::TraceResponse>, Status> {
        auth::require(&request, &[Role::Operator])?;
        let id = request.into_inner().id;
        if id.is_empty() || id.len() > 256 {
            return Err(invalid("`id` must be 1 to 256 bytes"));
        }
        let entries = self.store.trace(&id, TRACE).await.map_err(|error| of_store(&error))?;
        let entries = entries.into_iter().map(convert::to_trace_entry).collect();
        Ok(Response::new(wire::TraceResponse { entries }))
    }

    async fn resolve_caller(
        &self,
        request: Request<wire::ResolveCallerRequest>,
    ) -> Result<Response<wire::ResolveCallerResponse>, Status> {
        auth::require(&request, &[Role::Tools])?;
        let session = request.into_inner().engine_session;
        let caller = self.store.caller(&session).await.map_err(|error| of_store(&error))?;
        let caller = caller
            .ok_or_else(|| Status::not_found("no session of ours has this engine session"))?;
        let user =
            openpact_proto::frontend::v1::User { id: caller.user.id, name: caller.user.name };
        Ok(Response::new(wire::ResolveCallerResponse {
            session: caller.session,
            place: Some(convert::to_place(&caller.place)),
            user: Some(user),
        }))
    }
}

fn page(size: u32) -> Result<u32, Status> {
    match size {
        0 => Ok(PAGE),
        1..=LARGEST_PAGE => Ok(size),
        _ => Err(invalid(format!("a page has at most {LARGEST_PAGE} entries"))),
    }
}
