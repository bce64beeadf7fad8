//! What the platform knows, and the rules it keeps.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Instant, SystemTime};

use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::{
    Accepted, Ask, Button, Command, Delivered, Edit, Failed, Inbound, Place, Press, Rejected, Send,
    SendKind, User,
};

use super::MessageId;
use super::report::{Outcome, Report};

/// Drafts that are remembered.
const DRAFTS: usize = 10_000;

/// What kind of platform it is.
#[derive(Debug, Clone)]
pub struct Platform {
    /// Its name.
    pub provider: String,
    /// The longest message in characters; 0 is no limit.
    pub longest: usize,
    /// It refuses a second message with the same nonce.
    pub nonce: bool,
    /// Messages can be changed, so drafts are shown.
    pub edit: bool,
}

impl Default for Platform {
    fn default() -> Self {
        Self { provider: "fakechat".to_owned(), longest: 0, nonce: true, edit: true }
    }
}

/// How the platform behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Mood {
    /// It posts what it's given.
    #[default]
    Fine,
    /// It posts, but nobody hears of it: confirmations are lost.
    Mute,
    /// It posts nothing for now, for this reason.
    Busy(String),
    /// It will never post again, for this reason.
    Gone(String),
}

/// Where a message of a person's stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Not acknowledged.
    Waiting,
    /// In the orchestrator's store, under this id.
    Accepted(String),
    /// Not taken, for this reason.
    Rejected(String),
}

/// Something a person wrote or pressed.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The platform's id of it.
    pub id: MessageId,
    /// The channel.
    pub channel: String,
    /// The text, or the command with its slash, or the button.
    pub text: String,
    /// Where it stands.
    pub state: State,
    /// When it first went out on a connection.
    pub sent_at: Option<Instant>,
    /// When it was accepted or rejected.
    pub taken_at: Option<Instant>,
    pub(super) up: Up,
}

/// Something that was sent to be posted.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its id.
    pub id: String,
    /// The channel.
    pub channel: String,
    /// The whole text.
    pub text: String,
    /// What it is.
    pub kind: SendKind,
    /// The platform's id of the message it answers.
    pub reply_to: String,
    /// The orchestrator's ids of the messages it answers.
    pub answers: Vec<String>,
    /// The turn it ends.
    pub turn: String,
    /// Its buttons, if it asks something.
    pub buttons: Vec<Button>,
    /// How often it came.
    pub times: usize,
    /// When it came first.
    pub at: Instant,
}

/// A message as it stands in a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The platform's id of it.
    pub id: String,
    /// `<delivery>-<piece>`
    pub nonce: String,
    /// What it says now.
    pub text: String,
    /// What it said before it was edited, oldest first.
    pub before: Vec<String>,
}

/// An answer so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The channel.
    pub channel: String,
    /// The turn.
    pub turn: String,
    /// Rises with each draft of the turn.
    pub revision: u64,
    /// The text so far.
    pub text: String,
    /// What the model thought so far.
    pub reasoning: String,
}

/// All that the platform knows.
#[derive(Debug)]
pub(super) struct World {
    pub(super) platform: Platform,
    pub(super) mood: Mood,
    pub(super) connected: bool,
    pub(super) connections: usize,
    /// The orchestrator's names for its own lives.
    pub(super) instances: Vec<String>,
    pub(super) sent: Vec<Sent>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) drafts: VecDeque<Draft>,
    /// Accepted messages that the platform brings again.
    pub(super) again: Vec<MessageId>,
    /// What the orchestrator did that no platform would put up with.
    pub(super) complaints: Vec<String>,
    /// Pieces that were refused since their nonce was known.
    pub(super) refused: usize,
    /// The same piece, posted twice on a platform without nonces.
    pub(super) doubles: usize,
    channels: BTreeMap<String, Vec<Visible>>,
    /// The platform's ids, by nonce.
    posted: HashMap<String, String>,
    count: usize,
}

impl World {
    pub(super) fn new(platform: Platform) -> Self {
        Self {
            platform,
            mood: Mood::Fine,
            connected: false,
            connections: 0,
            instances: Vec::new(),
            sent: Vec::new(),
            deliveries: Vec::new(),
            drafts: VecDeque::new(),
            again: Vec::new(),
            complaints: Vec::new(),
            refused: 0,
            doubles: 0,
            channels: BTreeMap::new(),
            posted: HashMap::new(),
            count: 0,
        }
    }

    pub(super) fn visible(&self, channel: &str) -> &[Visible] {
        self.channels.get(channel).map_or(&[], Vec::as_slice)
    }

    pub(super) fn message(&self, id: &MessageId) -> Option<&Sent> {
        self.sent.iter().find(|sent| sent.id == *id)
    }

    pub(super) fn outcome(&self, id: &MessageId) -> Outcome {
        self.message(id).map_or(Outcome::Waiting, |sent| Outcome::of(sent, &self.deliveries))
    }

    pub(super) fn report(&self) -> Report {
        Report::of(self)
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        self.count.to_string()
    }

    fn place(&self, channel: &str) -> Place {
        let provider = self.platform.provider.clone();
        Place { provider, channel: channel.to_owned(), thread: String::new() }
    }

    pub(super) fn write(&mut self, user: &str, channel: &str, text: &str) -> MessageId {
        let message_id = self.fresh();
        let up = Up::Inbound(Inbound {
            place: Some(self.place(channel)),
            message_id: message_id.clone(),
            user: Some(person(user)),
            text: text.to_owned(),
            attachments: Vec::new(),
            sent_at: Some(SystemTime::now().into()),
        });
        self.queue(message_id, channel, text, up)
    }

    pub(super) fn command(
        &mut self,
        user: &str,
        channel: &str,
        name: &str,
        arguments: &str,
    ) -> MessageId {
        let message_id = self.fresh();
        let up = Up::Command(Command {
            place: Some(self.place(channel)),
            message_id: message_id.clone(),
            user: Some(person(user)),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        });
        self.queue(message_id, channel, format!("/{name} {arguments}").trim_end(), up)
    }

    pub(super) fn press(
        &mut self,
        user: &str,
        channel: &str,
        delivery: &str,
        button: &str,
    ) -> MessageId {
        let message_id = self.fresh();
        let up = Up::Press(Press {
            place: Some(self.place(channel)),
            message_id: message_id.clone(),
            user: Some(person(user)),
            ask: delivery.to_owned(),
            button: button.to_owned(),
        });
        self.queue(message_id, channel, button, up)
    }

    fn queue(&mut self, id: String, channel: &str, text: &str, up: Up) -> MessageId {
        let id = MessageId(id);
        self.sent.push(Sent {
            id: id.clone(),
            channel: channel.to_owned(),
            text: text.to_owned(),
            state: State::Waiting,
            sent_at: None,
            taken_at: None,
            up,
        });
        id
    }

    pub(super) fn repeat(&mut self, message: &MessageId) {
        self.again.push(message.clone());
    }

    pub(super) fn accepted(&mut self, accepted: Accepted) {
        let Some(at) = self.asked(accepted.place.as_ref(), &accepted.message_id) else { return };
        let sent = &mut self.sent[at];
        match &sent.state {
            State::Waiting => {
                sent.state = State::Accepted(accepted.id);
                sent.taken_at = Some(Instant::now());
            }
            State::Accepted(before) if *before == accepted.id && accepted.duplicate => {}
            before => {
                let complaint = format!("message {} was {before:?} and is {accepted:?}", sent.id.0);
                self.complaints.push(complaint);
            }
        }
    }

    pub(super) fn rejected(&mut self, rejected: Rejected) {
        let Some(at) = self.asked(rejected.place.as_ref(), &rejected.message_id) else { return };
        let sent = &mut self.sent[at];
        if sent.state == State::Waiting {
            sent.state = State::Rejected(rejected.reason);
            sent.taken_at = Some(Instant::now());
        } else {
            let complaint =
                format!("message {} was {:?}, then {rejected:?}", sent.id.0, sent.state);
            self.complaints.push(complaint);
        }
    }

    /// Which message is acknowledged.
    fn asked(&mut self, place: Option<&Place>, id: &str) -> Option<usize> {
        let channel = place.map(|place| place.channel.as_str());
        let is = |sent: &Sent| sent.id.0 == id && Some(sent.channel.as_str()) == channel;
        let found = self.sent.iter().position(is);
        if found.is_none() {
            self.complaints.push(format!("nobody wrote the message {id} in {channel:?}"));
        }
        found
    }

    /// Posts a text; returns what is to be told of it.
    pub(super) fn send(&mut self, send: Send) -> Vec<Up> {
        let kind = send.kind();
        let channel = send.place.map(|place| place.channel).unwrap_or_default();
        let delivery = Delivery {
            id: send.delivery_id.clone(),
            channel: channel.clone(),
            text: send.text.clone(),
            kind,
            reply_to: send.reply_to,
            answers: send.answers,
            turn: send.turn,
            buttons: Vec::new(),
            times: 1,
            at: Instant::now(),
        };
        self.deliver(delivery);
        self.post(&send.delivery_id, &channel, &send.text, &send.delivered_pieces)
    }

    /// Posts a question; returns what is to be told of it.
    pub(super) fn ask(&mut self, ask: Ask) -> Vec<Up> {
        let channel = ask.place.map(|place| place.channel).unwrap_or_default();
        let delivery = Delivery {
            id: ask.delivery_id.clone(),
            channel: channel.clone(),
            text: ask.text.clone(),
            kind: SendKind::Notice,
            reply_to: ask.reply_to,
            answers: ask.answers,
            turn: String::new(),
            buttons: ask.buttons,
            times: 1,
            at: Instant::now(),
        };
        self.deliver(delivery);
        self.post(&ask.delivery_id, &channel, &ask.text, &[])
    }

    /// Remembers a delivery; one that was known must be the same.
    fn deliver(&mut self, new: Delivery) {
        let Some(known) = self.deliveries.iter_mut().find(|known| known.id == new.id) else {
            self.deliveries.push(new);
            return;
        };
        known.times += 1;
        if known.text != new.text || known.channel != new.channel || known.answers != new.answers {
            self.complaints.push(format!("delivery {} came again as another one", new.id));
        }
    }

    fn post(&mut self, delivery: &str, channel: &str, text: &str, skip: &[u32]) -> Vec<Up> {
        let failed = |reason: &str, permanent| {
            let (delivery_id, reason) = (delivery.to_owned(), reason.to_owned());
            vec![Up::Failed(Failed { delivery_id, reason, permanent })]
        };
        match &self.mood {
            Mood::Busy(reason) => return failed(reason, false),
            Mood::Gone(reason) => return failed(reason, true),
            Mood::Fine | Mood::Mute => {}
        }
        if text.trim().is_empty() {
            self.complaints.push(format!("delivery {delivery} has no text"));
            return failed("message text is empty", true);
        }
        let texts = split(text, self.platform.longest);
        let pieces = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let wanted = (0..).zip(texts).filter(|(piece, _)| !skip.contains(piece));
        let posted: Vec<_> = wanted
            .map(|(piece, text)| {
                let platform_message_id =
                    self.post_piece(&format!("{delivery}-{piece}"), channel, text);
                let delivery_id = delivery.to_owned();
                Up::Delivered(Delivered { delivery_id, piece, pieces, platform_message_id })
            })
            .collect();
        if self.mood == Mood::Mute { Vec::new() } else { posted }
    }

    fn post_piece(&mut self, nonce: &str, channel: &str, text: &str) -> String {
        if let Some(known) = self.posted.get(nonce) {
            if self.platform.nonce {
                self.refused += 1;
                return known.clone();
            }
            self.doubles += 1;
        }
        let id = self.fresh();
        self.posted.insert(nonce.to_owned(), id.clone());
        let visible = Visible {
            id: id.clone(),
            nonce: nonce.to_owned(),
            text: text.to_owned(),
            before: Vec::new(),
        };
        self.channels.entry(channel.to_owned()).or_default().push(visible);
        id
    }

    /// Changes what a message says; returns what is to be told of it.
    pub(super) fn edit(&mut self, edit: Edit) -> Vec<Up> {
        let (delivery_id, id) = (edit.delivery_id, edit.platform_message_id);
        let all = self.channels.values_mut().flatten();
        let Some(visible) = { all }.find(|visible| visible.id == id) else {
            let reason = "message to edit not found".to_owned();
            return vec![Up::Failed(Failed { delivery_id, reason, permanent: true })];
        };
        if visible.text != edit.text {
            let before = std::mem::replace(&mut visible.text, edit.text);
            visible.before.push(before);
        }
        let delivered = Delivered { delivery_id, piece: 0, pieces: 1, platform_message_id: id };
        if self.mood == Mood::Mute { Vec::new() } else { vec![Up::Delivered(delivered)] }
    }

    pub(super) fn draft(&mut self, draft: Draft) {
        let before = self.drafts.iter().rev().find(|before| before.turn == draft.turn);
        if before.is_some_and(|before| before.revision >= draft.revision) {
            self.complaints.push(format!("draft {} of turn {} is old", draft.revision, draft.turn));
        }
        if self.drafts.len() == DRAFTS {
            self.drafts.pop_front();
        }
        self.drafts.push_back(draft);
    }
}

fn person(name: &str) -> User {
    User { id: format!("id-of-{name}"), name: name.to_owned() }
}

/// The text in pieces of at most so many characters; 0 is no limit.
fn split(text: &str, longest: usize) -> Vec<&str> {
    if longest == 0 { vec![text] } else { crate::llm::pieces(text, longest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(delivery: &str, text: &str) -> Send {
        let place = Place { channel: "c".into(), ..Place::default() };
        let delivery_id = delivery.to_owned();
        Send { delivery_id, place: Some(place), text: text.to_owned(), ..Send::default() }
    }

    fn texts(world: &World) -> Vec<&str> {
        world.visible("c").iter().map(|visible| visible.text.as_str()).collect()
    }

    #[test]
    fn a_delivery_that_comes_again_is_posted_once_where_nonces_are_known() {
        for (nonce, stands, doubles) in [(true, vec!["hi"], 0), (false, vec!["hi", "hi"], 1)] {
            let mut world = World::new(Platform { nonce, ..Platform::default() });
            let first = world.send(send("d", "hi"));
            let again = world.send(send("d", "hi"));
            assert_eq!(first == again, nonce);
            assert_eq!((texts(&world), world.doubles), (stands, doubles));
            assert_eq!((world.deliveries.len(), world.deliveries[0].times), (1, 2));
            assert!(world.complaints.is_empty());
        }
    }

    #[test]
    fn long_texts_are_split_and_confirmed_pieces_are_not_posted_again() {
        let mut world = World::new(Platform { longest: 3, ..Platform::default() });
        let told = world.send(Send { delivered_pieces: vec![0], ..send("d", "abcdefg") });
        assert_eq!(texts(&world), ["def", "g"]);
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn moods_decide_what_is_posted_and_what_is_told() {
        #[rustfmt::skip]
        let cases = [
            // the mood                   stands           told  permanent
            (Mood::Fine,                  vec!["hi"],      1,    None),
            (Mood::Mute,                  vec!["hi"],      0,    None),
            (Mood::Busy("slow".into()),   vec![],          1,    Some(false)),
            (Mood::Gone("blocked".into()), vec![],         1,    Some(true)),
        ];
        for (mood, stands, count, permanent) in cases {
            let mut world = World::new(Platform::default());
            world.mood = mood.clone();
            let told = world.send(send("d", "hi"));
            assert_eq!((texts(&world), told.len()), (stands, count), "{mood:?}");
            let failed = told.iter().find_map(|up| match up {
                Up::Failed(failed) => Some(failed.permanent),
                _ => None,
            });
            assert_eq!(failed, permanent, "{mood:?}");
        }
    }

    #[test]
    fn what_no_platform_would_put_up_with_is_complained_about() {
        let mut world = World::new(Platform::default());
        world.send(send("d", "hi"));
        world.send(send("d", "ho"));
        world.send(send("e", " "));
        world.accepted(Accepted { message_id: "9".into(), ..Accepted::default() });
        let draft = Draft {
            channel: "c".into(),
            turn: "t".into(),
            revision: 1,
            text: String::new(),
            reasoning: String::new(),
        };
        world.draft(draft.clone());
        world.draft(draft);
        let id = world.write("ada", "c", "hello");
        let place = Some(world.place("c"));
        let accepted = Accepted { place, message_id: id.0, id: "m1".into(), duplicate: false };
        world.accepted(accepted.clone());
        world.accepted(Accepted { id: "m2".into(), ..accepted });
        for (complaint, part) in world.complaints.iter().zip([
            "came again as another one",
            "has no text",
            "nobody wrote",
            "is old",
            "was Accepted",
        ]) {
            assert!(complaint.contains(part), "{complaint}");
        }
        assert_eq!(world.complaints.len(), 5, "{:?}", world.complaints);
    }
}
