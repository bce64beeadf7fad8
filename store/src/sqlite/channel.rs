//! Channels and what is set for them.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::problem::Problem;
use crate::model::{Channel, Mode, Place};

/// The database's own number of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(pub(super) i64);

const SELECT: &str = "
    SELECT c.provider, c.channel, c.thread, s.id, c.mode, c.model
    FROM channels c JOIN sessions s ON s.channel = c.key AND s.current = 1";

/// The key of `place`, which is made known if it isn't.
///
/// Whoever calls it gives a new channel its session: see `session::current`.
pub(super) fn ensure(db: &Connection, place: &Place) -> Result<Key, Problem> {
    if let Some(key) = key(db, place)? {
        return Ok(key);
    }
    let insert = "INSERT INTO channels (provider, channel, thread) VALUES (?, ?, ?) RETURNING key";
    let place = params![place.provider, place.channel, place.thread];
    Ok(db.prepare_cached(insert)?.query_row(place, |row| row.get(0).map(Key))?)
}

pub(super) fn key(db: &Connection, place: &Place) -> Result<Option<Key>, Problem> {
    let select = "SELECT key FROM channels WHERE provider = ? AND channel = ? AND thread = ?";
    let place = params![place.provider, place.channel, place.thread];
    Ok(db.prepare_cached(select)?.query_row(place, |row| row.get(0).map(Key)).optional()?)
}

pub(super) fn find(db: &Connection, place: &Place) -> Result<Option<Channel>, Problem> {
    let Some(Key(key)) = key(db, place)? else { return Ok(None) };
    let select = format!("{SELECT} WHERE c.key = ?");
    Ok(db.prepare_cached(&select)?.query_row([key], channel).optional()?)
}

/// The channel that a session belongs to.
pub(super) fn of_session(db: &Connection, session: &str) -> Result<Channel, Problem> {
    let select = format!("{SELECT} WHERE c.key = (SELECT channel FROM sessions WHERE id = ?)");
    let found = db.prepare_cached(&select)?.query_row([session], channel).optional()?;
    found.ok_or_else(|| Problem::missing("session", session))
}

pub(super) fn set_mode(db: &Connection, key: Key, mode: Mode) -> Result<(), Problem> {
    let update = "UPDATE channels SET mode = ? WHERE key = ?";
    db.prepare_cached(update)?.execute(params![mode, key.0])?;
    Ok(())
}

pub(super) fn set_model(db: &Connection, key: Key, model: Option<&str>) -> Result<(), Problem> {
    let update = "UPDATE channels SET model = ? WHERE key = ?";
    db.prepare_cached(update)?.execute(params![model, key.0])?;
    Ok(())
}

/// A place in three columns from `first` on.
pub(super) fn place(row: &Row<'_>, first: usize) -> rusqlite::Result<Place> {
    Ok(Place {
        provider: row.get(first)?,
        channel: row.get(first + 1)?,
        thread: row.get(first + 2)?,
    })
}

fn channel(row: &Row<'_>) -> rusqlite::Result<Channel> {
    Ok(Channel {
        place: place(row, 0)?,
        session: row.get(3)?,
        mode: row.get(4)?,
        model: row.get(5)?,
    })
}
