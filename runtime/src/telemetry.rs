//! Logs: to standard error, so that standard output stays free for protocols.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Starts logging. `OPENPACT_LOG` filters as `RUST_LOG` does elsewhere (`info` if unset);
/// `OPENPACT_LOG_FORMAT=json` writes a JSON object a line.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("OPENPACT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE);
    let json = std::env::var("OPENPACT_LOG_FORMAT").is_ok_and(|format| format == "json");
    // A second start in one process (tests) keeps the first one's log.
    let started = if json {
        log.json().try_init()
    } else {
        log.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging had been started before");
    }
}
