//! Real processes, each a few words of shell, kept running and ended.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use openpact_runtime::redact::Redactor;

use super::*;

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

struct Bench {
    folder: tempfile::TempDir,
    around: Surroundings,
    stop: CancellationToken,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path()).unwrap();
        layout.create().unwrap();
        let around = Surroundings { layout, report: Report::new() };
        Self { folder, around, stop: CancellationToken::new() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A process that runs `script` in the workspace and is ready once the file `ready` is there.
    fn process(&self, script: &'static str) -> Supervised {
        let (folder, ready) = (self.folder.path().to_owned(), self.file("ready"));
        Supervised {
            name: "mcp",
            command: Box::new(move || {
                let mut command = std::process::Command::new("/bin/sh");
                command.args(["-c", script]).current_dir(&folder);
                Ok(command)
            }),
            probe: Box::new(move |_| {
                let there = ready.exists();
                Box::pin(async move {
                    if there { Ok(String::new()) } else { Err("no file".to_owned()) }
                })
            }),
            start_timeout: PATIENCE,
            grace: PATIENCE,
        }
    }

    fn keep(
        &self,
        process: Supervised,
    ) -> (watch::Receiver<State>, tokio::task::JoinHandle<Result<(), SuperviseError>>) {
        let log =
            Log::open(self.around.layout.log_file("mcp"), None, Arc::new(Redactor::default()));
        let (sender, state) = watch::channel(State::Starting);
        let kept = process.keep(self.around.clone(), log.unwrap(), sender, self.stop.clone());
        (state, tokio::spawn(kept))
    }
}

async fn until(state: &mut watch::Receiver<State>, wanted: State) {
    let reached = tokio::time::timeout(PATIENCE, state.wait_for(|state| *state == wanted)).await;
    reached.unwrap().unwrap();
}

/// Looks until `what` is so.
async fn eventually(what: impl Fn() -> bool) {
    let look = async {
        while !what() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, look).await.unwrap();
}

fn is_alive(id: &str) -> bool {
    PathBuf::from(format!("/proc/{id}/stat")).exists()
}

fn number(path: &std::path::Path) -> Option<String> {
    fs::read_to_string(path).ok().filter(|text| text.ends_with('\n')).map(|t| t.trim().to_owned())
}

#[tokio::test]
async fn one_that_is_killed_runs_again_and_its_files_say_so() {
    let bench = Bench::new();
    let (mut state, kept) = bench.keep(bench.process("touch ready; exec sleep 1000"));
    until(&mut state, State::Ready).await;
    let layout = &bench.around.layout;
    let first = number(&layout.pid_file("mcp")).unwrap();
    fs::write(layout.address_file("mcp"), "127.0.0.1:1\n").unwrap();

    let pid = Pid::from_raw(first.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    let another = || number(&layout.pid_file("mcp")).is_some_and(|id| id != first);
    eventually(another).await;
    until(&mut state, State::Ready).await;
    let second = number(&layout.pid_file("mcp")).unwrap();
    assert!(!layout.address_file("mcp").exists());

    bench.stop.cancel();
    kept.await.unwrap().unwrap();
    assert!(!is_alive(&second) && !layout.pid_file("mcp").exists());
}

#[tokio::test]
async fn what_it_started_ends_with_it() {
    let bench = Bench::new();
    let script = "sleep 1000 & echo $! > grandchild; touch ready; wait";
    let (mut state, kept) = bench.keep(bench.process(script));
    until(&mut state, State::Ready).await;
    let grandchild = number(&bench.file("grandchild")).unwrap();
    assert!(is_alive(&grandchild));
    bench.stop.cancel();
    kept.await.unwrap().unwrap();
    // Whoever adopts orphans here takes its time to bury them.
    eventually(|| {
        let stat = fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    })
    .await;
}

#[tokio::test]
async fn one_that_does_not_end_when_told_is_made_to() {
    let bench = Bench::new();
    let script = "trap '' TERM; touch ready; while :; do sleep 1000; done";
    let process = Supervised { grace: Duration::from_millis(50), ..bench.process(script) };
    let (mut state, kept) = bench.keep(process);
    until(&mut state, State::Ready).await;
    let id = number(&bench.around.layout.pid_file("mcp")).unwrap();
    bench.stop.cancel();
    kept.await.unwrap().unwrap();
    assert!(!is_alive(&id));
}

#[tokio::test]
async fn one_that_never_comes_up_is_given_up_with_its_last_words() {
    let cases = [
        ("echo one >&2; echo 'bad key' >&2; exit 2", "can't start with these settings: bad key"),
        ("echo hello; echo 'no luck' >&2; exit 7", "it ended with exit code 7. It said: no luck"),
        ("exit 0", "it ended by itself. It said: nothing"),
    ];
    for (script, words) in cases {
        let bench = Bench::new();
        let (_state, kept) = bench.keep(bench.process(script));
        let error = tokio::time::timeout(PATIENCE, kept).await.unwrap().unwrap().unwrap_err();
        assert!(error.to_string().contains(words), "{script}: {error}");
    }
}

#[tokio::test]
async fn one_that_is_not_ready_in_time_is_ended() {
    let bench = Bench::new();
    let start_timeout = Duration::from_millis(10);
    let process = Supervised { start_timeout, ..bench.process("echo waiting; exec sleep 1000") };
    let (_state, kept) = bench.keep(process);
    let error = tokio::time::timeout(PATIENCE, kept).await.unwrap().unwrap().unwrap_err();
    assert!(error.to_string().contains("was not ready after 0 s: no file"), "{error}");
}

#[tokio::test]
async fn once_it_has_been_ready_it_is_never_given_up() {
    let bench = Bench::new();
    let script = "echo x >> lives; [ $(wc -l < lives) = 2 ] && rm -f ready && exit 2; touch ready; exec sleep 1000";
    let (mut state, kept) = bench.keep(bench.process(script));
    until(&mut state, State::Ready).await;
    let id = number(&bench.around.layout.pid_file("mcp")).unwrap();
    rustix::process::kill_process(Pid::from_raw(id.parse().unwrap()).unwrap(), Signal::KILL)
        .unwrap();
    // The second life ends with exit code 2, the third one stays.
    eventually(|| fs::read_to_string(bench.file("lives")).is_ok_and(|lives| lives.len() == 6))
        .await;
    until(&mut state, State::Ready).await;
    bench.stop.cancel();
    kept.await.unwrap().unwrap();
}
