//! The orchestrator's settings: the section `orchestrator` of `config.yaml`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use openpact_runtime::Usage;
use openpact_runtime::settings::{bytes, duration};
use serde::Deserialize;

/// Settings of the orchestrator: the section `orchestrator` of `config.yaml`.
///
/// A key that isn't listed here is refused at start, so a typo can't pass for
/// a setting.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where frontends and the command line connect. Port 0: a free one, which
    /// is written to `secure/run/orchestrator.addr`.
    pub listen: SocketAddr,
    /// The engine's address, such as `http://127.0.0.1:4096`. Empty: the one in
    /// `secure/run/engine.addr`.
    pub engine_url: String,
    /// The file with the engine's password. Unset: `secure/data/keys/engine.password`.
    pub engine_password_file: Option<PathBuf>,
    /// The model that answers, as `provider/model`. Empty: the engine's own default.
    pub model: String,
    /// The time zone of dates in prompts and notes, such as `Europe/Lisbon`.
    /// Empty: the machine's.
    pub time_zone: String,
    /// How many turns may run at once. More wait.
    pub max_concurrent_turns: u32,
    /// How many messages may wait in one session. More are refused with a notice.
    pub max_waiting_messages: u32,
    /// How many messages that came while a turn ran join the next one.
    pub max_messages_per_turn: u32,
    /// The longest text of one message.
    #[serde(with = "bytes")]
    pub max_message_bytes: u64,
    /// The largest total of one message's attachments.
    #[serde(with = "bytes")]
    pub max_attachment_bytes: u64,
    /// How long a turn may take in all.
    #[serde(with = "duration")]
    pub turn_timeout: Duration,
    /// How long the engine may be silent in a turn.
    #[serde(with = "duration")]
    pub stall_timeout: Duration,
    /// How long a turn waits for an engine that is away, such as one that restarts.
    #[serde(with = "duration")]
    pub engine_wait: Duration,
    /// How long a turn goes along with a model provider that fails or asks to wait.
    #[serde(with = "duration")]
    pub provider_wait: Duration,
    /// How many times the model may be called in one turn.
    pub max_steps: u32,
    /// How long running work may go on after a stop signal.
    #[serde(with = "duration")]
    pub grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            engine_url: String::new(),
            engine_password_file: None,
            model: String::new(),
            time_zone: String::new(),
            max_concurrent_turns: 64,
            max_waiting_messages: 100,
            max_messages_per_turn: 20,
            max_message_bytes: 256 * 1024,
            max_attachment_bytes: 20 * 1024 * 1024,
            turn_timeout: Duration::from_secs(600),
            stall_timeout: Duration::from_secs(120),
            engine_wait: Duration::from_secs(120),
            provider_wait: Duration::from_secs(90),
            max_steps: 100,
            grace: Duration::from_secs(5),
        }
    }
}

impl Config {
    /// Refuses values that are of the right type and still can't be.
    pub fn check(&self) -> Result<(), Usage> {
        let positive: [(&str, bool); 4] = [
            ("max_concurrent_turns", self.max_concurrent_turns > 0),
            ("max_waiting_messages", self.max_waiting_messages > 0),
            ("max_messages_per_turn", self.max_messages_per_turn > 0),
            ("max_steps", self.max_steps > 0),
        ];
        for (key, fine) in positive {
            if !fine {
                return Err(Usage(format!("`orchestrator.{key}` must be at least 1")));
            }
        }
        if !self.model.is_empty() && !self.model.contains('/') {
            return Err(Usage(format!(
                "`orchestrator.model` is `{}`: write it as `provider/model`",
                self.model
            )));
        }
        if !self.engine_url.is_empty() {
            let parsed = reqwest::Url::parse(&self.engine_url).ok();
            if !parsed.is_some_and(|url| ["http", "https"].contains(&url.scheme())) {
                return Err(Usage(format!(
                    "`orchestrator.engine_url` is `{}`: write it as `http://127.0.0.1:4096`",
                    self.engine_url
                )));
            }
        }
        self.zone().map(|_| ())
    }

    /// The user's time zone.
    pub fn zone(&self) -> Result<jiff::tz::TimeZone, Usage> {
        if self.time_zone.is_empty() {
            return Ok(jiff::tz::TimeZone::system());
        }
        jiff::tz::TimeZone::get(&self.time_zone).map_err(|_| {
            Usage(format!(
                "`orchestrator.time_zone` is `{}`: use a name such as `Europe/Lisbon`",
                self.time_zone
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_possible_and_impossible_values_are_named() {
        assert!(Config::default().check().is_ok());
        type Spoil = fn(&mut Config);
        let cases: [(&str, Spoil); 4] = [
            ("max_steps", |config| config.max_steps = 0),
            ("model", |config| config.model = "gpt".into()),
            ("engine_url", |config| config.engine_url = "localhost:1".into()),
            ("time_zone", |config| config.time_zone = "Mars/Olympus".into()),
        ];
        for (key, spoil) in cases {
            let mut config = Config::default();
            spoil(&mut config);
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(&format!("orchestrator.{key}")), "{error}");
        }
    }
}
