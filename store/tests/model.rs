//! Any sequence of operations leaves the store as a simple model says.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use openpact_store::model::{
    At, Counts, DeliveryKind, Effect, Event, NewDelivery, NewMessage, Outcome, Place, User,
};
use openpact_store::sqlite::Sqlite;
use openpact_store::{State, StoreError};
use proptest::prelude::*;

/// Few of each, so that operations meet.
const CHANNELS: usize = 3;
const LIMIT: u32 = 4;

#[derive(Debug, Clone)]
enum Step {
    /// Message ids repeat, so that some are known.
    Accept {
        channel: usize,
        message: u8,
    },
    NewSession {
        channel: usize,
        message: u8,
    },
    Switch {
        channel: usize,
        message: u8,
        session: usize,
    },
    Begin {
        session: usize,
        limit: u32,
    },
    End {
        turn: usize,
        outcome: Outcome,
    },
    Confirm {
        delivery: usize,
    },
    Fail {
        delivery: usize,
    },
    /// The process ends and another one starts.
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let channel = || 0..CHANNELS;
    let message = || 0..24_u8;
    // Of those there are, taken modulo their number.
    let any = || 0..64_usize;
    let outcome = prop_oneof![Just(Outcome::Answered), Just(Outcome::Failed)];
    prop_oneof![
        8 => (channel(), message()).prop_map(|(channel, message)| Step::Accept { channel, message }),
        2 => (channel(), message())
            .prop_map(|(channel, message)| Step::NewSession { channel, message }),
        2 => (channel(), message(), any())
            .prop_map(|(channel, message, session)| Step::Switch { channel, message, session }),
        6 => (any(), 1..4_u32).prop_map(|(session, limit)| Step::Begin { session, limit }),
        5 => (any(), outcome).prop_map(|(turn, outcome)| Step::End { turn, outcome }),
        3 => any().prop_map(|delivery| Step::Confirm { delivery }),
        1 => any().prop_map(|delivery| Step::Fail { delivery }),
        1 => Just(Step::Reopen),
    ]
}

/// What the store should hold.
#[derive(Debug, Default)]
struct Model {
    /// Sessions in the order they were made, with their channel.
    sessions: Vec<(String, usize)>,
    current: BTreeMap<usize, String>,
    known: BTreeMap<(usize, u8), String>,
    waiting: BTreeMap<String, VecDeque<String>>,
    running: BTreeMap<String, (String, Vec<String>)>,
    /// Every turn there was, with its session.
    turns: Vec<(String, String)>,
    answered: BTreeSet<String>,
    failed: BTreeSet<String>,
    pending: Vec<(String, Vec<String>)>,
    untold: BTreeMap<String, Vec<String>>,
    told: BTreeMap<String, Vec<String>>,
    session_of: BTreeMap<String, String>,
}

fn pick<T>(items: &[T], nth: usize) -> Option<&T> {
    nth.checked_rem(items.len()).map(|nth| &items[nth])
}

fn place(channel: usize) -> Place {
    Place { provider: "t".into(), channel: channel.to_string(), thread: String::new() }
}

fn new(channel: usize, message: u8) -> NewMessage {
    NewMessage {
        place: place(channel),
        message_id: message.to_string(),
        user: User { id: "u".into(), name: "Ann".into() },
        text: String::new(),
        attachments: Vec::new(),
        sent_at: At(0),
    }
}

fn event() -> Event {
    Event { kind: "end".into(), detail: serde_json::Value::Null }
}

impl Model {
    fn meet(&mut self, session: &str, channel: usize) {
        if !self.sessions.iter().any(|(known, _)| known == session) {
            self.sessions.push((session.to_owned(), channel));
        }
        self.current.insert(channel, session.to_owned());
    }

    async fn apply(&mut self, store: &Sqlite, step: &Step) {
        match *step {
            Step::Accept { channel, message } => self.accept(store, channel, message).await,
            Step::NewSession { channel, message } => {
                let effect = Effect::NewSession { title: String::new() };
                self.command(store, channel, message, effect, true).await;
            }
            Step::Switch { channel, message, session } => {
                let Some((session, owner)) = pick(&self.sessions, session).cloned() else { return };
                let effect = Effect::Switch { session };
                self.command(store, channel, message, effect, owner == channel).await;
            }
            Step::Begin { session, limit } => self.begin(store, session, limit).await,
            Step::End { turn, outcome } => self.end(store, turn, outcome).await,
            Step::Confirm { delivery } => {
                let Some((id, _)) = pick(&self.pending, delivery).cloned() else { return };
                assert!(store.confirm_piece(&id, 0, 1, "p").await.unwrap());
                self.pending.retain(|(pending, _)| *pending != id);
            }
            Step::Fail { delivery } => {
                let Some((id, _)) = pick(&self.pending, delivery).cloned() else { return };
                store.fail_delivery(&id, &id).await.unwrap();
                self.pending.retain(|(pending, _)| *pending != id);
                let session = self.session_of[&id].clone();
                let untold = self.untold.entry(session).or_default();
                untold.push(id);
                untold.sort();
            }
            Step::Reopen => unreachable!("the caller does that"),
        }
    }

    async fn accept(&mut self, store: &Sqlite, channel: usize, message: u8) {
        let known = self.known.get(&(channel, message));
        let waits = self.current.get(&channel).and_then(|it| self.waiting.get(it));
        let is_full = waits.is_some_and(|waits| waits.len() >= LIMIT as usize);
        match store.accept(new(channel, message), LIMIT).await {
            Ok(taken) => {
                assert_eq!(known.is_some(), taken.duplicate);
                if let Some(known) = known {
                    assert_eq!(*known, taken.id);
                    return;
                }
                assert!(!is_full);
                self.meet(&taken.session, channel);
                self.known.insert((channel, message), taken.id.clone());
                self.waiting.entry(taken.session).or_default().push_back(taken.id);
            }
            Err(StoreError::Full { limit: LIMIT }) => assert!(known.is_none() && is_full),
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn command(
        &mut self,
        store: &Sqlite,
        channel: usize,
        message: u8,
        effect: Effect,
        is_possible: bool,
    ) {
        let known = self.known.get(&(channel, message)).cloned();
        match store.accept_command(new(channel, message), effect.clone(), Vec::new()).await {
            Ok(taken) if taken.duplicate => {
                assert_eq!(known, Some(taken.id));
                assert_eq!(self.current[&channel], taken.session);
            }
            Ok(taken) => {
                assert!(known.is_none() && is_possible);
                if let Effect::Switch { session } = effect {
                    assert_eq!(session, taken.session);
                }
                self.meet(&taken.session, channel);
                self.known.insert((channel, message), taken.id);
            }
            Err(StoreError::Missing { what: "session", .. }) => {
                assert!(known.is_none() && !is_possible);
            }
            Err(error) => panic!("{error:?}"),
        }
    }

    async fn begin(&mut self, store: &Sqlite, session: usize, limit: u32) {
        let Some((session, _)) = pick(&self.sessions, session).cloned() else { return };
        let waiting = self.waiting.entry(session.clone()).or_default();
        let is_running = self.running.contains_key(&session);
        let Some(turn) = store.begin_turn(&session, limit).await.unwrap() else {
            assert!(is_running || waiting.is_empty());
            return;
        };
        assert!(!is_running, "one running turn a session");
        let expected: Vec<_> = waiting.drain(..waiting.len().min(limit as usize)).collect();
        let found: Vec<_> = turn.messages.into_iter().map(|message| message.id).collect();
        assert_eq!(found, expected);
        let told = self.untold.remove(&session).unwrap_or_default();
        assert_eq!(turn.undelivered, told);
        self.told.insert(turn.id.clone(), told);
        self.turns.push((turn.id.clone(), session.clone()));
        self.running.insert(session, (turn.id, expected));
    }

    async fn end(&mut self, store: &Sqlite, turn: usize, outcome: Outcome) {
        let Some((id, session)) = pick(&self.turns, turn).cloned() else { return };
        let answer = NewDelivery {
            place: place(0),
            kind: DeliveryKind::Answer,
            text: id.clone(),
            reply_to: String::new(),
            buttons: Vec::new(),
            answers: Vec::new(),
        };
        let ended = store.end_turn(&id, outcome, event(), vec![answer]).await.unwrap();
        let was_running = self.running.get(&session).is_some_and(|(running, _)| *running == id);
        assert_eq!(ended, was_running);
        if !ended {
            return;
        }
        // The answer went to channel 0, which is known from now on.
        let channel = store.channel(&place(0)).await.unwrap().unwrap();
        self.meet(&channel.session, 0);
        let (_, messages) = self.running.remove(&session).unwrap();
        for message in &messages {
            let fresh = match outcome {
                Outcome::Answered => self.answered.insert(message.clone()),
                _ => self.failed.insert(message.clone()),
            };
            assert!(fresh, "answered once");
        }
        if outcome != Outcome::Answered {
            let told = self.told.remove(&id).unwrap_or_default();
            let untold = self.untold.entry(session.clone()).or_default();
            untold.extend(told);
            untold.sort();
        }
        let found = store.pending_deliveries("t", &[], "", 1000).await.unwrap();
        let delivery = found.last().unwrap();
        assert_eq!((&delivery.new.text, &delivery.new.answers), (&id, &messages));
        self.session_of.insert(delivery.id.clone(), session);
        self.pending.push((delivery.id.clone(), messages));
    }

    /// Everything that the store says is what the model says.
    async fn check(&self, store: &Sqlite) {
        let running = store.running_turns().await.unwrap();
        let found: BTreeMap<_, _> = running
            .into_iter()
            .map(|turn| {
                let messages = turn.messages.into_iter().map(|message| message.id).collect();
                (turn.session.id, (turn.id, messages))
            })
            .collect();
        assert_eq!(found, self.running);
        let counts = store.counts().await.unwrap();
        let waiting: usize = self.waiting.values().map(VecDeque::len).sum();
        let expected = Counts {
            running_turns: self.running.len().try_into().unwrap(),
            waiting_messages: waiting.try_into().unwrap(),
            pending_deliveries: self.pending.len().try_into().unwrap(),
        };
        assert_eq!(counts, expected);

        let mut waiting: Vec<_> = self
            .waiting
            .iter()
            .filter(|(session, _)| !self.running.contains_key(*session))
            .filter_map(|(session, waits)| Some((waits.front()?.clone(), session.clone())))
            .collect();
        waiting.sort();
        let waiting: Vec<_> = waiting.into_iter().map(|(_, session)| session).collect();
        assert_eq!(store.waiting_sessions().await.unwrap(), waiting);

        let pending = store.pending_deliveries("t", &[], "", 1000).await.unwrap();
        let pending: Vec<_> = pending.into_iter().map(|it| (it.id, it.new.answers)).collect();
        assert_eq!(pending, self.pending);
        for (&channel, session) in &self.current {
            let found = store.channel(&place(channel)).await.unwrap().unwrap();
            assert_eq!(found.session, *session);
        }
        assert_eq!(store.sessions(None, 0, 1000).await.unwrap().len(), self.sessions.len());
    }
}

async fn run(steps: Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("openpact.db");
    let mut store = Sqlite::open(&path).unwrap();
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Reopen => {
                store.close().await.unwrap();
                store = Sqlite::open(&path).unwrap();
            }
            step => model.apply(&store, &step).await,
        }
        model.check(&store).await;
    }
    // No message is in two states.
    let waiting = model.waiting.values().flatten();
    let running = model.running.values().flat_map(|(_, messages)| messages);
    let ended = model.answered.iter().chain(&model.failed);
    let all: Vec<_> = waiting.chain(running).chain(ended).collect();
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_sequence_of_operations_keeps_the_invariants(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(run(steps));
    }
}
