//! A folder with `openpact`, stand-ins for its siblings, and a workspace.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Bench {
    folder: tempfile::TempDir,
    workspace: PathBuf,
}

/// A running `openpact up`; killed when it's dropped.
pub(crate) struct Up {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: PathBuf,
}

impl Bench {
    pub(crate) fn new() -> Self {
        // In the target folder, so that the programs can be links.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let workspace = folder.path().join("workspace");
        link(Path::new(env!("CARGO_BIN_EXE_openpact")), &folder.path().join("openpact"));
        for name in ["openpact-mcp", "openpact-orchestrator", "opencode"] {
            stand_in(&folder.path().join(name), name, &workspace);
        }
        Self { folder, workspace }
    }

    /// With a model in its configuration, at which nobody listens.
    pub(crate) fn with_model() -> Self {
        let bench = Self::new();
        bench.configure("engine:\n  url: http://127.0.0.1:9/v1\n  model: m\n");
        bench
    }

    pub(crate) fn configure(&self, config: &str) {
        fs::create_dir_all(self.file("secure")).unwrap();
        fs::set_permissions(self.file("secure"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(self.file("secure/config.yaml"), config).unwrap();
    }

    /// A file of the workspace.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    /// Runs a command to its end.
    pub(crate) fn openpact(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Starts `openpact up`.
    pub(crate) fn up(&self, args: &[&str]) -> Up {
        let stderr = self.folder.path().join("stderr");
        let mut command = self.command(&[&["up"], args].concat());
        command.stdout(Stdio::piped()).stderr(File::create(&stderr).unwrap());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Up { child, stdout, stderr }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.folder.path().join("openpact"));
        command
            .args(args)
            .stdin(Stdio::null())
            .env("OPENPACT_WORKSPACE", &self.workspace)
            .env("OPENPACT_ENGINE_BINARY", self.folder.path().join("opencode"))
            // The stand-in is a script, which a confined engine may not start.
            .env("OPENPACT_ENGINE_SANDBOX", "off");
        command
    }

    pub(crate) fn process_id(&self, name: &str) -> Option<u32> {
        fs::read_to_string(self.file(&format!("secure/run/{name}.pid"))).ok()?.trim().parse().ok()
    }

    pub(crate) fn address(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.file(&format!("secure/run/{name}.addr"))).ok()
    }

    /// Names of the files in `secure/run`.
    pub(crate) fn run_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.file("secure/run")).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Up {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line on standard output; what was said on standard error if there's none.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        if line.is_empty() { self.stderr() } else { line.trim_end().to_owned() }
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }

    /// Tells it to end; its exit code, and what else was on standard output.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        signal(self.id(), rustix::process::Signal::TERM);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
        }
    }
}

pub(crate) fn kill(id: u32) {
    signal(id, rustix::process::Signal::KILL);
}

fn signal(id: u32, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    rustix::process::kill_process(id, signal).unwrap();
}

/// Whether the process does anything any more.
pub(crate) fn runs(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Looks until it's so.
pub(crate) fn eventually(what: impl Fn() -> bool) {
    let since = Instant::now();
    while !what() {
        assert!(since.elapsed() < PATIENCE, "it didn't come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A program that is this test program, with one test to run: `stand_in::program`.
fn stand_in(path: &Path, name: &str, workspace: &Path) {
    let tests = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in --version) cat '{0}/engine-version' 2>/dev/null || echo {1}; exit;; esac\n\
         export STAND_IN_FOR={name} STAND_IN_ARGS=\"$*\" STAND_IN_WORKSPACE='{0}'\n\
         exec '{2}' --ignored --exact stand_in::program --nocapture\n",
        workspace.display(),
        openpact_cli::engine::install::pin::version(),
        tests.display()
    );
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn link(from: &Path, to: &Path) {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).unwrap();
    }
}
