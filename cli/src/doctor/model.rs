//! The model: whether its provider can be reached, takes the key and has it.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::finding::Finding;
use crate::engine::model::Model;
use crate::engine::settings::EngineSettings;

/// How long a provider may take to list its models.
const PATIENCE: Duration = Duration::from_secs(20);
/// The longest list that is read.
const LONGEST: usize = 8 << 20;

/// Where providers list their models, for those that do it as OpenAI does.
const LISTS: [(&str, &str); 8] = [
    ("openai", "https://api.openai.com/v1"),
    ("anthropic", "https://api.anthropic.com/v1"),
    ("openrouter", "https://openrouter.ai/api/v1"),
    ("groq", "https://api.groq.com/openai/v1"),
    ("mistral", "https://api.mistral.ai/v1"),
    ("deepseek", "https://api.deepseek.com/v1"),
    ("xai", "https://api.x.ai/v1"),
    ("togetherai", "https://api.together.xyz/v1"),
];

#[derive(Debug, Deserialize)]
struct List {
    data: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    id: String,
}

/// Asks the model's provider for its models.
pub(super) async fn look(settings: &EngineSettings) -> Vec<Finding> {
    let model = match Model::from_settings(settings) {
        Ok(Some(model)) => model,
        Ok(None) => {
            let advice = "run `openpact up --llm-url URL --model NAME` once, or set `engine.model`";
            return vec![Finding::failed("model", "none is configured", advice)];
        }
        // `config check` has told it.
        Err(_) => return vec![Finding::note("model", "not looked at: its settings are wrong")],
    };
    let known = LISTS.iter().find(|(provider, _)| *provider == model.provider());
    let Some(base) = model.url().or(known.map(|(_, url)| *url)) else {
        let text = format!("{model} is configured; its provider can't be asked from here");
        return vec![Finding::note("model", text)];
    };
    vec![ask(&model, base).await]
}

async fn ask(model: &Model, base: &str) -> Finding {
    let check = "model";
    let key = model.key().map(|key| key.expose_secret());
    let is_anthropic = model.provider() == "anthropic";
    let answer = match list(base, key, is_anthropic).await {
        Ok(answer) => answer,
        Err(error) => {
            let text =
                format!("{base} can't be reached: {}", openpact_runtime::chain(error.as_ref()));
            return Finding::failed(
                check,
                text,
                "start the model's server, or correct `engine.url`",
            );
        }
    };
    match answer {
        Answer::Status(401 | 403) if key.is_none() => Finding::failed(
            check,
            format!("{base} asks for a key"),
            "set `engine.key: ${VARIABLE}`",
        ),
        Answer::Status(401 | 403) => {
            Finding::failed(check, format!("{base} refuses the key"), "correct `engine.key`")
        }
        Answer::Status(status @ 500..) => Finding::warning(
            check,
            format!("{base} is in trouble (HTTP status {status})"),
            "wait, or look at the model's server",
        ),
        Answer::Status(status) => {
            let text =
                format!("{base} answers, and does not list its models (HTTP status {status})");
            Finding::note(check, text)
        }
        Answer::Models(ids) if ids.iter().any(|id| id == model.name()) => {
            Finding::fine(check, format!("{} at {base}", model.name()))
        }
        Answer::Models(ids) => {
            let text = format!("{base} does not list `{}`", model.name());
            Finding::warning(check, text, format!("set `engine.model` to one of {}", some_of(&ids)))
        }
    }
}

enum Answer {
    Models(Vec<String>),
    Status(u16),
}

async fn list(base: &str, key: Option<&str>, is_anthropic: bool) -> anyhow::Result<Answer> {
    let mut headers = HeaderMap::new();
    if is_anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = key {
        let (name, text) = if is_anthropic {
            ("x-api-key", key.to_owned())
        } else {
            (AUTHORIZATION.as_str(), format!("Bearer {key}"))
        };
        let mut value = HeaderValue::try_from(text)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let client = reqwest::Client::builder().timeout(PATIENCE).build()?;
    let mut answer = client.get(format!("{base}/models")).headers(headers).send().await?;
    if !answer.status().is_success() {
        return Ok(Answer::Status(answer.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        anyhow::ensure!(body.len() + chunk.len() <= LONGEST, "its list of models is endless");
        body.extend_from_slice(&chunk);
    }
    let Ok(list) = serde_json::from_slice::<List>(&body) else {
        return Ok(Answer::Status(answer.status().as_u16()));
    };
    Ok(Answer::Models(list.data.into_iter().map(|listed| listed.id).collect()))
}

fn some_of(ids: &[String]) -> String {
    let some: Vec<_> = ids.iter().take(6).map(|id| format!("`{id}`")).collect();
    let more = if ids.len() > some.len() { ", …" } else { "" };
    if some.is_empty() { "those it has (none now)".to_owned() } else { some.join(", ") + more }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use secrecy::SecretString;

    use super::super::finding::Verdict;
    use super::*;

    /// A provider that gives one answer to one request; joins to what it was asked.
    fn provider(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut buffer = [0; 1024];
            while !asked.ends_with(b"\r\n\r\n") {
                let read = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..read]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        (url, served)
    }

    fn settings(url: &str, key: Option<&str>) -> EngineSettings {
        EngineSettings {
            url: url.to_owned(),
            model: "m".to_owned(),
            key: key.map(SecretString::from),
            ..EngineSettings::default()
        }
    }

    #[tokio::test]
    async fn a_provider_is_asked_with_the_key_and_its_answer_understood() {
        // Another test of this process may have done it.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        #[rustfmt::skip]
        let cases = [
            (Some("k1"), "HTTP/1.1 200 OK\r\ncontent-length: 26\r\n\r\n{\"data\":[{\"id\":\"m\"}, {\"id\"", Verdict::Note,    "does not list its models"),
            (Some("k1"), "HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\n{\"data\":[{\"id\":\"m\"}]}",       Verdict::Fine,    "m at http"),
            (None,       "HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\n{\"data\":[{\"id\":\"n\"}]}",       Verdict::Warning, "does not list `m`"),
            (None,       "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n",                                  Verdict::Failed,  "asks for a key"),
            (Some("k1"), "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n",                                  Verdict::Failed,  "refuses the key"),
            (Some("k1"), "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",                                  Verdict::Note,    "HTTP status 404"),
            (Some("k1"), "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n",                                  Verdict::Warning, "in trouble"),
        ];
        for (key, answer, verdict, words) in cases {
            let (url, served) = provider(answer);
            let found = look(&settings(&url, key)).await.remove(0);
            let asked = served.join().unwrap().to_lowercase();
            assert!(found.verdict == verdict && found.text.contains(words), "{answer}: {found:?}");
            assert!(asked.starts_with("get /v1/models "), "{asked}");
            assert_eq!(asked.contains("authorization: bearer k1"), key.is_some());
        }
    }

    #[tokio::test]
    async fn nobody_there_is_told_with_the_url() {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let (url, _served) = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            (format!("http://{}/v1", listener.local_addr().unwrap()), ())
        };
        let found = look(&settings(&url, None)).await.remove(0);
        assert!(found.verdict == Verdict::Failed && found.text.contains(&url), "{found:?}");
        assert_eq!(look(&EngineSettings::default()).await[0].verdict, Verdict::Failed);
    }
}
