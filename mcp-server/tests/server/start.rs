//! From the command line to a server that is up, or to an error that helps.

use std::fs;

use serde_json::{Value, json};

use crate::driver::{Client, Workspace, command, run};

#[test]
fn an_empty_or_missing_folder_becomes_a_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("not/there/yet");
    for path in [folder.path(), &missing] {
        let mut client = Client::start_with(&mut command(path));
        client.ok("workspace_write", json!({"path": "a", "content": "a"}));
        assert_eq!(fs::read_to_string(path.join("ai-data/a")).unwrap(), "a");
        assert!(client.finish().0.success());
    }
}

#[test]
fn what_keeps_it_from_starting_is_said_with_the_right_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let blocked = folder.path().join("blocked");
    fs::create_dir(&blocked).unwrap();
    fs::write(blocked.join("secure"), "").unwrap();
    let wrong = Workspace::new();
    wrong.configure("mcp:\n  max_sesions: 3\n");
    let no_glob = Workspace::new();
    no_glob.configure("mcp:\n  deny: ['a b']\n");
    #[rustfmt::skip]
    let cases: [(&std::path::Path, &[&str], i32, &[&str]); 8] = [
        (&file,           &["--stdio"],                    2, &["could not read the settings"]),
        (&blocked,        &["--stdio"],                    2, &["could not read the settings"]),
        (wrong.path(),    &["--stdio"],                    2, &["config.yaml", "max_sesions", "max_sessions"]),
        (wrong.path(),    &["--check-config"],             2, &["config.yaml", "max_sesions"]),
        (no_glob.path(),  &["--check-config"],             2, &["`a b` is no pattern of tool names"]),
        (folder.path(),   &["--http", "nowhere"],          2, &["nowhere"]),
        (folder.path(),   &["--http", "192.0.2.1:1"],      1, &["listen on 192.0.2.1:1"]),
        (folder.path(),   &[],                             2, &["--stdio"]),
    ];
    for (path, arguments, code, said) in cases {
        let (status, out, err) = run(command(path).args(arguments));
        assert_eq!((status, out.as_str()), (code, ""), "{arguments:?}: {err}");
        for words in said {
            assert!(err.contains(words), "{arguments:?}: {err}");
        }
    }
}

#[test]
fn a_check_of_good_settings_prints_nothing_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (status, out, err) = run(command(folder.path()).arg("--check-config"));
    assert_eq!((status, out.as_str(), err.as_str()), (0, "", ""));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn confinement_is_told_as_json() {
    let workspace = Workspace::new();
    let (status, out, _) = run(command(workspace.path()).arg("--check-confinement"));
    assert_eq!((status, out.lines().count()), (0, 1));
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["openat2"], true);
    assert!(["full", "partial", "none"].contains(&told["landlock"].as_str().unwrap()), "{told}");
    assert!(told["landlock_abi"].is_i64());
}
