//! Our types into those of `openpact.frontend.v1` and back. No other module knows both.

use openpact_proto::frontend::v1::{self as wire, frontend_message::Message as Up};

use crate::adapter::Adapter;
use crate::message::{
    Activity, ActivityState, Attachment, Body, Button, Content, Delivery, Draft, Incoming, Kind,
    Place,
};
use crate::text::{Length, Unit};

/// What came is not what was agreed on.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is missing")]
pub(crate) struct Missing(&'static str);

pub(crate) fn up(message: Up) -> wire::FrontendMessage {
    wire::FrontendMessage { message: Some(message) }
}

/// `hello`, with what the adapter's platform can do.
pub(crate) fn hello<A: Adapter>(
    provider: &str,
    channels: &[String],
    client: &str,
) -> wire::FrontendMessage {
    let (unit, most) = (A::LIMIT.unit(), A::LIMIT.most());
    let unit = match unit {
        Unit::Bytes => wire::LengthUnit::Bytes,
        Unit::Utf16 => wire::LengthUnit::Utf16,
        Unit::Characters => wire::LengthUnit::Characters,
    };
    let limited = A::LIMIT != Length::UNLIMITED;
    let capabilities = wire::Capabilities {
        max_text_length: if limited { u32::try_from(most).unwrap_or(u32::MAX) } else { 0 },
        length_unit: unit.into(),
        edit: A::ABILITIES.edit,
        buttons: A::ABILITIES.buttons,
        threads: A::ABILITIES.threads,
        typing: A::ABILITIES.typing,
        files: A::ABILITIES.files,
        nonce: A::ABILITIES.nonce,
    };
    up(Up::Hello(wire::Hello {
        provider: provider.to_owned(),
        channels: channels.to_vec(),
        client: client.to_owned(),
        capabilities: Some(capabilities),
    }))
}

pub(crate) fn incoming(provider: &str, incoming: Incoming) -> wire::FrontendMessage {
    let Incoming { place, message_id, user, content } = incoming;
    let Place { channel, thread } = place;
    let place = Some(wire::Place { provider: provider.to_owned(), channel, thread });
    let user = Some(wire::User { id: user.id, name: user.name });
    up(match content {
        Content::Text { text, attachments, sent_at } => Up::Inbound(wire::Inbound {
            place,
            message_id,
            user,
            text,
            attachments: attachments.into_iter().map(attachment).collect(),
            sent_at: Some(sent_at.into()),
        }),
        Content::Command { name, arguments } => {
            Up::Command(wire::Command { place, message_id, user, name, arguments })
        }
        Content::Press { ask, button } => {
            Up::Press(wire::Press { place, message_id, user, ask, button })
        }
    })
}

fn attachment(attachment: Attachment) -> wire::Attachment {
    let Attachment { filename, mime, content } = attachment;
    wire::Attachment { filename, mime, content }
}

pub(crate) fn delivered(
    id: &str,
    piece: u32,
    pieces: u32,
    message_id: &str,
) -> wire::FrontendMessage {
    up(Up::Delivered(wire::Delivered {
        delivery_id: id.to_owned(),
        piece,
        pieces,
        platform_message_id: message_id.to_owned(),
    }))
}

pub(crate) fn failed(id: &str, reason: &str, permanent: bool) -> wire::FrontendMessage {
    let (delivery_id, reason) = (id.to_owned(), reason.to_owned());
    up(Up::Failed(wire::Failed { delivery_id, reason, permanent }))
}

pub(crate) fn place(place: Option<wire::Place>) -> Result<Place, Missing> {
    let wire::Place { channel, thread, .. } = place.ok_or(Missing("place"))?;
    if channel.is_empty() {
        return Err(Missing("place.channel"));
    }
    Ok(Place { channel, thread })
}

pub(crate) fn send(send: wire::Send) -> Result<Delivery, Missing> {
    let kind = match send.kind() {
        wire::SendKind::Answer => Kind::Answer,
        wire::SendKind::Failure => Kind::Failure,
        wire::SendKind::Notice | wire::SendKind::Unspecified => Kind::Notice,
    };
    Ok(Delivery {
        id: send.delivery_id,
        place: place(send.place)?,
        body: Body::Text { kind, text: send.text },
        reply_to: send.reply_to,
        turn: send.turn,
        answers: send.answers,
        delivered: send.delivered_pieces,
        attempt: send.attempt,
    })
}

pub(crate) fn ask(ask: wire::Ask) -> Result<Delivery, Missing> {
    let buttons = ask.buttons.into_iter();
    let buttons = buttons.map(|wire::Button { id, label }| Button { id, label }).collect();
    Ok(Delivery {
        id: ask.delivery_id,
        place: place(ask.place)?,
        body: Body::Ask { text: ask.text, buttons },
        reply_to: ask.reply_to,
        turn: String::new(),
        answers: ask.answers,
        delivered: Vec::new(),
        attempt: ask.attempt,
    })
}

pub(crate) fn edit(edit: wire::Edit) -> Result<Delivery, Missing> {
    Ok(Delivery {
        id: edit.delivery_id,
        place: place(edit.place)?,
        body: Body::Edit { message_id: edit.platform_message_id, text: edit.text },
        reply_to: String::new(),
        turn: String::new(),
        answers: Vec::new(),
        delivered: Vec::new(),
        attempt: edit.attempt,
    })
}

impl From<wire::Draft> for Draft {
    fn from(wire::Draft { turn, revision, text, reasoning, .. }: wire::Draft) -> Self {
        Self { turn, revision, text, reasoning }
    }
}

impl From<wire::Activity> for Activity {
    fn from(activity: wire::Activity) -> Self {
        let state = match activity.state() {
            wire::ActivityState::Completed => ActivityState::Completed,
            wire::ActivityState::Failed => ActivityState::Failed,
            wire::ActivityState::Running | wire::ActivityState::Unspecified => {
                ActivityState::Running
            }
        };
        let wire::Activity { turn, call, tool, detail, .. } = activity;
        Self { turn, call, tool, state, detail }
    }
}
