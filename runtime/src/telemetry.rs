//! Logs: to standard error, so that standard output stays free for protocols.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing_subscriber::EnvFilter;

use crate::redact::Redactor;

/// What is kept out of the logs. Empty until the process knows its secrets.
static REDACTOR: OnceLock<Redactor> = OnceLock::new();

/// Keeps what `redactor` knows out of everything this process logs from now on,
/// panics and its last words included.
///
/// Once a process: later secrets go into the same redactor, by
/// [`Redactor::replace`].
pub fn redact_logs(redactor: &Redactor) {
    if REDACTOR.set(redactor.clone()).is_err() {
        tracing::debug!("the logs are redacted already");
    }
}

/// Where the log goes instead of standard error.
static DIVERTED: Mutex<Option<File>> = Mutex::new(None);

/// Writes the log into `file` from now on, or to standard error again.
///
/// For as long as the terminal shows something that log lines would garble.
pub fn divert_logs(file: Option<File>) {
    *DIVERTED.lock().unwrap_or_else(PoisonError::into_inner) = file;
}

/// Starts logging. `OPENPACT_LOG` filters as `RUST_LOG` does elsewhere (`info` if unset);
/// `OPENPACT_LOG_FORMAT=json` writes a JSON object a line.
pub(crate) fn start() {
    let wanted = std::env::var("OPENPACT_LOG").unwrap_or_default();
    let wanted = if wanted.is_empty() { "info" } else { wanted.as_str() };
    let (filter, misread) = match EnvFilter::try_new(wanted) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error)),
    };
    let log = tracing_subscriber::fmt().with_writer(|| Redacted).with_env_filter(filter);
    let json = std::env::var("OPENPACT_LOG_FORMAT").is_ok_and(|format| format == "json");
    // A second start in one process (tests) keeps the first one's log.
    let started = if json {
        log.json().try_init()
    } else {
        log.with_ansi(io::stderr().is_terminal()).try_init()
    };
    match started {
        Ok(()) => std::panic::set_hook(Box::new(report_panic)),
        Err(error) => tracing::debug!(%error, "logging had been started before"),
    }
    if let Some(error) = misread {
        tracing::warn!(%error, "OPENPACT_LOG is not a filter such as `debug`: logging `info`");
    }
}

/// `text` as it may be printed.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    REDACTOR.get().map_or(Cow::Borrowed(text), |redactor| redactor.redact(text))
}

/// Standard error, or where the log goes instead. The log gives it whole lines, so no value is cut in two.
struct Redacted;

impl Write for Redacted {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = redacted(&text);
        match &mut *DIVERTED.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(file) => file.write_all(text.as_bytes())?,
            None => io::stderr().write_all(text.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// A panic ends one task; the log says so as it says everything else.
fn report_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let said = panic.payload_as_str().unwrap_or("it did not say why");
    let backtrace = std::backtrace::Backtrace::capture();
    tracing::error!(thread = thread.name(), %place, %backtrace, "panicked: {said}");
}
