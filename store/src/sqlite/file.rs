//! The database's file: found to be ours, locked, and brought up to date.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::problem::database;
use crate::StoreError;

/// `OpnP`, in the file's header: what makes a database ours.
const APPLICATION: i32 = i32::from_be_bytes(*b"OpnP");
/// Each brings the schema from the version that equals its index to the next.
const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/0001_start.sql")];
/// How long an earlier process may take to let go.
const LOCKED: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// How long a statement waits for another connection, such as a backup's.
pub(super) const BUSY: Duration = Duration::from_secs(10);
/// Prepared statements kept by a connection; more than there are.
pub(super) const STATEMENTS: usize = 96;
const DOING: &str = "open the database";

/// An open database.
#[derive(Debug)]
pub(super) struct Opened {
    /// For writing.
    pub(super) connection: Connection,
    /// Keeps other processes out for as long as it's open.
    pub(super) lock: File,
}

#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error(
        "`{}` is not a database of OpenPact's orchestrator: move it away, or use another workspace",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error("another process uses `{}`: stop that one first", path.display())]
    Locked { path: PathBuf },
    #[error(
        "the file system of `{}` can't keep a write-ahead log: put the workspace onto a local disk",
        path.display()
    )]
    NoLog { path: PathBuf },
    #[error("`{}` can't be used", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` can't be used", path.display())]
    Sqlite {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
}

/// Opens `path` for writing.
pub(super) fn open(path: &Path) -> Result<Opened, StoreError> {
    let lock = prepare(path).map_err(|error| database(DOING, error))?;
    let sqlite = |source: rusqlite::Error| {
        let path = path.to_owned();
        database(
            DOING,
            match source.sqlite_error_code() {
                Some(ErrorCode::NotADatabase) => OpenError::Foreign { path },
                _ => OpenError::Sqlite { path, source },
            },
        )
    };
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(sqlite)?;
    check(path, &connection, sqlite)?;
    let mode: String = connection
        .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))
        .map_err(sqlite)?;
    if mode != "wal" {
        return Err(database(DOING, OpenError::NoLog { path: path.to_owned() }));
    }
    migrate(&mut connection, MIGRATIONS.len())
        .and_then(|()| configure(&connection))
        .and_then(|()| continue_ids(&connection))
        .map_err(sqlite)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|source| database(DOING, OpenError::Io { path: path.to_owned(), source }))?;
    Ok(Opened { connection, lock })
}

/// A connection as both the writer and the readers need it.
pub(super) fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Makes folder and file if they're missing, and keeps other processes out.
fn prepare(path: &Path) -> Result<File, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    openpact_runtime::file::create_dir(folder, 0o700).map_err(io)?;
    let lock = lock(path, LOCKED)?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        // SQLite syncs the folder for its log, but not for the database.
        Ok(_) => File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::metadata(path).map_err(io)?;
            // SQLite takes a file of one byte for an empty one.
            if !found.is_file() || found.len() == 1 {
                return Err(OpenError::Foreign { path: path.to_owned() });
            }
        }
        Err(error) => return Err(io(error)),
    }
    Ok(lock)
}

/// Two orchestrators on one database would answer everything twice.
///
/// The lock is on a file of its own, since SQLite's locks on the database end
/// when any handle of it is closed. The kernel drops it with the process.
fn lock(path: &Path, patience: Duration) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let io = |source| OpenError::Io { path: name.clone(), source };
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(&name);
    let file = file.map_err(io)?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::Locked { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
    }
}

/// Refuses what isn't ours before anything is changed.
fn check(
    path: &Path,
    connection: &Connection,
    sqlite: impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = number("application_id")
        .and_then(|id| Ok((id, number("user_version")?)))
        .map_err(&sqlite)?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(&sqlite)?;
    let is_new = application == 0 && version == 0 && tables == 0;
    let found = match u32::try_from(version) {
        Ok(found) if application == APPLICATION || is_new => found,
        _ => return Err(database(DOING, OpenError::Foreign { path: path.to_owned() })),
    };
    let known = u32::try_from(MIGRATIONS.len()).expect("there are few migrations");
    if found > known {
        return Err(StoreError::Version { path: path.display().to_string(), found, known });
    }
    Ok(())
}

/// Applies what is missing up to the version `to`, each step in one transaction.
fn migrate(connection: &mut Connection, to: usize) -> rusqlite::Result<()> {
    let version: usize =
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize;
    for (done, migration) in (1_u32..).zip(MIGRATIONS).take(to).skip(version) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", done)?;
        transaction.commit()?;
        tracing::info!(version = done, "the database was brought up to date");
    }
    Ok(())
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    // What was acknowledged outlives a power cut.
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // A burst doesn't leave a huge log behind.
    connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)
}

/// The order of ids is the order of arrival, whatever the clock did meanwhile.
fn continue_ids(connection: &Connection) -> rusqlite::Result<()> {
    const LAST: &str = "
        SELECT max(id) FROM (
            SELECT max(id) AS id FROM sessions UNION ALL SELECT max(id) FROM messages
            UNION ALL SELECT max(id) FROM turns UNION ALL SELECT max(id) FROM deliveries
        )";
    let last: Option<String> = connection.query_row(LAST, [], |row| row.get(0))?;
    if let Some(last) = last {
        openpact_runtime::id::continue_after(&last);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
