//! The main job: a question, tools, and the answer back.

use openpact_store::sqlite::Sqlite;
use openpact_store::{State as _, audit};
use openpact_testkit::harness::Stack;
use openpact_testkit::llm::{FakeLlm, Rule, call, text};
use serde_json::json;

/// Writes a file, reads it, and says what it read.
fn writes_and_reads() -> Rule {
    let written = json!({"path": "note.txt", "content": "forty-two\n"});
    Rule::user("note")
        .round([call("openpact_workspace_write", written)])
        .round([call("openpact_workspace_read", json!({"path": "note.txt"}))])
        .round([text("The file says: {{last_tool_result}}")])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_with_tools_and_everything_is_on_record() {
    let llm = FakeLlm::start([writes_and_reads()]).await.unwrap();
    let stack = Stack::builder().llm(&llm).start().await.unwrap();

    let sent = stack.openpact(["send", "please write the note"]).await.unwrap();
    let (out, err) = (sent.stdout, sent.stderr);
    assert!(sent.status.success(), "{out}\n{err}");
    assert!(out.starts_with("The file says: forty-two"), "{out}\n{err}");
    let file = stack.layout().ai_data().join("note.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "forty-two\n");

    // The engine offers the model our tools and nothing else.
    let asked = llm.requests();
    let offered = &asked.last().unwrap().tools;
    assert!(offered.iter().all(|tool| tool.starts_with("openpact_")), "{offered:?}");
    assert!(offered.iter().any(|tool| tool == "openpact_workspace_read"), "{offered:?}");

    // The same session goes on, and knows what was said.
    let sent = stack.openpact(["send", "--json", "and again"]).await.unwrap();
    assert!(sent.status.success());
    let asked = llm.requests();
    let said = format!("{:?}", asked.last().unwrap().messages());
    assert!(said.contains("please write the note"), "{said}");

    let sessions = stack.openpact(["send", "/sessions"]).await.unwrap();
    let sessions = sessions.stdout;
    assert!(sessions.contains("2 answers"), "{sessions}");

    assert!(stack.stop().await.unwrap().success());
    let store = Sqlite::open(&stack.layout().state_db()).unwrap();
    let place = openpact_store::model::Place {
        provider: "terminal".into(),
        channel: "main".into(),
        thread: String::new(),
    };
    let sessions = store.sessions(Some(&place), 0, 10).await.unwrap();
    let engine_session = sessions[0].engine_session.clone().unwrap();
    let story = store.trace(&engine_session, 1000).await.unwrap();
    let kinds: Vec<_> = story.iter().map(|entry| entry.kind).collect();
    for kind in ["message", "turn", "event", "delivery"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    // The tool calls are in the audit log, with the engine's session, and the chain holds.
    let log = stack.layout().tools_db();
    let calls = audit::read(&log, 0, 10).unwrap();
    let tools: Vec<_> = calls.iter().map(|call| call.entry.tool.as_str()).collect();
    assert_eq!(tools, ["workspace_write", "workspace_read"]);
    assert!(calls.iter().all(|call| call.entry.session.as_deref() == Some(&engine_session)));
    assert_eq!(audit::verify(&log).unwrap().entries, 2);
}
