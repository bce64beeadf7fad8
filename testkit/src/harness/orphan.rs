//! Ends what a test's program started and left behind.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long killed processes may take to be gone.
const LONGEST: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(10);

/// Kills every process whose command line or environment has one of `marks`,
/// each by its id, until there are none.
///
/// A mark is a text that only one test's processes can have: a random id, the
/// path of a temporary folder.
pub(super) fn end(marks: &[String]) {
    let deadline = Instant::now() + LONGEST;
    loop {
        let found = marked(marks);
        for pid in &found {
            // It may have ended since it was found.
            let _killed = kill_process(*pid, Signal::KILL);
        }
        if found.is_empty() || Instant::now() > deadline {
            return;
        }
        std::thread::sleep(TICK);
    }
}

/// The living processes that have one of `marks`; not this one.
pub(super) fn marked(marks: &[String]) -> Vec<Pid> {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own && lives(*pid, marks))
        .filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?))
        .collect()
}

/// Whether the process lives and has one of `marks`.
pub(super) fn lives(pid: u32, marks: &[String]) -> bool {
    has_mark(pid, marks) && !is_zombie(pid)
}

/// Whether the process has one of `marks`. Its files can't be read when it's
/// somebody else's, or gone.
fn has_mark(pid: u32, marks: &[String]) -> bool {
    ["cmdline", "environ"].iter().any(|file| {
        let about = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        marks.iter().any(|mark| about.windows(mark.len()).any(|part| part == mark.as_bytes()))
    })
}

fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it may hold anything, brackets as well.
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
}
