//! Sessions and their messages, in the engine's own shapes.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Beat, id};

/// All sessions, by id.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: BTreeMap<String, Session>,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) info: Value,
    pub(super) messages: Vec<Message>,
    /// `busy` or `retry`; an idle session has none.
    pub(super) status: Option<Value>,
    /// Ends what runs.
    pub(super) abort: CancellationToken,
    /// Prompts that no run has begun: the message, and what is to happen.
    pub(super) pending: VecDeque<(String, Vec<Beat>)>,
}

/// What a user or the model wrote.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) info: Value,
    pub(super) parts: Vec<Value>,
}

impl Message {
    pub(super) fn id(&self) -> &str {
        self.info["id"].as_str().unwrap_or_default()
    }

    pub(super) fn is_user(&self) -> bool {
        self.info["role"] == "user"
    }

    pub(super) fn shown(&self) -> Value {
        json!({"info": self.info, "parts": self.parts})
    }

    /// Replaces the part with this one's id, or adds it.
    pub(super) fn put(&mut self, part: Value) {
        match self.parts.iter_mut().find(|known| known["id"] == part["id"]) {
            Some(known) => *known = part,
            None => self.parts.push(part),
        }
    }
}

impl Session {
    pub(super) fn message(&mut self, id: &str) -> Option<&mut Message> {
        self.messages.iter_mut().find(|message| message.id() == id)
    }

    /// Whether the model has said its last word on this message of a user.
    pub(super) fn is_answered(&self, user_message: &str) -> bool {
        self.messages.iter().any(|message| {
            let finish = message.info["finish"].as_str();
            message.info["parentID"] == user_message
                && finish.is_some_and(|finish| !["tool-calls", "unknown"].contains(&finish))
        })
    }
}

impl Sessions {
    pub(super) fn create(&mut self, title: Option<&str>) -> Value {
        let (id, now) = (id::fresh("ses"), id::now());
        let info = json!({
            "id": id, "slug": "fake-session", "projectID": "global", "directory": "/fake",
            "path": "fake", "cost": 0, "tokens": tokens(), "title": title.unwrap_or("New session"),
            "version": super::VERSION, "time": {"created": now, "updated": now},
        });
        let session = Session {
            info: info.clone(),
            messages: Vec::new(),
            status: None,
            abort: CancellationToken::new(),
            pending: VecDeque::new(),
        };
        self.all.insert(id, session);
        info
    }

    pub(super) fn get(&mut self, id: &str) -> Option<&mut Session> {
        self.all.get_mut(id)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Session> {
        self.all.remove(id)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.all.keys().cloned().collect()
    }

    /// Newest first.
    pub(super) fn shown(&self) -> Vec<Value> {
        self.all.values().rev().map(|session| session.info.clone()).collect()
    }

    pub(super) fn statuses(&self) -> Value {
        let busy = |(id, session): (&String, &Session)| {
            session.status.clone().map(|status| (id.clone(), status))
        };
        Value::Object(self.all.iter().filter_map(busy).collect())
    }

    /// What a SIGKILL leaves: nothing runs, unfinished text is lost, running
    /// tools stay as they are and messages are never completed.
    pub(super) fn crash(&mut self) {
        for session in self.all.values_mut() {
            session.status = None;
            session.abort = CancellationToken::new();
            session.pending.clear();
            for message in session.messages.iter_mut().filter(|message| !message.is_user()) {
                for part in &mut message.parts {
                    if part["time"]["end"].is_null() && part["text"].is_string() {
                        part["text"] = json!("");
                    }
                }
            }
        }
    }
}

/// A user's message with the parts of a prompt.
pub(super) fn user_message(session: &str, id: &str, body: &Value) -> Message {
    let model = body.get("model").cloned();
    let model = model.unwrap_or_else(|| json!({"providerID": "openpact", "modelID": "fake-model"}));
    let mut info = json!({
        "id": id, "sessionID": session, "role": "user", "time": {"created": id::now()},
        "summary": {"diffs": []}, "agent": "build", "model": model,
    });
    if let Some(system) = body.get("system") {
        info["system"] = system.clone();
    }
    let mut message = Message { info, parts: Vec::new() };
    add_parts(&mut message, session, body);
    message
}

/// Adds a prompt's parts to a message; a repeated message id does this to the
/// old message.
pub(super) fn add_parts(message: &mut Message, session: &str, body: &Value) {
    let id = message.id().to_owned();
    for part in body["parts"].as_array().into_iter().flatten() {
        let mut part = part.clone();
        part["id"] = id::fresh("prt").into();
        part["sessionID"] = session.into();
        part["messageID"] = id.clone().into();
        message.parts.push(part);
    }
}

/// An assistant's message that has just begun.
pub(super) fn assistant_message(session: &str, parent: &str, model: &Value) -> Message {
    let info = json!({
        "id": id::fresh("msg"), "parentID": parent, "role": "assistant", "mode": "build",
        "agent": "build", "path": {"cwd": "/fake", "root": "/"}, "cost": 0, "tokens": tokens(),
        "modelID": model["modelID"], "providerID": model["providerID"],
        "time": {"created": id::now()}, "sessionID": session,
    });
    Message { info, parts: Vec::new() }
}

/// A count of nothing, in the engine's shape.
pub(super) fn tokens() -> Value {
    json!({"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}})
}
