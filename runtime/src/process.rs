//! How a process starts, is told to stop, and ends.

use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// A problem with the command line or the configuration: exit code 2.
///
/// Put it anywhere into the chain of an `anyhow::Error`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// How many threads a process wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// One: starts fastest and stays smallest.
    One,
    /// One a core.
    PerCore,
}

/// A program of OpenPact's.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// As people call it: `openpact-mcp`.
    pub name: &'static str,
    /// How many threads run it.
    pub threads: Threads,
}

impl Process {
    /// Runs the program: logs, the async runtime, signals, and one line on
    /// standard error when it fails.
    ///
    /// `run` gets a token that is cancelled on SIGINT and SIGTERM. A second
    /// signal ends the process at once. Exit codes: 0 fine, 1 failed, 2 the
    /// command line or the configuration is wrong.
    ///
    /// Call it from `main`, with the command line already parsed.
    pub fn run<F, Fut>(self, run: F) -> ExitCode
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = anyhow::Result<ExitCode>>,
    {
        crate::telemetry::start();
        let mut builder = match self.threads {
            Threads::One => tokio::runtime::Builder::new_current_thread(),
            Threads::PerCore => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = match builder.enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return self.failed(&anyhow::Error::new(error).context("start")),
        };
        let stop = CancellationToken::new();
        let ended = runtime.block_on(async {
            watch_signals(self.name, &stop)?;
            run(stop.clone()).await
        });
        // A blocking read of standard input can't be interrupted; don't wait for it.
        runtime.shutdown_background();
        match ended {
            Ok(code) => code,
            Err(error) => self.failed(&error),
        }
    }

    fn failed(self, error: &anyhow::Error) -> ExitCode {
        let text = crate::chain(error.as_ref());
        // Standard error may be closed; the exit code still tells.
        let text = crate::telemetry::redacted(&text);
        let _written = writeln!(std::io::stderr(), "{}: {text}", self.name);
        let usage = error
            .chain()
            .any(|cause| cause.is::<Usage>() || cause.is::<crate::settings::SettingsError>());
        ExitCode::from(if usage { 2 } else { 1 })
    }
}

fn watch_signals(name: &'static str, stop: &CancellationToken) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = stop.clone();
    // Lives as long as the process; there is nobody to hand it to.
    tokio::spawn(async move {
        let mut again = false;
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if again {
                tracing::warn!(process = name, "told to stop twice: ending at once");
                std::process::exit(130);
            }
            again = true;
            tracing::debug!(process = name, "told to stop");
            stop.cancel();
        }
    });
    Ok(())
}

/// Waits for `work`; once `stop` is cancelled, for no longer than `grace`.
///
/// `None`: the grace ran out and `work` was dropped where it stood.
pub async fn until_stopped<T>(
    work: impl Future<Output = T>,
    stop: &CancellationToken,
    grace: Duration,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return Some(done),
        () = stop.cancelled() => {}
    }
    tokio::time::timeout(grace, work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[test]
    fn an_exit_code_says_what_went_wrong() {
        let process = Process { name: "test", threads: Threads::One };
        let file = std::path::Path::new("/");
        let settings = crate::settings::Settings::load(file).unwrap_err();
        let cases = [
            (Ok(ExitCode::SUCCESS), 0),
            (Err(anyhow::anyhow!("something failed")), 1),
            (Err(anyhow::Error::new(Usage("no such option".to_owned())).context("start")), 2),
            (Err(anyhow::Error::new(settings)), 2),
        ];
        for (result, code) in cases {
            // `ExitCode` can't be compared.
            let ended = format!("{:?}", process.run(|_stop| ready(result)));
            assert_eq!(ended, format!("{:?}", ExitCode::from(code)));
        }
    }

    #[tokio::test]
    async fn work_may_end_by_itself_and_is_cut_off_when_the_grace_is_over() {
        let stop = CancellationToken::new();
        assert_eq!(until_stopped(ready(1), &stop, Duration::ZERO).await, Some(1));
        stop.cancel();
        assert_eq!(until_stopped(pending::<()>(), &stop, Duration::ZERO).await, None);
        assert_eq!(until_stopped(ready(2), &stop, Duration::ZERO).await, Some(2));
    }
}
