//! What was acknowledged outlives `kill -9`, whole and once.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use openpact_store::State;
use openpact_store::model::{
    At, DeliveryKind, Event, NewDelivery, NewMessage, Outcome, Place, User,
};
use openpact_store::sqlite::Sqlite;

/// Tells the child, which is this very program, what to do.
const DATABASE: &str = "STORE_KILL_TEST_DATABASE";
const ROUND: &str = "STORE_KILL_TEST_ROUND";
const ROUNDS: u32 = 6;
const CHANNELS: usize = 8;
const ROOM: u32 = 1_000_000;

/// Not a test by itself: the process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(path) = std::env::var(DATABASE) else { return };
    let round = std::env::var(ROUND).unwrap();
    let store = Sqlite::open(Path::new(&path)).unwrap();
    let tasks: Vec<_> = (0..CHANNELS)
        .map(|channel| tokio::spawn(work(store.clone(), round.clone(), channel)))
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Takes messages in and answers them for ever; says each thing once it's acknowledged.
async fn work(store: Sqlite, round: String, channel: usize) {
    let place = Place {
        provider: "terminal".into(),
        channel: format!("channel {channel}"),
        thread: String::new(),
    };
    for nth in 0_u64.. {
        let new = NewMessage {
            place: place.clone(),
            message_id: format!("r{round}c{channel}m{nth}"),
            user: User { id: "u".into(), name: "Ann".into() },
            text: "x".repeat(300),
            attachments: Vec::new(),
            sent_at: At(0),
        };
        let taken = store.accept(new, ROOM).await.unwrap();
        say("accepted", &taken.id);
        if nth % 3 != 0 {
            continue;
        }
        // A turn that an earlier round's kill cut off keeps its session from others.
        let Some(turn) = store.begin_turn(&taken.session, ROOM).await.unwrap() else { continue };
        say("begun", &turn.id);
        let event = |kind: &str| Event { kind: kind.into(), detail: turn.id.clone().into() };
        store.append_events(&turn.id, vec![event("text"), event("text")]).await.unwrap();
        let answer = NewDelivery {
            place: place.clone(),
            kind: DeliveryKind::Answer,
            text: "an answer".into(),
            reply_to: String::new(),
            buttons: Vec::new(),
            answers: Vec::new(),
        };
        let ended = store.end_turn(&turn.id, Outcome::Answered, event("end"), vec![answer]).await;
        assert!(ended.unwrap());
        say("ended", &turn.id);
    }
}

fn say(what: &str, id: &str) {
    // One write a line: the parent reads whole lines or a last one without an end.
    let line = format!("{what} {id}\n");
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

fn start(path: &Path, round: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(DATABASE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets a child work until it said `lines` things and a moment longer, then
/// kills it; what it said before it was dead, last unfinished line aside.
fn run_and_kill(path: &Path, round: u32, lines: usize) -> Vec<String> {
    let mut child = start(path, round);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    loop {
        if said.len() == lines {
            // Some point within a transaction, a commit or between two.
            let moment = openpact_runtime::id::fresh().bytes().last().unwrap();
            std::thread::sleep(Duration::from_micros(u64::from(moment) * 97 % 3000));
            child.kill().unwrap();
        }
        let mut line = String::new();
        let read = output.read_line(&mut line).unwrap();
        if read == 0 || !line.ends_with('\n') {
            break;
        }
        said.push(line.trim_end().to_owned());
    }
    child.wait().unwrap();
    assert!(said.len() >= lines, "the child worked until it was killed: {said:?}");
    said
}

fn ids(said: &[String], what: &str) -> Vec<String> {
    let of = said.iter().filter_map(|line| line.split_once(' '));
    of.filter(|(word, _)| *word == what).map(|(_, id)| id.to_owned()).collect()
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/openpact.db");
    let mut said = Vec::new();
    for round in 0..ROUNDS {
        said.extend(run_and_kill(&path, round, 40 + 23 * round as usize));
        check(&path, &said);
    }
    println!(
        "{ROUNDS} kills: {} messages, {} turns begun, {} ended",
        ids(&said, "accepted").len(),
        ids(&said, "begun").len(),
        ids(&said, "ended").len()
    );
}

fn check(path: &Path, said: &[String]) {
    // Through the store's own door first: it must open without help.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Sqlite::open(path).unwrap();
        let running = store.running_turns().await.unwrap();
        let running: BTreeSet<_> = running.into_iter().map(|turn| turn.id).collect();
        for id in ids(said, "ended") {
            assert!(!running.contains(&id), "a turn that ended runs again");
        }
        // What was cut off is taken up again, as after any start.
        for id in running {
            let event = Event { kind: "cut off".into(), detail: serde_json::Value::Null };
            assert!(store.end_turn(&id, Outcome::Failed, event, Vec::new()).await.unwrap());
        }
        store.close().await.unwrap();
    });

    let db = rusqlite::Connection::open(path).unwrap();
    let healthy: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(healthy, "ok");
    let dangling = db.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap();
    assert!(!dangling, "every reference has its target");
    let count = |sql: &str, id: &str| -> u32 { db.query_row(sql, [id], |row| row.get(0)).unwrap() };
    for id in ids(said, "accepted") {
        assert_eq!(count("SELECT count(*) FROM messages WHERE id = ?", &id), 1);
    }
    for id in ids(said, "begun") {
        assert_eq!(count("SELECT count(*) FROM turns WHERE id = ?", &id), 1);
    }
    for id in ids(said, "ended") {
        let whole = "
            SELECT count(*) FROM turns t WHERE id = ? AND state = 'answered'
                AND (SELECT count(*) FROM events WHERE turn = t.id) = 3
                AND (SELECT count(*) FROM deliveries WHERE turn = t.id) = 1
                AND NOT EXISTS (SELECT 1 FROM messages WHERE turn = t.id AND state <> 'done')";
        assert_eq!(count(whole, &id), 1, "with all that ended with it");
    }
    // What wasn't acknowledged is there as a whole or not at all.
    let halves: u32 = db
        .query_row(
            "SELECT count(*) FROM turns t WHERE
                NOT EXISTS (SELECT 1 FROM messages WHERE turn = t.id)
                OR (SELECT count(*) FROM events WHERE turn = t.id) NOT IN (1, 3)",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(halves, 0);
    let doubled = "SELECT 1 FROM messages GROUP BY channel, message_id HAVING count(*) > 1";
    assert!(!db.prepare(doubled).unwrap().exists([]).unwrap());
}
