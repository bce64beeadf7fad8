//! Takes from the engine's process whatever it doesn't need, before it becomes the engine.
//!
//! The engine is somebody else's program and its own interface is as strong as
//! a shell. So it gets its folder and its libraries, and the kernel (Landlock)
//! refuses it everything else: our `secure/`, the assistant's files, homes.
//! It can start no other program, reach only the TCP ports it was given, and
//! signal nobody. What a process gave up it can't get back, nor can what it starts.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, setrlimit, umask};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The newest kernel interface that was tried with the engine.
const TRIED: ABI = ABI::V7;

/// The largest file the engine may write. Its database grows with the chats.
const LARGEST_FILE: u64 = 8 << 30;

/// What the engine has to read of the system: its libraries, and what name
/// resolution and TLS need. Links lead to where they point.
const SYSTEM: [&str; 26] = [
    // It looks for its own memory's layout. Other processes' stays closed to a
    // confined process; their command lines don't, so secrets are never in ours.
    "/proc",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/etc/ld.so.cache",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/run/systemd/resolve/stub-resolv.conf",
    "/run/systemd/resolve/resolv.conf",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/sys/kernel/mm/transparent_hugepage",
];

/// What loads the engine's program. To start it is to start them.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// What to do on a machine whose kernel can't confine the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Do without what the kernel doesn't have, and say so at every start.
    #[default]
    BestEffort,
    /// Don't start the engine unless the kernel keeps it from files and ports.
    Strict,
    /// Don't confine it. For machines that do it in another way, such as a container.
    Off,
}

impl Level {
    /// As the settings and the command line spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BestEffort => "best-effort",
            Self::Strict => "strict",
            Self::Off => "off",
        }
    }
}

/// What a confined process may still do.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Sandbox {
    /// Files and folders it may read. Those that don't exist are passed over.
    #[arg(long)]
    pub read: Vec<PathBuf>,
    /// Folders it may do anything in but start programs; devices it may write to.
    #[arg(long)]
    pub write: Vec<PathBuf>,
    /// Programs it may start: itself, and what loads it.
    #[arg(long)]
    pub start: Vec<PathBuf>,
    /// TCP ports it may connect to.
    #[arg(long)]
    pub connect: Vec<u16>,
    /// TCP ports it may listen on.
    #[arg(long)]
    pub bind: Vec<u16>,
}

/// How far the kernel took the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforced {
    /// All of it.
    Fully,
    /// Files are confined, something newer isn't: ports or signals.
    Partly,
    /// Nothing is.
    Not,
}

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The kernel can't, and it was asked to for sure.
    #[error(
        "this kernel can't confine the engine (Landlock with TCP rules, Linux 6.7 or newer, is needed): \
         set `engine.sandbox: best-effort` to run it with less, or run OpenPact in a container"
    )]
    Unsupported(#[source] Option<RulesetError>),
    /// The kernel refused the rules.
    #[error("could not confine the engine")]
    Refused(#[from] RulesetError),
    /// A limit could not be set.
    #[error("could not limit the engine's process")]
    Limit(#[from] rustix::io::Errno),
}

impl Sandbox {
    /// What a program needs to run at all: no files of anyone's, no network.
    #[must_use]
    pub fn of_program(binary: &Path) -> Self {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let mut start = paths(&LOADERS);
        start.push(binary.to_owned());
        Self { read: paths(&SYSTEM), write: paths(&["/dev/null"]), start, ..Self::default() }
    }

    /// The command line that makes the same sandbox again in another process.
    #[must_use]
    pub fn to_args(&self) -> Vec<std::ffi::OsString> {
        let paths = [("--read", &self.read), ("--write", &self.write), ("--start", &self.start)];
        let ports = [("--connect", &self.connect), ("--bind", &self.bind)];
        let paths = paths.into_iter().flat_map(|(flag, paths)| {
            paths.iter().flat_map(move |path| [flag.into(), path.into()])
        });
        let ports = ports.into_iter().flat_map(|(flag, ports)| {
            ports.iter().flat_map(move |port| [flag.into(), port.to_string().into()])
        });
        paths.chain(ports).collect()
    }

    /// Confines the calling thread, for good. Call it with no other thread running.
    pub fn enforce(&self, level: Level) -> Result<Enforced, SandboxError> {
        umask(Mode::from_raw_mode(0o077));
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        setrlimit(Resource::Core, none)?;
        let largest = Some(LARGEST_FILE);
        setrlimit(Resource::Fsize, Rlimit { current: largest, maximum: largest })?;
        rustix::thread::set_no_new_privs(true)?;
        drop_capabilities();
        match level {
            Level::Off => Ok(Enforced::Not),
            Level::BestEffort => Ok(self.restrict(CompatLevel::BestEffort)?),
            Level::Strict => match self.restrict(CompatLevel::HardRequirement) {
                Ok(Enforced::Not) => Err(SandboxError::Unsupported(None)),
                Ok(enforced) => Ok(enforced),
                Err(error) => Err(SandboxError::Unsupported(Some(error))),
            },
        }
    }

    fn restrict(&self, files_and_ports: CompatLevel) -> Result<Enforced, RulesetError> {
        let everything = AccessFs::from_all(TRIED);
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = everything & !AccessFs::Execute & !AccessFs::MakeBlock & !AccessFs::MakeChar;
        let status = Ruleset::default()
            .set_compatibility(files_and_ports)
            .handle_access(AccessFs::from_all(ABI::V3))?
            .handle_access(AccessNet::from_all(ABI::V4))?
            // Newer than the oldest kernel that counts as strict.
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(everything)?
            .scope(Scope::from_all(TRIED))?
            .create()?
            .add_rules(path_beneath_rules(&self.read, read))?
            .add_rules(path_beneath_rules(&self.write, write))?
            .add_rules(path_beneath_rules(&self.start, AccessFs::Execute | AccessFs::ReadFile))?
            .add_rules(ports(&self.connect, AccessNet::ConnectTcp))?
            .add_rules(ports(&self.bind, AccessNet::BindTcp))?
            .restrict_self()?;
        Ok(match status.ruleset {
            RulesetStatus::FullyEnforced => Enforced::Fully,
            RulesetStatus::PartiallyEnforced => Enforced::Partly,
            RulesetStatus::NotEnforced => Enforced::Not,
        })
    }
}

fn ports(ports: &[u16], access: AccessNet) -> impl Iterator<Item = Result<NetPort, RulesetError>> {
    ports.iter().map(move |port| Ok(NetPort::new(*port, BitFlags::from(access))))
}

/// How far this machine's kernel would take such a request.
///
/// Tries it in a thread that ends right after; nothing else is confined.
#[must_use]
pub fn support() -> Enforced {
    let tried = std::thread::spawn(|| Sandbox::default().restrict(CompatLevel::BestEffort)).join();
    tried.ok().and_then(Result::ok).unwrap_or(Enforced::Not)
}

/// Gives up root's powers where the process has any.
///
/// A root without capabilities still owns root's files, and Landlock holds it
/// like anyone else; but it can't load modules, trace, or look past permissions.
fn drop_capabilities() {
    for capability in CapabilitySet::all().iter() {
        // Needs CAP_SETPCAP, which only root has and nobody else must give up.
        // Kernels don't know each other's newest ones.
        if let Err(error) = rustix::thread::remove_capability_from_bounding_set(capability) {
            tracing::trace!(%error, ?capability, "not dropped");
        }
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    if let Err(error) = rustix::thread::set_capabilities(None, none) {
        tracing::debug!(%error, "capabilities were kept");
    }
}
