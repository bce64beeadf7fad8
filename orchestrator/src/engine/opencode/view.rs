//! What is known of one turn, put together from events and from the history.
//!
//! Pure: it's told and asked, and does nothing itself.

use super::wire::{Event, Failure, Info, Message, Part, Status};
use crate::engine::{Answer, EngineError, ModelError, Progress, ToolCall, ToolState, Usage};

/// The longest tool input that is passed on for display, in characters.
const INPUT_SHOWN: usize = 2000;

/// The engine's work on one question.
#[derive(Debug)]
pub(super) struct View {
    /// The id of the question: a user message.
    question: String,
    /// The engine has the question.
    taken: bool,
    /// It works on it, or did.
    begun: bool,
    /// It said that the session has nothing to do, after it had begun.
    idle: bool,
    failure: Option<Failure>,
    retry: Option<Status>,
    /// One for each call of the model, in order.
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    info: Info,
    parts: Vec<Stretch>,
}

/// A part of a step, and how much of it was passed on.
#[derive(Debug)]
struct Stretch {
    part: Part,
    /// It's complete, and its text will not become void.
    ended: bool,
}

impl View {
    /// Nothing known yet.
    pub(super) fn new(question: &str) -> Self {
        Self {
            question: question.to_owned(),
            taken: false,
            begun: false,
            idle: false,
            failure: None,
            retry: None,
            steps: Vec::new(),
        }
    }

    /// Takes in an event of the session; says what is new.
    pub(super) fn apply(&mut self, event: &Event) -> Vec<Progress> {
        match event {
            Event::Message(info) => {
                self.message(info);
                Vec::new()
            }
            Event::Part(part) => self.part(part),
            Event::Delta { message, part, more, .. } => self.delta(message, part, more),
            Event::Status { status, .. } => self.status(status),
            Event::Idle { .. } => {
                // A failed turn says twice that it's idle; the second time may
                // come when the next turn has just been asked for.
                self.idle = self.begun;
                Vec::new()
            }
            Event::Error { failure, .. } => {
                if self.begun || self.taken {
                    self.begun = true;
                    self.failure = Some(failure.clone());
                }
                Vec::new()
            }
            Event::Permission { .. } | Event::Question { .. } | Event::Other => Vec::new(),
        }
    }

    /// Takes in the session's history and what it does now; says what is new.
    pub(super) fn replace(&mut self, history: &[Message], busy: bool) -> Vec<Progress> {
        let mut news = Vec::new();
        for message in history {
            if message.info.id == self.question {
                self.taken = true;
            }
            if message.info.parent != self.question {
                continue;
            }
            self.message(&message.info);
            for part in &message.parts {
                news.extend(self.part(part));
            }
        }
        if busy {
            self.begun |= self.taken;
        }
        self.idle = !busy && self.begun;
        news
    }

    /// The engine works on the question, or did.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// The engine said it's done, after it had begun.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    /// The engine failed, or its last step came to its own end.
    pub(super) fn has_ended(&self) -> bool {
        self.failure.is_some()
            || self.steps.last().is_some_and(|step| {
                step.info.error.is_some()
                    || step.info.time.completed.is_some()
                        && step.info.finish.as_deref() != Some("tool-calls")
            })
    }

    /// Everything is here: no text is waiting for its end.
    pub(super) fn is_whole(&self) -> bool {
        self.failure.is_none()
            && self.has_ended()
            && self.steps.iter().all(|step| {
                step.info.time.completed.is_some()
                    && step.parts.iter().all(|stretch| stretch.ended || !is_prose(&stretch.part))
            })
    }

    /// A step ended without a reason. This engine then asks the model again at
    /// once, and goes on doing so for ever.
    pub(super) fn is_endless(&self) -> bool {
        self.steps.iter().any(Step::is_endless)
    }

    /// How many times the model was called.
    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The provider failed and the engine waits to ask it again.
    pub(super) fn retry(&self) -> Option<&Status> {
        self.retry.as_ref()
    }

    /// The last tool that was called.
    pub(super) fn last_tool(&self) -> Option<String> {
        let mut parts = self.steps.iter().flat_map(|step| &step.parts);
        parts.rfind(|it| it.part.kind == "tool").map(|it| it.part.tool.clone())
    }

    /// The answer, or why there is none. For when the turn is over.
    pub(super) fn answer(&self) -> Result<Answer, EngineError> {
        let failure = self.failure.as_ref();
        let failure = failure.or_else(|| self.steps.last().and_then(|it| it.info.error.as_ref()));
        // What an endless turn says after its first end, it says because nobody stopped it.
        let last =
            self.steps.iter().position(Step::is_endless).map_or(self.steps.len(), |at| at + 1);
        let steps = &self.steps[..last];
        let text = steps.iter().rev().map(Step::text).find(|text| !text.is_empty());
        let note = match failure.map(|failure| failure.name.as_str()) {
            Some("MessageAbortedError") => {
                return Err(EngineError::Interrupted { tool: self.last_tool() });
            }
            Some("ContentFilterError") if text.is_some() => {
                Some("The provider's content filter cut this answer short.")
            }
            Some(_) => return Err(model_error(failure.expect("it has a name"))),
            None => match steps.last().and_then(|step| step.info.finish.as_deref()) {
                Some("length") => Some("The answer reached the model's length limit and was cut."),
                Some("content-filter") => {
                    Some("The provider's content filter cut this answer short.")
                }
                Some("unknown") => Some(
                    "The model's provider closed the connection early; this may be incomplete.",
                ),
                _ => None,
            },
        };
        let text = text.ok_or(EngineError::Empty)?;
        let all: Vec<_> = steps.iter().map(Step::text).filter(|it| !it.is_empty()).collect();
        Ok(Answer {
            text,
            all_text: all.join("\n\n"),
            note: note.map(str::to_owned),
            usage: steps.last().map(|step| usage(&step.info)).unwrap_or_default(),
        })
    }

    fn message(&mut self, info: &Info) {
        if info.id == self.question {
            self.taken = true;
        }
        if info.parent != self.question || info.role == "user" {
            return;
        }
        self.taken = true;
        self.begun = true;
        match self.steps.iter_mut().find(|step| step.info.id == info.id) {
            Some(step) => step.info = info.clone(),
            None => {
                self.steps.push(Step { info: info.clone(), parts: Vec::new() });
                self.steps.sort_by(|a, b| a.info.id.cmp(&b.info.id));
            }
        }
    }

    fn part(&mut self, part: &Part) -> Vec<Progress> {
        let Some(step) = self.steps.iter_mut().find(|step| step.info.id == part.message) else {
            return Vec::new();
        };
        let known = step.parts.iter().position(|it| it.part.id == part.id);
        match part.kind.as_str() {
            "text" | "reasoning" => step.prose(known, part).into_iter().collect(),
            "tool" => step.tool(known, part).into_iter().collect(),
            "step-start" if known.is_none() => {
                let void = step.void();
                step.parts.push(Stretch { part: part.clone(), ended: true });
                void
            }
            _ => Vec::new(),
        }
    }

    fn delta(&mut self, message: &str, part: &str, more: &str) -> Vec<Progress> {
        let step = self.steps.iter_mut().find(|step| step.info.id == message);
        let stretch =
            step.and_then(|step| step.parts.iter_mut().find(|stretch| stretch.part.id == part));
        // What ended is complete, and a part that isn't known will come whole.
        let Some(stretch) = stretch.filter(|stretch| !stretch.ended) else { return Vec::new() };
        stretch.part.text.push_str(more);
        vec![words(&stretch.part, more.to_owned())]
    }

    fn status(&mut self, status: &Status) -> Vec<Progress> {
        self.retry = None;
        match status.kind.as_str() {
            "busy" => self.begun |= self.taken,
            "retry" => {
                self.retry = Some(status.clone());
                return vec![Progress::Retry {
                    attempt: status.attempt,
                    reason: status.message.clone(),
                }];
            }
            "idle" => self.idle = self.begun,
            _ => {}
        }
        Vec::new()
    }
}

impl Step {
    fn is_endless(&self) -> bool {
        self.info.finish.as_deref() == Some("unknown")
    }

    /// What the model wrote in this step.
    fn text(&self) -> String {
        let texts = self.parts.iter().map(|stretch| &stretch.part);
        let texts = texts.filter(|part| part.kind == "text" && !part.synthetic);
        let texts: Vec<_> =
            texts.map(|part| part.text.trim()).filter(|it| !it.is_empty()).collect();
        texts.join("\n\n")
    }

    fn prose(&mut self, known: Option<usize>, part: &Part) -> Option<Progress> {
        let ended = part.time.is_some_and(|time| time.end.is_some());
        let Some(at) = known else {
            self.parts.push(Stretch { part: part.clone(), ended });
            return (!part.text.is_empty()).then(|| words(part, part.text.clone()));
        };
        let stretch = &mut self.parts[at];
        // Between its beginning and its end a part's text is only in the deltas.
        if !ended && part.text.len() < stretch.part.text.len() {
            return None;
        }
        let more = part.text.strip_prefix(stretch.part.text.as_str()).map(str::to_owned);
        stretch.part = part.clone();
        stretch.ended = ended;
        match more {
            Some(more) if more.is_empty() => None,
            Some(more) => Some(words(part, more)),
            // The end has the last word: begin the stretch anew.
            None => Some(Progress::Void { part: part.id.clone() }),
        }
    }

    fn tool(&mut self, known: Option<usize>, part: &Part) -> Option<Progress> {
        let before = known.map(|at| self.parts[at].part.state.status.clone());
        match known {
            Some(at) => self.parts[at].part = part.clone(),
            None => self.parts.push(Stretch { part: part.clone(), ended: true }),
        }
        let state = match part.state.status.as_str() {
            "running" => ToolState::Running,
            "completed" => ToolState::Completed,
            "error" => ToolState::Failed(part.state.error.clone()),
            _ => return None,
        };
        if before.as_deref() == Some(part.state.status.as_str()) {
            return None;
        }
        let input = part.state.input.to_string();
        Some(Progress::Tool(ToolCall {
            id: part.call.clone(),
            tool: part.tool.clone(),
            state,
            input: input.chars().take(INPUT_SHOWN).collect(),
        }))
    }

    /// The model is asked again within the step: what had not ended is void.
    fn void(&mut self) -> Vec<Progress> {
        let mut news = Vec::new();
        for stretch in &mut self.parts {
            if !stretch.ended && is_prose(&stretch.part) {
                stretch.part.text.clear();
                stretch.ended = true;
                news.push(Progress::Void { part: stretch.part.id.clone() });
            }
        }
        news
    }
}

fn is_prose(part: &Part) -> bool {
    matches!(part.kind.as_str(), "text" | "reasoning")
}

fn words(part: &Part, more: String) -> Progress {
    let id = part.id.clone();
    if part.kind == "reasoning" {
        Progress::Reasoning { part: id, more }
    } else {
        Progress::Text { part: id, more }
    }
}

/// What a step used.
pub(super) fn usage(info: &Info) -> Usage {
    let cache = info.tokens.cache;
    Usage {
        model: format!("{}/{}", info.provider, info.model),
        context_tokens: info.tokens.input + cache.read + cache.write,
        cached_tokens: cache.read,
        output_tokens: info.tokens.output,
        window_tokens: 0,
        cost: info.cost,
    }
}

/// Says in our words what kind of no the engine reports.
fn model_error(failure: &Failure) -> EngineError {
    let kind = match (failure.name.as_str(), failure.data.status_code) {
        ("ContextOverflowError", _) | (_, Some(413)) => ModelError::TooLong,
        ("ContentFilterError", _) => ModelError::Filtered,
        ("ProviderAuthError", _) | (_, Some(401 | 403)) => ModelError::Key,
        ("ProviderModelNotFoundError" | "ModelNotFoundError", _) | (_, Some(404)) => {
            ModelError::Missing
        }
        (_, Some(402 | 429 | 503 | 529)) => ModelError::Busy,
        // The engine reports a connection that failed without a status.
        ("APIError", None) => ModelError::Unreachable,
        _ => ModelError::Other,
    };
    let message =
        if failure.data.message.is_empty() { &failure.name } else { &failure.data.message };
    EngineError::Model { kind, message: message.chars().take(500).collect() }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "tables of `json!` read better")]
mod tests {
    use serde_json::{Value, json};

    use super::super::wire;
    use super::*;

    const QUESTION: &str = "msg_q";

    fn view(events: &[Value]) -> (View, Vec<Progress>) {
        let mut view = View::new(QUESTION);
        let mut news = Vec::new();
        for event in events {
            news.extend(view.apply(&wire::event(&event.to_string()).unwrap()));
        }
        (view, news)
    }

    fn message(id: &str, extra: Value) -> Value {
        let mut info = json!({"id": id, "sessionID": "s", "role": "assistant",
            "parentID": QUESTION, "time": {"created": 1}});
        info.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"type": "message.updated", "properties": {"info": info}})
    }

    fn part(message: &str, id: &str, extra: Value) -> Value {
        let mut part = json!({"id": id, "messageID": message, "sessionID": "s", "type": "text"});
        part.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"type": "message.part.updated", "properties": {"part": part}})
    }

    fn delta(message: &str, part: &str, more: &str) -> Value {
        json!({"type": "message.part.delta", "properties":
            {"sessionID": "s", "messageID": message, "partID": part, "field": "text", "delta": more}})
    }

    fn status(kind: &str) -> Value {
        json!({"type": "session.status", "properties": {"sessionID": "s", "status": {"type": kind}}})
    }

    fn done(id: &str, finish: &str) -> Value {
        message(id, json!({"time": {"created": 1, "completed": 2}, "finish": finish}))
    }

    #[test]
    fn a_streamed_answer_is_passed_on_once_and_ends_whole() {
        let (view, news) = view(&[
            message("m1", json!({})),
            part("m1", "p1", json!({"text": "", "time": {"start": 1}})),
            delta("m1", "p1", "hel"),
            delta("m1", "p1", "lo"),
            part("m1", "p1", json!({"text": "hello", "time": {"start": 1, "end": 2}})),
            done("m1", "stop"),
            status("idle"),
        ]);
        let more: Vec<_> = news
            .iter()
            .map(|it| match it {
                Progress::Text { more, .. } => more.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(more, ["hel", "lo"]);
        assert!(view.is_idle() && view.is_whole());
        assert_eq!(view.answer().unwrap().text, "hello");
    }

    #[test]
    fn a_stretch_that_the_engine_begins_anew_is_void() {
        let (view, news) = view(&[
            message("m1", json!({})),
            part("m1", "a", json!({"type": "step-start"})),
            part("m1", "p1", json!({"text": ""})),
            delta("m1", "p1", "half an ans"),
            part("m1", "b", json!({"type": "step-start"})),
            part("m1", "p2", json!({"text": ""})),
            delta("m1", "p2", "answer"),
            part("m1", "p2", json!({"text": "answer", "time": {"end": 3}})),
            done("m1", "stop"),
        ]);
        assert!(news.contains(&Progress::Void { part: "p1".into() }));
        assert!(view.is_whole());
        assert_eq!(view.answer().unwrap().all_text, "answer");
    }

    #[test]
    fn the_answer_is_what_was_written_last() {
        let (view, _) = view(&[
            message("m1", json!({})),
            part("m1", "p1", json!({"text": "let me look", "time": {"end": 1}})),
            done("m1", "tool-calls"),
            message("m2", json!({})),
            part("m2", "p2", json!({"text": "it is there", "time": {"end": 1}})),
            done("m2", "stop"),
        ]);
        let answer = view.answer().unwrap();
        assert_eq!(answer.text, "it is there");
        assert_eq!(answer.all_text, "let me look\n\nit is there");
    }

    #[test]
    fn an_idle_session_says_nothing_before_the_turn_began() {
        let (view, _) = view(&[
            status("idle"),
            json!({"type": "session.idle", "properties": {"sessionID": "s"}}),
            json!({"type": "session.error", "properties": {"sessionID": "s", "error": {"name": "X"}}}),
        ]);
        assert!(!view.is_idle() && !view.has_begun() && !view.has_ended());
    }

    #[test]
    fn messages_that_answer_something_else_are_not_ours() {
        let (view, news) = view(&[
            json!({"type": "message.updated", "properties": {"info":
                {"id": "m0", "sessionID": "s", "role": "assistant", "parentID": "msg_other"}}}),
            part("m0", "p0", json!({"text": "not yours"})),
        ]);
        assert!(news.is_empty() && !view.has_begun());
    }

    #[test]
    fn failures_say_what_kind_they_are() {
        #[rustfmt::skip]
        let cases = [
            (json!({"name": "APIError", "data": {"message": "m", "statusCode": 401}}), ModelError::Key),
            (json!({"name": "APIError", "data": {"message": "m", "statusCode": 429}}), ModelError::Busy),
            (json!({"name": "APIError", "data": {"message": "m", "statusCode": 404}}), ModelError::Missing),
            (json!({"name": "APIError", "data": {"message": "m"}}), ModelError::Unreachable),
            (json!({"name": "ContextOverflowError", "data": {"message": "m"}}), ModelError::TooLong),
            (json!({"name": "UnknownError", "data": {"message": "m"}}), ModelError::Other),
        ];
        for (error, expected) in cases {
            let (view, _) = view(&[message("m1", json!({"error": error}))]);
            let Err(EngineError::Model { kind, .. }) = view.answer() else { panic!("{error}") };
            assert_eq!(kind, expected, "{error}");
        }
    }

    #[test]
    fn the_history_completes_what_events_left_out() {
        let mut view = View::new(QUESTION);
        view.apply(&wire::event(&message("m1", json!({})).to_string()).unwrap());
        view.apply(&wire::event(&part("m1", "p1", json!({"text": ""})).to_string()).unwrap());
        view.apply(&wire::event(&delta("m1", "p1", "on").to_string()).unwrap());
        let history: Vec<Message> = serde_json::from_value(json!([
            {"info": {"id": QUESTION, "role": "user"}, "parts": []},
            {"info": {"id": "m1", "role": "assistant", "parentID": QUESTION, "finish": "stop",
                "time": {"created": 1, "completed": 2}},
             "parts": [{"id": "p1", "messageID": "m1", "type": "text", "text": "one two",
                "time": {"end": 2}}]},
        ]))
        .unwrap();
        let news = view.replace(&history, false);
        assert_eq!(news, [Progress::Text { part: "p1".into(), more: "e two".into() }]);
        assert!(view.is_idle() && view.is_whole());
        assert!(view.replace(&history, false).is_empty());
    }
}
