//! Turns, their attempts and their journals.

use openpact_runtime::id;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::delivery::{self, Cause};
use super::problem::Problem;
use super::{channel, message, session};
use crate::model::{At, Event, NewDelivery, Outcome, Turn};

/// An entry of a journal as it's kept.
#[derive(Debug)]
pub(super) struct Entry {
    kind: String,
    detail: String,
}

impl From<Event> for Entry {
    fn from(event: Event) -> Self {
        Self { kind: event.kind, detail: event.detail.to_string() }
    }
}

impl Entry {
    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.kind.len() + self.detail.len()
    }
}

pub(super) fn begin(db: &Connection, session: &str, limit: u32) -> Result<Option<Turn>, Problem> {
    session::require(db, session)?;
    let running = "SELECT 1 FROM turns WHERE session = ? AND state = 'running'";
    if db.prepare_cached(running)?.exists([session])? || !has_waiting(db, session)? || limit == 0 {
        return Ok(None);
    }
    let id = id::fresh();
    let insert = "INSERT INTO turns (id, session, state, started_at) VALUES (?, ?, 'running', ?)";
    db.prepare_cached(insert)?.execute(params![id, session, At::now()])?;
    message::join_turn(db, session, &id, limit)?;
    session::count_turn(db, session)?;
    delivery::tell(db, session, &id)?;
    load(db, &id).map(Some)
}

pub(super) fn running(db: &Connection) -> Result<Vec<Turn>, Problem> {
    // The plus keeps SQLite from walking through all turns for the order's sake.
    let select = "SELECT id FROM turns WHERE state = 'running' ORDER BY +id";
    let mut select = db.prepare_cached(select)?;
    let ids = select.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    ids.iter().map(|id| load(db, id)).collect()
}

pub(super) fn begin_attempt(
    db: &Connection,
    turn: &str,
    engine_message: &str,
) -> Result<u32, Problem> {
    let state = "SELECT 1 FROM turns WHERE id = ? AND state = 'running'";
    if !db.prepare_cached(state)?.exists([turn])? {
        return Err(Problem::missing("running turn", turn));
    }
    let insert = "
        INSERT INTO attempts (turn, attempt, engine_message, at)
        SELECT ?1, 1 + coalesce(max(attempt), 0), ?2, ?3 FROM attempts WHERE turn = ?1
        RETURNING attempt";
    let attempt = params![turn, engine_message, At::now()];
    Ok(db.prepare_cached(insert)?.query_row(attempt, |row| row.get(0))?)
}

pub(super) fn append(db: &Connection, turn: &str, events: &[Entry]) -> Result<(), Problem> {
    if !db.prepare_cached("SELECT 1 FROM turns WHERE id = ?")?.exists([turn])? {
        return Err(Problem::missing("turn", turn));
    }
    let last = "SELECT coalesce(max(seq), 0) FROM events WHERE turn = ?";
    let last: i64 = db.prepare_cached(last)?.query_row([turn], |row| row.get(0))?;
    let insert = "INSERT INTO events (turn, seq, at, kind, detail) VALUES (?, ?, ?, ?, ?)";
    let mut insert = db.prepare_cached(insert)?;
    let now = At::now();
    for (seq, event) in (last + 1..).zip(events) {
        insert.execute(params![turn, seq, now, event.kind, event.detail])?;
    }
    Ok(())
}

pub(super) fn end(
    db: &Connection,
    turn: &str,
    outcome: Outcome,
    last: &Entry,
    deliveries: &[NewDelivery],
) -> Result<bool, Problem> {
    let update = "UPDATE turns SET state = ?, ended_at = ? WHERE id = ? AND state = 'running' \
                  RETURNING session";
    let session: Option<String> = db
        .prepare_cached(update)?
        .query_row(params![outcome, At::now(), turn], |row| row.get(0))
        .optional()?;
    let Some(session) = session else {
        let known = db.prepare_cached("SELECT 1 FROM turns WHERE id = ?")?.exists([turn])?;
        return if known { Ok(false) } else { Err(Problem::missing("turn", turn)) };
    };
    append(db, turn, std::slice::from_ref(last))?;
    message::end_turn(db, turn)?;
    match outcome {
        Outcome::Answered => {}
        Outcome::Failed | Outcome::Cancelled => delivery::untell(db, turn)?,
    }
    let answers = message::ids_of_turn(db, turn)?;
    for new in deliveries {
        delivery::queue(db, new, Cause::Turn { turn, session: &session, answers: &answers })?;
    }
    Ok(true)
}

fn has_waiting(db: &Connection, session: &str) -> Result<bool, Problem> {
    let select = "SELECT 1 FROM messages WHERE session = ? AND state = 'waiting'";
    Ok(db.prepare_cached(select)?.exists([session])?)
}

fn load(db: &Connection, id: &str) -> Result<Turn, Problem> {
    let select = "SELECT session, started_at FROM turns WHERE id = ?";
    let (session, started_at): (String, At) = db
        .prepare_cached(select)?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or_else(|| Problem::missing("turn", id))?;
    let select = "SELECT attempt, engine_message FROM attempts WHERE turn = ? \
                  ORDER BY attempt DESC LIMIT 1";
    let last = db
        .prepare_cached(select)?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (attempt, engine_message) = last.unzip();
    Ok(Turn {
        id: id.to_owned(),
        channel: channel::of_session(db, &session)?,
        session: session::load(db, &session)?,
        messages: message::of_turn(db, id)?,
        attempt: attempt.unwrap_or(0),
        engine_message,
        started_at,
        undelivered: delivery::told(db, id)?,
    })
}
