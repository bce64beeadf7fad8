//! Sessions: each channel has one current session and any number of earlier ones.

use openpact_runtime::id;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::channel::{self, Key};
use super::problem::Problem;
use crate::model::{At, Place, Session};

const SELECT: &str = "
    SELECT s.id, c.provider, c.channel, c.thread, s.title, s.current, s.engine_session,
        s.created_at, s.used_at, s.turns
    FROM sessions s JOIN channels c ON c.key = s.channel";

/// The channel's current session, made if it has none yet.
pub(super) fn current(db: &Connection, channel: Key) -> Result<String, Problem> {
    let select = "SELECT id FROM sessions WHERE channel = ? AND current = 1";
    match db.prepare_cached(select)?.query_row([channel.0], |row| row.get(0)).optional()? {
        Some(session) => Ok(session),
        None => begin(db, channel, ""),
    }
}

/// A new session, which becomes the channel's current one.
pub(super) fn begin(db: &Connection, channel: Key, title: &str) -> Result<String, Problem> {
    retire(db, channel)?;
    let (id, now) = (id::fresh(), At::now());
    let insert = "INSERT INTO sessions (id, channel, title, current, created_at, used_at) \
                  VALUES (?, ?, ?, 1, ?, ?)";
    db.prepare_cached(insert)?.execute(params![id, channel.0, title, now, now])?;
    Ok(id)
}

/// Makes a session of this channel its current one.
pub(super) fn switch(db: &Connection, channel: Key, session: &str) -> Result<(), Problem> {
    retire(db, channel)?;
    let update = "UPDATE sessions SET current = 1 WHERE id = ? AND channel = ?";
    match db.prepare_cached(update)?.execute(params![session, channel.0])? {
        0 => Err(Problem::missing("session", session)),
        _ => Ok(()),
    }
}

fn retire(db: &Connection, channel: Key) -> Result<(), Problem> {
    let update = "UPDATE sessions SET current = 0 WHERE channel = ? AND current = 1";
    db.prepare_cached(update)?.execute([channel.0])?;
    Ok(())
}

/// A message went to it.
pub(super) fn touch(db: &Connection, session: &str, at: At) -> Result<(), Problem> {
    let update = "UPDATE sessions SET used_at = ? WHERE id = ?";
    db.prepare_cached(update)?.execute(params![at, session])?;
    Ok(())
}

pub(super) fn count_turn(db: &Connection, session: &str) -> Result<(), Problem> {
    let update = "UPDATE sessions SET turns = turns + 1 WHERE id = ?";
    db.prepare_cached(update)?.execute([session])?;
    Ok(())
}

pub(super) fn set_engine_session(
    db: &Connection,
    session: &str,
    engine_session: Option<&str>,
) -> Result<(), Problem> {
    let update = "UPDATE sessions SET engine_session = ? WHERE id = ?";
    match db.prepare_cached(update)?.execute(params![engine_session, session])? {
        0 => Err(Problem::missing("session", session)),
        _ => Ok(()),
    }
}

/// Fails if there is no such session.
pub(super) fn require(db: &Connection, id: &str) -> Result<(), Problem> {
    match db.prepare_cached("SELECT 1 FROM sessions WHERE id = ?")?.exists([id])? {
        true => Ok(()),
        false => Err(Problem::missing("session", id)),
    }
}

pub(super) fn load(db: &Connection, id: &str) -> Result<Session, Problem> {
    let select = format!("{SELECT} WHERE s.id = ?");
    let found = db.prepare_cached(&select)?.query_row([id], session).optional()?;
    found.ok_or_else(|| Problem::missing("session", id))
}

pub(super) fn list(
    db: &Connection,
    place: Option<&Place>,
    offset: u32,
    limit: u32,
) -> Result<Vec<Session>, Problem> {
    let newest_first = "ORDER BY s.used_at DESC, s.id DESC LIMIT ? OFFSET ?";
    let Some(place) = place else {
        let select = format!("{SELECT} {newest_first}");
        let mut select = db.prepare_cached(&select)?;
        let found = select.query_map(params![limit, offset], session)?;
        return Ok(found.collect::<Result<_, _>>()?);
    };
    let Some(Key(key)) = channel::key(db, place)? else { return Ok(Vec::new()) };
    let select = format!("{SELECT} WHERE s.channel = ? {newest_first}");
    let mut select = db.prepare_cached(&select)?;
    let found = select.query_map(params![key, limit, offset], session)?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        place: channel::place(row, 1)?,
        title: row.get(4)?,
        current: row.get(5)?,
        engine_session: row.get(6)?,
        created_at: row.get(7)?,
        used_at: row.get(8)?,
        turns: row.get(9)?,
    })
}
