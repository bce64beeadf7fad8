//! What clients of all kinds say first, and what they say wrong.

use serde_json::{Value, json};

use crate::driver::{Client, Workspace};

fn initialize(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
}

#[test]
fn a_version_is_agreed_upon_and_the_handshake_is_not_strict() {
    #[rustfmt::skip]
    let cases: [(&str, &str); 5] = [
        // asked for     agreed
        ("2025-11-25",   "2025-11-25"),
        ("2025-06-18",   "2025-06-18"),
        ("2024-11-05",   "2024-11-05"),
        ("2099-01-01",   "2025-11-25"),
        ("2026-07-28",   "2025-11-25"),
    ];
    for (asked, agreed) in cases {
        let workspace = Workspace::new();
        let mut client = Client::silent(&workspace);
        assert_eq!(client.request("ping", json!({}))["result"], json!({}), "{asked}");
        // Nobody knows these yet; they must not end the connection.
        client.notify("notifications/initialized", json!({}));
        client.notify("notifications/cancelled", json!({"requestId": 7}));
        client.notify("made/up", json!({}));
        client.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
        assert!(client.request("tools/list", json!({}))["error"]["code"].is_i64(), "{asked}");
        assert!(client.request("made/up", json!({}))["error"]["code"].is_i64(), "{asked}");
        let hello = client.request("initialize", initialize(asked));
        assert_eq!(hello["result"]["protocolVersion"], agreed, "{asked}");
        assert_eq!(
            client.request("logging/setLevel", json!({"level": "debug"}))["result"],
            json!({})
        );
        let tools = client.request("tools/list", json!({}));
        assert!(tools["result"]["tools"].as_array().unwrap().len() >= 10, "{asked}");
        client.notify("notifications/initialized", json!({}));
        client.notify("made/up", json!({}));
        let again = client.request("initialize", initialize(asked));
        assert_eq!(again["result"]["protocolVersion"], agreed, "{asked}");
        assert_eq!(client.request("ping", json!({}))["result"], json!({}), "{asked}");
        assert!(client.finish().0.success());
    }
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let workspace = Workspace::with(&[("a", "hello")]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut client = Client::silent(&workspace);
    let found = client.request("server/discover", json!({"_meta": meta}));
    assert!(
        found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28"))
    );
    let read = json!({"name": "workspace_read", "arguments": {"path": "a"}, "_meta": meta});
    assert_eq!(client.request("tools/call", read)["result"]["content"][0]["text"], "hello");
}

#[test]
fn wrong_methods_and_parameters_get_their_codes() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    #[rustfmt::skip]
    let cases: [(&str, Value, i64); 6] = [
        // method              parameters                     code
        ("made/up",            json!({}),                     -32601),
        ("tools/call",         json!({}),                     -32602),
        ("tools/call",         json!({"name": 7}),            -32602),
        ("tools/call",         json!({"name": "made_up"}),    -32602),
        ("resources/read",     json!({"uri": "file:///x"}),   -32601),
        ("prompts/get",        json!({"name": "x"}),          -32601),
    ];
    for (method, parameters, code) in cases {
        let answer = client.request(method, parameters.clone());
        assert_eq!(answer["error"]["code"], code, "{method} {parameters}: {answer}");
    }
    // Arguments that aren't even an object.
    let answer = client.request("tools/call", json!({"name": "workspace_list", "arguments": [1]}));
    assert!(answer["error"]["code"].is_i64(), "{answer}");
}
