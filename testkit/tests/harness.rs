//! The harness, with programs that every machine has.

use std::path::Path;
use std::time::Duration;

use openpact_testkit::harness::{Ended, Process, Program, binary};

const SOON: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Process {
    Program::new(Path::new("/bin/sh")).args(["-c", script]).start().expect("a shell")
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn number(line: &str, before: &str) -> Option<i32> {
    line.strip_prefix(before)?.trim().parse().ok()
}

#[tokio::test]
async fn a_line_is_waited_for_and_kept() {
    let process = shell("echo starting; echo careful >&2; echo port 7; exec sleep 600");
    assert_eq!(process.line(SOON, |line| number(line, "port ")).await.unwrap(), 7);
    assert_eq!(process.stdout(), ["starting", "port 7"]);
    assert!(process.status().is_none());
    let status = process.stop(SOON).await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}

#[tokio::test]
async fn a_program_that_ends_or_is_late_says_what_it_wrote() {
    let process = shell("echo the port is taken >&2; exit 3");
    let error = process.line(SOON, |_| None::<()>).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("exit status: 3") && text.contains("the port is taken"), "{text}");

    let process = shell("echo nearly; exec sleep 600");
    process.line(SOON, |line| (line == "nearly").then_some(())).await.unwrap();
    let error = process.line(Duration::from_millis(50), |_| None::<()>).await.unwrap_err();
    assert!(matches!(error, Ended::Late { .. }), "{error}");
    let text = openpact_runtime::chain(&error);
    assert!(text.contains("50ms") && text.contains("nearly"), "{text}");
}

#[tokio::test]
async fn what_it_started_is_killed_with_it_wherever_it_hid() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().display().to_string();
    let script = "
        sleep 600 & echo plain $!
        setsid sh -c 'echo session $$; exec sleep 600' &
        setsid env -i HOME=$MARKED /bin/sh -c 'echo nothing $$; exec sleep 600' &
        wait";
    let process = Program::new(Path::new("/bin/sh"))
        .args(["-c", script])
        .env("MARKED", &mark)
        .mark(&mark)
        .start()
        .unwrap();
    let mut pids = vec![process.pid()];
    for kind in ["plain ", "session ", "nothing "] {
        pids.push(process.line(SOON, |line| number(line, kind)).await.unwrap());
    }
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    drop(process);
    assert_eq!(
        pids.into_iter().filter(|pid| is_alive(*pid)).collect::<Vec<_>>(),
        Vec::<i32>::new()
    );
}

#[tokio::test]
async fn a_program_has_no_settings_of_whoever_runs_the_tests() {
    let process = shell("env; echo done");
    process.exited(SOON).await.unwrap();
    let stdout = process.stdout();
    assert!(stdout.iter().any(|line| line.starts_with("OPENPACT_TESTKIT=")), "{stdout:?}");
    let foreign = |line: &&String| {
        line.starts_with("OPENPACT_")
            && !line.starts_with("OPENPACT_TESTKIT=")
            && !line.starts_with("OPENPACT_ENGINE_BINARY=")
    };
    assert_eq!(stdout.iter().find(foreign), None);
}

#[test]
fn a_program_that_is_not_built_says_how_to_build_it() {
    let error = binary("openpact-nothing").unwrap_err().to_string();
    assert!(
        error.contains("openpact-nothing") && error.contains("cargo build --workspace"),
        "{error}"
    );
}

#[tokio::test]
async fn the_fake_model_runs_as_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.json");
    std::fs::write(&script, r#"{"rules": [{"reply": [{"text": "hi"}]}]}"#).unwrap();
    let program = || Program::new(Path::new(env!("CARGO_BIN_EXE_openpact-fake-llm")));
    let process = program().arg("--script").arg(&script).start().unwrap();
    let url = process.line(SOON, |line| Some(line.to_owned())).await.unwrap();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/v1"), "{url}");
    assert_eq!(process.stop(SOON).await.unwrap().code(), Some(0));

    std::fs::write(&script, r#"{"rules": [{"reply": [{"say": "hi"}]}]}"#).unwrap();
    let process = program().arg("--script").arg(&script).start().unwrap();
    assert_eq!(process.exited(SOON).await.unwrap().code(), Some(2));
    assert!(
        process.stderr().join("\n").contains("unknown variant `say`"),
        "{:?}",
        process.stderr()
    );
}
