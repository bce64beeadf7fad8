//! What rmcp reads from and writes to.

use std::collections::HashSet;
use std::io;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetMeta as _,
    JsonRpcMessage, ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::message::{self, BadMessage, Received};

use super::frame::{Frame, Frames};
use super::writer::LineWriter;

/// Messages as lines of JSON.
///
/// rmcp has such a transport, too. This one answers what isn't a message,
/// survives notifications before the handshake, and gives each of two requests
/// with the same id an answer.
#[derive(Debug)]
pub(super) struct LineTransport<R> {
    frames: Frames<R>,
    output: LineWriter,
    /// An error that is yet to be written; kept here since reading may be cancelled.
    answer: Option<Vec<u8>>,
    /// Requests that have no answer yet.
    open: HashSet<RequestId>,
    /// Whether rmcp has what it needs to go beyond the handshake.
    begun: bool,
    ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> LineTransport<R> {
    /// Cancels `ended` when the input ends or nobody reads the output.
    pub(super) fn new<W>(input: R, output: W, limit: usize, ended: CancellationToken) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self {
            frames: Frames::new(input, limit),
            output: LineWriter::new(output, ended.clone()),
            answer: None,
            open: HashSet::new(),
            begun: false,
            ended,
        }
    }

    /// What rmcp is to see of a message; `None` for nothing.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        match &message {
            JsonRpcMessage::Request(request) => {
                if !self.open.insert(request.id.clone()) {
                    // rmcp would answer only one of the two.
                    let mut bad = BadMessage::new(
                        ErrorCode::INVALID_REQUEST,
                        "a request with this id is still running",
                    );
                    bad.id = serde_json::value::to_raw_value(&request.id).ok();
                    self.answer = Some(bad.to_json());
                    return None;
                }
                self.begun |= begins(&request.request);
            }
            // Before the handshake rmcp takes these for a broken client and hangs up.
            _ if !self.begun => return None,
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // rmcp will not answer it any more.
                    self.open.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }
}

/// Whether this request ends the handshake: `initialize`, or in the protocol's
/// newer revisions any request that carries all about its client.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        request => {
            let meta = request.get_meta();
            meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && meta
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for LineTransport<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        match &message {
            JsonRpcMessage::Response(response) => {
                self.open.remove(&response.id);
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.open.remove(id);
                }
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        let line = serde_json::to_vec(&message).map_err(io::Error::other);
        let line = line.map(|line| self.output.write(line));
        async move { line?.await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.answer.is_some() {
                self.output.write_kept(&mut self.answer).await.ok()?;
            }
            let next = tokio::select! {
                next = self.frames.next() => next,
                () = self.ended.cancelled() => return None,
            };
            let received = match next {
                Ok(Frame::Line) => message::parse(self.frames.line()),
                Ok(Frame::TooLong) => Received::Bad(BadMessage::new(
                    ErrorCode::INVALID_REQUEST,
                    "the message is longer than `mcp.max_message_bytes` allows",
                )),
                Ok(Frame::End) => {
                    self.ended.cancel();
                    return None;
                }
                Err(error) => {
                    tracing::warn!(%error, "standard input can't be read");
                    self.ended.cancel();
                    return None;
                }
            };
            match received {
                Received::Message(message) => {
                    if let Some(message) = self.admit(*message) {
                        return Some(message);
                    }
                }
                Received::Nothing => {}
                Received::Bad(bad) => {
                    tracing::debug!(error = %bad.error, id = bad.id.as_deref().map(RawValue::get), "bad message");
                    self.answer = Some(bad.to_json());
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}
