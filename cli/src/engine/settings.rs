//! Settings of the engine: the section `engine` of `config.yaml`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use openpact_runtime::Usage;
use openpact_runtime::settings::{duration, secret};
use secrecy::SecretString;
use serde::Deserialize;

use super::sandbox::Level;

/// What an operator can say about the engine and the model behind it.
///
/// Every field has its default in one place, [`EngineSettings::default`].
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineSettings {
    /// Who runs the model: `openai-compatible` for anything with an
    /// OpenAI-compatible `url` (Ollama, vLLM, llama.cpp, LM Studio, gateways), or a
    /// provider that OpenCode knows: `anthropic`, `openai`, `google`, `openrouter`, …
    pub provider: String,
    /// Where the provider's interface is, such as `http://127.0.0.1:11434/v1`.
    /// Needed for `openai-compatible`; the others know their own.
    pub url: String,
    /// The model's name, as the provider calls it.
    pub model: String,
    /// The provider's key. Its value never prints.
    #[serde(deserialize_with = "secret::deserialize")]
    pub key: Option<SecretString>,
    /// How many tokens the model can take in, where OpenCode doesn't know. Needs `output_tokens` too.
    pub context_tokens: Option<u32>,
    /// How many tokens an answer may have, where OpenCode doesn't know. Needs `context_tokens` too.
    pub output_tokens: Option<u32>,
    /// The model can see images, where OpenCode doesn't know.
    pub images: bool,
    /// How long a model's answer may take to begin before it is asked for again.
    #[serde(deserialize_with = "duration::deserialize")]
    pub header_timeout: Duration,
    /// How long it may pause in the middle before it is asked for again.
    #[serde(deserialize_with = "duration::deserialize")]
    pub chunk_timeout: Duration,
    /// How long one request to the model may take in all.
    #[serde(deserialize_with = "duration::deserialize")]
    pub request_timeout: Duration,
    /// Where the engine listens, on this machine only. Port 0: `up` chooses a free one.
    pub listen: SocketAddr,
    /// How long it may take to start.
    #[serde(deserialize_with = "duration::deserialize")]
    pub start_timeout: Duration,
    /// What to do where the kernel can't confine the engine: `best-effort`, `strict`, `off`.
    pub sandbox: Level,
    /// TCP ports the engine may connect to besides its model's and its tools'.
    pub extra_ports: Vec<u16>,
    /// The engine's program, if it shouldn't be the one that `up` installs.
    pub binary: Option<PathBuf>,
}

impl EngineSettings {
    /// Refuses what no setting by itself shows to be wrong.
    ///
    /// Whether they name a model that can be asked is [`super::model::Model`]'s matter.
    pub fn check(&self) -> Result<(), Usage> {
        let wrong = if !self.listen.ip().is_loopback() {
            "`engine.listen` must be on this machine, such as `127.0.0.1:0`: who reaches the engine \
             can do all that it can"
        } else if self.context_tokens.is_some() != self.output_tokens.is_some() {
            "set `engine.context_tokens` and `engine.output_tokens`, or neither"
        } else if [
            self.header_timeout,
            self.chunk_timeout,
            self.request_timeout,
            self.start_timeout,
        ]
        .contains(&Duration::ZERO)
        {
            "the timeouts of `engine` must be longer than nothing"
        } else {
            return Ok(());
        };
        Err(Usage(wrong.to_owned()))
    }
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            provider: super::model::COMPATIBLE.to_owned(),
            url: String::new(),
            model: String::new(),
            key: None,
            context_tokens: None,
            output_tokens: None,
            images: false,
            // Both shorter than the orchestrator's `stall_timeout` (90 s), so that
            // a model that hangs is asked once more before the turn is given up.
            header_timeout: Duration::from_secs(80),
            chunk_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(600),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            start_timeout: Duration::from_secs(180),
            sandbox: Level::default(),
            extra_ports: Vec::new(),
            binary: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_only_be_wrong_together_is_refused() {
        let fine = EngineSettings::default();
        fine.check().unwrap();
        let cases = [
            (
                EngineSettings { listen: ([0, 0, 0, 0], 4096).into(), ..fine.clone() },
                "engine.listen",
            ),
            (EngineSettings { context_tokens: Some(1), ..fine.clone() }, "engine.output_tokens"),
            (EngineSettings { chunk_timeout: Duration::ZERO, ..fine }, "timeouts"),
        ];
        for (settings, words) in cases {
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
