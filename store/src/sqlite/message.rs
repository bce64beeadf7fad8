//! Messages and commands that frontends handed in.

use openpact_runtime::id;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::channel::{self, Key};
use super::delivery::{self, Cause};
use super::problem::Problem;
use super::session;
use crate::StoreError;
use crate::model::{Accepted, At, Attachment, Effect, Message, NewDelivery, NewMessage, User};

pub(super) fn accept(
    db: &Connection,
    new: &NewMessage,
    waiting_limit: u32,
) -> Result<Accepted, Problem> {
    let channel = channel::ensure(db, &new.place)?;
    if let Some((id, session)) = known(db, channel, &new.message_id)? {
        let ahead = ahead(db, &session, &id)?;
        return Ok(Accepted { id, session, duplicate: true, ahead });
    }
    let session = session::current(db, channel)?;
    if waiting(db, &session)? >= waiting_limit {
        return Err(Problem::Store(StoreError::Full { limit: waiting_limit }));
    }
    let now = At::now();
    let id = insert(db, new, channel, &session, false, now)?;
    session::touch(db, &session, now)?;
    let ahead = ahead(db, &session, &id)?;
    Ok(Accepted { id, session, duplicate: false, ahead })
}

pub(super) fn accept_command(
    db: &Connection,
    new: &NewMessage,
    effect: &Effect,
    replies: &[NewDelivery],
) -> Result<Accepted, Problem> {
    let channel = channel::ensure(db, &new.place)?;
    if let Some((id, _)) = known(db, channel, &new.message_id)? {
        let session = session::current(db, channel)?;
        return Ok(Accepted { id, session, duplicate: true, ahead: 0 });
    }
    match effect {
        Effect::None => {}
        Effect::NewSession { title } => drop(session::begin(db, channel, title)?),
        Effect::Switch { session } => session::switch(db, channel, session)?,
        Effect::SetMode(mode) => channel::set_mode(db, channel, *mode)?,
        Effect::SetModel(model) => channel::set_model(db, channel, model.as_deref())?,
    }
    let session = session::current(db, channel)?;
    let id = insert(db, new, channel, &session, true, At::now())?;
    for reply in replies {
        delivery::queue(db, reply, Cause::Command { command: &id })?;
    }
    Ok(Accepted { id, session, duplicate: false, ahead: 0 })
}

/// About how much memory a message takes.
pub(super) fn size(new: &NewMessage) -> usize {
    let attachments: usize = new.attachments.iter().map(|it| it.content.len()).sum();
    new.text.len() + attachments
}

pub(super) fn waiting_sessions(db: &Connection) -> Result<Vec<String>, Problem> {
    let select = "
        SELECT session FROM messages m WHERE state = 'waiting'
            AND NOT EXISTS (
                SELECT 1 FROM turns t WHERE t.session = m.session AND t.state = 'running')
        GROUP BY session ORDER BY min(id)";
    let mut select = db.prepare_cached(select)?;
    let found = select.query_map([], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Moves up to `limit` waiting messages into a turn, oldest first; their number.
pub(super) fn join_turn(
    db: &Connection,
    session: &str,
    turn: &str,
    limit: u32,
) -> Result<usize, Problem> {
    let update = "
        UPDATE messages SET state = 'in turn', turn = ?1 WHERE id IN (
            SELECT id FROM messages WHERE session = ?2 AND state = 'waiting' ORDER BY id LIMIT ?3)";
    Ok(db.prepare_cached(update)?.execute(params![turn, session, limit])?)
}

pub(super) fn end_turn(db: &Connection, turn: &str) -> Result<(), Problem> {
    let update = "UPDATE messages SET state = 'done' WHERE turn = ?";
    db.prepare_cached(update)?.execute([turn])?;
    Ok(())
}

pub(super) fn ids_of_turn(db: &Connection, turn: &str) -> Result<Vec<String>, Problem> {
    let mut select = db.prepare_cached("SELECT id FROM messages WHERE turn = ? ORDER BY id")?;
    let found = select.query_map([turn], |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// The messages of a turn with all they hold, in the order of arrival.
pub(super) fn of_turn(db: &Connection, turn: &str) -> Result<Vec<Message>, Problem> {
    let select = "
        SELECT m.id, m.session, m.accepted_at, c.provider, c.channel, c.thread, m.message_id,
            m.user_id, m.user_name, m.text, m.sent_at
        FROM messages m JOIN channels c ON c.key = m.channel
        WHERE m.turn = ? ORDER BY m.id";
    let mut select = db.prepare_cached(select)?;
    let found = select.query_map([turn], message)?;
    let mut messages = found.collect::<Result<Vec<_>, _>>()?;
    for message in &mut messages {
        message.new.attachments = attachments(db, &message.id)?;
    }
    Ok(messages)
}

fn known(
    db: &Connection,
    channel: Key,
    message_id: &str,
) -> Result<Option<(String, String)>, Problem> {
    let select = "SELECT id, session FROM messages WHERE channel = ? AND message_id = ?";
    let found = db
        .prepare_cached(select)?
        .query_row(params![channel.0, message_id], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

/// How many messages of a session wait.
fn waiting(db: &Connection, session: &str) -> Result<u32, Problem> {
    let select = "SELECT count(*) FROM messages WHERE session = ? AND state = 'waiting'";
    Ok(db.prepare_cached(select)?.query_row([session], |row| row.get(0))?)
}

/// How many messages of a session wait or are in a turn and came before `id`;
/// none if that one isn't open itself.
fn ahead(db: &Connection, session: &str, id: &str) -> Result<u32, Problem> {
    let select = "
        SELECT CASE (SELECT state FROM messages WHERE id = ?2) WHEN 'done' THEN 0 ELSE
            (SELECT count(*) FROM messages WHERE session = ?1 AND state = 'waiting' AND id < ?2)
            + (SELECT count(*) FROM messages WHERE session = ?1 AND state = 'in turn' AND id < ?2)
        END";
    Ok(db.prepare_cached(select)?.query_row([session, id], |row| row.get(0))?)
}

fn insert(
    db: &Connection,
    new: &NewMessage,
    channel: Key,
    session: &str,
    command: bool,
    now: At,
) -> Result<String, Problem> {
    let insert = "
        INSERT INTO messages (id, channel, message_id, session, command, state, user_id, user_name,
            text, sent_at, accepted_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let id = id::fresh();
    db.prepare_cached(insert)?.execute(params![
        id,
        channel.0,
        new.message_id,
        session,
        command,
        if command { "done" } else { "waiting" },
        new.user.id,
        new.user.name,
        new.text,
        new.sent_at,
        now,
    ])?;
    let insert = "INSERT INTO attachments (message, position, filename, mime, content) \
                  VALUES (?, ?, ?, ?, ?)";
    for (position, attachment) in (0_u32..).zip(&new.attachments) {
        let Attachment { filename, mime, content } = attachment;
        db.prepare_cached(insert)?.execute(params![id, position, filename, mime, content])?;
    }
    Ok(id)
}

fn attachments(db: &Connection, message: &str) -> Result<Vec<Attachment>, Problem> {
    let select =
        "SELECT filename, mime, content FROM attachments WHERE message = ? ORDER BY position";
    let mut select = db.prepare_cached(select)?;
    let found = select.query_map([message], |row| {
        Ok(Attachment { filename: row.get(0)?, mime: row.get(1)?, content: row.get(2)? })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get(0)?,
        session: row.get(1)?,
        accepted_at: row.get(2)?,
        new: NewMessage {
            place: channel::place(row, 3)?,
            message_id: row.get(6)?,
            user: User { id: row.get(7)?, name: row.get(8)? },
            text: row.get(9)?,
            attachments: Vec::new(),
            sent_at: row.get(10)?,
        },
    })
}
