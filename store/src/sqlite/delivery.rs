//! What is to be posted, and what stands on the platforms.

use openpact_runtime::id;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::channel;
use super::problem::Problem;
use super::session;
use super::word::{List, json};
use crate::model::{At, Delivery, NewDelivery};

/// Failed deliveries that one turn tells the engine about; the next turns tell the rest.
const TOLD: u32 = 32;

const SELECT: &str = "
    SELECT d.id, d.turn, c.provider, c.channel, c.thread, d.kind, d.text, d.reply_to, d.buttons,
        d.answers, d.attempt,
        (SELECT json_group_array(piece ORDER BY piece) FROM pieces WHERE delivery = d.id)
    FROM deliveries d JOIN channels c ON c.key = d.channel";

/// Why something is posted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cause<'a> {
    /// A turn ended.
    Turn { turn: &'a str, session: &'a str, answers: &'a [String] },
    /// A command is answered.
    Command { command: &'a str },
    /// Somebody asked for it, under an id of their own.
    Request { request: &'a str },
}

/// Queues `new`; its id. What it answers is told by its cause, if that knows.
pub(super) fn queue(
    db: &Connection,
    new: &NewDelivery,
    cause: Cause<'_>,
) -> Result<String, Problem> {
    let channel = channel::ensure(db, &new.place)?;
    // The channel has a session from its first moment on, whoever spoke first.
    let current = session::current(db, channel)?;
    let (mut turn, mut command, mut request) = (None, None, None);
    let (session, answers) = match cause {
        Cause::Turn { turn: id, session, answers } => {
            turn = Some(id);
            (session, json(answers))
        }
        Cause::Command { command: id } => {
            command = Some(id);
            (current.as_str(), json(&[id]))
        }
        Cause::Request { request: id } => {
            request = Some(id);
            (current.as_str(), json(&new.answers))
        }
    };
    let id = id::fresh();
    let insert = "
        INSERT INTO deliveries (id, provider, channel, session, turn, command, request, kind, text,
            reply_to, buttons, answers, queued_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    db.prepare_cached(insert)?.execute(params![
        id,
        new.place.provider,
        channel.0,
        session,
        turn,
        command,
        request,
        new.kind,
        new.text,
        new.reply_to,
        json(&new.buttons),
        answers,
        At::now(),
    ])?;
    Ok(id)
}

pub(super) fn queue_once(
    db: &Connection,
    request: &str,
    new: &NewDelivery,
) -> Result<String, Problem> {
    let select = "SELECT id FROM deliveries WHERE request = ?";
    match db.prepare_cached(select)?.query_row([request], |row| row.get(0)).optional()? {
        Some(id) => Ok(id),
        None => queue(db, new, Cause::Request { request }),
    }
}

pub(super) fn pending(
    db: &Connection,
    provider: &str,
    channels: &[String],
    after: &str,
    limit: u32,
) -> Result<Vec<Delivery>, Problem> {
    if channels.is_empty() {
        let select = format!(
            "{SELECT} WHERE d.provider = ? AND d.state = 'pending' AND d.id > ? \
             ORDER BY d.id LIMIT ?"
        );
        let mut select = db.prepare_cached(&select)?;
        let found = select.query_map(params![provider, after, limit], delivery)?;
        return Ok(found.collect::<Result<_, _>>()?);
    }
    // Other channels of the provider may have any number of their own.
    let select = format!(
        "{SELECT} WHERE d.id IN (
            SELECT p.id FROM channels w CROSS JOIN deliveries p ON p.channel = w.key
            WHERE w.provider = ?1 AND w.channel IN (SELECT value FROM json_each(?2))
                AND p.state = 'pending' AND p.id > ?3
            ORDER BY p.id LIMIT ?4)
        ORDER BY d.id"
    );
    let mut select = db.prepare_cached(&select)?;
    let wanted = params![provider, json(channels), after, limit];
    let found = select.query_map(wanted, delivery)?;
    Ok(found.collect::<Result<_, _>>()?)
}

pub(super) fn load(db: &Connection, id: &str) -> Result<Delivery, Problem> {
    let select = format!("{SELECT} WHERE d.id = ?");
    let found = db.prepare_cached(&select)?.query_row([id], delivery).optional()?;
    found.ok_or_else(|| Problem::missing("delivery", id))
}

pub(super) fn begin(db: &Connection, id: &str) -> Result<(), Problem> {
    let update = "UPDATE deliveries SET attempt = attempt + 1 WHERE id = ?";
    match db.prepare_cached(update)?.execute([id])? {
        0 => Err(Problem::missing("delivery", id)),
        _ => Ok(()),
    }
}

pub(super) fn confirm(
    db: &Connection,
    id: &str,
    piece: u32,
    pieces: u32,
    platform_message_id: &str,
) -> Result<bool, Problem> {
    require(db, id)?;
    let now = At::now();
    let insert = "INSERT INTO pieces (delivery, piece, platform_message_id, at) \
                  VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING";
    db.prepare_cached(insert)?.execute(params![id, piece, platform_message_id, now])?;
    let count = "SELECT count(*) FROM pieces WHERE delivery = ?";
    let there: u32 = db.prepare_cached(count)?.query_row([id], |row| row.get(0))?;
    if there >= pieces {
        // One that had been given up stands there after all.
        let update = "UPDATE deliveries SET state = 'done', ended_at = ?, reason = NULL \
                      WHERE id = ? AND state <> 'done'";
        db.prepare_cached(update)?.execute(params![now, id])?;
    }
    let done = "SELECT 1 FROM deliveries WHERE id = ? AND state = 'done'";
    Ok(db.prepare_cached(done)?.exists([id])?)
}

/// Gives a pending delivery up. What is done or given up stays as it is.
pub(super) fn fail(db: &Connection, id: &str, reason: &str) -> Result<(), Problem> {
    require(db, id)?;
    let update = "UPDATE deliveries SET state = 'failed', ended_at = ?, reason = ? \
                  WHERE id = ? AND state = 'pending'";
    db.prepare_cached(update)?.execute(params![At::now(), reason, id])?;
    Ok(())
}

pub(super) fn platform_messages(db: &Connection, id: &str) -> Result<Vec<String>, Problem> {
    require(db, id)?;
    let select = "SELECT platform_message_id FROM pieces WHERE delivery = ? ORDER BY piece";
    let mut select = db.prepare_cached(select)?;
    let found = select.query_map([id], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Leaves it to `turn` to tell the engine which deliveries of the session failed.
pub(super) fn tell(db: &Connection, session: &str, turn: &str) -> Result<(), Problem> {
    let update = "
        UPDATE deliveries SET told_in = ?1 WHERE id IN (
            SELECT id FROM deliveries
            WHERE session = ?2 AND state = 'failed' AND told_in IS NULL ORDER BY id LIMIT ?3)";
    db.prepare_cached(update)?.execute(params![turn, session, TOLD])?;
    Ok(())
}

/// `turn` didn't come to tell it: the next one will.
pub(super) fn untell(db: &Connection, turn: &str) -> Result<(), Problem> {
    db.prepare_cached("UPDATE deliveries SET told_in = NULL WHERE told_in = ?")?.execute([turn])?;
    Ok(())
}

/// What `turn` has to tell.
pub(super) fn told(db: &Connection, turn: &str) -> Result<Vec<String>, Problem> {
    let select = "SELECT reason FROM deliveries WHERE told_in = ? AND state = 'failed' ORDER BY id";
    let mut select = db.prepare_cached(select)?;
    let found = select.query_map([turn], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn require(db: &Connection, id: &str) -> Result<(), Problem> {
    match db.prepare_cached("SELECT 1 FROM deliveries WHERE id = ?")?.exists([id])? {
        true => Ok(()),
        false => Err(Problem::missing("delivery", id)),
    }
}

fn delivery(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        id: row.get(0)?,
        turn: row.get(1)?,
        new: NewDelivery {
            place: channel::place(row, 2)?,
            kind: row.get(5)?,
            text: row.get(6)?,
            reply_to: row.get(7)?,
            buttons: row.get::<_, List<_>>(8)?.0,
            answers: row.get::<_, List<_>>(9)?.0,
        },
        attempt: row.get(10)?,
        delivered_pieces: row.get::<_, List<_>>(11)?.0,
    })
}
