//! Which version of the engine this OpenPact works with.

use std::sync::LazyLock;

use serde_json::Value;

/// Names the engine's packages and their one version.
pub const PACKAGE: &str = include_str!("../../../../engine/package.json");
/// Holds their digests.
pub const LOCK: &str = include_str!("../../../../engine/package-lock.json");

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let package: Value = serde_json::from_str(PACKAGE).expect("engine/package.json is JSON");
    let pinned = ["optionalDependencies", "dependencies"]
        .iter()
        .filter_map(|kind| package[kind].as_object())
        .find_map(|packages| packages.get("opencode-linux-x64")?.as_str());
    pinned.expect("engine/package.json pins opencode-linux-x64").to_owned()
});

/// The pinned version, such as `1.18.33`.
#[must_use]
pub fn version() -> &'static str {
    &VERSION
}

/// The npm package that holds the engine for this machine, if there is one.
#[must_use]
pub fn package() -> Option<&'static str> {
    match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => Some("opencode-linux-x64"),
        ("linux", "aarch64") => Some("opencode-linux-arm64"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_gets_the_same_version_and_the_lock_has_its_digest() {
        assert!(version().chars().all(|c| c.is_ascii_digit() || c == '.'), "{}", version());
        let lock: Value = serde_json::from_str(LOCK).unwrap();
        for package in ["opencode-linux-x64", "opencode-linux-arm64"] {
            let locked = &lock["packages"][format!("node_modules/{package}")];
            assert_eq!(locked["version"], version(), "{package}");
            assert!(locked["integrity"].as_str().unwrap().starts_with("sha"), "{package}");
        }
    }
}
