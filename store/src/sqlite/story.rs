//! What people and the MCP server ask: what was said, what happened, who it was.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::channel;
use super::problem::Problem;
use super::session;
use crate::model::{Caller, Counts, Line, TraceEntry, User};

/// Where the story of an id is gathered: messages, turns, journals, deliveries.
const TRACE: &str = include_str!("trace.sql");

pub(super) fn lines(db: &Connection, session: &str, limit: u32) -> Result<Vec<Line>, Problem> {
    session::require(db, session)?;
    // Commands and their answers are no part of the conversation.
    let select = "
        SELECT id, outgoing, author, text, at FROM (
            SELECT id, 0 AS outgoing, user_name AS author, text, accepted_at AS at
            FROM messages WHERE session = ?1 AND command = 0 ORDER BY id DESC LIMIT ?2)
        UNION ALL
        SELECT id, outgoing, author, text, at FROM (
            SELECT id, 1 AS outgoing, '' AS author, text, queued_at AS at
            FROM deliveries WHERE session = ?1 AND command IS NULL ORDER BY id DESC LIMIT ?2)
        ORDER BY id DESC LIMIT ?2";
    let mut select = db.prepare_cached(select)?;
    let found = select.query_map(params![session, limit], |row| {
        Ok(Line {
            id: row.get(0)?,
            outgoing: row.get(1)?,
            author: row.get(2)?,
            text: row.get(3)?,
            at: row.get(4)?,
        })
    })?;
    let mut lines = found.collect::<Result<Vec<_>, _>>()?;
    lines.reverse();
    Ok(lines)
}

pub(super) fn counts(db: &Connection) -> Result<Counts, Problem> {
    let select = "
        SELECT (SELECT count(*) FROM turns WHERE state = 'running'),
            (SELECT count(*) FROM messages WHERE state = 'waiting'),
            (SELECT count(*) FROM deliveries WHERE state = 'pending')";
    Ok(db.prepare_cached(select)?.query_row([], |row| {
        Ok(Counts {
            running_turns: row.get(0)?,
            waiting_messages: row.get(1)?,
            pending_deliveries: row.get(2)?,
        })
    })?)
}

pub(super) fn trace(db: &Connection, id: &str, limit: u32) -> Result<Vec<TraceEntry>, Problem> {
    let mut select = db.prepare_cached(TRACE)?;
    let found = select.query_map(params![id, limit], |row| {
        let kind: String = row.get(1)?;
        Ok(TraceEntry {
            at: row.get(0)?,
            kind: match kind.as_str() {
                "message" => "message",
                "turn" => "turn",
                "event" => "event",
                _ => "delivery",
            },
            id: row.get(2)?,
            text: row.get(3)?,
        })
    })?;
    let mut entries = found.collect::<Result<Vec<_>, _>>()?;
    entries.reverse();
    Ok(entries)
}

pub(super) fn caller(db: &Connection, engine_session: &str) -> Result<Option<Caller>, Problem> {
    // Of the running turn's messages the newest; with no turn running, the session's last.
    let select = "
        SELECT s.id, c.provider, c.channel, c.thread, m.user_id, m.user_name
        FROM sessions s
        JOIN channels c ON c.key = s.channel
        JOIN messages m ON m.id = coalesce(
            (SELECT max(r.id) FROM messages r WHERE r.session = s.id AND r.state = 'in turn'),
            (SELECT max(l.id) FROM messages l WHERE l.session = s.id AND l.command = 0))
        WHERE s.engine_session = ?";
    let found = db.prepare_cached(select)?.query_row([engine_session], |row| {
        Ok(Caller {
            session: row.get(0)?,
            place: channel::place(row, 1)?,
            user: User { id: row.get(4)?, name: row.get(5)? },
        })
    });
    Ok(found.optional()?)
}
