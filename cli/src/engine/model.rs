//! Which language model answers.

use std::fmt;

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use super::settings::EngineSettings;

/// The provider that stands for any OpenAI-compatible URL.
pub const COMPATIBLE: &str = "openai-compatible";

/// What the engine calls that provider, so that it never clashes with one it knows.
const OURS: &str = "openpact";

/// A model that can be asked. Holding one is the proof that its settings make sense together.
#[derive(Debug, Clone)]
pub struct Model {
    provider: String,
    url: Option<Url>,
    name: String,
    key: Option<SecretString>,
}

/// What is wrong with the settings that name the model.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ModelError {
    /// A URL without a model.
    #[error("`engine.url` is set and `engine.model` is not: name the model, or use `--model NAME`")]
    NoName,
    /// An OpenAI-compatible provider without a URL.
    #[error(
        "`engine.model` is `{name}` and `engine.url` is not set: set it, use `--llm-url URL`, \
         or set `engine.provider` to one that OpenCode knows (`anthropic`, `openai`, …)"
    )]
    NoUrl {
        /// The model's name.
        name: String,
    },
    /// Not a URL one can ask.
    #[error("`engine.url` is `{url}`: it must be like `http://127.0.0.1:11434/v1`")]
    Url {
        /// What was set.
        url: String,
    },
    /// Not a provider's name.
    #[error(
        "`engine.provider` is `{provider}`: it must be `openai-compatible` or the name of a provider \
         in OpenCode's list, such as `anthropic`"
    )]
    Provider {
        /// What was set.
        provider: String,
    },
    /// A model's name that can't be one.
    #[error("`engine.model` is {name:?}: a name has 1 to 200 characters and no spaces at its ends")]
    Name {
        /// What was set.
        name: String,
    },
    /// A key that would break the engine's configuration.
    #[error("`engine.key` is not a key: it holds a space, a quote, a backslash or a line break")]
    Key,
}

impl Model {
    /// The model that the settings name; none if they name none.
    pub fn from_settings(settings: &EngineSettings) -> Result<Option<Self>, ModelError> {
        let EngineSettings { provider, url, model: name, key, .. } = settings;
        if name.is_empty() {
            return if url.is_empty() { Ok(None) } else { Err(ModelError::NoName) };
        }
        let plain = |c: char| !c.is_control();
        if name.trim() != name || name.len() > 200 || !name.chars().all(plain) {
            return Err(ModelError::Name { name: name.clone() });
        }
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if provider.is_empty() || provider.len() > 64 || !provider.chars().all(known) {
            return Err(ModelError::Provider { provider: provider.clone() });
        }
        let url = match url.as_str() {
            "" if provider == COMPATIBLE => return Err(ModelError::NoUrl { name: name.clone() }),
            "" => None,
            url => Some(parse_url(url)?),
        };
        let key = key.clone().filter(|key| !key.expose_secret().is_empty());
        if key.as_ref().is_some_and(|key| !is_key(key.expose_secret())) {
            return Err(ModelError::Key);
        }
        Ok(Some(Self { provider: provider.clone(), url, name: name.clone(), key }))
    }

    /// The provider as the engine's configuration names it.
    #[must_use]
    pub fn provider(&self) -> &str {
        if self.is_compatible() { OURS } else { &self.provider }
    }

    /// It's any OpenAI-compatible URL, none of the providers the engine knows.
    #[must_use]
    pub fn is_compatible(&self) -> bool {
        self.provider == COMPATIBLE
    }

    /// The model's name, as its provider calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its interface is, without a slash at the end, if that isn't the provider's own place.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.url.as_ref().map(|url| url.as_str().trim_end_matches('/'))
    }

    /// The provider's key.
    #[must_use]
    pub fn key(&self) -> Option<&SecretString> {
        self.key.as_ref()
    }

    /// The TCP port that the engine must reach to ask it.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.url.as_ref().and_then(Url::port_or_known_default).unwrap_or(443)
    }
}

/// `provider/model`, as the orchestrator is told.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider(), self.name)
    }
}

fn parse_url(text: &str) -> Result<Url, ModelError> {
    let wrong = || ModelError::Url { url: text.to_owned() };
    let url = Url::parse(text).map_err(|_| wrong())?;
    let can_be_asked = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if can_be_asked { Ok(url) } else { Err(wrong()) }
}

/// The key is put into the text of a JSON file by the engine, unescaped.
fn is_key(key: &str) -> bool {
    key.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(provider: &str, url: &str, model: &str, key: &str) -> EngineSettings {
        EngineSettings {
            provider: provider.into(),
            url: url.into(),
            model: model.into(),
            key: Some(SecretString::from(key)),
            ..EngineSettings::default()
        }
    }

    #[test]
    fn settings_that_make_sense_name_a_model() {
        #[rustfmt::skip]
        let cases = [
            // provider      url                           model               engine's name                 port
            (COMPATIBLE,     "http://127.0.0.1:11434/v1",  "qwen3:8b",         "openpact/qwen3:8b",          11434),
            (COMPATIBLE,     "https://llm.example/v1/",    "org/model",        "openpact/org/model",         443),
            (COMPATIBLE,     "http://llm.example",         "m",                "openpact/m",                 80),
            ("anthropic",    "",                           "claude-sonnet-5",  "anthropic/claude-sonnet-5",  443),
            ("openai",       "http://10.0.0.1:8000/v1",    "gpt",              "openai/gpt",                 8000),
        ];
        for (provider, url, name, id, port) in cases {
            let model = Model::from_settings(&settings(provider, url, name, "")).unwrap().unwrap();
            assert_eq!((model.to_string().as_str(), model.port()), (id, port), "{url}");
            assert!(model.key().is_none());
            assert!(!model.url().is_some_and(|url| url.ends_with('/')));
        }
        assert!(Model::from_settings(&EngineSettings::default()).unwrap().is_none());
    }

    #[test]
    fn settings_that_do_not_are_refused_with_the_way_out() {
        #[rustfmt::skip]
        let cases = [
            (settings(COMPATIBLE, "http://localhost/v1", "", ""),      "--model NAME"),
            (settings(COMPATIBLE, "", "qwen3", ""),                    "--llm-url URL"),
            (settings(COMPATIBLE, "localhost:11434", "qwen3", ""),     "must be like `http://127.0.0.1:11434/v1`"),
            (settings(COMPATIBLE, "ftp://localhost/v1", "qwen3", ""),  "must be like"),
            (settings(COMPATIBLE, "http://u:p@host/v1", "qwen3", ""),  "must be like"),
            (settings(COMPATIBLE, "http://host/v1?a=b", "qwen3", ""),  "must be like"),
            (settings("Open AI", "", "gpt", ""),                       "`openai-compatible` or"),
            (settings("openai", "", " gpt", ""),                       "no spaces at its ends"),
            (settings("openai", "", "gpt", "a\"b"),                    "`engine.key`"),
        ];
        for (settings, words) in cases {
            let error = Model::from_settings(&settings).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
