//! Paths that would lead out, and things that aren't files.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::driver::{Client, Workspace};

/// Every tool that takes a path, with arguments that would do something.
fn each_tool(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("workspace_read", json!({"path": path})),
        ("workspace_write", json!({"path": path, "content": "x"})),
        ("workspace_edit", json!({"path": path, "edits": [{"old_text": "a", "new_text": "b"}]})),
        ("workspace_list", json!({"path": path})),
        ("workspace_search", json!({"path": path, "pattern": "root"})),
        ("workspace_move", json!({"from": path, "to": "moved"})),
    ]
}

#[test]
fn nothing_outside_is_read_or_written() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "a root secret").unwrap();
    let workspace = Workspace::with(&[("here.txt", "a")]);
    symlink(outside.path(), workspace.at("folder")).unwrap();
    symlink(outside.path().join("secret"), workspace.at("file")).unwrap();
    symlink(outside.path().join("none"), workspace.at("dangling")).unwrap();
    symlink("/proc/self/root", workspace.at("magic")).unwrap();
    symlink("b", workspace.at("a")).unwrap();
    symlink("../../../../../../etc", workspace.at("b")).unwrap();
    symlink("loop", workspace.at("loop")).unwrap();
    let outside_secret = outside.path().join("secret").display().to_string();
    #[rustfmt::skip]
    let cases: [(&str, &str); 15] = [
        // path                      said
        (&outside_secret,            "outside the workspace"),
        ("/etc/hostname",            "outside the workspace"),
        ("../secure/config.yaml",    "holds `..`"),
        ("x/../../y",                "holds `..`"),
        ("folder/secret",            "leads out of the workspace"),
        ("folder/new.txt",           "leads out of the workspace"),
        ("folder/a/b/new.txt",       "leads out of the workspace"),
        ("file/x",                   "leads out of the workspace"),
        ("magic/etc/hostname",       "leads out of the workspace"),
        ("a/hostname",               "leads out of the workspace"),
        ("loop/x",                   "leads to itself"),
        ("here.txt/x",               "not a folder"),
        ("nul\0byte",                "NUL"),
        (&"n".repeat(256),           "too long"),
        (&"d/".repeat(2100),         "too long"),
    ];
    let mut client = Client::start(&workspace);
    for (path, said) in cases {
        for (tool, arguments) in each_tool(path) {
            let error = client.refused(tool, arguments);
            assert!(error.contains(said), "{tool} {path}: {error}");
        }
    }
    // A link at the end: read and written through, moved and deleted as itself.
    for path in ["file", "dangling", "folder", "loop"] {
        for (tool, arguments) in each_tool(path).into_iter().take(5) {
            let error = client.refused(tool, arguments);
            assert!(error.contains("leads"), "{tool} {path}: {error}");
        }
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "a root secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn a_link_is_moved_and_deleted_as_itself() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "kept").unwrap();
    let workspace = Workspace::with(&[("folder/x", "x")]);
    symlink(outside.path(), workspace.at("link")).unwrap();
    symlink(outside.path(), workspace.at("folder/link")).unwrap();
    let mut client = Client::start(&workspace);
    client.ok("workspace_move", json!({"from": "link", "to": "moved"}));
    assert_eq!(fs::read_link(workspace.at("moved")).unwrap(), outside.path());
    let said = client.ok("workspace_delete", json!({"path": "moved"}));
    assert!(said.contains("what it leads to is still there"), "{said}");
    client.ok("workspace_delete", json!({"path": "folder", "recursive": true}));
    assert!(!workspace.at("folder").exists());
    assert_eq!(fs::read_to_string(outside.path().join("kept")).unwrap(), "kept");
}

#[test]
fn links_inside_are_followed_and_stay_links() {
    let workspace = Workspace::with(&[("real/note.md", "old\n")]);
    symlink("real", workspace.at("folder")).unwrap();
    symlink("real/note.md", workspace.at("note.md")).unwrap();
    symlink(workspace.at("real"), workspace.at("absolute")).unwrap();
    symlink("../note.md", workspace.at("real/up.md")).unwrap();
    let mut client = Client::start(&workspace);
    for path in ["note.md", "folder/note.md", "absolute/note.md", "real/up.md"] {
        let new = format!("by {path}\n");
        client.ok("workspace_write", json!({"path": path, "content": new}));
        assert_eq!(workspace.text("real/note.md"), new, "{path}");
        assert!(client.ok("workspace_read", json!({"path": path})).starts_with(&new), "{path}");
    }
    client.ok("workspace_write", json!({"path": "folder/new/deep.md", "content": "x"}));
    assert_eq!(workspace.text("real/new/deep.md"), "x");
    for link in ["folder", "note.md", "absolute", "real/up.md"] {
        assert!(workspace.at(link).is_symlink(), "{link}");
    }
}

#[test]
fn recursive_walks_end_and_do_not_enter_links() {
    let workspace = Workspace::with(&[("a/x.txt", "needle"), (".git/config", "needle")]);
    symlink(".", workspace.at("a/loop")).unwrap();
    symlink("/etc", workspace.at("etc")).unwrap();
    let mut client = Client::start(&workspace);
    let list = client.call("workspace_list", json!({})).unwrap();
    assert_eq!(list[0], ".git/\na/\na/loop -> .\na/x.txt 6\netc -> /etc\n");
    let found = client.call("workspace_search", json!({"pattern": "needle"})).unwrap();
    assert_eq!(found[0], "a/x.txt:1: needle\n");
}

#[test]
fn the_root_may_be_a_link_and_be_named_by_either_name() {
    let real = tempfile::tempdir().unwrap();
    fs::write(real.path().join("note.md"), "hello\n").unwrap();
    fs::create_dir(real.path().join("sub")).unwrap();
    let workspace = Workspace::new();
    fs::remove_dir(workspace.files()).unwrap();
    symlink(real.path(), workspace.files()).unwrap();
    let by_link = workspace.at("note.md").display().to_string();
    let by_real = real.path().join("note.md").display().to_string();
    let mut client = Client::start(&workspace);
    for path in ["note.md", "./note.md", "note.md/", by_link.as_str(), by_real.as_str()] {
        let text = client.ok("workspace_read", json!({"path": path}));
        assert!(text.starts_with("hello\n"), "{path}: {text}");
    }
    for path in ["sub/", "sub", ""] {
        client.ok("workspace_list", json!({"path": path}));
    }
    client.ok("workspace_write", json!({"path": by_real, "content": "new\n"}));
    assert_eq!(fs::read_to_string(real.path().join("note.md")).unwrap(), "new\n");
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let workspace = Workspace::with(&[("folder/x", "x")]);
    let status = std::process::Command::new("mkfifo").arg(workspace.at("pipe")).status().unwrap();
    assert!(status.success());
    let _socket = std::os::unix::net::UnixListener::bind(workspace.at("socket")).unwrap();
    let mut client = Client::start(&workspace);
    for (path, is) in [("pipe", "a named pipe"), ("socket", "a socket"), ("folder", "a folder")] {
        for tool in ["workspace_read", "workspace_write", "workspace_edit"] {
            let (tool, arguments) =
                each_tool(path).into_iter().find(|(name, _)| *name == tool).unwrap();
            let error = client.refused(tool, arguments);
            assert!(error.contains(is), "{tool} {path}: {error}");
        }
    }
    let found = client.call("workspace_search", json!({"pattern": "x"})).unwrap();
    assert_eq!(found[0], "folder/x:1: x\n");
}

#[test]
fn names_that_look_the_same_are_the_same() {
    let nfd = "Cafe\u{301}/\u{30c6}\u{30b9}\u{30c8}\u{30b7}\u{3099}.md";
    let nfc = "Caf\u{e9}/\u{30c6}\u{30b9}\u{30c8}\u{30b8}.md";
    let workspace = Workspace::with(&[(nfd, "old"), ("Screenshot 9.41\u{202f}AM.png", "png")]);
    let mut client = Client::start(&workspace);
    assert!(client.ok("workspace_read", json!({"path": nfc})).starts_with("old"));
    assert!(
        client.ok("workspace_read", json!({"path": "Screenshot 9.41 AM.png"})).starts_with("png")
    );
    client.ok("workspace_write", json!({"path": nfc, "content": "new"}));
    assert_eq!(workspace.text(nfd), "new");
    assert!(!workspace.at(nfc).exists(), "no twin was made");
    let list = client.ok("workspace_list", json!({"glob": "\u{30c6}\u{30b9}\u{30c8}\u{30b8}*"}));
    assert!(list.contains(nfd), "{list}");

    // Both spellings side by side: each is reached by its own, and by no third.
    workspace.put("e\u{301}\u{e9}", "one");
    workspace.put("\u{e9}e\u{301}", "two");
    assert!(client.ok("workspace_read", json!({"path": "e\u{301}\u{e9}"})).starts_with("one"));
    let error = client.refused("workspace_read", json!({"path": "\u{e9}\u{e9}"}));
    assert!(error.contains(r"\u{301}") && error.contains("rename one"), "{error}");
    let error = client.refused("workspace_write", json!({"path": "\u{e9}\u{e9}", "content": ""}));
    assert!(error.contains("rename one"), "{error}");
}

#[test]
fn a_missing_file_is_told_with_names_close_to_it() {
    let workspace = Workspace::with(&[("Notes/Today.md", "x")]);
    let mut client = Client::start(&workspace);
    let error = client.refused("workspace_read", json!({"path": "Notes/today.md"}));
    assert_eq!(error, "there is no file or folder `Notes/today.md`; close to it: `Today.md`");
}

#[test]
fn control_folders_are_read_not_written() {
    let workspace =
        Workspace::with(&[(".git/config", "[core]\n"), ("sub/.obsidian/app.json", "{}")]);
    symlink(".git", workspace.at("alias")).unwrap();
    let mut client = Client::start(&workspace);
    assert!(client.ok("workspace_read", json!({"path": ".git/config"})).starts_with("[core]"));
    let edit = json!([{"old_text": "core", "new_text": "x"}]);
    #[rustfmt::skip]
    let cases: [(&str, Value); 10] = [
        ("workspace_write",  json!({"path": ".git/hooks/post-commit", "content": "x"})),
        ("workspace_write",  json!({"path": ".GIT/config", "content": "x"})),
        ("workspace_write",  json!({"path": "alias/config", "content": "x"})),
        ("workspace_write",  json!({"path": ".git", "content": "x"})),
        ("workspace_edit",   json!({"path": ".git/config", "edits": edit})),
        ("workspace_delete", json!({"path": ".git", "recursive": true})),
        ("workspace_delete", json!({"path": "sub", "recursive": true})),
        ("workspace_move",   json!({"from": ".git", "to": "git"})),
        ("workspace_move",   json!({"from": "sub", "to": "x/.obsidian"})),
        ("workspace_move",   json!({"from": ".git/config", "to": "config"})),
    ];
    for (tool, arguments) in cases {
        let error = client.refused(tool, arguments.clone());
        assert!(error.contains("control folder"), "{tool} {arguments}: {error}");
    }
    assert_eq!(workspace.text(".git/config"), "[core]\n");
    assert!(workspace.at("sub/.obsidian/app.json").exists());
}

#[test]
fn a_write_keeps_permissions_and_makes_folders() {
    let workspace = Workspace::with(&[("script.sh", "old")]);
    fs::set_permissions(workspace.at("script.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let mut client = Client::start(&workspace);
    client.ok("workspace_write", json!({"path": "script.sh", "content": "new"}));
    assert_eq!(fs::metadata(workspace.at("script.sh")).unwrap().mode() & 0o7777, 0o750);
    let said = client.ok("workspace_write", json!({"path": "a/b/c.txt", "content": "hi"}));
    assert!(said.starts_with("made a/b/c.txt: 2 bytes, digest "), "{said}");
    let names: Vec<_> =
        fs::read_dir(workspace.at("a/b")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["c.txt"], "no temporary file stays behind");
}

#[test]
fn a_write_can_depend_on_what_is_there() {
    let workspace = Workspace::with(&[("a.txt", "one")]);
    let mut client = Client::start(&workspace);
    let digest = crate::driver::digest(&client.ok("workspace_read", json!({"path": "a.txt"})));
    let write = |digest: &str, content: &str| json!({"path": "a.txt", "content": content, "expected_digest": digest});
    client.ok("workspace_write", write(&digest, "two"));
    let error = client.refused("workspace_write", write(&digest, "three"));
    assert!(error.contains("has changed since it was read: its digest is now"), "{error}");
    let error = client.refused(
        "workspace_write",
        json!({"path": "gone.txt", "content": "", "expected_digest": digest}),
    );
    assert!(error.contains("it is gone"), "{error}");
    let only = json!({"path": "a.txt", "content": "four", "create_only": true});
    assert!(client.refused("workspace_write", only).contains("exists already"));
    assert_eq!(workspace.text("a.txt"), "two");
}

#[test]
fn moves_replace_nothing_unless_told_to() {
    let workspace = Workspace::with(&[("a.txt", "a"), ("b.txt", "b"), ("dir/x", "x")]);
    let mut client = Client::start(&workspace);
    let error = client.refused("workspace_move", json!({"from": "a.txt", "to": "b.txt"}));
    assert_eq!(error, "`b.txt` exists already");
    client.ok("workspace_move", json!({"from": "a.txt", "to": "b.txt", "overwrite": true}));
    assert_eq!(workspace.text("b.txt"), "a");
    let said = client.ok("workspace_move", json!({"from": "b.txt", "to": "dir"}));
    assert_eq!(said, "moved b.txt to dir/b.txt");
    client.ok("workspace_move", json!({"from": "dir", "to": "new/place"}));
    assert_eq!(workspace.text("new/place/b.txt"), "a");
    let error = client.refused("workspace_delete", json!({"path": "new"}));
    assert!(error.contains("not empty"), "{error}");
    let said = client.ok("workspace_delete", json!({"path": "new", "recursive": true}));
    assert_eq!(said, "deleted the folder new and 3 things in it");
}

#[test]
fn the_root_itself_stays() {
    let workspace = Workspace::with(&[("a.txt", "a")]);
    let mut client = Client::start(&workspace);
    for path in ["", ".", "./"] {
        client.refused("workspace_delete", json!({"path": path, "recursive": true}));
        client.refused("workspace_move", json!({"from": path, "to": "x"}));
        client.refused("workspace_write", json!({"path": path, "content": "x"}));
    }
    assert_eq!(workspace.text("a.txt"), "a");
}

#[test]
fn a_mark_of_the_redactor_is_not_written() {
    let workspace = Workspace::with(&[("env", "KEY=[REDACTED:KEY]\nA=1\n")]);
    let mut client = Client::start(&workspace);
    let marked = "KEY=[REDACTED:KEY]\nA=2\n";
    let edit = |old: &str, new: &str| json!({"path": "env", "edits": [{"old_text": old, "new_text": new}]});
    #[rustfmt::skip]
    let cases = [
        ("workspace_write", json!({"path": "env", "content": marked})),
        ("workspace_edit",  edit("A=1", marked)),
        ("memory_write",    json!({"file": "MEMORY.md", "content": marked})),
        ("memory_append",   json!({"file": "MEMORY.md", "text": marked})),
    ];
    for (tool, arguments) in cases {
        let error = client.refused(tool, arguments);
        assert!(error.contains("would destroy the secret"), "{tool}: {error}");
    }
    client.ok("workspace_edit", edit("A=1", "A=2"));
    assert_eq!(workspace.text("env"), marked);
}
