//! SQLite keeps what every store must.

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
