//! Settings of the MCP server.

use std::net::SocketAddr;
use std::time::Duration;

use openpact_runtime::settings::{bytes, duration, secret};
use secrecy::SecretString;
use serde::Deserialize;

use crate::policy::ToolGlob;

/// Settings of the MCP server: the section `mcp` of `config.yaml`.
///
/// Every field has its default in one place, [`Config::default`].
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where clients connect if `--http` names no address. Loopback unless told otherwise.
    pub listen: SocketAddr,
    /// A token that any client may show, instead of the one in `keys/mcp.token`.
    #[serde(deserialize_with = "secret::deserialize")]
    pub token: Option<SecretString>,
    /// Host names by which clients may reach the server, besides loopback's.
    pub allowed_hosts: Vec<String>,
    /// Web origins whose pages may reach the server, such as `https://app.example`. None by default.
    pub allowed_origins: Vec<String>,

    /// Tools that never run, by name or pattern: `workspace_delete`, `memory_*`.
    pub deny: Vec<ToolGlob>,
    /// Tools that run without asking, unless denied.
    pub allow: Vec<ToolGlob>,
    /// Tools that a person must approve each time, unless allowed.
    pub ask: Vec<ToolGlob>,

    /// How many calls run at once; more wait.
    pub max_concurrent_calls: usize,
    /// How many calls wait; more are refused.
    pub max_waiting_calls: usize,
    /// How long a call may take, waiting included.
    #[serde(deserialize_with = "duration::deserialize")]
    pub call_timeout: Duration,
    /// How often a client that asked for it hears that a call is still running.
    #[serde(deserialize_with = "duration::deserialize")]
    pub progress_interval: Duration,
    /// The largest message that is read.
    #[serde(deserialize_with = "bytes::deserialize")]
    pub max_message_bytes: usize,
    /// The longest result of a call; more is cut off.
    #[serde(deserialize_with = "bytes::deserialize")]
    pub max_result_bytes: usize,
    /// How many HTTP sessions are kept; the one that was idle longest makes room.
    pub max_sessions: usize,
    /// How long an idle HTTP session is kept.
    #[serde(deserialize_with = "duration::deserialize")]
    pub session_idle: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            deny: Vec::new(),
            allow: Vec::new(),
            ask: Vec::new(),
            max_concurrent_calls: 16,
            max_waiting_calls: 256,
            call_timeout: Duration::from_secs(50),
            progress_interval: Duration::from_secs(10),
            max_message_bytes: 16 * 1024 * 1024,
            max_result_bytes: 8 * 1024 * 1024,
            max_sessions: 256,
            session_idle: Duration::from_secs(60 * 60),
        }
    }
}
