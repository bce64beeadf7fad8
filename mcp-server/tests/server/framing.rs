//! Bytes on standard input as they should not be.

use serde_json::{Value, json};

use crate::driver::{Client, Workspace};

fn still_there(client: &mut Client, after: &str) {
    assert_eq!(client.request("ping", json!({}))["result"], json!({}), "{after}");
}

#[test]
fn what_is_no_message_is_answered_and_the_stream_goes_on() {
    #[rustfmt::skip]
    let cases: [(&str, &[u8], Value, i64); 10] = [
        // what it is               bytes                                                       id            code
        ("no JSON",                 b"hello\n",                                                 Value::Null,  -32700),
        ("half a message",          b"{\"jsonrpc\":\"2.0\",\"id\":1\n",                         Value::Null,  -32700),
        ("invalid UTF-8",           b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n",    Value::Null,  -32700),
        ("a NUL",                   b"\0\n",                                                    Value::Null,  -32700),
        ("a lone surrogate",        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"\\ud800\"}}\n", json!(1), -32700),
        ("a batch",                 b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n",  Value::Null,  -32600),
        ("an empty batch",          b"[]\n",                                                    Value::Null,  -32600),
        ("an id of null",           b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n", Value::Null,  -32600),
        ("an id that is a list",    b"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"ping\"}\n",   Value::Null,  -32600),
        ("an id of 1.5",            b"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}\n",  json!(1.5),   -32600),
    ];
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    for (what, bytes, id, code) in cases {
        client.send_bytes(bytes);
        let answer = client.receive();
        assert_eq!(
            (&answer["id"], answer["error"]["code"].as_i64()),
            (&id, Some(code)),
            "{what}: {answer}"
        );
        still_there(&mut client, what);
    }
}

#[test]
fn the_same_is_true_before_the_handshake() {
    let workspace = Workspace::new();
    let mut client = Client::silent(&workspace);
    client.send_bytes(b"\xef\xbb\xbf\r\n\n  \nnonsense\n");
    assert_eq!(client.receive()["error"]["code"], -32700);
    still_there(&mut client, "nonsense");
}

#[test]
fn ids_come_back_in_their_type() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    for id in [
        "7",
        "\"7\"",
        "0",
        "-1",
        "\"\"",
        "9007199254740993",
        "9223372036854775807",
        "\"\u{1f600}\"",
    ] {
        client.send_bytes(
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes(),
        );
        assert_eq!(client.receive()["id"].to_string(), id);
    }
}

#[test]
fn messages_arrive_in_whatever_pieces() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    let write = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "workspace_write",
        "arguments": {"path": "\u{1f600}.txt", "content": "caf\u{e9} \u{2028} \u{1f600}\n"},
    }});
    for byte in format!("{write}\r\n").as_bytes() {
        client.send_bytes(&[*byte]);
    }
    client.end(&json!(1)).unwrap();
    assert_eq!(workspace.text("\u{1f600}.txt"), "caf\u{e9} \u{2028} \u{1f600}\n");
    // Two in one piece.
    client.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n");
    client.answer(&json!(2));
    client.answer(&json!(3));
}

#[test]
fn long_lines_are_taken_up_to_the_limit_and_skipped_beyond() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    let five = "x".repeat(5 * 1024 * 1024);
    client.ok("workspace_write", json!({"path": "big", "content": five}));
    assert_eq!(workspace.text("big").len(), five.len());
    let chunk = vec![b'y'; 1024 * 1024];
    for _ in 0..200 {
        client.send_bytes(&chunk);
    }
    let answer = client.receive();
    assert_eq!((&answer["id"], answer["error"]["code"].as_i64()), (&Value::Null, Some(-32600)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("max_message_bytes"), "{answer}");
    client.send_bytes(b"\n");
    still_there(&mut client, "200 MiB without an end");
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 100 * 1024, "{peak} kB at most were in memory");
}

#[test]
fn two_requests_with_one_id_both_get_an_answer() {
    let workspace = Workspace::new();
    let held = workspace.hold("");
    let mut client = Client::start(&workspace);
    let write = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "workspace_write", "arguments": {"path": "a", "content": "a"},
    }});
    client.send(&write);
    client.send(&write);
    let second = client.receive();
    assert_eq!((&second["id"], second["error"]["code"].as_i64()), (&json!(1), Some(-32600)));
    drop(held);
    client.end(&json!(1)).unwrap();
    client.send(&write);
    client.end(&json!(1)).unwrap();
}
