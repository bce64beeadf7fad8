//! `workspace_edit` on files as they are in the world.

use std::fs;

use serde_json::json;

use crate::driver::{Client, Workspace, digest};

/// What it is, the file, the old text, the new text, the file then.
type Case<'a> = (&'a str, &'a [u8], &'a str, &'a str, &'a [u8]);

#[test]
fn bytes_that_are_not_meant_stay_as_they_are() {
    #[rustfmt::skip]
    let cases: [Case<'_>; 6] = [
        // what it is             file                           old         new           file then
        ("mixed line ends",       b"a\r\nb\r\nc\nd\re\r\n",      "b\nc",     "B\nC\nX",    b"a\r\nB\r\nC\r\nX\nd\re\r\n"),
        ("no break at the end",   b"a\r\nb",                     "b",        "c",          b"a\r\nc"),
        ("a byte order mark",     b"\xef\xbb\xbfa\r\nb\r\n",     "a\nb",     "a\nc",       b"\xef\xbb\xbfa\r\nc\r\n"),
        ("what looks a template", b"x = 1\n",                    "x = 1",    r"C:\dir\$1 ${HOME} \0", b"C:\\dir\\$1 ${HOME} \\0\n"),
        ("emoji",                 "\u{1f600}\n".as_bytes(),      "\u{1f600}", "\u{1f601}", "\u{1f601}\n".as_bytes()),
        ("a separator",           "a\u{2028}b\n".as_bytes(),     "b",        "c",          "a\u{2028}c\n".as_bytes()),
    ];
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    for (what, file, old, new, then) in cases {
        workspace.put("file", file);
        client.ok(
            "workspace_edit",
            json!({"path": "file", "edits": [{"old_text": old, "new_text": new}]}),
        );
        assert_eq!(fs::read(workspace.at("file")).unwrap(), then, "{what}");
    }
}

#[test]
fn a_file_that_is_not_utf8_is_refused_and_kept() {
    #[rustfmt::skip]
    let cases: [(&str, &[u8], &str); 4] = [
        ("Latin-1",   b"let a = 1;\n// na\xefve \xe9t\xe9\n",  "older encoding"),
        ("GBK",       b"a = 1 \xd6\xd0\n",                     "older encoding"),
        ("UTF-16",    b"\xff\xfea\0 \0=\0 \x001\0",            "UTF-16"),
        ("binary",    b"\x7fELF\0\xff a = 1",                  "binary"),
    ];
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    for (what, file, said) in cases {
        workspace.put("file", file);
        let edit = json!({"path": "file", "edits": [{"old_text": "a = 1", "new_text": "a = 2"}]});
        let error = client.refused("workspace_edit", edit);
        assert!(error.contains("not UTF-8 text") && error.contains(said), "{what}: {error}");
        let error = client.refused("workspace_read", json!({"path": "file"}));
        assert!(error.contains("not UTF-8 text") && error.contains(said), "{what}: {error}");
        assert_eq!(fs::read(workspace.at("file")).unwrap(), file, "{what}");
    }
}

#[test]
fn all_edits_are_made_or_none() {
    let workspace = Workspace::with(&[("file", "x = 1\ny\nx = 1\nx = 1\n")]);
    let mut client = Client::start(&workspace);
    let edits = json!([
        {"old_text": "y", "new_text": "Y"},
        {"old_text": "x = 1", "new_text": "z"},
    ]);
    let error = client.refused("workspace_edit", json!({"path": "file", "edits": edits}));
    assert!(error.contains("edit 2") && error.contains("lines 1, 3, 4"), "{error}");
    assert_eq!(workspace.text("file"), "x = 1\ny\nx = 1\nx = 1\n");
    let said = client.ok(
        "workspace_edit",
        json!({"path": "file", "edits": [
            {"old_text": "y", "new_text": "Y"},
            {"old_text": "x = 1", "new_text": "z", "replace_all": true},
        ]}),
    );
    assert!(said.starts_with("edited file: 4 places, 8 bytes, digest "), "{said}");
    assert_eq!(workspace.text("file"), "z\nY\nz\nz\n");
}

#[test]
fn an_edit_of_another_version_is_refused() {
    let workspace = Workspace::with(&[("file", "a\n")]);
    let mut client = Client::start(&workspace);
    let read = digest(&client.ok("workspace_read", json!({"path": "file"})));
    let edit = |old: &str, new: &str, digest: &str| json!({"path": "file", "edits": [{"old_text": old, "new_text": new}], "expected_digest": digest});
    let now = digest(&client.ok("workspace_edit", edit("a", "b", &read)));
    let error = client.refused("workspace_edit", edit("b", "c", &read));
    assert!(error.contains(&format!("its digest is now {now}")), "{error}");
    client.ok("workspace_edit", edit("b", "c", &now));
    let error = client.refused(
        "workspace_edit",
        json!({"path": "none", "edits": [{"old_text": "a", "new_text": "b"}]}),
    );
    assert!(error.contains("there is no file"), "{error}");
}
