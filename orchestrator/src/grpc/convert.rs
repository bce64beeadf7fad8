//! Wire types into ours and back. What comes in is checked here, once.

use std::time::{Duration, SystemTime};

use openpact_proto::control::v1 as control;
use openpact_proto::frontend::v1 as wire;
use openpact_store::model::{
    At, Attachment, Delivery, DeliveryKind, NewMessage, Place, Session, TraceEntry, User,
};
use tonic::Status;

use super::status::invalid;
use crate::hub::{Activity, Draft, Edit, Frontend, Outgoing};

/// The longest id of a platform's, in bytes.
const LONGEST_ID: usize = 256;
/// The longest name of a person or a file, in bytes.
const LONGEST_NAME: usize = 512;
/// How many attachments a message may have.
const MOST_ATTACHMENTS: usize = 32;

/// How large a message may be.
#[derive(Debug, Clone, Copy)]
pub struct Largest {
    /// Its text, in bytes.
    pub text: u64,
    /// Its attachments together, in bytes.
    pub attachments: u64,
}

pub(super) fn frontend(hello: wire::Hello) -> Result<Frontend, Status> {
    let provider = provider(hello.provider)?;
    if hello.channels.len() > 1000 {
        return Err(invalid("`channels` has over 1000 entries"));
    }
    for channel in &hello.channels {
        id("channels", channel)?;
    }
    Ok(Frontend {
        provider,
        channels: hello.channels,
        client: hello.client.chars().filter(|c| !c.is_control()).take(100).collect(),
        buttons: hello.capabilities.is_some_and(|it| it.buttons),
        since: At::now(),
    })
}

/// Checks a place. `provider`: the one that the stream said it is of.
pub(super) fn place(place: Option<wire::Place>, of: Option<&str>) -> Result<Place, Status> {
    let wire::Place { provider: name, channel, thread } =
        place.ok_or_else(|| invalid("`place` is missing"))?;
    let name = provider(name)?;
    if of.is_some_and(|of| of != name) {
        return Err(invalid(format!("`place.provider` is `{name}`, not the stream's")));
    }
    id("place.channel", &channel)?;
    if !thread.is_empty() {
        id("place.thread", &thread)?;
    }
    Ok(Place { provider: name, channel, thread })
}

pub(super) fn message(
    inbound: wire::Inbound,
    of: &str,
    largest: Largest,
) -> Result<NewMessage, Status> {
    let too_large = |what: &str, limit: u64, setting: &str| {
        invalid(format!("{what} is over {limit} bytes (`orchestrator.{setting}`)"))
    };
    if inbound.text.len() as u64 > largest.text {
        return Err(too_large("the text", largest.text, "max_message_bytes"));
    }
    let total: u64 = inbound.attachments.iter().map(|it| it.content.len() as u64).sum();
    if total > largest.attachments {
        return Err(too_large("what is attached", largest.attachments, "max_attachment_bytes"));
    }
    if inbound.attachments.len() > MOST_ATTACHMENTS {
        return Err(invalid(format!("there are more than {MOST_ATTACHMENTS} attachments")));
    }
    let place = place(inbound.place, Some(of))?;
    id("message_id", &inbound.message_id)?;
    let attachments = inbound.attachments.into_iter().map(attachment).collect::<Result<_, _>>()?;
    Ok(NewMessage {
        place,
        message_id: inbound.message_id,
        user: user(inbound.user)?,
        text: inbound.text,
        attachments,
        sent_at: inbound.sent_at.map_or_else(At::now, at),
    })
}

/// A command or a press as the message that it's recorded as.
pub(super) fn command_message(
    place: Place,
    message_id: String,
    author: Option<wire::User>,
    text: String,
) -> Result<NewMessage, Status> {
    id("message_id", &message_id)?;
    if text.len() > 4096 {
        return Err(invalid("a command is at most 4096 bytes long"));
    }
    Ok(NewMessage {
        place,
        message_id,
        user: user(author)?,
        text,
        attachments: Vec::new(),
        sent_at: At::now(),
    })
}

pub(super) fn outgoing(outgoing: Outgoing) -> wire::HubMessage {
    use wire::hub_message::Message;
    let message = match outgoing {
        Outgoing::Deliver(delivery) => deliver(*delivery),
        Outgoing::Edit(Edit { place, target, platform_message_id, text }) => {
            Message::Edit(wire::Edit {
                delivery_id: String::new(),
                place: Some(to_place(&place)),
                target,
                platform_message_id,
                text,
                attempt: 1,
            })
        }
        Outgoing::Draft(Draft { place, turn, revision, text, reasoning }) => {
            Message::Draft(wire::Draft {
                place: Some(to_place(&place)),
                turn,
                revision,
                text,
                reasoning,
            })
        }
        Outgoing::Typing { place, on } => {
            Message::Typing(wire::Typing { place: Some(to_place(&place)), on })
        }
        Outgoing::Activity(Activity { place, turn, call, tool, ended_well, detail }) => {
            let state = match ended_well {
                None => wire::ActivityState::Running,
                Some(true) => wire::ActivityState::Completed,
                Some(false) => wire::ActivityState::Failed,
            };
            let (place, state) = (Some(to_place(&place)), state.into());
            Message::Activity(wire::Activity { place, turn, call, tool, state, detail })
        }
    };
    wire::HubMessage { message: Some(message) }
}

fn deliver(delivery: Delivery) -> wire::hub_message::Message {
    let Delivery { id, turn, new, delivered_pieces, attempt } = delivery;
    let place = Some(to_place(&new.place));
    let kind = match new.kind {
        DeliveryKind::Ask => {
            let buttons = new.buttons.into_iter();
            return wire::hub_message::Message::Ask(wire::Ask {
                delivery_id: id,
                place,
                text: new.text,
                reply_to: new.reply_to,
                buttons: buttons.map(|it| wire::Button { id: it.id, label: it.label }).collect(),
                attempt,
                answers: new.answers,
            });
        }
        DeliveryKind::Answer => wire::SendKind::Answer,
        DeliveryKind::Failure => wire::SendKind::Failure,
        DeliveryKind::Notice => wire::SendKind::Notice,
    };
    wire::hub_message::Message::Send(wire::Send {
        delivery_id: id,
        place,
        text: new.text,
        reply_to: new.reply_to,
        kind: kind.into(),
        turn: turn.unwrap_or_default(),
        delivered_pieces,
        attempt,
        answers: new.answers,
    })
}

pub(super) fn to_place(place: &Place) -> wire::Place {
    let Place { provider, channel, thread } = place.clone();
    wire::Place { provider, channel, thread }
}

pub(super) fn to_session(session: Session) -> control::Session {
    control::Session {
        id: session.id,
        place: Some(to_place(&session.place)),
        title: session.title,
        current: session.current,
        created_at: Some(to_time(session.created_at)),
        used_at: Some(to_time(session.used_at)),
        turns: session.turns,
    }
}

pub(super) fn to_trace_entry(entry: TraceEntry) -> control::TraceEntry {
    control::TraceEntry {
        at: Some(to_time(entry.at)),
        kind: entry.kind.to_owned(),
        id: entry.id,
        text: entry.text,
    }
}

pub(super) fn to_time(at: At) -> prost_types::Timestamp {
    let since = Duration::from_millis(u64::try_from(at.0).unwrap_or(0));
    prost_types::Timestamp::from(SystemTime::UNIX_EPOCH + since)
}

fn at(time: prost_types::Timestamp) -> At {
    At(time.seconds.saturating_mul(1000).saturating_add(i64::from(time.nanos) / 1_000_000))
}

fn user(user: Option<wire::User>) -> Result<User, Status> {
    let wire::User { id: user, name } = user.ok_or_else(|| invalid("`user` is missing"))?;
    id("user.id", &user)?;
    Ok(User { id: user, name: name.chars().filter(|c| !c.is_control()).take(100).collect() })
}

fn attachment(attachment: wire::Attachment) -> Result<Attachment, Status> {
    let wire::Attachment { filename, mime, content } = attachment;
    if filename.len() > LONGEST_NAME {
        return Err(invalid(format!("a file name is over {LONGEST_NAME} bytes")));
    }
    // It becomes part of a `data:` URL.
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.+-_".contains(c);
    if mime.len() > 100 || !mime.contains('/') || !mime.chars().all(plain) {
        return Err(invalid("an attachment's `mime` is no media type, such as `image/png`"));
    }
    Ok(Attachment { filename, mime: mime.to_ascii_lowercase(), content })
}

fn provider(name: String) -> Result<String, Status> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        return Err(invalid(
            "`provider` must be 1 to 32 lower-case letters, digits or `-`, such as `telegram`",
        ));
    }
    Ok(name)
}

fn id(what: &str, id: &str) -> Result<(), Status> {
    if id.is_empty() || id.len() > LONGEST_ID || id.chars().any(char::is_control) {
        return Err(invalid(format!("`{what}` must be 1 to {LONGEST_ID} printable bytes")));
    }
    Ok(())
}
