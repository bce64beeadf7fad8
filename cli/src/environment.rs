//! The one place where this program looks at its user's environment.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Where a person's programs keep what they download: `$XDG_DATA_HOME`, else `~/.local/share`.
pub(crate) fn data_home() -> anyhow::Result<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    if let Some(path) = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(absolute) {
        return Ok(path);
    }
    let home = env::home_dir().filter(absolute).context("set HOME: it says nothing now")?;
    Ok(home.join(".local/share"))
}

/// The workspace nobody named: `~/openpact`.
pub(crate) fn default_workspace() -> anyhow::Result<PathBuf> {
    let home = env::home_dir().context("say `--workspace DIR`, for HOME is not set")?;
    Ok(home.join("openpact"))
}

/// The value of the variable `name`, if it is set and text.
#[must_use]
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// The running program itself.
pub(crate) fn openpact() -> anyhow::Result<PathBuf> {
    env::current_exe().context("find the running program")
}

/// Another of OpenPact's programs: beside this one, else on the `PATH`.
pub(crate) fn sibling(name: &str) -> anyhow::Result<PathBuf> {
    let beside = openpact()?.with_file_name(name);
    if is_program(&beside) {
        return Ok(beside);
    }
    on_path(name).with_context(|| {
        format!(
            "there is no `{name}` beside `{}` or on the PATH: build or install all of OpenPact",
            beside.with_file_name("openpact").display()
        )
    })
}

/// The program called `name` on the `PATH`.
#[must_use]
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path =
        env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// Whether `file` is something that can be run.
#[must_use]
pub(crate) fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}
