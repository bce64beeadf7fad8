//! The computer: its kernel, its disk, the programs that are needed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use openpact_runtime::layout::Layout;
use serde_json::Value;

use super::finding::Finding;
use crate::engine::install::{self, Installation, pin};
use crate::engine::sandbox::{self, Enforced, Level};
use crate::engine::settings::EngineSettings;
use crate::environment;

/// Less room than this can end in a write that fails.
const TIGHT: u64 = 1 << 30;
/// With less than this it soon does.
const FULL: u64 = 100 << 20;
/// What helps against a kernel that can't confine.
const NEWER: &str = "run OpenPact on Linux 6.12 or newer, or in a container";
/// How long one of our programs may take to look at the kernel.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks at the machine.
pub(super) async fn look(layout: &Layout) -> Vec<Finding> {
    let mut found = programs();
    found.push(tools_confinement(layout).await);
    found.push(disk(layout.root()));
    found
}

/// Looks at the engine's program and the walls around it.
pub(super) async fn engine(settings: &EngineSettings) -> Vec<Finding> {
    let mut found = vec![engine_confinement(settings.sandbox), processor()];
    let configured = environment::variable("OPENPACT_ENGINE_BINARY").map(PathBuf::from);
    found.push(match configured.or_else(|| settings.binary.clone()) {
        Some(binary) => tried(&binary, settings.sandbox).await,
        None => installed(settings.sandbox).await,
    });
    found
}

/// The other programs of OpenPact's.
fn programs() -> Vec<Finding> {
    let look = |name| match environment::sibling(name) {
        Ok(path) => Finding::fine("program", format!("{name}: {}", path.display())),
        Err(error) => Finding::failed("program", error.to_string(), "install all of OpenPact"),
    };
    ["openpact-mcp", "openpact-orchestrator"].map(look).into()
}

/// What the MCP server can have the kernel enforce, in its own words.
async fn tools_confinement(layout: &Layout) -> Finding {
    let check = "tools' walls";
    let Ok(program) = environment::sibling("openpact-mcp") else {
        return Finding::note(check, "not looked at: there is no openpact-mcp");
    };
    if !layout.secure().is_dir() {
        return Finding::note(
            check,
            "not looked at: there is no workspace, and looking would make it",
        );
    }
    let mut command = tokio::process::Command::new(program);
    command.arg("--check-confinement").arg("--workspace").arg(layout.root());
    let asked = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            return Finding::failed(check, error.to_string(), "install OpenPact again");
        }
        Err(_) => {
            return Finding::failed(
                check,
                "openpact-mcp does not answer",
                "look at the machine's load",
            );
        }
    };
    let answer: Option<Value> = serde_json::from_slice(&output.stdout).ok();
    let text = answer.as_ref().map(words).unwrap_or_default();
    if output.status.success() {
        // The one value we know the meaning of; without it, it says itself that no tool runs.
        let landlock = answer.as_ref().and_then(|answer| answer["landlock"].as_str());
        return match landlock {
            Some("none" | "partial") => Finding::warning(check, text, NEWER),
            _ => Finding::fine(check, text),
        };
    }
    let says = String::from_utf8_lossy(&output.stderr);
    let says = says.lines().last().unwrap_or_default().to_owned();
    let text = if text.is_empty() { says } else { text };
    let advice = "run OpenPact on Linux 5.13 or newer with Landlock switched on (`lsm=landlock,…`)";
    Finding::failed(check, text, advice)
}

/// A JSON object as words: `landlock_abi 7, openat2 yes`.
fn words(object: &Value) -> String {
    let word = |value: &Value| match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let Some(object) = object.as_object() else { return word(object) };
    let words = object.iter().map(|(name, value)| format!("{name} {}", word(value)));
    words.collect::<Vec<_>>().join(", ")
}

fn engine_confinement(level: Level) -> Finding {
    let check = "engine's walls";
    match (level, sandbox::support()) {
        (Level::Off, _) => Finding::warning(
            check,
            "`engine.sandbox` is `off`: the engine can read all that you can",
            "set it to `best-effort`, unless a container or another user confines it",
        ),
        (_, Enforced::Fully) => {
            Finding::fine(check, "Landlock keeps it from files, ports and signals")
        }
        (_, Enforced::Partly) => Finding::warning(
            check,
            "Landlock keeps it from files, not from all ports and signals",
            NEWER,
        ),
        (Level::BestEffort, Enforced::Not) => Finding::warning(
            check,
            "there is no Landlock: the engine can read all that you can",
            NEWER,
        ),
        (Level::Strict, Enforced::Not) => {
            Finding::failed(check, "there is no Landlock, and `engine.sandbox` is `strict`", NEWER)
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn processor() -> Finding {
    if std::is_x86_feature_detected!("avx2") {
        return Finding::fine("processor", "has AVX2");
    }
    let advice = format!(
        "install `opencode-linux-x64-baseline@{}` with npm and set `engine.binary` to its program",
        pin::version()
    );
    Finding::warning("processor", "has no AVX2, which the engine's usual build needs", advice)
}

#[cfg(not(target_arch = "x86_64"))]
fn processor() -> Finding {
    Finding::note("processor", std::env::consts::ARCH)
}

/// The engine that `up` installs, or what that needs.
async fn installed(level: Level) -> Finding {
    let check = "engine";
    let installation = match Installation::of_this_user() {
        Ok(installation) => installation,
        Err(error) => return Finding::failed(check, error.to_string(), "set HOME"),
    };
    if let Some(binary) = installation.binary() {
        return tried(&binary, level).await;
    }
    let missing = ["npm", "node"].into_iter().find(|name| environment::on_path(name).is_none());
    let text = format!("OpenCode {} is not installed", pin::version());
    match missing {
        None => Finding::note(check, format!("{text} yet; `openpact up` does it")),
        Some(name) => Finding::failed(
            check,
            format!("{text}, and `{name}` is not on the PATH to do it"),
            "install Node.js 20 or newer (https://nodejs.org)",
        ),
    }
}

async fn tried(binary: &Path, level: Level) -> Finding {
    let verified = match environment::openpact() {
        Ok(openpact) => install::verify(&openpact, binary, level).await,
        Err(error) => {
            return Finding::failed("engine", error.to_string(), "start it by its full path");
        }
    };
    match verified {
        Ok(()) => {
            Finding::fine("engine", format!("OpenCode {}: {}", pin::version(), binary.display()))
        }
        // It says itself what to do.
        Err(error) => Finding::failed("engine", openpact_runtime::chain(&error), ""),
    }
}

fn disk(root: &Path) -> Finding {
    let there = root.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let room = match rustix::fs::statvfs(there) {
        Ok(about) => about.f_bavail.saturating_mul(about.f_frsize),
        Err(error) => {
            return Finding::warning(
                "disk",
                format!("could not be looked at: {error}"),
                "look at it yourself",
            );
        }
    };
    let text = format!("{} MB are free at {}", room / 1_000_000, there.display());
    match room {
        room if room < FULL => Finding::failed("disk", text, "make room: writes are about to fail"),
        room if room < TIGHT => Finding::warning("disk", text, "make room before it's full"),
        _ => Finding::fine("disk", text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_told_in_words() {
        let cases = [
            (json!({"landlock_abi": 7, "openat2": true}), "landlock_abi 7, openat2 yes"),
            (json!({"openat2": false, "why": "too old"}), "openat2 no, why too old"),
            (json!("fine"), "fine"),
        ];
        for (object, text) in cases {
            assert_eq!(words(&object), text);
        }
    }
}
