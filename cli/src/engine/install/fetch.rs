//! Runs npm, and says in a person's words why it failed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// 60 MB on a slow line.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Why npm didn't bring the engine.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FetchError {
    /// The registry can't be reached.
    #[error(
        "the npm registry can't be reached to fetch the engine ({says}): check the network or npm's \
         proxy and registry settings, and start again"
    )]
    Offline {
        /// npm's own word for it.
        says: String,
    },
    /// There's no room.
    #[error("the disk is full: the engine needs 400 MB while it's being installed")]
    Full,
    /// What came isn't what was pinned.
    #[error(
        "what the npm registry sent is not the engine that this OpenPact was made with (its digest \
         differs): don't use this registry or proxy"
    )]
    Digest,
    /// The registry doesn't have it.
    #[error("the npm registry does not have the engine ({says}): check npm's registry setting")]
    Absent {
        /// npm's own word for it.
        says: String,
    },
    /// A folder can't be written to.
    #[error("npm may not write where it has to ({says}): check who owns the folders it names")]
    Forbidden {
        /// npm's own word for it.
        says: String,
    },
    /// It took too long.
    #[error("npm did not fetch the engine within half an hour: start again on a better line")]
    Slow,
    /// The person changed their mind.
    #[error("stopped while the engine was being fetched")]
    Stopped,
    /// Something else.
    #[error("npm could not fetch the engine: {says}")]
    Npm {
        /// The end of what npm said.
        says: String,
    },
}

/// Has npm put what `folder/package-lock.json` names into `folder`. Runs no script of a package.
pub(super) async fn fetch(
    npm: &Path,
    folder: &Path,
    stop: &CancellationToken,
) -> Result<(), FetchError> {
    let failed = |error: std::io::Error| FetchError::Npm { says: error.to_string() };
    let npm = Command::new(npm)
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress"])
        .args(["--no-update-notifier", "--loglevel=error", "--fetch-retries=2"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Of its own, so that Ctrl-C reaches it through us and its children go with it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let group = npm.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let ended = tokio::select! {
        ended = npm.wait_with_output() => ended.map_err(failed),
        () = tokio::time::sleep(LONGEST) => Err(FetchError::Slow),
        () = stop.cancelled() => Err(FetchError::Stopped),
    };
    if let (Err(_), Some(group)) = (&ended, group)
        && let Err(error) = kill_process_group(group, Signal::KILL)
    {
        tracing::debug!(%error, "npm had ended");
    }
    let ended = ended?;
    if ended.status.success() {
        return Ok(());
    }
    Err(explain(&String::from_utf8_lossy(&ended.stderr)))
}

/// What npm's complaint means.
fn explain(stderr: &str) -> FetchError {
    let words = |line: &str| {
        let line = line.trim_start_matches("npm ").trim_start_matches("ERR!");
        line.trim_start_matches("error").trim().to_owned()
    };
    let lines: Vec<String> =
        stderr.lines().map(words).filter(|line| !line.is_empty()).take(20).collect();
    let code = lines.iter().find_map(|line| line.strip_prefix("code ")).unwrap_or_default();
    let says = lines.iter().find(|line| !line.starts_with("code ") && !line.starts_with("errno "));
    let says = match (code, says) {
        ("", None) => "it said nothing".to_owned(),
        ("", Some(says)) => says.clone(),
        (code, None) => code.to_owned(),
        (code, Some(says)) => format!("{code}: {says}"),
    };
    match code {
        "ENOTFOUND"
        | "EAI_AGAIN"
        | "ECONNREFUSED"
        | "ECONNRESET"
        | "ETIMEDOUT"
        | "ENETUNREACH"
        | "EHOSTUNREACH"
        | "ERR_SOCKET_TIMEOUT"
        | "FETCH_ERROR"
        | "CERT_HAS_EXPIRED"
        | "SELF_SIGNED_CERT_IN_CHAIN"
        | "UNABLE_TO_GET_ISSUER_CERT_LOCALLY" => FetchError::Offline { says },
        "ENOSPC" | "EDQUOT" => FetchError::Full,
        "EINTEGRITY" => FetchError::Digest,
        "E404" | "ETARGET" | "E401" | "E403" => FetchError::Absent { says },
        "EACCES" | "EPERM" | "EROFS" => FetchError::Forbidden { says },
        _ => FetchError::Npm { says },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_npm_says_becomes_what_to_do() {
        #[rustfmt::skip]
        let cases = [
            ("npm error code ECONNREFUSED\nnpm error syscall connect\nnpm error errno ECONNREFUSED", "check the network"),
            ("npm ERR! code EAI_AGAIN\nnpm ERR! request to https://r/ failed",                       "EAI_AGAIN: request to https://r/ failed"),
            ("npm error code ENOSPC\nnpm error nospc no space left on device",                       "disk is full"),
            ("npm error code EINTEGRITY\nnpm error sha512-… integrity checksum failed",              "its digest"),
            ("npm error code E404\nnpm error 404 Not Found",                                         "registry setting"),
            ("npm error code EACCES\nnpm error path /root/.npm",                                     "path /root/.npm"),
            ("npm error Something new",                                                              "npm could not fetch the engine: Something new"),
            ("",                                                                                     "it said nothing"),
        ];
        for (stderr, words) in cases {
            let text = explain(stderr).to_string();
            assert!(text.contains(words), "{stderr}: {text}");
        }
    }
}
