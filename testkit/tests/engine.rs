//! The fake engine, as the orchestrator's adapter sees it.

use std::time::Duration;

use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use openpact_testkit::engine::{Beat, FakeEngine, fail, hold, say, think, tool};
use serde_json::{Value, json};

struct Client<'a> {
    http: reqwest::Client,
    engine: &'a FakeEngine,
}

/// Events of a stream until one of a type comes.
type Events = std::pin::Pin<Box<dyn futures_util::Stream<Item = Value> + Send>>;

impl<'a> Client<'a> {
    fn new(engine: &'a FakeEngine) -> Self {
        // Another test of this process may have installed it.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(Duration::from_secs(20));
        Self { http: http.build().expect("a client"), engine }
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let method = method.parse().expect("a method");
        let url = format!("{}{path}", self.engine.url());
        let request = self.http.request(method, url);
        let request = request.basic_auth("opencode", Some(self.engine.password()));
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let bytes = response.bytes().await.expect("a body");
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        self.send("GET", path, None).await.1
    }

    async fn session(&self) -> String {
        let (_, session) = self.send("POST", "/session", Some(json!({"title": "t"}))).await;
        session["id"].as_str().expect("an id").to_owned()
    }

    async fn prompt(&self, session: &str, text: &str) -> u16 {
        let body = json!({"parts": [{"type": "text", "text": text}], "system": "be brief"});
        self.send("POST", &format!("/session/{session}/prompt_async"), Some(body)).await.0
    }

    async fn listen(&self) -> Events {
        let request = self.http.get(format!("{}/event", self.engine.url()));
        let request = request.basic_auth("opencode", Some(self.engine.password()));
        let response = request.send().await.expect("a stream");
        let mut events: Events = Box::pin(
            futures_util::StreamExt::take_while(response.bytes_stream().eventsource(), |event| {
                std::future::ready(event.is_ok())
            })
            .filter_map(|event| async move { serde_json::from_str(&event.ok()?.data).ok() }),
        );
        assert_eq!(events.next().await.expect("an event")["type"], "server.connected");
        events
    }

    /// The texts of the messages that answer, in order.
    async fn answers(&self, session: &str) -> Vec<String> {
        let messages = self.get(&format!("/session/{session}/message")).await;
        let answers = messages.as_array().into_iter().flatten();
        answers
            .filter(|message| message["info"]["role"] == "assistant")
            .map(|message| {
                let parts = message["parts"].as_array().into_iter().flatten();
                parts
                    .filter(|part| part["type"] == "text")
                    .filter_map(|part| part["text"].as_str())
                    .collect()
            })
            .collect()
    }
}

async fn until(events: &mut Events, kind: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        let found = event["type"] == kind;
        seen.push(event);
        if found {
            break;
        }
    }
    seen
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

#[tokio::test]
async fn a_turn_has_the_events_and_the_history_of_the_real_one() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    engine.on(
        "rain",
        [
            think("look outside"),
            say("Let me look. "),
            tool("openpact_workspace_read", json!({"path": "sky"}), "grey"),
            say("It "),
            say("rains."),
        ],
    );
    assert_eq!(client.prompt(&session, "does it rain?").await, 204);
    let seen = until(&mut events, "session.idle").await;
    let deltas: String = seen
        .iter()
        .filter(|event| event["type"] == "message.part.delta")
        .filter_map(|event| event["properties"]["delta"].as_str())
        .collect();
    assert_eq!(deltas, "look outsideLet me look. It rains.");
    let states: Vec<_> = seen
        .iter()
        .filter_map(|event| event.pointer("/properties/part/state/status")?.as_str())
        .collect();
    assert_eq!(states, ["pending", "running", "completed"]);
    assert_eq!(kinds(&seen[seen.len() - 2..]), ["session.status", "session.idle"]);
    assert_eq!(client.answers(&session).await, ["Let me look. ", "It rains."]);
    let messages = client.get(&format!("/session/{session}/message")).await;
    assert_eq!(messages[1]["info"]["finish"], "tool-calls");
    assert_eq!(messages[2]["info"]["finish"], "stop");
    assert_eq!(messages[2]["info"]["parentID"], messages[0]["info"]["id"]);
    assert_eq!(client.get("/session/status").await, json!({}));
    let prompts = engine.prompts();
    assert_eq!(
        (prompts[0].text.as_str(), prompts[0].system.as_deref()),
        ("does it rain?", Some("be brief"))
    );
    assert!(engine.idle()[0].1 > prompts[0].at);
}

#[tokio::test]
async fn requests_are_answered_with_the_real_shapes() {
    let engine = FakeEngine::start().await.unwrap();
    engine.set_mcp("gone", "failed", false);
    let client = Client::new(&engine);
    let session = client.session().await;
    let prompt = format!("/session/{session}/prompt_async");
    #[rustfmt::skip]
    let cases = [
        // request                                      body               status  part of the answer
        ("GET",  "/global/health",                      None,              200,    "\"healthy\":true"),
        ("GET",  "/session/ses_nope",                   None,              404,    "Session not found: ses_nope"),
        ("GET",  "/session/nope",                       None,              500,    "UnknownError"),
        ("POST", "/session/ses_nope/abort",             None,              200,    "true"),
        ("POST", &prompt,                               Some(json!({})),   400,    "Missing key"),
        ("GET",  "/no/such/page",                       None,              200,    "null"),
        ("DELETE", "/mcp",                              None,              200,    "null"),
        ("GET",  "/mcp",                                None,              200,    "Connection closed"),
        ("POST", "/mcp/gone/connect",                   None,              200,    "true"),
        ("POST", "/mcp/nobody/connect",                 None,              404,    "McpServerNotFoundError"),
        ("POST", "/permission/per_1/reply",             Some(json!({})),   404,    "PermissionNotFoundError"),
        ("POST", "/question/que_1/reject",              None,              404,    "QuestionNotFoundError"),
    ];
    for (method, path, body, status, part) in cases {
        let (given, answer) = client.send(method, path, body).await;
        assert_eq!(given, status, "{method} {path}");
        assert!(answer.to_string().contains(part), "{method} {path}: {answer}");
    }
    let nobody = client.http.get(format!("{}/global/health", engine.url())).send().await.unwrap();
    assert_eq!(nobody.status(), 401);
}

#[tokio::test]
async fn events_are_lost_in_each_of_the_ways_they_are() {
    let unseen = |beats: &[Beat]| beats.to_vec();
    #[rustfmt::skip]
    let cases = [
        // what happens                  beats                                                        events      history
        ("no event at all",              unseen(&[Beat::Deaf, say("a")]),                             false,      vec!["a"]),
        ("not that it's idle",           unseen(&[say("a"), Beat::IdleUnseen]),                       false,      vec!["a"]),
        ("the streams end",              unseen(&[say("a"), Beat::EndStreams, say("b")]),             false,      vec!["ab"]),
        ("idle without a message",       unseen(&[Beat::Nothing]),                                    true,       vec![]),
        ("the end of the text",          unseen(&[Beat::SayUnclosed("a".into())]),                    true,       vec!["a"]),
        ("the deltas",                   unseen(&[Beat::SayWithoutDeltas("a".into())]),               true,       vec!["a"]),
        ("text that is void",            unseen(&[Beat::SayInVain("a".into()), say("b")]),            true,       vec!["b"]),
    ];
    for (shows, beats, idle, history) in cases {
        let engine = FakeEngine::start().await.unwrap();
        let client = Client::new(&engine);
        let session = client.session().await;
        let mut events = client.listen().await;
        engine.next(beats);
        assert_eq!(client.prompt(&session, "x").await, 204);
        while client.get("/session/status").await != json!({}) {
            tokio::task::yield_now().await;
        }
        // Wakes a stream that would have said nothing more.
        engine.emit("session.idle", &json!({"sessionID": "other"}));
        let seen = until(&mut events, "session.idle").await;
        let last = seen.last().map(|event| event["properties"]["sessionID"] == session);
        assert_eq!(last == Some(true) && kinds(&seen).contains(&"session.idle"), idle, "{shows}");
        assert_eq!(client.answers(&session).await, history, "{shows}");
    }
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    engine.next([Beat::Swallow]);
    engine.next([Beat::Refuse(500)]);
    assert_eq!(client.prompt(&session, "x").await, 204);
    assert_eq!(client.prompt(&session, "y").await, 500);
    assert_eq!(client.get(&format!("/session/{session}/message")).await, json!([]));
}

#[tokio::test]
async fn a_failure_and_an_abort_are_idle_twice() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    engine.next([say("so far"), fail("no credit", 402)]);
    engine.next([say("so far"), Beat::Loop]);
    for (text, error) in [("one", "APIError"), ("two", "MessageAbortedError")] {
        assert_eq!(client.prompt(&session, text).await, 204);
        if text == "two" {
            engine.until(|engine| (engine.prompts().len() == 2).then_some(())).await.unwrap();
            client.send("POST", &format!("/session/{session}/abort"), None).await;
        }
        let seen = until(&mut events, "session.idle").await;
        let errors: Vec<_> = seen
            .iter()
            .filter_map(|event| event.pointer("/properties/error/name")?.as_str())
            .collect();
        assert_eq!(errors, [error]);
        let late = until(&mut events, "session.idle").await;
        assert!(kinds(&late).contains(&"message.updated"), "{late:?}");
    }
    assert_eq!(engine.aborts(), [session]);
}

#[tokio::test]
async fn prompts_that_meet_a_busy_session_are_answered_together() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    engine.on("first", [hold("here"), say("one")]);
    for text in ["first", "second", "third"] {
        client.prompt(&session, text).await;
    }
    engine.held("here").await.unwrap();
    assert_eq!(client.get("/session/status").await, json!({ &session: {"type": "busy"} }));
    engine.release("here");
    until(&mut events, "session.idle").await;
    assert_eq!(client.answers(&session).await, ["one", "echo: third"]);
}

#[tokio::test]
async fn a_message_id_that_was_used_is_not_answered_again() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    for text in ["one", "two"] {
        let body = json!({"parts": [{"type": "text", "text": text}], "messageID": "msg_0"});
        client.send("POST", &format!("/session/{session}/prompt_async"), Some(body)).await;
        until(&mut events, "session.idle").await;
    }
    assert_eq!(client.answers(&session).await, ["echo: one"]);
    let messages = client.get(&format!("/session/{session}/message")).await;
    assert_eq!(messages[0]["parts"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_crash_loses_what_was_not_finished_and_nothing_else() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    client.prompt(&session, "kept").await;
    until(&mut events, "session.idle").await;
    engine.next([say("half"), hold("middle")]);
    client.prompt(&session, "lost").await;
    engine.held("middle").await.unwrap();
    engine.crash().await;
    until(&mut events, "nothing").await;
    engine.revive().await.unwrap();
    assert_eq!(client.get("/session/status").await, json!({}));
    assert_eq!(client.answers(&session).await, ["echo: kept", ""]);
    let messages = client.get(&format!("/session/{session}/message?limit=1")).await;
    assert_eq!(messages[0]["info"]["time"].get("completed"), None);
    let mut events = client.listen().await;
    client.prompt(&session, "again").await;
    until(&mut events, "session.idle").await;
    assert_eq!(client.answers(&session).await.last().unwrap(), "echo: again");
}

#[tokio::test]
async fn a_permission_waits_for_its_reply() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    engine.next([
        Beat::AskPermission("openpact_x".into()),
        Beat::AskQuestion("Sure?".into()),
        say("done"),
    ]);
    client.prompt(&session, "x").await;
    let seen = until(&mut events, "permission.asked").await;
    let id = seen.last().unwrap()["properties"]["id"].as_str().unwrap().to_owned();
    assert_eq!(client.get("/permission").await[0]["id"], json!(id));
    let reply = Some(json!({"reply": "reject"}));
    client.send("POST", &format!("/permission/{id}/reply"), reply).await;
    let seen = until(&mut events, "question.asked").await;
    assert!(kinds(&seen).contains(&"permission.replied"));
    let id = seen.last().unwrap()["properties"]["id"].as_str().unwrap().to_owned();
    client.send("POST", &format!("/question/{id}/reject"), None).await;
    until(&mut events, "session.idle").await;
    assert_eq!(client.answers(&session).await, ["done"]);
}

#[tokio::test]
async fn a_prompt_may_be_taken_though_its_answer_is_cut_off() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    engine.next([Beat::Cut, say("taken")]);
    let body = json!({"parts": [{"type": "text", "text": "x"}]});
    let url = format!("{}/session/{session}/prompt_async", engine.url());
    let request = client.http.post(url).basic_auth("opencode", Some(engine.password()));
    let answer = request.json(&body).send().await;
    let whole = match answer {
        Ok(response) => response.bytes().await.is_ok(),
        Err(_) => false,
    };
    assert!(!whole);
    until(&mut events, "session.idle").await;
    assert_eq!(client.answers(&session).await, ["taken"]);
}

#[tokio::test]
async fn a_stuck_turn_ends_with_the_engine_alone() {
    let engine = FakeEngine::start().await.unwrap();
    let client = Client::new(&engine);
    let session = client.session().await;
    let mut events = client.listen().await;
    engine.next([say("x"), Beat::Stuck]);
    engine.next([Beat::Die]);
    client.prompt(&session, "one").await;
    client.send("POST", &format!("/session/{session}/abort"), None).await;
    assert_eq!(client.get("/session/status").await, json!({ &session: {"type": "busy"} }));
    let other = client.session().await;
    client.prompt(&other, "two").await;
    until(&mut events, "nothing").await;
    engine.revive().await.unwrap();
    assert_eq!(client.get("/session/status").await, json!({}));
}
