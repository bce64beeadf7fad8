//! The log's table: adding to it, reading it, checking its chain.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, TransactionBehavior, params};

use super::{AuditError, Decision, Entry, Outcome, Recorded, Verified, chain};

/// How long a writer waits for another process's transaction.
const BUSY: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS audit_log (
        sequence     INTEGER PRIMARY KEY,
        at_ms        INTEGER NOT NULL,
        client       TEXT NOT NULL,
        session      TEXT,
        call         TEXT,
        tool         TEXT NOT NULL,
        arguments    BLOB NOT NULL,
        decision     TEXT NOT NULL,
        rule         TEXT NOT NULL,
        outcome      TEXT NOT NULL,
        result_bytes INTEGER NOT NULL,
        duration_us  INTEGER NOT NULL,
        hash         BLOB NOT NULL
    ) STRICT;
    CREATE TRIGGER IF NOT EXISTS audit_log_keeps BEFORE DELETE ON audit_log
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
    CREATE TRIGGER IF NOT EXISTS audit_log_stays BEFORE UPDATE ON audit_log
        BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
";

const COLUMNS: &str = "sequence, at_ms, client, session, call, tool, arguments, decision, rule, \
                       outcome, result_bytes, duration_us, hash";

/// Opens the database for writing and makes the table if it's missing.
pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // WAL without a sync for each commit: an entry outlives the process that
    // wrote it, killed or not; only a power cut can take the last few.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    // The process that writes may be confined to the database's own folder.
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// Adds `entries` in one transaction, each chained to the one before it.
///
/// Takes the write lock first: several processes may add to one log.
pub(super) fn append<'a>(
    connection: &mut Connection,
    entries: impl Iterator<Item = &'a Entry>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let last = transaction
            .prepare_cached("SELECT sequence, hash FROM audit_log ORDER BY sequence DESC LIMIT 1")?
            .query_row([], |row| Ok((unsigned(row, 0)?, row.get::<_, [u8; 32]>(1)?)))
            .optional()?;
        let (mut sequence, mut previous) = last.unwrap_or((0, chain::START));
        let mut insert = transaction.prepare_cached(&format!(
            "INSERT INTO audit_log ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ))?;
        for entry in entries {
            sequence += 1;
            previous = chain::hash(&previous, sequence, entry);
            insert.execute(params![
                signed(sequence),
                entry.at_ms,
                entry.client,
                entry.session,
                entry.call,
                entry.tool,
                entry.arguments,
                entry.decision.as_str(),
                entry.rule,
                entry.outcome.as_str(),
                signed(entry.result_bytes),
                chain::micros(entry),
                previous,
            ])?;
        }
    }
    transaction.commit()
}

/// Entries after the sequence `after`, oldest first, at most `limit` of them.
pub fn read(path: &Path, after: u64, limit: usize) -> Result<Vec<Recorded>, AuditError> {
    let Some(connection) = open_to_read(path)? else { return Ok(Vec::new()) };
    let query =
        format!("SELECT {COLUMNS} FROM audit_log WHERE sequence > ? ORDER BY sequence ASC LIMIT ?");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare(&query)
        .and_then(|mut query| query.query_map(params![signed(after), limit], recorded)?.collect())
        .map_err(reading)
}

/// Walks the whole chain; the first entry that doesn't follow is an error.
///
/// A log that doesn't exist yet holds, with no entries.
pub fn verify(path: &Path) -> Result<Verified, AuditError> {
    let mut verified = Verified { entries: 0, head: chain::START };
    let Some(connection) = open_to_read(path)? else { return Ok(verified) };
    let mut query = connection
        .prepare(&format!("SELECT {COLUMNS} FROM audit_log ORDER BY sequence ASC"))
        .map_err(reading)?;
    let mut rows = query.query([]).map_err(reading)?;
    while let Some(row) = rows.next().map_err(reading)? {
        let expected = verified.entries + 1;
        let broken = AuditError::Broken { sequence: expected };
        // A field of a wrong type was put there by somebody else, too.
        let Ok(Recorded { sequence, entry, hash }) = recorded(row) else { return Err(broken) };
        if sequence != expected || chain::hash(&verified.head, sequence, &entry) != hash {
            return Err(broken);
        }
        verified = Verified { entries: sequence, head: hash };
    }
    Ok(verified)
}

fn open_to_read(path: &Path) -> Result<Option<Connection>, AuditError> {
    if !path.exists() {
        return Ok(None);
    }
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(
        |connection| {
            connection.busy_timeout(BUSY)?;
            let made = connection.table_exists(None, "audit_log")?;
            Ok(made.then_some(connection))
        },
    );
    opened.map_err(|source| AuditError::Open { path: path.to_owned(), source: Arc::new(source) })
}

fn reading(source: rusqlite::Error) -> AuditError {
    AuditError::Database { doing: "read", source: Arc::new(source) }
}

/// SQLite's integers are signed; no count of ours comes near their end.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(index)?;
    u64::try_from(value).map_err(|_negative| rusqlite::Error::IntegralValueOutOfRange(index, value))
}

fn recorded(row: &Row<'_>) -> rusqlite::Result<Recorded> {
    let word = |index: usize, word: String| {
        let unknown = format!("`{word}` is not a word of the audit log");
        rusqlite::Error::FromSqlConversionFailure(
            index,
            rusqlite::types::Type::Text,
            unknown.into(),
        )
    };
    let decision: String = row.get(7)?;
    let outcome: String = row.get(9)?;
    Ok(Recorded {
        sequence: unsigned(row, 0)?,
        entry: Entry {
            at_ms: row.get(1)?,
            client: row.get(2)?,
            session: row.get(3)?,
            call: row.get(4)?,
            tool: row.get(5)?,
            arguments: row.get(6)?,
            decision: Decision::parse(&decision).ok_or_else(|| word(7, decision))?,
            rule: row.get(8)?,
            outcome: Outcome::parse(&outcome).ok_or_else(|| word(9, outcome))?,
            result_bytes: unsigned(row, 10)?,
            duration: Duration::from_micros(unsigned(row, 11)?),
        },
        hash: row.get(12)?,
    })
}
