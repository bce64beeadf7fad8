//! The HTTP door: who is let in, what is understood, what outlives the process.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::driver::http::Server;
use crate::driver::{Workspace, command};

type Headers<'a> = &'a [(&'a str, &'a str)];

fn list_tools() -> Value {
    json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
}

#[test]
fn requests_are_let_in_by_host_origin_and_token() {
    let workspace = Workspace::new();
    workspace.configure(
        "mcp:\n  allowed_hosts: [mcp.example]\n  allowed_origins: ['https://app.example']\n",
    );
    let server = Server::start(&workspace);
    let session = server.open_session(&server.token);
    let wrong = format!("Bearer {}x", server.token);
    let lower = format!("bearer {}", server.engine_token);
    #[rustfmt::skip]
    let cases: [(&str, Headers<'_>, u16); 14] = [
        ("a good client",            &[],                                            200),
        ("no token",                 &[("Authorization", "")],                       401),
        ("a wrong token",            &[("Authorization", &wrong)],                   401),
        ("another scheme",           &[("Authorization", "Basic eDp5")],             401),
        ("the engine's token",       &[("Authorization", &lower)],                   200),
        ("a web page's origin",      &[("Origin", "http://evil.test")],              403),
        ("no origin to speak of",    &[("Origin", "null")],                          403),
        ("an allowed origin",        &[("Origin", "https://app.example")],           200),
        ("a rebound name",           &[("Host", "evil.test")],                       403),
        ("a rebound name, no token", &[("Host", "evil.test"), ("Authorization", "")], 403),
        ("localhost",                &[("Host", "localhost:1234")],                  200),
        ("IPv6's loopback",          &[("Host", "[::1]:1234")],                      200),
        ("an allowed host",          &[("Host", "MCP.example")],                     200),
        ("a host that is none",      &[("Host", "@@")],                              403),
    ];
    for (who, headers, status) in cases {
        let mut headers = headers.to_vec();
        headers.push(("Mcp-Session-Id", &session));
        let answer = server.post(&headers, &list_tools());
        assert_eq!(answer.status, status, "{who}: {}", answer.body);
        assert!(!answer.body.contains(&server.token), "{who}");
    }
    let health = server.request("GET", "/health", &[], b"");
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    assert_eq!(server.request("GET", "/mcp", &[], b"").status, 401);
}

#[test]
fn messages_are_understood_or_refused_with_the_right_status() {
    let workspace = Workspace::new();
    workspace.configure("mcp:\n  max_message_bytes: 100KiB\n");
    let server = Server::start(&workspace);
    let session = server.open_session(&server.token);
    let list = list_tools().to_string();
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let made_up = r#"{"jsonrpc":"2.0","method":"made/up"}"#;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(200 * 1024));
    #[rustfmt::skip]
    let cases: [(&str, Headers<'_>, &str, u16); 16] = [
        ("all as it should be",      &[],                                                 &list,       200),
        ("any answer will do",       &[("Accept", "*/*")],                                &list,       200),
        ("says nothing about it",    &[("Accept", "")],                                   &list,       200),
        ("only JSON",                &[("Accept", "application/json")],                   &list,       406),
        ("a charset",                &[("Content-Type", "application/json; charset=UTF-8")], &list,    200),
        ("text",                     &[("Content-Type", "text/plain")],                   &list,       415),
        ("no type",                  &[("Content-Type", "")],                             &list,       415),
        ("compressed",               &[("Content-Encoding", "gzip")],                     "\u{1f}",    415),
        ("a known version",          &[("MCP-Protocol-Version", "2025-06-18")],           &list,       200),
        ("an unknown version",       &[("MCP-Protocol-Version", "1999-01-01")],           &list,       400),
        ("a notification",           &[],                                                 initialized, 202),
        ("an unknown notification",  &[],                                                 made_up,     202),
        ("no JSON",                  &[],                                                 "nonsense",  400),
        ("a batch",                  &[],                                                 "[]",        400),
        ("too long",                 &[],                                                 &long,       413),
        ("a session nobody opened",  &[("Mcp-Session-Id", "made-up")],                    &list,       404),
    ];
    for (what, headers, body, status) in cases {
        let bearer = format!("Bearer {}", server.token);
        let mut all = vec![
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Mcp-Session-Id", session.as_str()),
        ];
        all.retain(|(name, _)| !headers.iter().any(|(other, _)| other == name));
        all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
        let answer = server.request("POST", "/mcp", &all, body.as_bytes());
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
        if status == 400 && body != list {
            assert_eq!(answer.message()["id"], Value::Null, "{what}");
        }
    }
}

#[test]
fn a_session_outlives_the_process_and_ends_when_its_client_says_so() {
    let workspace = Workspace::with(&[("a", "hello")]);
    let mut server = Server::start(&workspace);
    let (address, token) = (server.address.clone(), server.token.clone());
    let session = server.open_session(&token);
    let read = json!({"path": "a"});
    server.call(&token, &session, "workspace_read", &read).outcome().unwrap();
    server.kill();
    let server = Server::start_at(&mut command(workspace.path()), &workspace, &address);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| server.call(&token, &session, "workspace_read", &read).outcome())
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for answer in answers {
        assert_eq!(answer.unwrap()[0], "hello");
    }
    let bearer = format!("Bearer {token}");
    let ended = server.request(
        "DELETE",
        "/mcp",
        &[("Authorization", &bearer), ("Mcp-Session-Id", &session)],
        b"",
    );
    assert!(ended.status < 300, "{}", ended.status);
    assert_eq!(server.call(&token, &session, "workspace_read", &read).status, 404);
    // A client that starts anew is welcome.
    let session = server.open_session(&token);
    server.call(&token, &session, "workspace_read", &read).outcome().unwrap();
    let audited =
        openpact_store::audit::read(&workspace.path().join("secure/data/tools.db"), 0, 99);
    assert!(audited.unwrap().iter().all(|e| e.entry.client == "token: test"));
}

#[test]
fn there_are_only_so_many_sessions_and_an_old_one_comes_back() {
    let workspace = Workspace::with(&[("a", "hello")]);
    workspace.configure("mcp:\n  max_sessions: 2\n");
    let server = Server::start(&workspace);
    let sessions: Vec<_> = (0..5).map(|_| server.open_session(&server.token)).collect();
    for session in &sessions {
        let answer = server.call(&server.token, session, "workspace_read", &json!({"path": "a"}));
        assert_eq!(answer.outcome().unwrap()[0], "hello");
    }
}

#[test]
fn a_stop_signal_ends_it_soon_and_takes_the_address_back() {
    let workspace = Workspace::new();
    let mut server = Server::start(&workspace);
    let session = server.open_session(&server.token);
    // An open event stream, as every client has one.
    let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\
         Mcp-Session-Id: {session}\r\n\r\n",
        server.address, server.token,
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut begin = [0; 15];
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200 OK");
    let began = std::time::Instant::now();
    assert!(server.terminate().success());
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    assert!(!workspace.path().join("secure/run/mcp.addr").exists());
}

#[test]
fn a_cancelled_call_stops_over_http_too() {
    let workspace = Workspace::new();
    let held = workspace.hold("");
    let server = Server::start(&workspace);
    let session = server.open_session(&server.token);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            server.call(
                &server.token,
                &session,
                "workspace_write",
                &json!({"path": "a", "content": ""}),
            )
        });
        let database = workspace.path().join("secure/data/tools.db");
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        // Again until it's heard: the call may not have begun yet.
        while openpact_store::audit::read(&database, 0, 9).unwrap().is_empty() {
            assert!(std::time::Instant::now() < until, "the call should end");
            let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
            assert_eq!(server.post(&[("Mcp-Session-Id", &session)], &cancelled).status, 202);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let entries = openpact_store::audit::read(&database, 0, 9).unwrap();
        assert_eq!(entries[0].entry.outcome.as_str(), "cancelled");
        drop(held);
        assert!(!workspace.at("a").exists());
        drop(call);
    });
}

#[test]
fn tokens_are_not_told_by_tools_whole_or_in_parts() {
    let workspace = Workspace::new();
    let server = Server::start(&workspace);
    let (token, half) = (&server.token, server.token.len() / 2);
    let call =
        |session: &str, tool: &str, arguments: Value| server.call(token, session, tool, &arguments);
    let leaked = format!("token: {token}\nmore\n");
    workspace.put("leaked", &leaked);
    let session = server.open_session(token);
    let read = call(&session, "workspace_read", json!({"path": "leaked"}));
    assert_eq!(read.outcome().unwrap()[0], "token: [REDACTED:MCP_TOKEN]\nmore\n");

    // Nor by where a long line is cut.
    workspace.put("wide", format!("{}{token}{}", "x".repeat(1000), "y".repeat(5000)));
    for bytes in [1000, 1001, 1000 + half, 999 + token.len()] {
        let read = call(&session, "workspace_read", json!({"path": "wide", "max_bytes": bytes}));
        let text = read.outcome().unwrap().remove(0);
        assert!(text.chars().all(|c| c == 'x'), "{bytes}: {text}");
    }

    // Nor by what can be found or replaced and what can't.
    let found = call(&session, "workspace_search", json!({"pattern": "token: ", "path": ""}));
    assert!(!found.body.contains(token), "{}", found.body);
    let begin = format!("token: {}", &token[..half]);
    let wrong = format!("token: {}", "w".repeat(half));
    let search = |text: &str| call(&session, "workspace_search", json!({"pattern": text}));
    assert_eq!(search(&begin).outcome(), search(&wrong).outcome());
    let edit = |old: &str, new: &str| {
        let edits = json!([{"old_text": old, "new_text": new}]);
        call(&session, "workspace_edit", json!({"path": "leaked", "edits": edits})).outcome()
    };
    assert_eq!(edit(&begin, "x").unwrap_err(), edit(&wrong, "x").unwrap_err());
    edit("more", "less").unwrap();
    assert_eq!(workspace.text("leaked"), leaked.replace("more", "less"));
}

#[test]
fn a_token_of_the_settings_takes_the_place_of_the_file() {
    let workspace = Workspace::new();
    let mut command = command(workspace.path());
    command.env("OPENPACT_MCP_TOKEN", "a-token-of-my-own-choice");
    std::fs::create_dir_all(workspace.path().join("secure/data/keys")).unwrap();
    std::fs::write(workspace.path().join("secure/data/keys/mcp.token"), "unused-unused-unused\n")
        .unwrap();
    let server = Server::start_at(&mut command, &workspace, "127.0.0.1:0");
    server.open_session("a-token-of-my-own-choice");
    let answer = server.post(&[("Authorization", "Bearer unused-unused-unused")], &list_tools());
    assert_eq!(answer.status, 401);
}

#[test]
fn a_request_with_an_id_that_is_still_open_is_refused() {
    let workspace = Workspace::new();
    let held = workspace.hold("");
    let server = Server::start(&workspace);
    let session = server.open_session(&server.token);
    let write = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "workspace_write", "arguments": {"path": "a", "content": ""},
    }});
    let post = || server.post(&[("Mcp-Session-Id", &session)], &write);
    std::thread::scope(|scope| {
        // One of the two is refused while the other waits for the folder.
        let (sender, answers) = std::sync::mpsc::channel();
        for _ in 0..2 {
            let sender = sender.clone();
            scope.spawn(move || sender.send(post()).unwrap());
        }
        let refused = answers.recv().unwrap();
        assert_eq!(refused.status, 500, "{}", refused.body);
        drop(held);
        answers.recv().unwrap().outcome().unwrap();
    });
    post().outcome().unwrap();
}
