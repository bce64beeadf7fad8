//! The thread that writes the log.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{AuditError, Entry, table};

/// Calls that may wait to be written; more make their callers wait.
const QUEUE: usize = 1024;
/// Entries that go into one transaction at most.
const BATCH: usize = 256;

/// Writes the audit log in a thread of its own.
///
/// Nothing is opened and no thread runs until the first entry. Dropping it
/// waits until what was handed over is written. Several processes may write to
/// one log.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    writer: Mutex<Option<Writer>>,
}

#[derive(Debug)]
struct Writer {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Job {
    /// `None` asks only whether the log can be written.
    entry: Option<Entry>,
    done: oneshot::Sender<Result<(), AuditError>>,
}

impl AuditLog {
    /// A log in the SQLite database `path`.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, writer: Mutex::new(None) }
    }

    /// Adds `entry`. Once this returns, the entry outlives this process.
    ///
    /// Concurrent entries share a transaction.
    pub async fn append(&self, entry: Entry) -> Result<(), AuditError> {
        self.send(Some(entry)).await
    }

    /// Makes sure that the log can be written, so that nothing is done that
    /// couldn't be recorded.
    pub async fn ready(&self) -> Result<(), AuditError> {
        self.send(None).await
    }

    async fn send(&self, entry: Option<Entry>) -> Result<(), AuditError> {
        let jobs = self.jobs()?;
        let (done, answer) = oneshot::channel();
        jobs.send(Job { entry, done }).await.map_err(|_closed| AuditError::Closed)?;
        answer.await.map_err(|_closed| AuditError::Closed)?
    }

    fn jobs(&self) -> Result<mpsc::Sender<Job>, AuditError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = &*writer {
            return Ok(writer.jobs.clone());
        }
        let (jobs, queue) = mpsc::channel(QUEUE);
        let path = self.path.clone();
        let thread = std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || write(&path, queue))
            .map_err(|error| {
                tracing::error!(%error, "the audit log's thread does not start");
                AuditError::Closed
            })?;
        *writer = Some(Writer { jobs: jobs.clone(), thread });
        Ok(jobs)
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Writer { jobs, thread }) = writer {
            drop(jobs);
            if thread.join().is_err() {
                tracing::error!("the audit log's thread panicked");
            }
        }
    }
}

fn write(path: &Path, mut queue: mpsc::Receiver<Job>) {
    let mut connection = None;
    let mut batch = Vec::new();
    while let Some(first) = queue.blocking_recv() {
        batch.push(first);
        while batch.len() < BATCH
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        let written = write_batch(path, &mut connection, &batch);
        if let Err(error) = &written {
            let error = openpact_runtime::chain(error);
            tracing::error!(%error, entries = batch.len(), "the audit log is not written");
            // A database that was replaced or came back is tried afresh.
            connection = None;
        }
        for job in batch.drain(..) {
            // A caller that was cancelled no longer listens; its entry is written all the same.
            let _heard = job.done.send(written.clone());
        }
    }
}

fn write_batch(
    path: &Path,
    connection: &mut Option<Connection>,
    batch: &[Job],
) -> Result<(), AuditError> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(table::open(path).map_err(|source| AuditError::Open {
            path: path.to_owned(),
            source: Arc::new(source),
        })?),
    };
    let mut entries = batch.iter().filter_map(|job| job.entry.as_ref()).peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    table::append(connection, entries)
        .map_err(|source| AuditError::Database { doing: "write", source: Arc::new(source) })
}

#[cfg(test)]
mod tests;
