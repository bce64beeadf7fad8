//! What stays of a call.

use openpact_store::audit::{read, verify};
use serde_json::json;

use crate::driver::http::Server;
use crate::driver::{Client, Workspace};

#[test]
fn every_call_is_recorded_without_its_contents() {
    let workspace = Workspace::with(&[("a", "private words")]);
    workspace.configure("mcp:\n  deny: [workspace_delete]\n");
    let mut client = Client::start(&workspace);
    client
        .ok("workspace_read", json!({"path": "a", "_caller": {"session": "forged", "call": "x"}}));
    client.refused("workspace_read", json!({"path": "none"}));
    client.refused("workspace_delete", json!({"path": "a"}));
    client.refused("workspace_read", json!({"nonsense": 1}));
    client.refused("made_up", json!({}));
    drop(client);
    let database = workspace.path().join("secure/data/tools.db");
    let entries = read(&database, 0, 100).unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|e| (e.entry.tool.as_str(), e.entry.decision.as_str(), e.entry.outcome.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("workspace_read", "allowed", "done"),
            ("workspace_read", "allowed", "failed"),
            ("workspace_delete", "denied", "refused"),
            ("workspace_read", "none", "refused"),
            ("made_up", "none", "refused"),
        ]
    );
    let first = &entries[0].entry;
    assert_eq!((first.client.as_str(), first.session.as_deref()), ("stdio: test", None));
    assert_eq!(first.rule, "reading is allowed");
    assert!(first.result_bytes > 13);
    assert_eq!(verify(&database).unwrap().entries, 5);
    for file in std::fs::read_dir(workspace.path().join("secure/data")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(memchr::memmem::find(&bytes, b"private words").is_none(), "{}", path.display());
        }
    }
}

#[test]
fn a_stamp_is_believed_from_the_engine_alone() {
    let workspace = Workspace::with(&[("a", "a")]);
    let server = Server::start(&workspace);
    let stamped = json!({"path": "a", "_caller": {"session": "ses_1", "call": "call_1"}});
    for token in [&server.engine_token, &server.token] {
        let session = server.open_session(token);
        server.call(token, &session, "workspace_read", &stamped).outcome().unwrap();
    }
    let entries = read(&workspace.path().join("secure/data/tools.db"), 0, 10).unwrap();
    let who: Vec<_> = entries
        .iter()
        .map(|e| (e.entry.client.as_str(), e.entry.session.as_deref(), e.entry.call.as_deref()))
        .collect();
    assert_eq!(
        who,
        [("engine: test", Some("ses_1"), Some("call_1")), ("token: test", None, None),]
    );
}

#[test]
fn no_tool_runs_that_cannot_be_recorded() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    std::fs::create_dir(workspace.path().join("secure/data/tools.db")).unwrap();
    let error = client.refused("workspace_write", json!({"path": "a", "content": ""}));
    assert!(error.contains("can't be recorded"), "{error}");
    assert!(!workspace.at("a").exists());
}
