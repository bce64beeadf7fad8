//! Lines of a bounded length.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Bytes read from the system at once.
const READ_AT_ONCE: usize = 64 * 1024;
/// Capacity that is kept between lines; a rare long line doesn't cost for ever.
const KEPT: usize = 256 * 1024;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A line is in [`Frames::line`].
    Line,
    /// A line was longer than allowed and is gone.
    TooLong,
    /// The input has ended.
    End,
}

/// Reads lines, none longer than a limit in bytes.
#[derive(Debug)]
pub(super) struct Frames<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    /// Within a line that was too long already.
    skipping: bool,
    /// The line was given out and may be overwritten.
    given: bool,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        let reader = BufReader::with_capacity(READ_AT_ONCE, reader);
        Self { reader, line: Vec::new(), limit, skipping: false, given: false }
    }

    /// The line that was read last, without its `\n`.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Reads the next line. Can be cancelled at any time: what was read of a
    /// line stays for the next call.
    pub(super) async fn next(&mut self) -> io::Result<Frame> {
        if std::mem::take(&mut self.given) {
            self.line.clear();
            self.line.shrink_to(KEPT);
        }
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                // A last line that nobody ended is a line all the same.
                self.given = !self.line.is_empty();
                return Ok(if self.given { Frame::Line } else { Frame::End });
            }
            let end = memchr(b'\n', available);
            let part = &available[..end.unwrap_or(available.len())];
            let fits = self.line.len() + part.len() <= self.limit;
            if !self.skipping && fits {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            let was_skipping = self.skipping;
            if !fits && !was_skipping {
                self.line = Vec::new();
            }
            self.skipping = (was_skipping || !fits) && end.is_none();
            if !was_skipping && !fits {
                return Ok(Frame::TooLong);
            }
            if end.is_some() && !was_skipping {
                self.given = true;
                return Ok(Frame::Line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn frames(input: &[u8], limit: usize, at_once: usize) -> Vec<String> {
        let mut builder = tokio::io::join(input, tokio::io::sink());
        let (mut writer, reader) = tokio::io::duplex(at_once);
        let copy = async {
            tokio::io::copy(&mut builder, &mut writer).await.unwrap();
            drop(writer);
        };
        let read = async {
            let mut frames = Frames::new(reader, limit);
            let mut seen = Vec::new();
            loop {
                match frames.next().await.unwrap() {
                    Frame::Line => seen.push(String::from_utf8_lossy(frames.line()).into_owned()),
                    Frame::TooLong => seen.push("TOO LONG".into()),
                    Frame::End => return seen,
                }
            }
        };
        tokio::join!(copy, read).1
    }

    #[tokio::test]
    async fn lines_are_split_and_bounded_however_they_arrive() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 8] = [
            // input                     frames, no line longer than 5
            ("a\nbb\n",                  &["a", "bb"]),
            ("a\n\nb",                   &["a", "", "b"]),
            ("12345\n",                  &["12345"]),
            ("123456\nok\n",             &["TOO LONG", "ok"]),
            ("1234567890123\n12\n",      &["TOO LONG", "12"]),
            ("1234567",                  &["TOO LONG"]),
            ("é\u{1f600}\n",             &["TOO LONG"]),
            ("",                         &[]),
        ];
        for (input, expected) in cases {
            for at_once in [1, 2, 3, 7, 64] {
                assert_eq!(
                    frames(input.as_bytes(), 5, at_once).await,
                    expected,
                    "{input:?} {at_once}"
                );
            }
        }
    }
}
