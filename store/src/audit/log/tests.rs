//! The log as its users see it.

use std::time::Duration;

use rusqlite::Connection;

use super::*;
use crate::audit::{Decision, Outcome, read, verify};

fn entry(tool: &str) -> Entry {
    Entry {
        at_ms: 1_700_000_000_000,
        client: "stdio: test".into(),
        session: Some("ses_1".into()),
        call: None,
        tool: tool.into(),
        arguments: [7; 32],
        decision: Decision::Allowed,
        rule: "shipped".into(),
        outcome: Outcome::Done,
        result_bytes: 12,
        duration: Duration::from_micros(345),
    }
}

async fn log_of(entries: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.db");
    let log = AuditLog::new(path.clone());
    for index in 0..entries {
        log.append(entry(&format!("tool_{index}"))).await.unwrap();
    }
    (folder, path)
}

#[tokio::test]
async fn what_is_appended_is_read_back_in_order_and_verifies() {
    let (_folder, path) = log_of(3).await;
    let entries = read(&path, 0, 10).unwrap();
    assert_eq!(entries.iter().map(|e| e.sequence).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(entries[1].entry, entry("tool_1"));
    assert_eq!(read(&path, 2, 10).unwrap().len(), 1);
    let verified = verify(&path).unwrap();
    assert_eq!((verified.entries, verified.head), (3, entries[2].hash));
}

#[tokio::test]
async fn nothing_is_made_before_the_first_entry() {
    let (_folder, path) = log_of(0).await;
    assert!(!path.exists());
    assert_eq!(verify(&path).unwrap().entries, 0);
    assert!(read(&path, 0, 10).unwrap().is_empty());
}

#[tokio::test]
async fn two_logs_on_one_file_make_one_chain() {
    let (_folder, path) = log_of(0).await;
    let (one, two) = (AuditLog::new(path.clone()), AuditLog::new(path.clone()));
    let mut tasks = tokio::task::JoinSet::new();
    let logs = [Arc::new(one), Arc::new(two)];
    for index in 0..100 {
        let log = Arc::clone(&logs[index % 2]);
        tasks.spawn(async move { log.append(entry("parallel")).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
    assert_eq!(verify(&path).unwrap().entries, 100);
}

#[tokio::test]
async fn changes_made_behind_its_back_are_found() {
    #[rustfmt::skip]
    let cases: [(&str, &str, u64); 5] = [
        // what was done        how                                                              found at
        ("a field changed",     "UPDATE audit_log SET tool = 'other' WHERE sequence = 2",        2),
        ("a word made up",      "UPDATE audit_log SET outcome = 'fine' WHERE sequence = 3",      3),
        ("an entry removed",    "DELETE FROM audit_log WHERE sequence = 2",                      2),
        ("the first removed",   "DELETE FROM audit_log WHERE sequence = 1",                      1),
        ("an entry copied",     "INSERT INTO audit_log SELECT 5, at_ms, client, session, call, tool, \
                                 arguments, decision, rule, outcome, result_bytes, duration_us, hash \
                                 FROM audit_log WHERE sequence = 4",                             5),
    ];
    for (what, sql, at) in cases {
        let (_folder, path) = log_of(4).await;
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("DROP TRIGGER audit_log_keeps; DROP TRIGGER audit_log_stays;")
            .unwrap();
        connection.execute(sql, []).unwrap();
        match verify(&path) {
            Err(AuditError::Broken { sequence }) => assert_eq!(sequence, at, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn the_table_refuses_updates_and_deletes() {
    let (_folder, path) = log_of(1).await;
    let connection = Connection::open(&path).unwrap();
    assert!(connection.execute("UPDATE audit_log SET tool = 'x'", []).is_err());
    assert!(connection.execute("DELETE FROM audit_log", []).is_err());
}

#[tokio::test]
async fn a_log_that_cannot_be_opened_says_so_and_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/tools.db");
    let log = AuditLog::new(path.clone());
    assert!(matches!(log.ready().await, Err(AuditError::Open { .. })));
    std::fs::create_dir(folder.path().join("missing")).unwrap();
    log.ready().await.unwrap();
    log.append(entry("late")).await.unwrap();
    assert_eq!(verify(&path).unwrap().entries, 1);
}
