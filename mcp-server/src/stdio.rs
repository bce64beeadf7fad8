//! MCP over standard input and output.
//!
//! Nothing but JSON-RPC goes to standard output. Whatever comes in, the
//! connection stays open until the input ends: bad lines are answered, lines
//! that are too long are skipped without being held in memory. Once the input
//! has ended, or nobody reads the output, what is still running gets a moment
//! to finish and the process ends.

mod frame;
mod transport;
mod writer;

use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio_util::sync::CancellationToken;

use crate::server::Server;

use transport::LineTransport;

/// How long calls may run on once the input has ended. Whoever pipes a few
/// requests in and closes the pipe wants their answers.
const FINISHING: Duration = Duration::from_millis(1000);
/// How long calls that were told to stop may take for it.
const STOPPING: Duration = Duration::from_millis(600);

/// How much of a result may be on its way to the client.
const PIPE: usize = 1024 * 1024;

/// Serves one client until it leaves or `stop` is cancelled.
///
/// `gone` is cancelled as soon as nobody waits for answers.
pub(crate) async fn serve(
    server: Server,
    max_message_bytes: usize,
    gone: CancellationToken,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (input, output) = rmcp::transport::stdio_pipes();
    // A long result then goes through in few pieces. It's the client's pipe,
    // so a refusal is fine.
    if let Err(error) = rustix::pipe::fcntl_setpipe_size(std::io::stdout(), PIPE) {
        tracing::debug!(%error, "standard output keeps its size");
    }
    let ended = CancellationToken::new();
    let transport = LineTransport::new(input, output, max_message_bytes, ended.clone());
    let session = CancellationToken::new();
    let work = serve_session(server, transport, session.clone());
    let mut work = Box::pin(work);
    tokio::select! {
        done = &mut work => return done,
        () = ended.cancelled() => {
            if let Ok(done) = tokio::time::timeout(FINISHING, &mut work).await {
                return done;
            }
        }
        () = stop.cancelled() => {}
    }
    gone.cancel();
    session.cancel();
    match tokio::time::timeout(STOPPING, work).await {
        Ok(done) => done,
        Err(_late) => {
            tracing::warn!("a call was still running when the client left");
            Ok(())
        }
    }
}

async fn serve_session(
    server: Server,
    transport: LineTransport<rmcp::transport::StdioReader>,
    session: CancellationToken,
) -> anyhow::Result<()> {
    match server.serve_with_ct(transport, session).await {
        Ok(running) => {
            let reason = running.waiting().await?;
            tracing::debug!(?reason, "the client left");
            Ok(())
        }
        // It left before it said who it is.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
