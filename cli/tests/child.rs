//! What `up` starts doesn't outlive it, even if it's killed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than it takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn runs(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn a_child_ends_when_its_parent_is_killed() {
    let openpact = env!("CARGO_BIN_EXE_openpact");
    let script =
        format!("'{openpact}' __child --parent $$ -- /bin/sh -c 'echo $$; exec sleep 1000' & wait");
    let mut parent =
        Command::new("/bin/sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let child: u32 = line.trim().parse().unwrap();
    assert!(runs(child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let since = Instant::now();
    while runs(child) {
        assert!(since.elapsed() < PATIENCE, "it still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_child_whose_parent_is_gone_does_not_begin() {
    let output = Command::new(env!("CARGO_BIN_EXE_openpact"))
        .args(["__child", "--parent", "1", "--", "/bin/echo", "hello"])
        .output()
        .unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}
