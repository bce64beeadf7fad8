//! The walls, tried from inside.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::*;

/// A folder with a workspace in it and something beside that must stay as it is.
struct Fixture {
    folder: tempfile::TempDir,
    workspace: Workspace,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("root")).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret"), "secret").unwrap();
        let workspace = Workspace::open(&folder.path().join("root")).unwrap();
        Self { folder, workspace }
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("root").join(name)
    }

    fn real_root(&self) -> std::path::PathBuf {
        fs::canonicalize(self.at("")).unwrap()
    }

    fn outside_is_untouched(&self) -> bool {
        let outside = self.folder.path().join("outside");
        fs::read_dir(&outside).unwrap().count() == 1
            && fs::read_to_string(outside.join("secret")).unwrap() == "secret"
            && fs::read_dir(self.folder.path()).unwrap().count() == 2
    }
}

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text).unwrap()
}

fn write(workspace: &Workspace, to: &str, content: &str) -> Result<Written, WorkspaceError> {
    let stop = CancellationToken::new();
    workspace.update(&path(to), &stop, |_| Ok::<_, WorkspaceError>(content.into()))
}

fn read(workspace: &Workspace, from: &str) -> Result<String, WorkspaceError> {
    let span = Span { first: 1, lines: 1000, bytes: 100_000 };
    workspace.read_lines(&path(from), span, &CancellationToken::new()).map(|window| window.text)
}

#[derive(Debug, Clone)]
enum Step {
    Link { at: String, to: String },
    Write(String),
    Read(String),
    Move(String, String),
    Delete(String),
}

/// Few names, so that they meet.
fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 1..4)
        .prop_map(|names| names.join("/"))
}

fn step() -> impl Strategy<Value = Step> {
    let target = prop_oneof![
        name(),
        name().prop_map(|name| format!("../{name}")),
        Just("../outside".to_owned()),
        Just("../../outside/secret".to_owned()),
        Just("../../outside/new".to_owned()),
        Just("../../../..".to_owned()),
        Just(".".to_owned()),
        Just("/etc".to_owned()),
        Just("/proc/self/root".to_owned()),
    ];
    prop_oneof![
        2 => (name(), target).prop_map(|(at, to)| Step::Link { at, to }),
        3 => name().prop_map(Step::Write),
        1 => name().prop_map(Step::Read),
        1 => (name(), name()).prop_map(|(from, to)| Step::Move(from, to)),
        1 => name().prop_map(Step::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever links there are and whatever is asked for, nothing outside is
    /// read, made, changed or removed, and everything ends.
    #[test]
    fn no_sequence_of_calls_gets_out(steps in prop::collection::vec(step(), 1..30)) {
        let fixture = Fixture::new();
        let (workspace, stop) = (&fixture.workspace, CancellationToken::new());
        for step in steps {
            match step {
                Step::Link { at, to } => {
                    // A person may make any link in there; one that can't be made isn't.
                    let at = fixture.at(&at);
                    let parent = fs::canonicalize(at.parent().unwrap());
                    if parent.is_ok_and(|parent| parent.starts_with(fixture.real_root())) {
                        let _made = symlink(to, at);
                    }
                }
                Step::Write(to) => {
                    if let Ok(written) = write(workspace, &to, "new") {
                        prop_assert_eq!(read(workspace, &to).unwrap(), "new");
                        let real = fs::canonicalize(fixture.at("").join(&written.path)).unwrap();
                        prop_assert!(real.starts_with(fixture.real_root()));
                    }
                }
                Step::Read(from) => {
                    if let Ok(text) = read(workspace, &from) {
                        prop_assert_eq!(text, "new");
                    }
                }
                Step::Move(from, to) => {
                    let _moved = workspace.rename(&path(&from), &path(&to), true, &stop);
                }
                Step::Delete(what) => {
                    let _deleted = workspace.remove(&path(&what), true, &stop);
                }
            }
            workspace
                .walk(&WorkspacePath::root(), &stop, |_| std::ops::ControlFlow::Continue(super::Step::Into))
                .unwrap();
            prop_assert!(fixture.outside_is_untouched());
        }
    }
}

#[test]
fn a_folder_that_becomes_a_link_under_our_hands_leads_nowhere() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.at("real")).unwrap();
    fs::write(fixture.at("real/secret"), "mine").unwrap();
    symlink("../outside", fixture.at("other")).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = {
        let (done, real, other) = (Arc::clone(&done), fixture.at("real"), fixture.at("other"));
        std::thread::spawn(move || {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !done.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(rustix::fs::CWD, &real, rustix::fs::CWD, &other, flags)
                    .unwrap();
            }
        })
    };
    let (mut read_mine, mut refused) = (0, 0);
    for _ in 0..2000 {
        match read(&fixture.workspace, "real/secret") {
            Ok(text) => {
                assert_eq!(text, "mine");
                read_mine += 1;
            }
            Err(_) => refused += 1,
        }
        // Refused or written to what was the real folder; never outside.
        let _written = write(&fixture.workspace, "real/new", "new");
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(fixture.outside_is_untouched());
    assert!(read_mine + refused == 2000);
}

#[test]
fn waiting_for_a_folder_ends_when_told_to() {
    let fixture = Fixture::new();
    let held = fixture.workspace.folder(Path::new("")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    let change = |_: &Current<'_>| Ok::<_, WorkspaceError>(Vec::new());
    let error = fixture.workspace.update(&path("a"), &stop, change).unwrap_err();
    assert!(matches!(error, WorkspaceError::Stopped));
}

#[test]
fn a_temporary_file_that_a_killed_writer_left_is_no_obstacle() {
    let fixture = Fixture::new();
    write(&fixture.workspace, "a", "one").unwrap();
    let left = format!("{}{}", update::TEMPORARY, Digest::of(b"a"));
    fs::write(fixture.at(&left), "half").unwrap();
    write(&fixture.workspace, "a", "two").unwrap();
    assert_eq!(fs::read_to_string(fixture.at("a")).unwrap(), "two");
    assert!(!fixture.at(&left).exists());
    assert!(write(&fixture.workspace, &left, "x").is_err());
}

#[test]
fn what_is_read_does_not_depend_on_where_chunks_end() {
    let fixture = Fixture::new();
    let text: String = (0..40_000).map(|line| format!("línea {line}\r\n")).collect();
    fs::write(fixture.at("big"), &text).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let stop = CancellationToken::new();
    for first in [1, 2, 19_999, 20_000, 39_999, 40_000] {
        for (count, bytes) in [(1, 1 << 20), (100, 1 << 20), (u64::MAX, 1000), (u64::MAX, 1 << 22)]
        {
            let span = Span { first, lines: count, bytes };
            let window = fixture.workspace.read_lines(&path("big"), span, &stop).unwrap();
            let from = usize::try_from(first - 1).unwrap();
            let mut expected = String::new();
            for line in lines[from..].iter().take(usize::try_from(count).unwrap_or(usize::MAX)) {
                if expected.len() + line.len() > bytes {
                    break;
                }
                expected.push_str(line);
            }
            assert_eq!(window.text, expected, "{span:?}");
            assert_eq!(window.total_lines, Some(40_000));
            assert_eq!(window.digest, Some(Digest::of(text.as_bytes())));
        }
    }
}

#[test]
fn a_folder_deeper_than_any_stack_is_removed() {
    let fixture = Fixture::new();
    let deep = vec!["d"; 700].join("/");
    fixture.workspace.make_folders(Path::new(&deep)).unwrap();
    let (_, removed) =
        fixture.workspace.remove(&path("d"), true, &CancellationToken::new()).unwrap();
    assert_eq!(removed, 700);
}
