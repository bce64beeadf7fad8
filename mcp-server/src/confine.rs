//! Landlock: the kernel takes from the process what it doesn't need.
//!
//! [`crate::workspace`] keeps each path inside by itself. This is the second
//! wall, for the day when something else in the process opens a file.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, LandlockStatus, RestrictionStatus,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
    path_beneath_rules,
};
use openpact_runtime::layout::Layout;
use serde::Serialize;

/// What is read for name lookups, time zones and TLS.
const READABLE: [&str; 9] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/usr/share/zoneinfo",
    "/usr/share/ca-certificates",
    "/usr/lib/ssl",
];

/// The access rights that are asked for; older kernels give fewer.
const RIGHTS: ABI = ABI::V6;

/// What the kernel gives, as `--check-confinement` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Confinement {
    /// Whether paths are kept beneath the workspace. Without it no tool runs.
    pub openat2: bool,
    /// What Landlock does: `full`, `partial`, `none`.
    pub landlock: &'static str,
    /// The version of Landlock that is used; 0 for none.
    pub landlock_abi: i32,
}

/// Confines this thread and all it will start to what the workspace in
/// `layout` needs. Call it before there are other threads.
///
/// Says what came of it; a kernel without Landlock is no error.
pub fn apply(layout: &Layout, openat2: bool) -> Confinement {
    let none = Confinement { openat2, landlock: "none", landlock_abi: 0 };
    match restrict(layout) {
        Ok(status) => {
            let landlock = match status.ruleset {
                RulesetStatus::FullyEnforced => "full",
                RulesetStatus::PartiallyEnforced => "partial",
                RulesetStatus::NotEnforced => "none",
            };
            let landlock_abi = match status.landlock {
                LandlockStatus::Available { effective_abi, .. } => effective_abi as i32,
                LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
            };
            Confinement { landlock, landlock_abi, ..none }
        }
        Err(_) => none,
    }
}

fn restrict(layout: &Layout) -> Result<RestrictionStatus, RulesetError> {
    let all = AccessFs::from_all(RIGHTS);
    let writable: [PathBuf; 3] = [layout.ai_data(), layout.secure().join("data"), layout.run()];
    Ruleset::default()
        // The first Landlock forbids every move between folders; then rather none.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rules(path_beneath_rules(writable, all & !AccessFs::Execute))?
        .add_rules(path_beneath_rules(READABLE.map(Path::new), AccessFs::from_read(RIGHTS)))?
        .restrict_self()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_confined_thread_reaches_its_workspace_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path()).unwrap();
        layout.create().unwrap();
        fs::write(layout.config_file(), "").unwrap();
        let tried = layout.clone();
        // Landlock binds the thread that asks for it, for good.
        let confined = std::thread::spawn(move || {
            let given = apply(&tried, true);
            if given.landlock == "none" {
                return given;
            }
            let denied = |path: &Path| fs::read(path).unwrap_err().kind();
            assert_eq!(denied(&tried.config_file()), ErrorKind::PermissionDenied);
            assert_eq!(denied(Path::new("/etc/passwd")), ErrorKind::PermissionDenied);
            let out = fs::write(tried.root().join("x"), "").unwrap_err();
            assert_eq!(out.kind(), ErrorKind::PermissionDenied);

            let files = tried.ai_data();
            fs::create_dir(files.join("sub")).unwrap();
            fs::write(files.join("a"), "a").unwrap();
            fs::rename(files.join("a"), files.join("sub/a")).unwrap();
            fs::write(tried.tools_db(), "").unwrap();
            fs::write(tried.address_file("mcp"), "").unwrap();
            fs::remove_file(tried.address_file("mcp")).unwrap();
            given
        })
        .join()
        .unwrap();
        assert_eq!(confined.landlock == "none", confined.landlock_abi == 0, "{confined:?}");
        assert!(fs::read(layout.config_file()).is_ok(), "other threads are as before");
    }
}
