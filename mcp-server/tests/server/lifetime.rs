//! How calls are taken back and how the process ends.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::{Client, Workspace, command};

/// Within this the process must have ended.
const SOON: Duration = Duration::from_secs(2);

fn write_slowly(client: &mut Client) -> Value {
    client.begin("workspace_write", json!({"path": "slow", "content": "slow"}))
}

#[test]
fn a_cancelled_call_stops_and_gets_no_answer() {
    let workspace = Workspace::new();
    let held = workspace.hold("");
    let mut client = Client::start(&workspace);
    let id = write_slowly(&mut client);
    client.notify("notifications/cancelled", json!({"requestId": id}));
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    // The audit log has it once it has really ended.
    let audited =
        || openpact_store::audit::read(&workspace.path().join("secure/data/tools.db"), 0, 9);
    let until = Instant::now() + Duration::from_secs(20);
    while audited().unwrap().is_empty() {
        assert!(Instant::now() < until, "the call should end");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(audited().unwrap()[0].entry.outcome.as_str(), "cancelled");
    drop(held);
    client.ok("workspace_write", json!({"path": "next", "content": ""}));
    assert!(!workspace.at("slow").exists());
    let (_, _, said) = client.finish();
    assert!(said.iter().all(|message| message["id"] != id), "{said:?}");
}

#[test]
fn taking_back_what_is_not_there_does_no_harm() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    let done = client.begin("workspace_list", json!({}));
    client.end(&done).unwrap();
    for id in
        [json!(9999), done.clone(), json!(done.to_string()), json!("7"), Value::Null, json!(1)]
    {
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    let mut wanted = Vec::new();
    for round in 0..200 {
        let content = round.to_string();
        let id = client.begin("workspace_write", json!({"path": "a", "content": content}));
        if round % 3 == 0 {
            wanted.push(id);
        } else {
            client.notify("notifications/cancelled", json!({"requestId": id}));
        }
    }
    for id in wanted {
        client.end(&id).unwrap();
    }
    assert_eq!(client.request("ping", json!({}))["result"], json!({}));
    client.ok("workspace_write", json!({"path": "a", "content": "end"}));
    assert_eq!(workspace.text("a"), "end");
}

#[test]
fn progress_is_told_to_those_who_asked_and_never_after_the_answer() {
    let workspace = Workspace::new();
    let held = workspace.hold("");
    let mut client =
        Client::start_with(command(workspace.path()).env("OPENPACT_MCP_PROGRESS_INTERVAL", "20ms"));
    let call = |token: Value| {
        let mut params =
            json!({"name": "workspace_write", "arguments": {"path": "a", "content": ""}});
        if !token.is_null() {
            params["_meta"] = json!({"progressToken": token});
        }
        params
    };
    let silent = client.ask("tools/call", call(Value::Null));
    for token in [json!(0), json!("t")] {
        let id = client.ask("tools/call", call(token.clone()));
        let mut last = 0.0;
        for _ in 0..3 {
            let told = loop {
                let message = client.receive();
                if message["params"]["progressToken"] == token {
                    break message;
                }
            };
            assert_eq!(told["method"], "notifications/progress");
            let progress = told["params"]["progress"].as_f64().unwrap();
            assert!(progress > last, "{told}");
            last = progress;
        }
        client.notify("notifications/cancelled", json!({"requestId": id}));
    }
    drop(held);
    client.end(&silent).unwrap();
    let (_, _, said) = client.finish();
    assert!(said.iter().all(|message| message.get("method").is_none()), "{said:?}");
}

#[test]
fn a_call_has_a_deadline() {
    let workspace = Workspace::new();
    let _held = workspace.hold("");
    let mut client =
        Client::start_with(command(workspace.path()).env("OPENPACT_MCP_CALL_TIMEOUT", "100ms"));
    let id = write_slowly(&mut client);
    let error = client.end(&id).unwrap_err();
    assert!(error.contains("stopped after 100ms"), "{error}");
}

#[test]
fn too_many_calls_at_once_are_refused() {
    let workspace = Workspace::new();
    let held = workspace.hold("");
    let mut client = Client::start_with(
        command(workspace.path())
            .env("OPENPACT_MCP_MAX_CONCURRENT_CALLS", "1")
            .env("OPENPACT_MCP_MAX_WAITING_CALLS", "2"),
    );
    let begun: Vec<_> = (0..4).map(|_| write_slowly(&mut client)).collect();
    let refused = client.receive();
    assert!(
        refused["result"]["content"][0]["text"].as_str().unwrap().contains("2 calls are waiting")
    );
    drop(held);
    let answered = begun.iter().filter(|id| **id != refused["id"]);
    assert_eq!(answered.map(|id| client.end(id).unwrap()).count(), 3);
}

#[test]
fn the_end_of_input_ends_the_process_soon() {
    let workspace = Workspace::new();
    // At once, when nothing was ever said.
    let (status, took, said) = Client::silent(&workspace).finish();
    assert!(status.success() && took < SOON && said.is_empty(), "{status} {took:?} {said:?}");
    // With a call that would wait for ever.
    let _held = workspace.hold("");
    let mut client = Client::start(&workspace);
    write_slowly(&mut client);
    let (status, took, _) = client.finish();
    assert!(status.success() && took < SOON, "{status} {took:?}");
}

#[test]
fn what_was_asked_before_the_input_ended_is_still_answered() {
    let workspace = Workspace::with(&[("a", "hello")]);
    let mut client = Client::start(&workspace);
    let id = client.begin("workspace_read", json!({"path": "a"}));
    // Even a last line that nobody ended.
    client.send_bytes(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#);
    let (_, _, said) = client.finish();
    for id in [id, json!("last")] {
        assert!(said.iter().any(|message| message["id"] == id), "{id}: {said:?}");
    }
}

#[test]
fn a_signal_ends_the_process_soon() {
    let workspace = Workspace::new();
    let _held = workspace.hold("");
    let mut client = Client::start(&workspace);
    write_slowly(&mut client);
    client.request("ping", json!({}));
    let began = Instant::now();
    client.signal(rustix::process::Signal::TERM);
    let status = client.wait();
    assert!(status.success() && began.elapsed() < SOON, "{status} {:?}", began.elapsed());
}

#[test]
fn output_that_nobody_reads_ends_the_process() {
    let workspace = Workspace::new();
    let mut child = command(workspace.path())
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")
        .unwrap();
    let began = Instant::now();
    let status = child.wait().unwrap();
    assert!(began.elapsed() < Duration::from_secs(20), "{status}");
}

#[test]
fn nothing_but_messages_is_on_standard_output() {
    let workspace = Workspace::with(&[("a", "hello")]);
    let log = workspace.path().join("log");
    let mut client = Client::start_with(
        command(workspace.path())
            .env("OPENPACT_LOG", "trace")
            .stderr(Stdio::from(File::create(&log).unwrap())),
    );
    // Each line that comes back is parsed as JSON by the driver.
    client.ok("workspace_read", json!({"path": "a"}));
    client.send_bytes(b"nonsense\n");
    client.receive();
    client.refused("workspace_read", json!({"path": "missing"}));
    client.finish();
    let mut text = String::new();
    File::open(log).unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("TRACE"), "the log is on standard error");
}
