//! What processes write to their standard error, kept in a file that stays small.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use openpact_runtime::redact::Redactor;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// A file of this size is put aside; the one that was aside before is gone.
const LARGEST: u64 = 4 << 20;
/// A longer line is cut.
const LONGEST_LINE: usize = 8 << 10;
/// So many lines are remembered, to say how a process ended.
const REMEMBERED: usize = 20;

/// The log of one process, across its restarts.
#[derive(Debug, Clone)]
pub(super) struct Log {
    inner: Arc<Mutex<Inner>>,
    redactor: Arc<Redactor>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    size: u64,
    last: VecDeque<String>,
    mirror: Option<&'static str>,
}

impl Log {
    /// Goes on with the log in `path`. With `mirror`, lines go to standard error as well,
    /// under this name.
    pub(super) fn open(
        path: PathBuf,
        mirror: Option<&'static str>,
        redactor: Arc<Redactor>,
    ) -> io::Result<Self> {
        let file = append(&path)?;
        let size = file.metadata()?.len();
        let inner = Inner { path, file, size, last: VecDeque::new(), mirror };
        Ok(Self { inner: Arc::new(Mutex::new(inner)), redactor })
    }

    /// Keeps what comes out of `output` until it's closed.
    pub(super) async fn copy(self, mut output: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8 << 10];
        let mut line = Vec::new();
        loop {
            let read = match output.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => read,
            };
            for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
                let room = LONGEST_LINE.saturating_sub(line.len());
                line.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.ends_with(b"\n") {
                    self.line(&line);
                    line.clear();
                }
            }
        }
        if !line.is_empty() {
            self.line(&line);
        }
    }

    /// Keeps a line of our own, with the time.
    pub(super) fn note(&self, text: &str) {
        let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now());
        self.line(format!("{now} {text}").as_bytes());
    }

    /// The last lines, oldest first, and forgets them: the next process starts afresh.
    pub(super) fn take_last(&self) -> Vec<String> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.last.drain(..).collect()
    }

    fn line(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = self.redactor.redact(text.trim_end());
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = inner.write(&text) {
            tracing::debug!(%error, "a line of a log is lost");
        }
        if inner.last.len() == REMEMBERED {
            inner.last.pop_front();
        }
        if let Some(name) = inner.mirror {
            let _written = writeln!(io::stderr(), "{name}: {text}");
        }
        inner.last.push_back(text.into_owned());
    }
}

impl Inner {
    fn write(&mut self, line: &str) -> io::Result<()> {
        if self.size > LARGEST {
            let mut aside = self.path.clone();
            aside.as_mut_os_string().push(".1");
            fs::rename(&self.path, aside)?;
            self.file = append(&self.path)?;
            self.size = 0;
        }
        // One write a line: `up` of an earlier life can't be in between, a reader sees whole lines.
        self.file.write_all(format!("{line}\n").as_bytes())?;
        self.size += line.len() as u64 + 1;
        Ok(())
    }
}

fn append(path: &std::path::Path) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(folder: &tempfile::TempDir) -> Log {
        Log::open(folder.path().join("engine.log"), None, Arc::new(Redactor::default())).unwrap()
    }

    #[tokio::test]
    async fn lines_are_kept_and_long_ones_cut() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder);
        let long = "x".repeat(3 * LONGEST_LINE);
        let output = format!("one\n{long}\n\u{e9}\nno end");
        log.clone().copy(output.as_bytes()).await;
        let cut = "x".repeat(LONGEST_LINE);
        assert_eq!(log.take_last(), ["one", &cut, "\u{e9}", "no end"]);
        assert!(log.take_last().is_empty());
        let kept = fs::read_to_string(folder.path().join("engine.log")).unwrap();
        assert_eq!(kept, format!("one\n{cut}\n\u{e9}\nno end\n"));
    }

    #[tokio::test]
    async fn two_files_are_all_there_ever_is() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(&folder);
        let line = format!("{}\n", "y".repeat(LONGEST_LINE - 1));
        log.clone().copy(line.repeat(1600).as_bytes()).await;
        let sizes: Vec<u64> = fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= LARGEST + LONGEST_LINE as u64), "{sizes:?}");
    }
}
