//! The orchestrator's state in an SQLite file.
//!
//! One thread writes and lets the changes of concurrent callers share a commit
//! (`writer`); reads go to connections of their own (`readers`) and never wait
//! for it. `file` opens and migrates. What is asked of the database is in
//! `channel`, `session`, `message`, `turn`, `delivery` and `story`; those decide
//! nothing about transactions.

mod channel;
mod delivery;
mod file;
mod message;
mod problem;
mod readers;
mod session;
mod state;
mod story;
mod turn;
mod word;
mod writer;

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use self::problem::Problem;
use self::readers::Readers;
use self::writer::Writer;
use crate::StoreError;

/// A [`State`](crate::State) in an SQLite file.
///
/// Clones share it. One process at a time may have a file open; a second one is
/// refused. Needs a tokio runtime to be used, not to be opened.
#[derive(Debug, Clone)]
pub struct Sqlite {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    writer: Writer,
    readers: Readers,
}

impl Sqlite {
    /// Opens the database `path`, made with its folder if it's missing and
    /// brought up to this version if it's older.
    ///
    /// The file is for its owner alone. A file that is no database, somebody
    /// else's, or written by a newer OpenPact is refused and left as it is.
    /// Waits up to three seconds for another process to let go of it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let opened = file::open(path)?;
        let writer = Writer::start(opened)?;
        Ok(Self { inner: Arc::new(Inner { writer, readers: Readers::new(path.to_owned()) }) })
    }

    /// Writes what was handed over, moves all of it into the one file and lets
    /// go of it. Changes are refused from then on.
    ///
    /// Without it nothing is lost either: the next [`Sqlite::open`] finds it.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.inner.readers.close();
        self.inner.writer.close().await
    }

    /// A change: one savepoint of a shared transaction. `bytes` is about how
    /// much it holds in memory.
    async fn write<T, F>(&self, doing: &'static str, bytes: usize, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Problem> + Send + 'static,
    {
        self.inner.writer.run(doing, bytes, work).await
    }

    /// A look at one moment's state.
    async fn read<T, F>(&self, doing: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Problem> + Send + 'static,
    {
        self.inner.readers.run(doing, work).await
    }
}
