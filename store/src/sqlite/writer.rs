//! Changes: one thread that lets those of concurrent callers share a commit.
//!
//! It takes what waits, runs each job in a savepoint of one transaction, commits
//! once and answers all. While it waits for the disk, the next jobs gather, so a
//! lone job never waits for company.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::file::Opened;
use super::problem::{Problem, Unanswered, database};
use crate::StoreError;

/// Jobs that may wait; more make their callers wait.
const QUEUE: usize = 1024;
/// Bytes that jobs in the queue may hold.
const QUEUE_BYTES: usize = 64 * 1024 * 1024;
/// Jobs in one transaction at most.
const BATCH: usize = 256;
/// Bytes after which a transaction takes no further job.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The writing thread, seen from outside.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` only while it's dropped.
    orders: Option<mpsc::Sender<Order>>,
    bytes: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Order {
    Run(Box<dyn Job>),
    Stop,
}

/// A change whose result has any type.
trait Job: Send {
    /// `true`: keep what it did. An error: SQLite gave up the whole transaction.
    fn run(&mut self, db: &Connection) -> rusqlite::Result<bool>;
    /// Tells the caller, once it's decided whether the transaction stands.
    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>);
    fn bytes(&self) -> usize;
}

struct Task<T, F> {
    doing: &'static str,
    work: Option<F>,
    /// `None` after it ran: it panicked.
    result: Option<Result<T, StoreError>>,
    caller: oneshot::Sender<Result<T, StoreError>>,
    bytes: OwnedSemaphorePermit,
}

impl Writer {
    /// Starts the thread. It ends when this is closed or dropped.
    pub(super) fn start(opened: Opened) -> Result<Self, StoreError> {
        let (orders, queue) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || write(opened, queue))
            .map_err(|error| database("start the store's thread", error))?;
        let bytes = Arc::new(Semaphore::new(QUEUE_BYTES));
        Ok(Self { orders: Some(orders), bytes, thread: Mutex::new(Some(thread)) })
    }

    /// Runs `work` in order of arrival; answers when it's on the disk.
    ///
    /// A caller that goes away once its work is queued doesn't undo it.
    pub(super) async fn run<T, F>(
        &self,
        doing: &'static str,
        bytes: usize,
        work: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Problem> + Send + 'static,
    {
        let closed = || database(doing, Unanswered::Closed);
        // What is larger than the whole bound comes alone.
        let weight = u32::try_from(bytes.clamp(1, QUEUE_BYTES)).unwrap_or(u32::MAX);
        let held = Arc::clone(&self.bytes).acquire_many_owned(weight).await;
        let held = held.map_err(|_closed| closed())?;
        let (caller, answer) = oneshot::channel();
        let task = Task { doing, work: Some(work), result: None, caller, bytes: held };
        let orders = self.orders.as_ref().ok_or_else(closed)?;
        orders.send(Order::Run(Box::new(task))).await.map_err(|_closed| closed())?;
        answer.await.map_err(|_dropped| closed())?
    }

    /// Waits until what was queued is written and the database is closed.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        const DOING: &str = "close the database";
        if let Some(orders) = &self.orders {
            // An error: it was closed before.
            drop(orders.send(Order::Stop).await);
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(database(DOING, Unanswered::Panicked)),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.orders.take());
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the store's thread panicked");
        }
    }
}

fn write(opened: Opened, mut queue: mpsc::Receiver<Order>) {
    let Opened { connection, lock } = opened;
    let mut batch: Vec<Box<dyn Job>> = Vec::new();
    while let Some(first) = queue.blocking_recv() {
        let (mut next, mut bytes) = (Some(first), 0);
        while let Some(order) = next {
            match order {
                Order::Run(job) => {
                    bytes += job.bytes();
                    batch.push(job);
                }
                // What is in the queue still gets done.
                Order::Stop => queue.close(),
            }
            let is_full = batch.len() >= BATCH || bytes >= BATCH_BYTES;
            next = if is_full { None } else { queue.try_recv().ok() };
        }
        run(&connection, &mut batch);
    }
    // A log that stays behind is read by the next start.
    let merged = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = merged.and_then(|()| connection.close().map_err(|(_, error)| error)) {
        tracing::warn!(%error, "the database was not closed cleanly; nothing is lost");
    }
    drop(lock);
}

/// Runs and answers `batch`.
fn run(db: &Connection, batch: &mut Vec<Box<dyn Job>>) {
    let committed = transact(db, batch).map_err(Arc::new);
    if let Err(error) = &committed {
        tracing::error!(%error, jobs = batch.len(), "a commit failed");
        if !db.is_autocommit()
            && let Err(error) = db.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction can't be rolled back");
        }
    }
    for job in batch.drain(..) {
        job.answer(committed.clone());
    }
}

fn transact(db: &Connection, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let execute = |sql| db.prepare_cached(sql)?.execute([]).map(|_| ());
    execute("BEGIN IMMEDIATE")?;
    for job in batch {
        execute("SAVEPOINT job")?;
        if !job.run(db)? {
            execute("ROLLBACK TO job")?;
        }
        execute("RELEASE job")?;
    }
    execute("COMMIT")
}

impl<T, F> Job for Task<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Problem> + Send,
{
    fn run(&mut self, db: &Connection) -> rusqlite::Result<bool> {
        let Some(work) = self.work.take() else { return Ok(false) };
        // The savepoint undoes what a panic left half done.
        match catch_unwind(AssertUnwindSafe(|| work(db))) {
            // Disk full and the like: the others of the batch are gone as well.
            Ok(Err(Problem::Sqlite(error))) if db.is_autocommit() => Err(error),
            Ok(result) => {
                let keep = result.is_ok();
                self.result = Some(result.map_err(|problem| problem.explain(self.doing)));
                Ok(keep)
            }
            Err(_) => {
                tracing::error!(doing = self.doing, "a change to the store panicked");
                Ok(false)
            }
        }
    }

    fn answer(self: Box<Self>, committed: Result<(), Arc<rusqlite::Error>>) {
        let Self { doing, result, caller, .. } = *self;
        let panicked = || Err(database(doing, Unanswered::Panicked));
        let answer = match committed {
            Ok(()) => result.unwrap_or_else(panicked),
            Err(error) => Err(database(doing, error)),
        };
        // A caller that went away no longer listens; its change stands all the same.
        drop(caller.send(answer));
    }

    fn bytes(&self) -> usize {
        self.bytes.num_permits()
    }
}

#[cfg(test)]
mod tests;
