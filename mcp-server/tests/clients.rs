//! Other people's clients against our server: the MCP Inspector, the TypeScript
//! SDK and the Python SDK, over stdio and HTTP.
//!
//! They're installed by `mcp-server/tests/clients/install`.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Long enough for a cold start of Node or Python on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

const SERVER: &str = env!("CARGO_BIN_EXE_openpact-mcp");
const PYTHON: &str = ".venv/bin/python";
const INSPECTOR: &str = "node_modules/.bin/mcp-inspector";

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// A command in the clients' folder; says what to do if they aren't installed.
fn client(program: &str) -> Command {
    let folder = clients();
    for installed in ["node_modules/.installed", ".venv/.installed"] {
        assert!(
            folder.join(installed).exists(),
            "the MCP clients are not installed: run `mcp-server/tests/clients/install`",
        );
    }
    let program = if program.contains('/') { folder.join(program) } else { PathBuf::from(program) };
    let mut command = Command::new(program);
    command.current_dir(folder).env("OPENPACT_LOG", "error");
    command
}

/// What the client printed, as JSON.
fn run(command: &mut Command) -> Value {
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    // The Inspector has something to say before its answer.
    let json = out.find('{').map_or("", |at| &out[at..]);
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"))
}

/// A server on HTTP.
struct Http {
    child: Child,
    url: String,
    token: String,
}

impl Http {
    fn start(workspace: &Path) -> Self {
        let child = Command::new(SERVER)
            .args(["--http", "127.0.0.1:0", "--workspace"])
            .arg(workspace)
            .env("OPENPACT_LOG", "error")
            .spawn()
            .unwrap();
        let file = workspace.join("secure/run/mcp.addr");
        let until = Instant::now() + PATIENCE;
        while !file.exists() {
            assert!(Instant::now() < until, "the server should start");
            std::thread::sleep(Duration::from_millis(5));
        }
        let address = fs::read_to_string(file).unwrap();
        let token = fs::read_to_string(workspace.join("secure/data/keys/mcp.token")).unwrap();
        Self { child, url: format!("http://{}/mcp", address.trim()), token: token.trim().into() }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What our scripts print after they listed the tools and called three.
fn check(said: &Value, workspace: &Path) {
    assert_eq!(said["server"], "openpact", "{said}");
    let tools = said["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("workspace_read")) && tools.len() >= 10, "{said}");
    assert_eq!(said["wrote"]["isError"], false, "{said}");
    assert_eq!(said["read"]["texts"][0], "héllo\n", "{said}");
    assert_eq!(said["refused"]["isError"], true, "{said}");
    assert_eq!(fs::read_to_string(workspace.join("ai-data/from/client.txt")).unwrap(), "héllo\n");
}

#[test]
fn the_typescript_sdk_lists_and_calls_tools() {
    let workspace = tempfile::tempdir().unwrap();
    let mut stdio = client("node");
    stdio.args(["sdk.mjs", "stdio", SERVER, "--stdio", "--workspace"]).arg(workspace.path());
    check(&run(&mut stdio), workspace.path());

    let server = Http::start(workspace.path());
    let said = run(client("node").args(["sdk.mjs", "http", &server.url, &server.token]));
    check(&said, workspace.path());
}

#[test]
fn the_python_sdk_lists_and_calls_tools_in_both_eras() {
    for (era, revision) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let workspace = tempfile::tempdir().unwrap();
        let mut stdio = client(PYTHON);
        stdio
            .args(["sdk.py", era, "stdio", SERVER, "--stdio", "--workspace"])
            .arg(workspace.path());
        let said = run(&mut stdio);
        check(&said, workspace.path());
        assert_eq!(said["era"], revision);

        let server = Http::start(workspace.path());
        let said = run(client(PYTHON).args(["sdk.py", era, "http", &server.url, &server.token]));
        check(&said, workspace.path());
        assert_eq!(said["era"], revision);
    }
}

#[test]
fn the_inspector_lists_and_calls_tools() {
    let workspace = tempfile::tempdir().unwrap();
    let server = Http::start(workspace.path());
    let header = format!("Authorization: Bearer {}", server.token);
    let over_http = ["--cli", &server.url, "--transport", "http", "--header", &header];

    // The Inspector takes a server's own options from a file only.
    let config = workspace.path().join("servers.json");
    let arguments = ["--stdio", "--workspace", workspace.path().to_str().unwrap()];
    let servers = json!({"mcpServers": {"openpact": {"command": SERVER, "args": arguments}}});
    fs::write(&config, servers.to_string()).unwrap();
    let over_stdio = ["--cli", "--config", config.to_str().unwrap(), "--server", "openpact"];

    for way in [over_http.as_slice(), over_stdio.as_slice()] {
        let list = run(client(INSPECTOR).args(way).args(["--method", "tools/list"]));
        let names: Vec<_> =
            list["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert!(names.contains(&&json!("workspace_write")), "{list}");
        let call = |tool: &str, arguments: &[&str]| {
            let mut command = client(INSPECTOR);
            command.args(way).args(["--method", "tools/call", "--tool-name", tool]);
            run(command.arg("--tool-arg").args(arguments))
        };
        let wrote = call("workspace_write", &["path=a.txt", "content=hello"]);
        assert_ne!(wrote["isError"], true, "{wrote}");
        let read = call("workspace_read", &["path=a.txt", "limit=5"]);
        assert_eq!(read["content"][0]["text"], "hello", "{read}");
    }
}
