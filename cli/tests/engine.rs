//! The real engine, installed for this user, started as `up` starts it.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use openpact_cli::engine::health;
use openpact_cli::engine::install::{Installation, pin};
use openpact_cli::engine::launch::Launch;
use openpact_cli::engine::model::Model;
use openpact_cli::engine::sandbox::{Enforced, Level, support};
use openpact_cli::engine::settings::EngineSettings;
use openpact_runtime::layout::Layout;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The engine takes half a minute on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
const PASSWORD: &str = "a password of the test's";

/// A running engine; killed when it's dropped.
struct Engine {
    child: Child,
    address: SocketAddr,
    client: reqwest::Client,
    layout: Layout,
    _folder: tempfile::TempDir,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.child.kill().expect("it's ours");
        self.child.wait().expect("it's ours");
    }
}

fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
}

impl Engine {
    async fn start() -> anyhow::Result<Self> {
        // Another test of this process may have done it.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let openpact = PathBuf::from(env!("CARGO_BIN_EXE_openpact"));
        let stop = CancellationToken::new();
        let installation = Installation::of_this_user()?;
        let binary = installation.ensure(&openpact, &stop, |_| ()).await?;
        let folder = tempfile::tempdir()?;
        let layout = Layout::new(folder.path())?;
        layout.create()?;
        fs::write(layout.config_file(), "engine:\n  key: the-secret-of-the-test\n")?;
        let level = if support() == Enforced::Fully { Level::Strict } else { Level::BestEffort };
        let settings = EngineSettings {
            url: format!("http://{}/v1", free()),
            model: "m".to_owned(),
            key: Some(SecretString::from("the-key-of-the-test")),
            sandbox: level,
            ..EngineSettings::default()
        };
        let model = Model::from_settings(&settings)?.expect("one is set");
        let launch = Launch {
            openpact,
            binary,
            layout: layout.clone(),
            settings,
            model,
            address: free(),
            tools: free(),
            password: SecretString::from(PASSWORD),
            token: SecretString::from("a token of the test's"),
        };
        launch.prepare()?;
        let log = fs::File::create(folder.path().join("log"))?;
        let mut command = launch.command();
        let child =
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let engine = Self {
            child: child.spawn()?,
            address: launch.address,
            client: reqwest::Client::builder().no_proxy().build()?,
            layout,
            _folder: folder,
        };
        engine.until_healthy().await?;
        Ok(engine)
    }

    async fn until_healthy(&self) -> anyhow::Result<()> {
        let password = SecretString::from(PASSWORD);
        let since = Instant::now();
        loop {
            match health::check(
                &self.client,
                self.address,
                &password,
                pin::version(),
                health::STARTING,
            )
            .await
            {
                Ok(()) => return Ok(()),
                Err(error) if since.elapsed() > PATIENCE => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn ask(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> (u16, String) {
        let request = self.client.request(method, format!("http://{}{path}", self.address));
        let request = request.basic_auth(health::USER, Some(PASSWORD)).timeout(PATIENCE);
        let request = if let Some(body) = body { request.json(&body) } else { request };
        let answer = request.send().await.expect("the engine answers");
        (answer.status().as_u16(), answer.text().await.expect("the engine answers in full"))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, text) = self.ask(reqwest::Method::GET, path, None).await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {status} {text}"))
    }

    async fn post(&self, path: &str, body: Value) -> String {
        self.ask(reqwest::Method::POST, path, Some(body)).await.1
    }
}

#[tokio::test]
async fn it_starts_takes_our_configuration_and_stays_in_its_walls() {
    let engine = Engine::start().await.unwrap();

    // What we told it is what it runs with.
    let config = engine.get("/config").await;
    assert_eq!(config["model"], "openpact/m");
    assert_eq!(
        config["permission"],
        json!({"*": "deny", "openpact_*": "allow", "invalid": "allow"})
    );
    assert_eq!(config["provider"]["openpact"]["options"]["apiKey"], "the-key-of-the-test");
    assert_eq!(
        config["mcp"]["openpact"]["headers"]["Authorization"],
        "Bearer a token of the test's"
    );
    let providers = engine.get("/config/providers").await;
    let offered: Vec<_> = providers["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["id"].as_str().unwrap())
        .collect();
    assert_eq!(offered, ["openpact"]);
    let agents = engine.get("/agent").await;
    let agents: Vec<_> =
        agents.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert!(agents.contains(&"build") && !agents.contains(&"general"), "{agents:?}");

    // It fetched nothing.
    let fetched = engine.layout.engine().join("config/opencode/node_modules");
    assert_eq!(fs::read_dir(fetched).unwrap().count(), 0);

    // Nobody without the password is let in.
    let open = engine.client.get(format!("http://{}/config", engine.address)).send().await.unwrap();
    assert_eq!(open.status(), 401);

    // Its interface is as strong as a shell, and still reads nothing of ours.
    let secret = engine.layout.config_file();
    let session: Value =
        serde_json::from_str(&engine.post("/session", json!({"title": "test"})).await).unwrap();
    let session = format!("/session/{}", session["id"].as_str().unwrap());
    let command = format!("cat {}", secret.display());
    engine.post(&format!("{session}/shell"), json!({"agent": "build", "command": command})).await;
    let file = json!({
        "type": "file", "mime": "text/plain", "filename": "config.yaml",
        "url": format!("file://{}", secret.display()),
    });
    engine.post(&format!("{session}/message"), json!({"noReply": true, "parts": [file]})).await;
    let (_, messages) = engine.ask(reqwest::Method::GET, &format!("{session}/message"), None).await;
    let read = messages.contains("the-secret-of-the-test");
    assert_eq!(read, support() == Enforced::Not, "{messages}");

    // Nor does it leave settings for its next life, or a way for us to walk into.
    let config = engine.layout.engine().join("config/opencode/opencode.json");
    let (status, _) =
        engine.ask(reqwest::Method::PATCH, "/global/config", Some(json!({"share": "auto"}))).await;
    assert_eq!(config.exists(), support() == Enforced::Not, "{status}");

    // All it wrote is in its own folder.
    assert!(engine.layout.engine().join("data/opencode/opencode.db").exists());
    assert_eq!(fs::read_dir(engine.layout.ai_data()).unwrap().count(), 0);
}
