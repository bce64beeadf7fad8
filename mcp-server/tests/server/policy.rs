//! What the settings allow.

use serde_json::json;

use crate::driver::{Client, Workspace};

#[test]
fn rules_decide_and_say_so() {
    let workspace = Workspace::with(&[("a", "hello")]);
    workspace.configure(
        "mcp:\n  deny: ['workspace_delete']\n  ask: ['*_write']\n  allow: ['memory_*']\n",
    );
    let mut client = Client::start(&workspace);
    client.ok("workspace_read", json!({"path": "a"}));
    client.ok("memory_write", json!({"file": "USER.md", "content": "x"}));
    let error = client.refused("workspace_delete", json!({"path": "a"}));
    assert_eq!(error, "`workspace_delete` is not allowed here: `mcp.deny` has `workspace_delete`");
    let error = client.refused("workspace_write", json!({"path": "a", "content": ""}));
    assert!(error.contains("needs a person's approval (`mcp.ask` has `*_write`)"), "{error}");
    assert!(error.contains("`mcp.allow`"), "{error}");
    assert_eq!(workspace.text("a"), "hello");
}
