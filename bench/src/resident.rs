//! How much memory a process has.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// How often and how long a process is looked at before it counts as idle.
const TICK: Duration = Duration::from_millis(100);
const STILL: u32 = 5;
const LONGEST: Duration = Duration::from_secs(10);

/// The resident memory of a process once it has stopped changing: the
/// kernel's `VmRSS`, so shared libraries count in full.
pub(crate) fn idle(pid: u32) -> anyhow::Result<u64> {
    let deadline = Instant::now() + LONGEST;
    let mut before = resident(pid)?;
    let mut still = 0;
    while still < STILL && Instant::now() < deadline {
        thread::sleep(TICK);
        let now = resident(pid)?;
        still = if now == before { still + 1 } else { 0 };
        before = now;
    }
    Ok(before)
}

fn resident(pid: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("look at process {pid}"))?;
    parse(&status).with_context(|| format!("process {pid} has no resident memory"))
}

fn parse(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_figure_is_read() {
        assert_eq!(parse("VmSize:\t 9 kB\nVmRSS:\t    1408 kB\n"), Some(1408 * 1024));
        assert_eq!(parse("Name:\tzombie\n"), None);
        assert!(resident(std::process::id()).unwrap() > 100 * 1024);
    }
}
