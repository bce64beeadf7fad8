//! What the engine does with a prompt: events and history, in the order the
//! real one was seen to make them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::beat::Beat;
use super::session::{self, Message, Session};
use super::{LONG, Life, Prompt, REMEMBERED, Shared, id};
use crate::llm::pieces;

/// Characters of a delta.
const PIECE: usize = 12;
/// The pause between two rounds of [`Beat::Loop`].
const ROUND: Duration = Duration::from_millis(20);

/// A session that is busy.
pub(super) struct Run {
    shared: Arc<Shared>,
    life: Life,
    session: String,
    /// The message that is answered, and the model it asks for.
    parent: String,
    model: Value,
    /// The streams don't hear it.
    deaf: bool,
    /// The assistant's message that is being written.
    message: Option<String>,
    /// Its text that is being written.
    text: Option<Text>,
    finish: String,
}

struct Text {
    id: String,
    kind: &'static str,
    start: u64,
    so_far: String,
    /// The stream is told when it's whole.
    closes: bool,
}

/// How the beats ended.
enum End {
    Done,
    Failed(Value),
    /// Idle, but nobody is told.
    Unseen,
    /// Idle, and nothing was written.
    Nothing,
}

impl Run {
    /// Takes a prompt into its session. A session that is busy answers it once
    /// it has finished what it's at.
    pub(super) fn start(shared: &Arc<Shared>, prompt: &Prompt, beats: Vec<Beat>) {
        let message_id = prompt.message_id.clone().unwrap_or_else(|| id::fresh("msg"));
        let run = Self {
            shared: Arc::clone(shared),
            life: shared.world().life.clone(),
            session: prompt.session.clone(),
            parent: message_id.clone(),
            model: Value::Null,
            deaf: beats.first() == Some(&Beat::Deaf),
            message: None,
            text: None,
            finish: "stop".to_owned(),
        };
        let stored = run.change(|session| {
            if let Some(old) = session.message(&message_id) {
                session::add_parts(old, &prompt.session, &prompt.body);
            } else {
                let message = session::user_message(&prompt.session, &message_id, &prompt.body);
                session.messages.push(message);
            }
            session.pending.push_back((message_id.clone(), beats));
            let busy = session.status.is_some();
            if !busy {
                session.status = Some(json!({"type": "busy"}));
                session.abort = tokio_util::sync::CancellationToken::new();
            }
            let message = session.message(&message_id).map(|message| message.clone());
            (message, busy)
        });
        let Some((Some(message), busy)) = stored else { return };
        run.tell_session();
        run.send("message.updated", json!({"info": message.info}));
        for part in message.parts {
            run.send("message.part.updated", json!({"part": part, "time": id::now()}));
        }
        if !busy {
            run.send("session.status", json!({"status": {"type": "busy"}}));
            let tasks = run.life.tasks.clone();
            tasks.spawn(run.go());
        }
    }

    async fn go(mut self) {
        let stop = self.life.stop.clone();
        while let Some((beats, abort)) = self.begin() {
            let deaf_to_abort = beats.contains(&Beat::Stuck);
            let aborted = async {
                abort.cancelled().await;
                if deaf_to_abort {
                    std::future::pending::<()>().await;
                }
            };
            let ended = tokio::select! {
                ended = self.play(beats) => Some(ended),
                () = aborted => None,
                () = stop.cancelled() => return,
            };
            match ended {
                Some(End::Done) => self.end_message("stop"),
                Some(End::Nothing) => {}
                Some(End::Unseen) => {
                    self.end_message("stop");
                    self.deaf = true;
                }
                Some(End::Failed(error)) => return self.fail(&error),
                None => {
                    let data = json!({"message": "The operation was aborted."});
                    return self.fail(&json!({"name": "MessageAbortedError", "data": data}));
                }
            }
        }
        self.send("session.status", json!({"status": {"type": "busy"}}));
        self.idle();
        self.tell_session();
        self.send("session.diff", json!({"diff": []}));
    }

    /// The newest prompt that waits; it stands for all that waited. `None`, and
    /// the session is idle, if there's none.
    fn begin(&mut self) -> Option<(Vec<Beat>, tokio_util::sync::CancellationToken)> {
        let (begun, model, answered) = self.change(|session| {
            let Some((parent, beats)) = session.pending.drain(..).next_back() else {
                session.status = None;
                return None;
            };
            let answered = session.is_answered(&parent);
            let model = session.message(&parent).map(|message| message.info["model"].clone());
            Some(((parent, beats, session.abort.clone()), model, answered))
        })??;
        let (parent, beats, abort) = begun;
        self.parent = parent;
        self.model = model.unwrap_or_default();
        "stop".clone_into(&mut self.finish);
        // A message id that was used before isn't answered again.
        let beats = if answered { vec![Beat::Nothing] } else { beats };
        Some((beats, abort))
    }

    async fn play(&mut self, beats: Vec<Beat>) -> End {
        for beat in beats {
            match beat {
                Beat::Say(text) => self.say("text", &text, true, true),
                Beat::SayUnclosed(text) => self.say("text", &text, true, false),
                Beat::SayWithoutDeltas(text) => self.say("text", &text, false, true),
                Beat::SayInVain(text) => self.say_in_vain(&text),
                Beat::Think(text) => self.say("reasoning", &text, true, true),
                Beat::Tool { tool, input, result } => self.call(&tool, &input, &result),
                Beat::Retry { attempt, message } => {
                    let next = id::now() + 2_000;
                    let status = json!({"type": "retry", "attempt": attempt, "message": message, "next": next});
                    self.change(|session| session.status = Some(status.clone()));
                    self.send("session.status", json!({"status": status}));
                }
                Beat::AskPermission(permission) => self.ask_permission(&permission).await,
                Beat::AskQuestion(question) => self.ask_question(&question).await,
                Beat::Wait(pause) => tokio::time::sleep(pause).await,
                Beat::Hold(name) => self.hold(&name).await,
                Beat::Deaf => self.deaf = true,
                Beat::Hear => self.deaf = false,
                Beat::EndStreams => self.shared.world().events.end(),
                Beat::Fail { name, data } => {
                    return End::Failed(json!({"name": name, "data": data}));
                }
                Beat::Finish(reason) => self.finish = reason,
                Beat::Loop => loop {
                    self.end_message("unknown");
                    tokio::time::sleep(ROUND).await;
                },
                Beat::Never | Beat::Stuck => std::future::pending().await,
                Beat::IdleUnseen => return End::Unseen,
                Beat::Die => {
                    self.life.stop.cancel();
                    std::future::pending::<()>().await;
                }
                Beat::Nothing => return End::Nothing,
                // The route has seen to them.
                Beat::Swallow | Beat::Refuse(_) | Beat::Cut => {}
            }
        }
        End::Done
    }

    /// Writes text of this kind into the open part, or opens one.
    fn say(&mut self, kind: &'static str, text: &str, deltas: bool, closes: bool) {
        let message = self.message();
        if self.text.as_ref().is_none_or(|open| open.kind != kind) {
            self.close_text();
            let open = Text {
                id: id::fresh("prt"),
                kind,
                start: id::now(),
                so_far: String::new(),
                closes,
            };
            self.put(open.part(None));
            self.text = Some(open);
        }
        let Some(open) = &mut self.text else { return };
        open.so_far.push_str(text);
        open.closes &= closes;
        let part = open.id.clone();
        for piece in pieces(text, PIECE).into_iter().filter(|_| deltas) {
            let delta =
                json!({"messageID": message, "partID": part, "field": "text", "delta": piece});
            self.send("message.part.delta", delta);
        }
    }

    fn close_text(&mut self) {
        let Some(open) = self.text.take() else { return };
        let part = open.part(Some(id::now()));
        if open.closes {
            self.put(part);
        } else {
            let deaf = std::mem::replace(&mut self.deaf, true);
            self.put(part);
            self.deaf = deaf;
        }
    }

    fn say_in_vain(&mut self, text: &str) {
        self.say("text", text, true, true);
        // What was streamed is void: the part stays empty, and the next try
        // has a step of its own in the same message.
        self.text = None;
        self.put(json!({"id": id::fresh("prt"), "type": "step-start"}));
    }

    fn call(&mut self, tool: &str, input: &Value, result: &Result<String, String>) {
        self.message();
        self.close_text();
        let (id, call, start) = (id::fresh("prt"), id::fresh("call"), id::now());
        let part = |state: Value| json!({"id": id, "type": "tool", "tool": tool, "callID": call, "state": state});
        self.put(part(json!({"status": "pending", "input": {}, "raw": ""})));
        self.put(part(json!({"status": "running", "input": input, "time": {"start": start}})));
        let time = json!({"start": start, "end": id::now()});
        self.put(part(match result {
            Ok(output) => json!({"status": "completed", "input": input, "output": output,
                "title": "", "metadata": {"truncated": false}, "time": time}),
            Err(error) => json!({"status": "error", "input": input, "error": error, "time": time}),
        }));
        self.end_message("tool-calls");
        self.send("session.status", json!({"status": {"type": "busy"}}));
    }

    async fn ask_permission(&mut self, permission: &str) {
        let message = self.message();
        let id = id::fresh("per");
        let tool = json!({"messageID": message, "callID": id::fresh("call")});
        let asked = json!({"id": id, "sessionID": self.session, "permission": permission,
            "patterns": ["*"], "metadata": {}, "always": ["*"], "tool": tool});
        self.shared.world().permissions.push((id.clone(), asked.clone()));
        self.send("permission.asked", asked);
        self.until(|world| !world.permissions.iter().any(|(known, _)| *known == id)).await;
    }

    async fn ask_question(&mut self, question: &str) {
        let message = self.message();
        let id = id::fresh("que");
        let tool = json!({"messageID": message, "callID": id::fresh("call")});
        let option = json!({"label": "Yes", "description": "yes"});
        let questions = json!([{"question": question, "header": question, "options": [option]}]);
        let asked =
            json!({"id": id, "sessionID": self.session, "questions": questions, "tool": tool});
        self.shared.world().questions.push((id.clone(), asked.clone()));
        self.send("question.asked", asked);
        self.until(|world| !world.questions.iter().any(|(known, _)| *known == id)).await;
    }

    async fn hold(&self, name: &str) {
        *self.shared.world().held.entry(name.to_owned()).or_default() += 1;
        let _held = Held { shared: &self.shared, name };
        self.shared.bell.ring();
        self.until(|world| world.released.contains(name)).await;
    }

    async fn until(&self, mut is_so: impl FnMut(&super::World) -> bool) {
        let look = || is_so(&self.shared.world()).then_some(());
        if let Err(error) = self.shared.bell.wait(LONG, look, String::new).await {
            tracing::warn!(%error, "the fake engine waited in vain");
        }
    }

    /// The message that is being written; begins one if there's none.
    fn message(&mut self) -> String {
        if let Some(message) = &self.message {
            return message.clone();
        }
        let message = session::assistant_message(&self.session, &self.parent, &self.model);
        let id = message.id().to_owned();
        let info = message.info.clone();
        self.change(|session| session.messages.push(message));
        self.send("message.updated", json!({"info": info}));
        self.message = Some(id.clone());
        self.put(json!({"id": id::fresh("prt"), "type": "step-start"}));
        id
    }

    /// Finishes the message; `stop` is what was given with [`Beat::Finish`].
    fn end_message(&mut self, reason: &str) {
        self.message();
        self.close_text();
        let reason = if reason == "stop" { self.finish.clone() } else { reason.to_owned() };
        self.put(json!({"id": id::fresh("prt"), "type": "step-finish", "reason": reason,
            "tokens": session::tokens(), "cost": 0}));
        let info = self.in_message(|message| {
            message.info["time"]["completed"] = id::now().into();
            message.info["finish"] = reason.into();
            message.info.clone()
        });
        for _ in 0..2 {
            self.send("message.updated", json!({"info": info}));
        }
        self.message = None;
    }

    /// Ends the turn with an error: idle, then what is known late, idle again.
    fn fail(&mut self, error: &Value) {
        self.message();
        self.send("session.error", json!({"error": error}));
        self.change(|session| session.status = None);
        self.idle();
        self.close_text();
        let info = self.in_message(|message| {
            message.info["time"]["completed"] = id::now().into();
            message.info["error"] = error.clone();
            message.info.clone()
        });
        self.send("message.updated", json!({"info": info}));
        self.idle();
    }

    fn idle(&self) {
        self.send("session.status", json!({"status": {"type": "idle"}}));
        let mut world = self.shared.world();
        if !self.deaf {
            if world.idle.len() == REMEMBERED {
                world.idle.pop_front();
            }
            world.idle.push_back((self.session.clone(), Instant::now()));
            world.events.send("session.idle", &json!({"sessionID": self.session}));
        }
        drop(world);
        self.shared.bell.ring();
    }

    /// Stores a part of the message and tells the streams.
    fn put(&mut self, mut part: Value) {
        let message = self.message();
        part["messageID"] = message.into();
        part["sessionID"] = self.session.clone().into();
        self.in_message(|message| message.put(part.clone()));
        self.send("message.part.updated", json!({"part": part, "time": id::now()}));
    }

    fn tell_session(&self) {
        let info = self.change(|session| {
            session.info["time"]["updated"] = id::now().into();
            session.info.clone()
        });
        self.send("session.updated", json!({"info": info}));
    }

    fn send(&self, kind: &str, mut properties: Value) {
        if self.deaf {
            return;
        }
        properties["sessionID"] = self.session.clone().into();
        self.shared.world().events.send(kind, &properties);
    }

    fn in_message<T>(&self, change: impl FnOnce(&mut Message) -> T) -> Option<T> {
        let id = self.message.as_deref()?;
        self.change(|session| session.message(id).map(change))?
    }

    /// `None`: the session was deleted.
    fn change<T>(&self, change: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.shared.world().sessions.get(&self.session).map(change)
    }
}

impl Text {
    /// Its part: empty while it's being written, since deltas aren't stored.
    fn part(&self, end: Option<u64>) -> Value {
        let text = end.map_or("", |_| self.so_far.as_str());
        let mut part = json!({"id": self.id, "type": self.kind, "text": text,
            "time": {"start": self.start}});
        if let Some(end) = end {
            part["time"]["end"] = end.into();
        }
        part
    }
}

/// A turn that stands at a hold, for as long as it does.
struct Held<'a> {
    shared: &'a Shared,
    name: &'a str,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.shared.world().held.get_mut(self.name) {
            *held -= 1;
        }
    }
}
