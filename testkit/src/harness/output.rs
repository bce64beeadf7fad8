//! What a program wrote, as far as it's worth keeping.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::wait::{Bell, NotSeen};

/// Lines that are kept; older ones are dropped and counted.
const LINES: usize = 4_000;
/// Bytes of a line that are kept.
const LONGEST: u64 = 8 * 1024;

/// The lines of a program's two outputs, in the order they were read.
#[derive(Debug)]
pub(super) struct Output {
    lines: Mutex<Lines>,
    pub(super) bell: Bell,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<(&'static str, String)>,
    dropped: usize,
    /// Outputs that are still read.
    open: usize,
}

impl Output {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { lines: Mutex::default(), bell: Bell::new() })
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads `from` in a thread of its own, which ends when all who can write
    /// to it are gone. A thread, for the runtime may be gone before that.
    pub(super) fn read(self: &Arc<Self>, name: &'static str, from: impl Read + Send + 'static) {
        let output = Arc::clone(self);
        output.lines().open += 1;
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            while let Some(line) = line(&mut from) {
                let mut lines = output.lines();
                if lines.kept.len() == LINES {
                    lines.kept.pop_front();
                    lines.dropped += 1;
                }
                lines.kept.push_back((name, line));
                drop(lines);
                output.bell.ring();
            }
            output.lines().open -= 1;
            output.bell.ring();
        });
    }

    /// Whether all that was written has been read, and nobody can write more.
    pub(super) fn is_closed(&self) -> bool {
        self.lines().open == 0
    }

    /// The lines of one output.
    pub(super) fn of(&self, name: &str) -> Vec<String> {
        let lines = self.lines();
        lines.kept.iter().filter(|line| line.0 == name).map(|line| line.1.clone()).collect()
    }

    /// Everything, for people to read.
    pub(super) fn told(&self) -> String {
        let lines = self.lines();
        let mut told = String::new();
        if lines.dropped > 0 {
            told += &format!("({} lines before these)\n", lines.dropped);
        }
        for (name, line) in &lines.kept {
            told += &format!("{name}: {line}\n");
        }
        told
    }

    pub(super) async fn wait<T>(
        &self,
        within: Duration,
        look: impl FnMut() -> Option<T>,
    ) -> Result<T, NotSeen> {
        self.bell.wait(within, look, || self.told()).await
    }
}

/// The next line without its end; `None` when there are no more. What is longer
/// than is kept is cut.
fn line(from: &mut impl BufRead) -> Option<String> {
    let mut bytes = Vec::new();
    let read = from.by_ref().take(LONGEST).read_until(b'\n', &mut bytes).ok()?;
    if read == 0 {
        return None;
    }
    if bytes.last() != Some(&b'\n') {
        from.skip_until(b'\n').ok()?;
    }
    Some(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_where_they_are_too_long() {
        let long = "x".repeat(20_000);
        let text = format!("one\r\n{long}\n\nlast");
        let mut from = BufReader::new(text.as_bytes());
        let lines: Vec<_> = std::iter::from_fn(|| line(&mut from)).collect();
        assert_eq!(lines, ["one", &long[..8192], "", "last"]);
    }
}
