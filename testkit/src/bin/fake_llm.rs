//! The fake language model as a program, for trying OpenPact without a real one.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use openpact_runtime::{Process, Threads, Usage};
use openpact_testkit::llm::{FakeLlm, Script, StartError};

/// A language model that says what a script tells it to.
///
/// Speaks OpenAI's chat completions. Without a script it answers `echo: ` and
/// what it was told. Prints its URL as one line once it listens.
#[derive(Debug, Parser)]
#[command(name = "openpact-fake-llm", version)]
struct Arguments {
    /// Where to listen; port 0 is a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The script, as JSON; see `openpact_testkit::llm::Script`.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    Process { name: "openpact-fake-llm", threads: Threads::One }.run(|stop| async move {
        let script =
            arguments.script.as_deref().map_or_else(|| Ok(Script::default()), Script::load);
        let started = match script {
            Ok(script) => FakeLlm::listen(arguments.listen, script).await,
            Err(error) => Err(StartError::Script(error)),
        };
        let llm = match started {
            Err(StartError::Script(error)) => {
                return Err(Usage(openpact_runtime::chain(&error)).into());
            }
            other => other?,
        };
        writeln!(std::io::stdout(), "{}", llm.url())?;
        std::io::stdout().flush()?;
        stop.cancelled().await;
        llm.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}
