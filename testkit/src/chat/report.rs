//! What has become of the messages.

use std::collections::BTreeMap;
use std::fmt;

use openpact_proto::frontend::v1::SendKind;

use super::MessageId;
use super::platform::{Delivery, Sent, State, World};

/// What has become of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet.
    Waiting,
    /// The assistant answered so.
    Answered(String),
    /// There is no answer, and the chat says why.
    Failed(String),
    /// The system answered so: a command was carried out.
    Noticed(String),
    /// It wasn't taken, for this reason.
    Rejected(String),
}

impl Outcome {
    /// By the first delivery that answers the message.
    pub(super) fn of(sent: &Sent, deliveries: &[Delivery]) -> Self {
        let id = match &sent.state {
            State::Waiting => return Self::Waiting,
            State::Rejected(reason) => return Self::Rejected(reason.clone()),
            State::Accepted(id) => id,
        };
        let answer = deliveries.iter().find(|delivery| delivery.answers.contains(id));
        let Some(answer) = answer else { return Self::Waiting };
        let text = answer.text.clone();
        match answer.kind {
            SendKind::Failure => Self::Failed(text),
            SendKind::Notice => Self::Noticed(text),
            SendKind::Answer | SendKind::Unspecified => Self::Answered(text),
        }
    }
}

/// A message that was answered more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubled {
    /// The orchestrator's id of it.
    pub message: String,
    /// Kind and id of each delivery that answers it, oldest first.
    pub deliveries: Vec<(SendKind, String)>,
}

/// How everything stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// What people wrote.
    pub messages: usize,
    /// Answered by the assistant.
    pub answered: usize,
    /// Without an answer, and the chat says why.
    pub failed: usize,
    /// Answered by the system.
    pub noticed: usize,
    /// Not taken.
    pub rejected: usize,
    /// Nothing has become of these yet.
    pub waiting: usize,
    /// Ids of those, ten at most.
    pub waiting_for: Vec<MessageId>,
    /// Answered more than once.
    pub doubled: Vec<Doubled>,
    /// Deliveries that came again. That's as it should be.
    pub redelivered: usize,
    /// Pieces that were refused since their nonce was known. That's as it should be.
    pub refused: usize,
    /// The same piece, posted twice on a platform without nonces.
    pub doubles: usize,
    /// What no platform would put up with.
    pub complaints: Vec<String>,
    /// Connections so far.
    pub connections: usize,
    /// Lives of the orchestrator so far.
    pub instances: usize,
}

impl Report {
    pub(super) fn of(world: &World) -> Self {
        let mut report = Self {
            messages: world.sent.len(),
            doubled: doubled(&world.deliveries),
            redelivered: world.deliveries.iter().filter(|delivery| delivery.times > 1).count(),
            refused: world.refused,
            doubles: world.doubles,
            complaints: world.complaints.clone(),
            connections: world.connections,
            instances: world.instances.len(),
            ..Self::default()
        };
        for sent in &world.sent {
            match Outcome::of(sent, &world.deliveries) {
                Outcome::Answered(_) => report.answered += 1,
                Outcome::Failed(_) => report.failed += 1,
                Outcome::Noticed(_) => report.noticed += 1,
                Outcome::Rejected(_) => report.rejected += 1,
                Outcome::Waiting => {
                    report.waiting += 1;
                    if report.waiting_for.len() < 10 {
                        report.waiting_for.push(sent.id.clone());
                    }
                }
            }
        }
        report
    }
}

fn doubled(deliveries: &[Delivery]) -> Vec<Doubled> {
    let mut by_message: BTreeMap<&str, Vec<(SendKind, String)>> = BTreeMap::new();
    for delivery in deliveries {
        for message in &delivery.answers {
            let answers = by_message.entry(message).or_default();
            answers.push((delivery.kind, delivery.id.clone()));
        }
    }
    by_message.retain(|_, deliveries| deliveries.len() > 1);
    let doubled =
        |(message, deliveries): (&str, _)| Doubled { message: message.to_owned(), deliveries };
    by_message.into_iter().map(doubled).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages: {} answered, {} failed with a notice, {} answered by the system, \
             {} rejected, {} waiting; {} answered more than once; {} deliveries came again, \
             {} pieces were refused by their nonce, {} posted twice; {} connections to {} lives",
            self.messages,
            self.answered,
            self.failed,
            self.noticed,
            self.rejected,
            self.waiting,
            self.doubled.len(),
            self.redelivered,
            self.refused,
            self.doubles,
            self.connections,
            self.instances,
        )?;
        if !self.waiting_for.is_empty() {
            let ids: Vec<_> = self.waiting_for.iter().map(MessageId::as_str).collect();
            write!(f, "; waiting for {}", ids.join(", "))?;
        }
        for doubled in &self.doubled {
            write!(f, "; {} was answered by {:?}", doubled.message, doubled.deliveries)?;
        }
        for complaint in &self.complaints {
            write!(f, "; {complaint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use openpact_proto::frontend::v1::{Accepted, Place, Send};

    use super::*;
    use crate::chat::platform::Platform;

    #[test]
    fn each_message_counts_once_and_a_second_answer_is_a_double() {
        let mut world = World::new(Platform::default());
        let place = |channel: &str| Place { channel: channel.to_owned(), ..Place::default() };
        let ids: Vec<_> = (0..5).map(|_| world.write("ada", "c", "hi")).collect();
        for id in &ids[..4] {
            world.accepted(Accepted {
                place: Some(place("c")),
                message_id: id.0.clone(),
                id: format!("m{}", id.0),
                duplicate: false,
            });
        }
        let mut answer = |delivery: &str, kind: SendKind, ids: &[&MessageId]| {
            world.send(Send {
                delivery_id: delivery.to_owned(),
                place: Some(place("c")),
                text: "text".to_owned(),
                kind: kind.into(),
                answers: ids.iter().map(|id| format!("m{}", id.0)).collect(),
                ..Send::default()
            });
        };
        // One answer may answer several; the same delivery twice is no second answer.
        answer("a", SendKind::Answer, &[&ids[0], &ids[1]]);
        answer("a", SendKind::Answer, &[&ids[0], &ids[1]]);
        answer("b", SendKind::Failure, &[&ids[2]]);
        answer("c", SendKind::Answer, &[&ids[2]]);
        let report = world.report();
        assert_eq!((report.answered, report.failed, report.waiting), (2, 1, 2), "{report}");
        assert_eq!(report.waiting_for, [ids[3].clone(), ids[4].clone()]);
        assert_eq!(report.doubled.len(), 1);
        assert_eq!(report.doubled[0].message, format!("m{}", ids[2].0));
        assert_eq!((report.redelivered, report.refused), (1, 1));
        assert_eq!(world.outcome(&ids[2]), Outcome::Failed("text".to_owned()));
    }
}
