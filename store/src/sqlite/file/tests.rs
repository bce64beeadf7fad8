//! Tests of opening and migrating.

use std::error::Error as _;

use tempfile::TempDir;

use super::*;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/openpact.db");
    fs::create_dir(folder.path().join("data")).unwrap();
    (folder, path)
}

/// Makes a file that isn't ours.
type Make<'a> = &'a dyn Fn(&Path);

/// Opens, and says why it can't be.
fn refusal(path: &Path) -> String {
    openpact_runtime::chain(&open(path).map(drop).unwrap_err())
}

fn schema(connection: &Connection) -> Vec<(String, String)> {
    let select = "SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY name";
    let mut select = connection.prepare(select).unwrap();
    let found = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    found.collect::<Result<_, _>>().unwrap()
}

#[test]
fn folder_and_files_are_made_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secure/data/openpact.db");
    let opened = open(&path).unwrap();
    opened.connection.execute("CREATE TABLE t (v)", []).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("secure")), 0o700);
    assert_eq!(mode(&folder.path().join("secure/data")), 0o700);
    let files: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(files.len(), 4, "the database, its log, its index and the lock");
    for file in files {
        let file = file.unwrap().path();
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    drop(opened);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    drop(open(&path).unwrap());
    assert_eq!(mode(&path), 0o600, "one that was copied back is closed again");
}

#[test]
fn a_database_of_each_older_version_is_brought_up_to_date() {
    let (_folder, path) = folder();
    let newest = schema(&open(&path).unwrap().connection);
    for version in 0..=MIGRATIONS.len() {
        let (_folder, path) = folder();
        let mut older = Connection::open(&path).unwrap();
        migrate(&mut older, version).unwrap();
        let found: u32 = older.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(found as usize, version);
        drop(older);
        for _ in 0..2 {
            let opened = open(&path).unwrap();
            assert_eq!(schema(&opened.connection), newest, "from version {version}");
        }
    }
}

#[test]
fn what_is_acknowledged_is_synced_and_references_are_checked() {
    let (_folder, path) = folder();
    let opened = open(&path).unwrap();
    let pragma = |name: &str| {
        let value = opened
            .connection
            .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        format!("{:?}", value.unwrap())
    };
    #[rustfmt::skip]
    let cases = [
        ("journal_mode",   r#"Text("wal")"#),
        ("synchronous",    "Integer(2)"),
        ("foreign_keys",   "Integer(1)"),
        ("busy_timeout",   "Integer(10000)"),
        ("application_id", "Integer(1332768336)"),
        ("user_version",   "Integer(1)"),
    ];
    for (name, value) in cases {
        assert_eq!(pragma(name), value, "{name}");
    }
}

#[test]
fn files_that_are_not_ours_are_refused_and_left_as_they_are() {
    let foreign = |path: &Path, sql: &str| {
        Connection::open(path).unwrap().execute_batch(sql).unwrap();
    };
    let mut large = b"SQLite format 3\0".to_vec();
    large.resize(100_000, 0xff);
    #[rustfmt::skip]
    let cases: [(&str, Make<'_>); 6] = [
        ("a text",               &|path| fs::write(path, "dear diary, …").unwrap()),
        ("one byte",             &|path| fs::write(path, "x").unwrap()),
        ("noise after a header", &|path| fs::write(path, &large).unwrap()),
        ("some tables",          &|path| foreign(path, "CREATE TABLE t (v)")),
        ("another application",  &|path| foreign(path, "PRAGMA application_id = 7")),
        ("a version of others",  &|path| foreign(path, "PRAGMA user_version = 1")),
    ];
    for (what, make) in cases {
        let (_folder, path) = folder();
        make(&path);
        let before = fs::read(&path).unwrap();
        let said = refusal(&path);
        let expected = format!(
            "could not open the database: `{}` is not a database of OpenPact's orchestrator: \
             move it away, or use another workspace",
            path.display()
        );
        assert_eq!(said, expected, "{what}");
        assert_eq!(fs::read(&path).unwrap(), before, "{what}");
        let beside = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(beside.count(), 2, "{what}: itself and the lock");
    }
}

#[test]
fn a_newer_version_is_refused_and_left_as_it_is() {
    let (_folder, path) = folder();
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let refused = open(&path).map(drop).unwrap_err();
    assert!(matches!(refused, StoreError::Version { found: 99, known: 1, .. }), "{refused:?}");
    assert!(refused.source().is_none());
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_folder_in_the_files_place_is_refused() {
    let (_folder, path) = folder();
    fs::create_dir(&path).unwrap();
    assert!(refusal(&path).contains("is not a database"));
    let (_folder, path) = folder();
    fs::write(&path, "").unwrap();
    assert!(refusal(&path.join("openpact.db")).contains("can't be used"));
    open(&path).expect("an empty file is a new database");
}

#[test]
fn a_second_process_is_kept_out_until_the_first_lets_go() {
    let (_folder, path) = folder();
    let first = lock(&path, Duration::ZERO).unwrap();
    let refused = lock(&path, Duration::ZERO).unwrap_err().to_string();
    assert_eq!(refused, format!("another process uses `{}`: stop that one first", path.display()));
    let waiting = std::thread::spawn(move || lock(&path, Duration::from_secs(30)).is_ok());
    drop(first);
    assert!(waiting.join().unwrap());
}

#[test]
fn ids_go_on_after_the_last_one_whatever_the_clock_says() {
    let (_folder, path) = folder();
    let opened = open(&path).unwrap();
    // A clock that ran years ahead; ids of this process go on from there.
    let ahead = format!("01z{}", &openpact_runtime::id::fresh()[3..]);
    opened
        .connection
        .execute_batch(&format!(
            "INSERT INTO channels (key, provider, channel, thread) VALUES (1, 't', 'c', '');
             INSERT INTO sessions (id, channel, title, current, created_at, used_at)
             VALUES ('{ahead}', 1, '', 1, 0, 0)"
        ))
        .unwrap();
    drop(opened);
    drop(open(&path).unwrap());
    assert!(openpact_runtime::id::fresh() > ahead);
}
