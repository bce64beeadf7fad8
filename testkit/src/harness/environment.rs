//! Where the programs are; the one place that looks at the environment.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// One of OpenPact's programs hasn't been built.
#[derive(Debug, thiserror::Error)]
#[error("there is no `{}`: run `{build}`", path.display())]
pub struct NotBuilt {
    /// Where it should be.
    pub path: PathBuf,
    /// What builds it.
    pub build: &'static str,
}

/// The real engine isn't installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "the engine is not at `{}`: copy engine/package.json and engine/package-lock.json to `{}` and run \
     `npm ci --ignore-scripts` there, or set OPENPACT_ENGINE_BINARY",
    path.display(),
    folder.display()
)]
pub struct EngineMissing {
    /// Where its program should be.
    pub path: PathBuf,
    /// Where it's installed.
    pub folder: PathBuf,
}

/// The program `name` of the profile that this test was built with.
///
/// Cargo builds the programs of a package for that package's own tests only, so
/// whoever calls this counts on `cargo build --workspace`.
pub fn binary(name: &str) -> Result<PathBuf, NotBuilt> {
    // `target/debug/deps/test-0123`, `target/debug/deps/../bench`.
    let test = env::current_exe().unwrap_or_default();
    let folder = test.parent().unwrap_or(&test);
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let path = folder.join(name);
    if path.is_file() {
        return Ok(path);
    }
    let build = if folder.ends_with("release") {
        "cargo build --workspace --release"
    } else {
        "cargo build --workspace"
    };
    Err(NotBuilt { path, build })
}

/// The real engine: `OPENPACT_ENGINE_BINARY`, else the one that `openpact up`
/// installs for the user.
pub fn engine_binary() -> Result<PathBuf, EngineMissing> {
    if let Some(path) = env::var_os("OPENPACT_ENGINE_BINARY").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let home = || env::home_dir().unwrap_or_default().join(".local/share");
    let data = env::var_os("XDG_DATA_HOME").filter(|path| !path.is_empty());
    let data = data.map_or_else(home, PathBuf::from);
    let folder = data.join("openpact/engine").join(crate::engine::VERSION);
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let path = folder.join(format!("node_modules/opencode-linux-{arch}/bin/opencode"));
    if path.is_file() { Ok(path) } else { Err(EngineMissing { path, folder }) }
}

/// The variables of this process that would change what OpenPact does.
pub(super) fn foreign() -> impl Iterator<Item = OsString> {
    let ours = |name: &OsString| {
        let name = name.to_string_lossy();
        (name.starts_with("OPENPACT_") && name != "OPENPACT_ENGINE_BINARY")
            || name.starts_with("OPENCODE_")
    };
    env::vars_os().map(|(name, _)| name).filter(ours)
}
