//! Reading some lines of a file.

use std::io::Read as _;
use std::path::PathBuf;

use memchr::{memchr, memchr_iter, memrchr};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::{Digest, Workspace, WorkspaceError, WorkspacePath};

/// A file larger than this gets no digest, and is read only as far as needed.
const LARGEST_DIGESTED: u64 = 64 * 1024 * 1024;
/// Bytes that are kept beyond where a line is cut.
const BEYOND: usize = 1024;
/// Bytes read at once.
const CHUNK: usize = 256 * 1024;

/// Which lines are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first line, counted from 1.
    pub first: u64,
    /// How many lines at most.
    pub lines: u64,
    /// How many bytes at most.
    pub bytes: usize,
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The file, as it's spelled on disk.
    pub path: PathBuf,
    /// The lines, exactly as they are in the file.
    pub text: String,
    /// How many lines that is, the last one perhaps cut.
    pub lines: u64,
    /// Whether the last line was too long and is cut.
    pub cut: bool,
    /// What follows where it was cut, some of it.
    pub beyond: String,
    /// Lines of the whole file, if it was read to its end.
    pub total_lines: Option<u64>,
    /// Bytes of the whole file.
    pub total_bytes: u64,
    /// The whole file's digest, if it was read to its end.
    pub digest: Option<Digest>,
    /// Whether the whole file ends with a line break; `true` for an empty one.
    pub ends_with_break: bool,
}

impl Workspace {
    /// Reads the lines `span` of the text file at `path`.
    ///
    /// Ends at a line's end where it can. Takes memory for the lines that are
    /// wanted, not for the file.
    pub fn read_lines(
        &self,
        path: &WorkspacePath,
        span: Span,
        stop: &CancellationToken,
    ) -> Result<Window, WorkspaceError> {
        let place = self.existing_file(path)?;
        let (mut file, stat) = self.file(&place.path)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let to_the_end = size <= LARGEST_DIGESTED;
        let mut reader = Reader::new(span, size);
        let mut chunk = vec![0; CHUNK.min(usize::try_from(size).unwrap_or(CHUNK) + 1)];
        loop {
            if stop.is_cancelled() {
                return Err(WorkspaceError::Stopped);
            }
            let read = file.read(&mut chunk).map_err(|source| WorkspaceError::Io {
                doing: "read",
                path: place.path.clone(),
                source,
            })?;
            if read == 0 {
                return reader.finish(place.path, true);
            }
            reader.take(&chunk[..read], to_the_end);
            if !to_the_end && reader.is_full() {
                return reader.finish(place.path, false);
            }
        }
    }
}

struct Reader {
    span: Span,
    hasher: Sha256,
    /// Line breaks seen so far.
    breaks: u64,
    read: u64,
    size: u64,
    last: Option<u8>,
    /// Set once the first wanted line has begun.
    begun: bool,
    wanted: Vec<u8>,
}

impl Reader {
    fn new(span: Span, size: u64) -> Self {
        let room = usize::try_from(size).unwrap_or(usize::MAX).min(span.bytes + BEYOND);
        Self {
            span,
            hasher: Sha256::new(),
            breaks: 0,
            read: 0,
            size,
            last: None,
            begun: span.first <= 1,
            wanted: Vec::with_capacity(room),
        }
    }

    fn take(&mut self, bytes: &[u8], digest: bool) {
        if digest {
            self.hasher.update(bytes);
        }
        let mut rest = bytes;
        while !self.begun {
            match memchr(b'\n', rest) {
                Some(at) => {
                    self.breaks += 1;
                    rest = &rest[at + 1..];
                    self.begun = self.breaks + 1 >= self.span.first;
                }
                None => {
                    rest = &[];
                    break;
                }
            }
        }
        // More than wanted, which also tells whether there is more.
        let room = (self.span.bytes + BEYOND).saturating_sub(self.wanted.len());
        self.wanted.extend_from_slice(&rest[..rest.len().min(room)]);
        self.breaks += memchr_iter(b'\n', rest).count() as u64;
        self.read += bytes.len() as u64;
        self.last = bytes.last().copied().or(self.last);
    }

    fn is_full(&self) -> bool {
        let breaks_before = self.span.first.saturating_sub(1);
        self.wanted.len() > self.span.bytes || self.breaks >= breaks_before + self.span.lines
    }

    fn finish(self, path: PathBuf, to_the_end: bool) -> Result<Window, WorkspaceError> {
        let ends_with_break = self.last.is_none_or(|byte| byte == b'\n');
        let (wanted, beyond) = trim(self.wanted, self.span);
        let cut = beyond.is_some();
        let not_text = |why| WorkspaceError::NotText { path: path.clone(), why };
        if memchr(0, &wanted).is_some() {
            return Err(not_text(describe(&wanted)));
        }
        let text =
            String::from_utf8(wanted).map_err(|error| not_text(describe(error.as_bytes())))?;
        let unfinished = u64::from(!text.is_empty() && !text.ends_with('\n'));
        let lines = memchr_iter(b'\n', text.as_bytes()).count() as u64 + unfinished;
        Ok(Window {
            lines,
            cut,
            // Only looked at, and its own end may be half a character.
            beyond: String::from_utf8_lossy(&beyond.unwrap_or_default()).into_owned(),
            total_lines: to_the_end.then_some(self.breaks + u64::from(!ends_with_break)),
            total_bytes: if to_the_end { self.read } else { self.size },
            digest: (to_the_end && self.read <= LARGEST_DIGESTED).then(|| self.hasher.into()),
            ends_with_break,
            text,
            path,
        })
    }
}

/// Cuts to the lines and bytes that are wanted. If that cuts a line in two,
/// gives what follows as well.
fn trim(mut bytes: Vec<u8>, span: Span) -> (Vec<u8>, Option<Vec<u8>>) {
    let lines = usize::try_from(span.lines).unwrap_or(usize::MAX);
    if lines == 0 {
        return (Vec::new(), None);
    }
    if let Some(end) = memchr_iter(b'\n', &bytes).nth(lines - 1) {
        bytes.truncate(end + 1);
    }
    if bytes.len() <= span.bytes {
        return (bytes, None);
    }
    match memrchr(b'\n', &bytes[..span.bytes]) {
        Some(end) => {
            bytes.truncate(end + 1);
            (bytes, None)
        }
        None => {
            let beyond = bytes.split_off(whole_characters(&bytes, span.bytes));
            (bytes, Some(beyond))
        }
    }
}

/// The end of the last character that ends before `at`.
fn whole_characters(bytes: &[u8], at: usize) -> usize {
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let back = bytes[..=at].iter().rev().take(4).take_while(|byte| continues(byte)).count();
    at - back.min(3)
}

/// What bytes that are no UTF-8 text look like.
pub(crate) fn describe(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it looks like UTF-16",
        _ if memchr(0, bytes).is_some() => "it looks like binary data",
        _ => "it may be Latin-1 or another older encoding",
    }
}
