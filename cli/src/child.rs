//! What a process that `up` starts does first: `openpact __child` and `openpact __engine`.
//!
//! Between fork and exec a program may do next to nothing safely, so `up` starts
//! this very program again, which ties its life to its parent's, gives up what
//! it has to, and then becomes the program it was started for. It keeps its
//! process id while it does.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::engine::sandbox::{Enforced, Level, Sandbox};

/// What to become.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// The process that must be alive for this one to live.
    #[arg(long)]
    parent: i32,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// `openpact __child`: one of OpenPact's own processes.
#[derive(Debug, clap::Args)]
pub struct ChildArgs {
    #[command(flatten)]
    target: Target,
}

/// `openpact __engine`: the engine, confined.
#[derive(Debug, clap::Args)]
pub struct EngineArgs {
    /// What to do where the kernel can't confine.
    #[arg(long, value_enum)]
    level: Level,
    #[command(flatten)]
    sandbox: Sandbox,
    #[command(flatten)]
    target: Target,
}

/// Becomes one of OpenPact's own processes; comes back only if that failed.
#[must_use]
pub fn become_child(args: &ChildArgs) -> ExitCode {
    failed(args.target.tie_to_parent().and_then(|()| args.target.exec()))
}

/// Becomes the engine; comes back only if that failed.
#[must_use]
pub fn become_engine(args: &EngineArgs) -> ExitCode {
    failed(args.target.tie_to_parent().and_then(|()| {
        let enforced = args.sandbox.enforce(args.level)?;
        if enforced != Enforced::Fully && args.level != Level::Off {
            // Goes to the engine's log; `up` and `doctor` say it to people.
            let _written = writeln!(std::io::stderr(), "confined less than asked: {enforced:?}");
        }
        args.target.exec()
    }))
}

/// The command that starts `program` tied to the life of this process.
#[must_use]
pub fn command(openpact: &Path, program: &Path) -> Command {
    let mut command = Command::new(openpact);
    command.arg("__child").args(parent()).arg("--").arg(program);
    command
}

/// The command that starts `program` tied to the life of this process, and confined.
#[must_use]
pub fn confined(openpact: &Path, level: Level, sandbox: &Sandbox, program: &Path) -> Command {
    let mut command = Command::new(openpact);
    command.args(["__engine", "--level", level.name()]).args(sandbox.to_args());
    command.args(parent()).arg("--").arg(program);
    command
}

fn parent() -> [String; 2] {
    ["--parent".to_owned(), std::process::id().to_string()]
}

impl Target {
    /// Has the kernel end this process when its parent ends, however that happens.
    fn tie_to_parent(&self) -> anyhow::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the line above.
        let alive = getppid().map(Pid::as_raw_nonzero).is_some_and(|pid| pid.get() == self.parent);
        anyhow::ensure!(alive, "the process that started this one has ended");
        Ok(())
    }

    fn exec(&self) -> anyhow::Result<Infallible> {
        let (program, args) = self.command.split_first().expect("clap requires one");
        let error = Command::new(program).args(args).exec();
        let program = PathBuf::from(program);
        Err(anyhow::Error::new(error).context(format!("could not start `{}`", program.display())))
    }
}

fn failed(never: anyhow::Result<Infallible>) -> ExitCode {
    let Err(error) = never;
    let text = openpact_runtime::chain(error.as_ref());
    let _written = writeln!(std::io::stderr(), "openpact: {text}");
    ExitCode::FAILURE
}
