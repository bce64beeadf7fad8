//! SQLite keeps what every store must.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod contract;

use std::sync::Arc;

use openpact_store::State;
use openpact_store::sqlite::Sqlite;
use tempfile::TempDir;

/// A store of its own, and the folder it's in for as long as it's used.
async fn open() -> (Arc<dyn State>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("data/openpact.db")).unwrap();
    (Arc::new(store), folder)
}

contract::every_store!(open);

#[tokio::test]
async fn everything_is_there_after_closing_and_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("openpact.db");
    let open = || -> Arc<dyn State> { Arc::new(Sqlite::open(&path).unwrap()) };
    let running = contract::given::turn(&open(), "main", "m1").await;

    // Dropped without a word; then closed in good order.
    let store = open();
    assert_eq!(store.running_turns().await.unwrap(), std::slice::from_ref(&running));
    drop(store);
    let store = Sqlite::open(&path).unwrap();
    store.begin_attempt(&running.id, "msg_1").await.unwrap();
    store.close().await.unwrap();
    let refused = store.begin_attempt(&running.id, "msg_2").await.unwrap_err();
    assert_eq!(openpact_runtime::chain(&refused), "could not note an attempt: the store is closed");
    drop(store);
    let found = open().running_turns().await.unwrap();
    assert_eq!((found[0].id.as_str(), found[0].attempt), (running.id.as_str(), 1));
}

#[tokio::test]
async fn reads_do_not_wait_for_a_writer() {
    let (store, folder) = open().await;
    contract::given::accepted(&store, "main", "m1").await;
    // Somebody holds the write lock for as long as they like.
    let other = rusqlite::Connection::open(folder.path().join("data/openpact.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writing = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { contract::given::accepted(&store, "main", "m2").await })
    };
    assert_eq!(store.counts().await.unwrap().waiting_messages, 1);
    let session = store.waiting_sessions().await.unwrap().remove(0);
    assert_eq!(store.lines(&session, 10).await.unwrap().len(), 1);
    assert!(!writing.is_finished());
    other.execute_batch("COMMIT").unwrap();
    writing.await.unwrap();
    assert_eq!(store.counts().await.unwrap().waiting_messages, 2);
}
