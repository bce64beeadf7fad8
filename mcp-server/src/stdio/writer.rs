//! The one writer of standard output.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Lines that may wait to be written; a client that doesn't read makes us wait.
const QUEUE: usize = 16;

/// Writes whole lines, one after the other, in a task of its own.
///
/// Whoever hands one over may be cancelled while waiting; a line is never
/// written by half for that.
#[derive(Debug)]
pub(super) struct LineWriter {
    lines: Option<mpsc::Sender<Vec<u8>>>,
    task: Option<JoinHandle<()>>,
}

impl LineWriter {
    /// Cancels `broken` when the output can't be written any more.
    pub(super) fn new<W>(output: W, broken: CancellationToken) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (lines, queue) = mpsc::channel(QUEUE);
        Self { lines: Some(lines), task: Some(tokio::spawn(write_all(output, queue, broken))) }
    }

    /// Hands over a line, without its `\n`.
    pub(super) fn write(
        &self,
        line: Vec<u8>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let lines = self.lines.clone();
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            lines.ok_or_else(closed)?.send(line).await.map_err(|_closed| closed())
        }
    }

    /// Waits until there is room for a line, and then hands it over at once.
    pub(super) async fn write_kept(&self, line: &mut Option<Vec<u8>>) -> io::Result<()> {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        let room = self.lines.as_ref().ok_or_else(closed)?.reserve().await;
        let room = room.map_err(|_closed| closed())?;
        if let Some(line) = line.take() {
            room.send(line);
        }
        Ok(())
    }

    /// Waits until all that was handed over is written.
    pub(super) async fn close(&mut self) -> io::Result<()> {
        self.lines = None;
        match self.task.take() {
            Some(task) => task.await.map_err(io::Error::other),
            None => Ok(()),
        }
    }
}

async fn write_all<W>(mut output: W, mut queue: mpsc::Receiver<Vec<u8>>, broken: CancellationToken)
where
    W: AsyncWrite + Unpin,
{
    while let Some(mut line) = queue.recv().await {
        line.push(b'\n');
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        if let Err(error) = written.await {
            tracing::debug!(%error, "standard output is closed");
            broken.cancel();
            return;
        }
    }
}
