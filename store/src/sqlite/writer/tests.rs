//! Tests of the writing thread.

use std::sync::Arc;
use std::sync::mpsc as blocking;
use std::time::Duration;

use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::sqlite::file;

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(30);

type Answer = Result<(), StoreError>;

struct Given {
    writer: Arc<Writer>,
    folder: TempDir,
}

impl Given {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let opened = file::open(&folder.path().join("test.db")).unwrap();
        opened.connection.execute_batch("CREATE TABLE t (v TEXT UNIQUE)").unwrap();
        Self { writer: Arc::new(Writer::start(opened).unwrap()), folder }
    }

    /// Hands `work` over now; its answer comes later.
    async fn queue(
        &self,
        work: impl FnOnce(&Connection) -> Result<(), Problem> + Send + 'static,
    ) -> JoinHandle<Answer> {
        let writer = Arc::clone(&self.writer);
        let waiting = QUEUE - self.writer.orders.as_ref().unwrap().capacity();
        let answer = tokio::spawn(async move { writer.run("test", 1, work).await });
        while QUEUE - self.writer.orders.as_ref().unwrap().capacity() == waiting
            && !answer.is_finished()
        {
            tokio::task::yield_now().await;
        }
        answer
    }

    /// Keeps the thread busy, so that what is queued meanwhile makes one batch.
    async fn hold(&self) -> blocking::Sender<()> {
        let (go, wait) = blocking::channel::<()>();
        let (busy, is_busy) = oneshot::channel();
        let writer = Arc::clone(&self.writer);
        drop(tokio::spawn(async move {
            let work = move |_: &Connection| {
                busy.send(()).unwrap();
                wait.recv_timeout(DEADLINE).unwrap();
                Ok(())
            };
            writer.run("hold", 1, work).await
        }));
        is_busy.await.unwrap();
        go
    }

    async fn values(&self) -> Vec<String> {
        let select = |db: &Connection| {
            let mut select = db.prepare("SELECT v FROM t ORDER BY rowid")?;
            let found = select.query_map([], |row| row.get(0))?.collect::<Result<_, _>>();
            Ok(found?)
        };
        self.writer.run("read", 1, select).await.unwrap()
    }
}

fn insert(value: &'static str) -> impl FnOnce(&Connection) -> Result<(), Problem> + Send {
    move |db| {
        db.execute("INSERT INTO t VALUES (?)", [value])?;
        Ok(())
    }
}

fn is_database(answer: &Answer) -> bool {
    matches!(answer, Err(StoreError::Database { doing: "test", .. }))
}

#[tokio::test]
async fn a_job_that_fails_or_panics_undoes_itself_alone() {
    let given = Given::new();
    let go = given.hold().await;
    let good = given.queue(insert("good")).await;
    let failing = given.queue(|db| insert("half done")(db).and_then(|()| insert("good")(db))).await;
    let refused = given.queue(|db| insert("x")(db).and(Err(Problem::missing("turn", "t")))).await;
    let panicking = given
        .queue(|db| {
            insert("half done as well")(db)?;
            panic!("a defect in a job");
        })
        .await;
    let last = given.queue(insert("last")).await;
    go.send(()).unwrap();

    assert!(good.await.unwrap().is_ok());
    assert!(is_database(&failing.await.unwrap()));
    assert!(matches!(refused.await.unwrap(), Err(StoreError::Missing { what: "turn", .. })));
    let panicked = panicking.await.unwrap();
    assert!(is_database(&panicked));
    let said = openpact_runtime::chain(&panicked.unwrap_err());
    assert_eq!(said, "could not test: the store's code panicked");
    assert!(last.await.unwrap().is_ok());
    assert_eq!(given.values().await, ["good", "last"]);
}

#[tokio::test]
async fn a_commit_that_fails_fails_its_batch_and_no_other() {
    let given = Given::new();
    let go = given.hold().await;
    let innocent = given.queue(insert("innocent")).await;
    // A constraint that's checked at the end makes the commit itself fail.
    let dangling = given
        .queue(|db| {
            db.pragma_update(None, "defer_foreign_keys", true)?;
            let insert = "INSERT INTO turns (id, session, state, started_at) \
                          VALUES ('t', 'nowhere', 'running', 0)";
            db.execute(insert, [])?;
            Ok(())
        })
        .await;
    let after = given.queue(insert("after")).await;
    go.send(()).unwrap();
    for answer in [innocent, dangling, after] {
        let answer = answer.await.unwrap();
        assert!(is_database(&answer), "{answer:?}");
    }
    assert_eq!(given.values().await, [""; 0]);
    given.writer.run("test", 1, insert("next")).await.unwrap();
    assert_eq!(given.values().await, ["next"]);
}

#[tokio::test]
async fn a_full_disk_is_an_error_until_there_is_room_again() {
    let given = Given::new();
    let limit = |pages: u32| {
        move |db: &Connection| {
            let sql = format!("PRAGMA max_page_count = {pages}");
            Ok(db.query_row(&sql, [], |_| Ok(()))?)
        }
    };
    let large = |db: &Connection| {
        db.execute("INSERT INTO t VALUES (printf('%.*c', 4000000, 'x'))", [])?;
        Ok(())
    };
    given.writer.run("test", 1, limit(1)).await.unwrap();
    let answer = given.writer.run("test", 1, large).await;
    assert!(is_database(&answer), "{answer:?}");
    let answer = openpact_runtime::chain(&answer.unwrap_err());
    assert!(answer.contains("full"), "{answer}");
    given.writer.run("test", 1, limit(1 << 30)).await.unwrap();
    given.writer.run("test", 1, large).await.unwrap();
    assert_eq!(given.values().await.len(), 1);
}

#[tokio::test]
async fn closing_writes_what_was_queued_and_takes_no_more() {
    let given = Given::new();
    let go = given.hold().await;
    let queued = [given.queue(insert("one")).await, given.queue(insert("two")).await];
    let writer = Arc::clone(&given.writer);
    let closing = tokio::spawn(async move { writer.close().await });
    go.send(()).unwrap();
    closing.await.unwrap().unwrap();
    for answer in queued {
        answer.await.unwrap().unwrap();
    }
    let late = given.writer.run("test", 1, insert("late")).await;
    let late = openpact_runtime::chain(&late.unwrap_err());
    assert_eq!(late, "could not test: the store is closed");
    given.writer.close().await.expect("closing again does nothing");

    let names = std::fs::read_dir(given.folder.path()).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["test.db", "test.db.lock"], "all is in the one file");
    let reopened = file::open(&given.folder.path().join("test.db")).unwrap().connection;
    let count: u32 = reopened.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 2);
}

#[tokio::test]
async fn dropping_waits_for_what_was_queued() {
    let given = Given::new();
    let queued = given.queue(insert("one")).await;
    let Given { writer, folder } = given;
    let path = folder.path().join("test.db");
    // The task holds the writer as well until it's answered.
    queued.await.unwrap().unwrap();
    drop(writer);
    let reopened = file::open(&path).unwrap().connection;
    let count: u32 = reopened.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
}

#[tokio::test]
async fn what_the_queue_holds_is_bounded_in_bytes() {
    let given = Given::new();
    let go = given.hold().await;
    let writer = Arc::clone(&given.writer);
    // Larger than the bound: it's let in, alone.
    let large =
        tokio::spawn(async move { writer.run("test", 2 * QUEUE_BYTES, insert("large")).await });
    let writer = Arc::clone(&given.writer);
    let small = tokio::spawn(async move { writer.run("test", 1, insert("small")).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let queued = QUEUE - given.writer.orders.as_ref().unwrap().capacity();
    assert_eq!(queued, 0, "the job that runs holds a byte");
    go.send(()).unwrap();
    large.await.unwrap().unwrap();
    small.await.unwrap().unwrap();
    assert_eq!(given.values().await, ["large", "small"]);
}
