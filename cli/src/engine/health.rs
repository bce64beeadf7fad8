//! Asks the engine how it is.

use std::net::SocketAddr;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

/// How long to wait for one answer while the engine starts. What reaches it in the
/// second after it begins to listen is never answered: ask anew.
pub const STARTING: Duration = Duration::from_secs(1);
/// How long it may take to answer later. It's one busy thread.
pub const RUNNING: Duration = Duration::from_secs(20);

/// The user name of the engine's HTTP interface.
pub const USER: &str = "opencode";

/// What the engine's interface says of itself.
#[derive(Debug, Deserialize)]
struct Health {
    healthy: bool,
    version: String,
}

/// Why the engine can't be used now.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// It doesn't answer (yet).
    #[error("the engine does not answer at {address}")]
    Silent {
        /// Where it should.
        address: SocketAddr,
        #[source]
        /// What happened instead.
        source: reqwest::Error,
    },
    /// Something answers, and it isn't our engine.
    #[error("what answers at {address} is not this workspace's engine (HTTP status {status})")]
    Stranger {
        /// Where it is.
        address: SocketAddr,
        /// What it answered.
        status: u16,
    },
    /// It's another version than OpenPact was built for.
    #[error(
        "the engine is OpenCode {found}, and this OpenPact works with {wanted}: \
         unset `engine.binary` to have the right one installed"
    )]
    Version {
        /// What runs.
        found: String,
        /// What should.
        wanted: &'static str,
    },
    /// It says itself that it isn't.
    #[error("the engine says that it is not healthy")]
    Unhealthy,
}

/// Asks the engine at `address` once whether it's healthy and the version we want.
///
/// Waits for [`STARTING`] or [`RUNNING`].
pub async fn check(
    client: &reqwest::Client,
    address: SocketAddr,
    password: &SecretString,
    wanted: &'static str,
    patience: Duration,
) -> Result<(), HealthError> {
    let silent = |source| HealthError::Silent { address, source };
    let answer = client
        .get(format!("http://{address}/global/health"))
        .basic_auth(USER, Some(password.expose_secret()))
        .timeout(patience)
        .send()
        .await
        .map_err(silent)?;
    let status = answer.status();
    if !status.is_success() {
        return Err(HealthError::Stranger { address, status: status.as_u16() });
    }
    let health: Health = answer.json().await.map_err(silent)?;
    match health {
        Health { healthy: false, .. } => Err(HealthError::Unhealthy),
        Health { version, .. } if version != wanted => {
            Err(HealthError::Version { found: version, wanted })
        }
        Health { .. } => Ok(()),
    }
}
