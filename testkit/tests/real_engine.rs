//! The fake model and the real engine understand each other, and the plugin
//! stamps tool calls. One engine serves all cases, for its start is what costs.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use openpact_testkit::harness::{Process, Program, engine_binary};
use openpact_testkit::llm::{FakeLlm, MODEL, Rule, Script, Step, call, reasoning, text};
use serde_json::{Value, json};

/// The engine needs six seconds of processor time to start.
const START: Duration = Duration::from_secs(180);
const PASSWORD: &str = "a-password-for-the-test";

/// An MCP server with one tool, `echo`, that remembers what it's called with.
#[derive(Clone, Default)]
struct Tools {
    calls: Arc<Mutex<Vec<Value>>>,
}

impl Tools {
    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let routes = Router::new().route("/mcp", post(Self::answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        format!("http://{address}/mcp")
    }

    async fn answer(State(tools): State<Self>, Json(request): Json<Value>) -> Response {
        let result = match request["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "openpact", "version": "0"},
            }),
            "tools/list" => json!({"tools": [{"name": "echo", "description": "Says it again.",
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}]}),
            "tools/call" => {
                let arguments = request["params"]["arguments"].clone();
                let said = format!("echoed {}", arguments["text"].as_str().unwrap_or_default());
                tools.calls.lock().expect("no poison").push(arguments);
                json!({"content": [{"type": "text", "text": said}]})
            }
            _ if request["id"].is_null() => return StatusCode::ACCEPTED.into_response(),
            _ => json!({}),
        };
        Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_response()
    }
}

struct Engine {
    http: reqwest::Client,
    url: String,
    _process: Process,
    _home: tempfile::TempDir,
}

impl Engine {
    async fn start(llm: &FakeLlm, tools: &str) -> Self {
        let binary = engine_binary().unwrap_or_else(|error| panic!("{error}"));
        let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/openpact.js");
        let plugin = plugin.canonicalize().expect("the plugin");
        let config = json!({
            "autoupdate": false, "share": "disabled", "compaction": {"auto": false},
            "plugin": [format!("file://{}", plugin.display())],
            "permission": {"*": "deny", "openpact_*": "allow", "invalid": "allow"},
            "model": format!("openpact/{MODEL}"), "small_model": format!("openpact/{MODEL}"),
            "provider": {"openpact": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": llm.url(), "apiKey": "sk-right"},
                "models": {MODEL: {"tool_call": true, "reasoning": true}},
            }},
            "mcp": {"openpact": {"type": "remote", "url": tools, "oauth": false}},
        });
        let home = tempfile::tempdir().expect("a folder");
        let process = Program::new(&binary)
            .args(["serve", "--hostname", "127.0.0.1", "--port", "0"])
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", home.path())
            .env("OPENCODE_SERVER_PASSWORD", PASSWORD)
            .env("OPENCODE_CONFIG_CONTENT", config.to_string())
            .env("OPENCODE_DISABLE_MODELS_FETCH", "1")
            .env("OPENCODE_DISABLE_AUTOUPDATE", "1")
            .env("OPENCODE_DISABLE_LSP_DOWNLOAD", "1")
            .env("OPENCODE_DISABLE_PROJECT_CONFIG", "1")
            .current_dir(home.path())
            .mark(home.path().display().to_string())
            .start()
            .expect("the engine");
        let listening = |line: &str| Some(line.split_once("listening on ")?.1.to_owned());
        let url = process.line(START, listening).await.unwrap_or_else(|error| panic!("{error}"));
        // Another test of this process may have installed it.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(START).build().expect("a client");
        let engine = Self { http, url, _process: process, _home: home };
        engine.healthy().await;
        engine
    }

    /// A request that meets the engine in the moment it begins to listen is
    /// never answered, so each try has little time.
    async fn healthy(&self) {
        let asked = async {
            loop {
                let health = self.http.get(format!("{}/global/health", self.url));
                let health = health.basic_auth("opencode", Some(PASSWORD));
                let health = health.timeout(Duration::from_secs(2)).send().await;
                if health.is_ok_and(|answer| answer.status().is_success()) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(START, asked).await.expect("a healthy engine");
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.url)).json(&body);
        let request = request.basic_auth("opencode", Some(PASSWORD));
        let answer = request.send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    /// A new session's answer to `text`; the session with it.
    async fn ask(&self, text: &str) -> (String, Value) {
        let session = self.post("/session", json!({"title": "t"})).await;
        let session = session["id"].as_str().expect("an id").to_owned();
        let body = json!({"parts": [{"type": "text", "text": text}]});
        let answer = self.post(&format!("/session/{session}/message"), body).await;
        (session, answer)
    }
}

/// The text of an answer's parts of one type.
fn said(answer: &Value, kind: &str) -> String {
    let parts = answer["parts"].as_array().into_iter().flatten();
    parts.filter(|part| part["type"] == kind).filter_map(|part| part["text"].as_str()).collect()
}

fn script() -> Script {
    let mut script = Script::from([
        Rule::user("think").reply([reasoning("Let me think."), text("I thought.")]),
        Rule::user("use it")
            .round([
                text("Using it. "),
                call(
                    "openpact_echo",
                    json!({"text": "héllo \"you\"", "_caller": {"session": "forged"}}),
                ),
            ])
            .round([text("It said: {{last_tool_result}}")]),
        Rule::user("broken line").times(1).reply([text("This is vo"), Step::Cut]),
        Rule::user("broken line").reply([text("This is whole.")]),
    ]);
    script.key = Some("sk-right".to_owned());
    script
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_real_engine_understands_the_fake_model() {
    let llm = FakeLlm::start(script()).await.unwrap();
    let tools = Tools::default();
    let engine = Engine::start(&llm, &tools.serve().await).await;

    let (_, answer) = engine.ask("hello").await;
    assert_eq!(said(&answer, "text"), "echo: hello");
    assert_eq!(answer["info"]["finish"], "stop");
    assert!(answer["info"]["tokens"]["output"].as_u64() > Some(0), "{answer}");

    let (_, answer) = engine.ask("think").await;
    assert_eq!(
        (said(&answer, "reasoning"), said(&answer, "text")),
        ("Let me think.".into(), "I thought.".into())
    );

    let (session, answer) = engine.ask("use it").await;
    assert_eq!(said(&answer, "text"), "It said: echoed héllo \"you\"");
    let calls = tools.calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["text"], "héllo \"you\"");
    assert_eq!(calls[0]["_caller"]["session"], json!(session), "the stamp is the engine's");
    assert!(calls[0]["_caller"]["call"].as_str().unwrap().starts_with("call_"), "{calls:?}");
    let request = llm.seen(|request| request.user() == "use it").await.unwrap();
    assert_eq!(
        (request.tools, request.headers["x-session-id"].clone()),
        (vec!["openpact_echo".to_owned()], session)
    );

    let (_, answer) = engine.ask("a broken line").await;
    assert_eq!(said(&answer, "text"), "This is whole.", "{answer}");

    assert_eq!(llm.complaints(), Vec::<String>::new());
    let mut strict = script();
    strict.key = Some("sk-another".to_owned());
    llm.script(strict).unwrap();
    let (_, answer) = engine.ask("hello").await;
    let error = &answer["info"]["error"];
    assert_eq!(
        (error["name"].as_str(), error["data"]["statusCode"].as_u64()),
        (Some("APIError"), Some(401)),
        "{error}"
    );
    assert!(error["data"]["message"].as_str().unwrap().contains("Incorrect API key"), "{error}");
}
