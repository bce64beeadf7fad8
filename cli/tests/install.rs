//! The engine is installed once, whole or not at all, and says what is in the way.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use openpact_cli::engine::install::{Installation, Progress, pin, verify};
use openpact_cli::engine::sandbox::Level;
use tokio_util::sync::CancellationToken;

const OPENPACT: &str = env!("CARGO_BIN_EXE_openpact");

/// `openpact up` where the only programs are those in `folder/bin`, and nothing is installed.
fn up(folder: &Path) -> Output {
    Command::new(OPENPACT)
        .args(["up", "--headless", "--llm-url", "http://127.0.0.1:9/v1", "--model", "m"])
        .arg("--workspace")
        .arg(folder.join("workspace"))
        .env("PATH", folder.join("bin"))
        .env("XDG_DATA_HOME", folder.join("data"))
        .env_remove("OPENPACT_ENGINE_BINARY")
        .output()
        .unwrap()
}

fn program(folder: &Path, name: &str, script: &str) {
    fs::create_dir_all(folder.join("bin")).unwrap();
    let path = folder.join("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_is_in_the_way_is_told_and_nothing_stays_behind() {
    let package = pin::package().unwrap();
    let fake = format!(
        "mkdir -p node_modules/{package}/bin && cp /usr/bin/true node_modules/{package}/bin/opencode"
    );
    #[rustfmt::skip]
    let cases = [
        // what npm does                                                          what is said
        (None,                                                                    "`npm` is not on the PATH"),
        (Some("echo 'npm error code ENOTFOUND' >&2; exit 1"),                     "can't be reached"),
        (Some("echo 'npm error code ENOSPC' >&2; exit 1"),                        "the disk is full"),
        (Some("echo 'npm error code EINTEGRITY' >&2; exit 1"),                    "not the engine that this OpenPact was made with"),
        (Some("exit 0"),                                                          "does not run here"),
        (Some(fake.as_str()),                                                     "works with OpenCode"),
    ];
    for (npm, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        program(folder.path(), "node", "exit 0");
        if let Some(script) = npm {
            program(folder.path(), "npm", script);
        }
        let output = up(folder.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{npm:?}: {said}");
        assert!(said.contains(words), "{npm:?}: {said}");
        let left = fs::read_dir(folder.path().join("data/openpact/engine"))
            .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>())
            .unwrap_or_default();
        assert!(left.iter().all(|name| name.to_string_lossy().ends_with(".lock")), "{left:?}");
    }
}

#[tokio::test]
async fn two_at_once_fetch_it_once_and_it_is_the_pinned_version() {
    let folder = tempfile::tempdir().unwrap();
    // Left by one that was killed.
    fs::create_dir_all(folder.path().join(format!("{}.part/half", pin::version()))).unwrap();
    let installation = Installation::below(folder.path());
    assert_eq!(installation.binary(), None);
    let stop = CancellationToken::new();
    let (mut seen, mut waited) = (Vec::new(), Vec::new());
    let openpact = Path::new(OPENPACT);
    let (first, second) = tokio::join!(
        installation.ensure(openpact, &stop, |progress| seen.push(progress)),
        installation.ensure(openpact, &stop, |progress| waited.push(progress)),
    );
    let binary = first.unwrap();
    assert_eq!(second.unwrap(), binary);
    assert!(binary.starts_with(installation.folder()));
    assert_eq!(seen.last(), Some(&Progress::Trying));
    assert!(waited.iter().all(|progress| *progress == Progress::Waiting) && !waited.is_empty());
    verify(openpact, &binary, Level::BestEffort).await.unwrap();
    // Another look takes what is there.
    let again = installation.ensure(openpact, &stop, |progress| panic!("{progress:?}")).await;
    assert_eq!(again.unwrap(), binary);
}

#[tokio::test]
async fn a_stop_ends_npm_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let installation = Installation::below(folder.path());
    let stop = CancellationToken::new();
    let installed = installation
        .ensure(Path::new(OPENPACT), &stop, |progress| {
            if matches!(progress, Progress::Fetched(_)) {
                stop.cancel();
            }
        })
        .await;
    assert!(installed.unwrap_err().to_string().contains("stopped"));
    assert_eq!(installation.binary(), None);
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
