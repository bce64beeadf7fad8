//! The chat without a terminal: each line a message, answers on standard output.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::editor::LONGEST;
use super::plain;
use crate::hub::ask::{AskError, Asker};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Asks line by line and waits for each answer. Exit code 1 if one was missing.
pub(super) async fn run(mut asker: Asker<'_>, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let mut lines = read();
    let mut good = true;
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = stop.cancelled() => return Ok(ExitCode::FAILURE),
        };
        let Some(line) = line else { break };
        let line = line.context("read standard input")?;
        let text = line.trim();
        match text {
            "" => continue,
            "/quit" | "/exit" => break,
            _ => {}
        }
        match asker.ask(text, Instant::now() + PATIENCE).await {
            Ok(answer) => {
                if answer.good {
                    print(answer.post.text())?;
                } else {
                    asker.aside.say(answer.post.text());
                }
                good &= answer.good;
                answer.post.shown();
            }
            Err(AskError::Stopped) => return Ok(ExitCode::FAILURE),
            Err(error) => {
                good = false;
                asker.aside.say(&format!("openpact: {error}"));
            }
        }
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let text = if io::IsTerminal::is_terminal(&out) { plain::harmless(text) } else { text.into() };
    writeln!(out, "{text}").and_then(|()| out.flush()).context("print the answer")
}

/// The lines of standard input. They're read on a thread of their own, for a
/// read can't be given up; the next one is read when the last one was taken.
fn read() -> mpsc::Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::channel(1);
    let read = move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let read = input.by_ref().take(LONGEST as u64 + 1).read_until(b'\n', &mut line);
            let line = match read {
                Ok(0) => return,
                Ok(_) if line.len() > LONGEST => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("a line is longer than {LONGEST} bytes"),
                )),
                Ok(_) => String::from_utf8(line)
                    .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")),
                Err(error) => Err(error),
            };
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    };
    // Ends with standard input or with the process; there is nobody to wait for it.
    drop(tokio::task::spawn_blocking(read));
    lines
}
