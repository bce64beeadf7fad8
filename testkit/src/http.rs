//! An HTTP server that can do what servers do when they break: cut a
//! connection with a reset, in the middle of an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use futures_util::stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The way to cut the connection that a request came on. A handler gets it as
/// `ConnectInfo<Line>`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    cut: Arc<AtomicBool>,
}

impl Connected<IncomingStream<'_, Lines>> for Line {
    fn connect_info(stream: IncomingStream<'_, Lines>) -> Self {
        stream.remote_addr().clone()
    }
}

/// A running server. Dropping it closes the port and every connection.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Server {
    /// Serves what `routes` makes at `address`. The routes get the server's
    /// owner of tasks, and its stop.
    pub(crate) async fn start(
        address: SocketAddr,
        routes: impl FnOnce(&TaskTracker, &CancellationToken) -> Router,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let routes = routes(&tasks, &stop);
        let service = routes.into_make_service_with_connect_info::<Line>();
        let lines = Lines { listener, stop: stop.clone() };
        let until = stop.clone().cancelled_owned();
        tasks.spawn(async move {
            let served = axum::serve(lines, service).with_graceful_shutdown(until).await;
            if let Err(error) = served {
                tracing::warn!(%error, "a fake's server ended");
            }
        });
        tasks.close();
        Ok(Self { address, stop, tasks })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes everything and waits until the port is free again.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Accepts connections that can be cut.
pub(crate) struct Lines {
    listener: TcpListener,
    stop: CancellationToken,
}

impl Listener for Lines {
    type Io = Cuttable;
    type Addr = Line;

    async fn accept(&mut self) -> (Cuttable, Line) {
        let (stream, _) = Listener::accept(&mut self.listener).await;
        // Pieces of a stream are to arrive when they are written.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection stays slow");
        }
        let line = Line::default();
        let stopped = Box::pin(self.stop.clone().cancelled_owned());
        (Cuttable { stream, stopped, line: line.clone() }, line)
    }

    fn local_addr(&self) -> io::Result<Line> {
        Ok(Line::default())
    }
}

/// A connection that ends with a reset instead of a farewell once its [`Line`]
/// is cut, and with an error once its server stops.
pub(crate) struct Cuttable {
    stream: TcpStream,
    stopped: Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>,
    line: Line,
}

impl Cuttable {
    fn is_cut(&self) -> bool {
        self.line.cut.load(Ordering::Acquire)
    }

    fn poll_stopped(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.stopped.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl Drop for Cuttable {
    fn drop(&mut self) {
        if self.is_cut()
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(%error, "a connection is closed in good manners");
        }
    }
}

impl AsyncRead for Cuttable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_stopped(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Cuttable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_cut() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// What a handler writes its answer's body with.
#[derive(Debug)]
pub(crate) struct Writer(mpsc::Sender<Frame>);

#[derive(Debug)]
enum Frame {
    Bytes(Bytes),
    Cut,
}

/// The client isn't listening any more.
#[derive(Debug)]
pub(crate) struct Gone;

impl Writer {
    pub(crate) async fn write(&self, bytes: impl Into<Bytes>) -> Result<(), Gone> {
        self.0.send(Frame::Bytes(bytes.into())).await.map_err(|_| Gone)
    }

    /// Resets the connection once what was written before is on its way.
    pub(crate) async fn cut(&self) -> Gone {
        // The client may have left by itself; gone is gone.
        let _sent = self.0.send(Frame::Cut).await;
        Gone
    }

    /// Waits until the client leaves.
    pub(crate) async fn closed(&self) -> Gone {
        self.0.closed().await;
        Gone
    }
}

/// A body and what writes it. The body ends when the writer is dropped.
pub(crate) fn body(line: Line) -> (Writer, Body) {
    let (sender, mut frames) = mpsc::channel(16);
    let mut cutting = false;
    let stream = stream::poll_fn(move |context| {
        if cutting {
            line.cut.store(true, Ordering::Release);
            return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::ConnectionReset))));
        }
        match frames.poll_recv(context) {
            Poll::Ready(Some(Frame::Bytes(bytes))) => Poll::Ready(Some(Ok(bytes))),
            // A body that is not ready makes the server flush what it has; a
            // body that failed makes it throw that away.
            Poll::Ready(Some(Frame::Cut)) => {
                cutting = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    });
    (Writer(sender), Body::from_stream(stream))
}
