//! Several writers of one file, in one process and in two, and writers that die.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use crate::driver::{Client, Workspace};

#[test]
fn no_addition_is_lost_in_one_process_or_two() {
    let workspace = Workspace::new();
    let mut clients = [Client::start(&workspace), Client::start(&workspace)];
    let mut begun = Vec::new();
    for index in 0..40 {
        let text = format!("- fact {index}");
        let which = index % 2;
        let id = clients[which].begin("memory_append", json!({"file": "MEMORY.md", "text": text}));
        begun.push((which, id));
    }
    for (which, id) in begun {
        clients[which].end(&id).unwrap();
    }
    let found: BTreeSet<String> = workspace.text("MEMORY.md").lines().map(str::to_owned).collect();
    let expected: BTreeSet<String> = (0..40).map(|index| format!("- fact {index}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn edits_of_different_places_all_land() {
    let whole: String = (0..20).map(|index| format!("<{index}>\n")).collect();
    let workspace = Workspace::with(&[("file", &whole)]);
    let mut clients = [Client::start(&workspace), Client::start(&workspace)];
    let begun: Vec<_> = (0..20)
        .map(|index| {
            let edit =
                json!({"old_text": format!("<{index}>"), "new_text": format!("<{index} done>")});
            let which = index % 2;
            (
                which,
                clients[which].begin("workspace_edit", json!({"path": "file", "edits": [edit]})),
            )
        })
        .collect();
    for (which, id) in begun {
        clients[which].end(&id).unwrap();
    }
    assert_eq!(workspace.text("file"), whole.replace('>', " done>"));
}

#[test]
fn of_writers_that_expect_the_same_version_one_wins() {
    let workspace = Workspace::with(&[("file", "start")]);
    let mut client = Client::start(&workspace);
    let digest = crate::driver::digest(&client.ok("workspace_read", json!({"path": "file"})));
    let begun: Vec<_> = (0..10)
        .map(|index| {
            let content = format!("writer {index}");
            client.begin(
                "workspace_write",
                json!({"path": "file", "content": content, "expected_digest": digest}),
            )
        })
        .collect();
    let won = begun.iter().filter(|id| client.end(id).is_ok()).count();
    assert_eq!(won, 1);
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let workspace = Workspace::new();
    let contents = ["a".repeat(5 * 1024 * 1024), "b".repeat(5 * 1024 * 1024)];
    workspace.put("big", &contents[0]);
    let mut seen = BTreeSet::new();
    for round in 0..12 {
        let mut client = Client::start(&workspace);
        client
            .begin("workspace_write", json!({"path": "big", "content": contents[(round + 1) % 2]}));
        // A little later each time, so that it's hit at different points.
        std::thread::sleep(std::time::Duration::from_millis(3 * round as u64));
        client.kill();
        let now = fs::read(workspace.at("big")).unwrap();
        assert!(contents.iter().any(|content| content.as_bytes() == now), "{} bytes", now.len());
        seen.insert(now[0]);
    }
    // What a killed writer left is no obstacle, and is in no list.
    let mut client = Client::start(&workspace);
    assert_eq!(client.call("workspace_list", json!({})).unwrap()[0], "big 5242880\n");
    client.ok("workspace_write", json!({"path": "big", "content": "small"}));
    assert_eq!(fs::read_dir(workspace.files()).unwrap().count(), 1);
}
