//! The memory tools.

use serde_json::json;

use crate::driver::{Client, Workspace, digest};

#[test]
fn memory_is_read_written_and_added_to() {
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    let error = client.refused("memory_read", json!({"file": "MEMORY.md"}));
    assert!(error.contains("there is no file"), "{error}");
    client.ok("memory_append", json!({"file": "MEMORY.md", "text": "- tea"}));
    client.ok("memory_append", json!({"file": "MEMORY.md", "text": "- cats\n"}));
    let read = client.call("memory_read", json!({"file": "MEMORY.md"})).unwrap();
    assert_eq!(read[0], "- tea\n- cats\n");
    let write =
        json!({"file": "MEMORY.md", "content": "- dogs\n", "expected_digest": digest(&read[1])});
    client.ok("memory_write", write.clone());
    assert!(client.refused("memory_write", write).contains("has changed"));
    client.ok("memory_append", json!({"file": "memory/2026-01-31.md", "text": "quiet day"}));
    assert_eq!(workspace.text("memory/2026-01-31.md"), "quiet day\n");
    for file in ["notes.md", "../SOUL.md", "memory/a/b.md", "scripts/x.star"] {
        let error = client.refused("memory_append", json!({"file": file, "text": "x"}));
        assert!(error.contains("is no memory file"), "{file}: {error}");
    }
    let error = client.refused("memory_append", json!({"file": "MEMORY.md", "text": " \n"}));
    assert!(error.contains("empty"), "{error}");
}

#[test]
fn adding_to_what_is_no_text_leaves_it_alone() {
    let workspace = Workspace::new();
    workspace.put("USER.md", b"na\xefve\n");
    let mut client = Client::start(&workspace);
    let error = client.refused("memory_append", json!({"file": "USER.md", "text": "x"}));
    assert!(error.contains("not UTF-8"), "{error}");
    assert_eq!(std::fs::read(workspace.at("USER.md")).unwrap(), b"na\xefve\n");
}
