//! Reads: a few read-only connections, used on blocking threads.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::file;
use super::problem::{Problem, Unanswered, database};
use crate::StoreError;

/// Reads at once; more wait.
const CONNECTIONS: usize = 4;

/// The connections that reads take turns with.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Readers {
    /// Opens nothing until something is read.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, places: Arc::new(Semaphore::new(CONNECTIONS)), idle: Arc::default() }
    }

    /// Runs `work` on one moment's state.
    pub(super) async fn run<T, F>(&self, doing: &'static str, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Problem> + Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await;
        let place = place.map_err(|_closed| database(doing, Unanswered::Closed))?;
        let (path, idle) = (self.path.clone(), Arc::clone(&self.idle));
        let reading = tokio::task::spawn_blocking(move || {
            // Given back when the work is done, even if its caller went away.
            let _place = place;
            let known = connections(&idle).pop();
            let mut connection = match known {
                Some(connection) => connection,
                None => connect(&path)?,
            };
            let found = connection.transaction().map_err(Problem::from).and_then(|it| work(&it));
            // One that failed may be broken; the next read opens a new one.
            if !matches!(found, Err(Problem::Sqlite(_))) {
                connections(&idle).push(connection);
            }
            found
        });
        match reading.await {
            Ok(found) => found.map_err(|problem| problem.explain(doing)),
            Err(_) => Err(database(doing, Unanswered::Panicked)),
        }
    }

    /// Lets go of connections that nothing uses.
    pub(super) fn close(&self) {
        connections(&self.idle).clear();
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = file::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // In KiB if negative. The kernel caches the file anyway.
    connection.pragma_update(None, "cache_size", -512)?;
    Ok(connection)
}

fn connections(idle: &Mutex<Vec<Connection>>) -> MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}
