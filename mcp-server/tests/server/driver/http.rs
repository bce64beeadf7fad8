//! A server on HTTP and just enough of a client for it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{PATIENCE, Workspace, command, outcome};

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) engine_token: String,
    next_id: AtomicU64,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Server {
    pub(crate) fn start(workspace: &Workspace) -> Self {
        Self::start_at(&mut command(workspace.path()), workspace, "127.0.0.1:0")
    }

    pub(crate) fn start_at(command: &mut Command, workspace: &Workspace, address: &str) -> Self {
        let file = workspace.path().join("secure/run/mcp.addr");
        // One that was killed leaves its own behind.
        if file.exists() {
            fs::remove_file(&file).unwrap();
        }
        let child = command.args(["--http", address]).spawn().unwrap();
        let until = Instant::now() + PATIENCE;
        let address = loop {
            match fs::read_to_string(&file) {
                Ok(text) => break text.trim().to_owned(),
                Err(_) => assert!(Instant::now() < until, "the server should start"),
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let key = |name: &str| {
            let path = workspace.path().join("secure/data/keys").join(name);
            fs::read_to_string(path).unwrap().trim().to_owned()
        };
        Self {
            child,
            address,
            token: key("mcp.token"),
            engine_token: key("mcp-engine.token"),
            next_id: AtomicU64::new(2),
        }
    }

    /// Any request; the connection is closed after it.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses early may close before it has read all.
        let _refused_early = stream.write_all(body);
        Response::read(BufReader::new(stream))
    }

    /// A POST of `message` with what a good client sends, and `extra` instead.
    pub(crate) fn post(&self, extra: &[(&str, &str)], message: &Value) -> Response {
        let bearer = format!("Bearer {}", self.token);
        let good = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let replaced = |name: &str| extra.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut headers: Vec<_> = good.into_iter().filter(|(name, _)| !replaced(name)).collect();
        // An empty value leaves the header out.
        headers.extend(extra.iter().copied().filter(|(_, value)| !value.is_empty()));
        self.request("POST", "/mcp", &headers, message.to_string().as_bytes())
    }

    /// Shakes hands and gives the session's id.
    pub(crate) fn open_session(&self, token: &str) -> String {
        let bearer = format!("Bearer {token}");
        let answer = self.post(
            &[("Authorization", &bearer)],
            &json!({
                "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                    "protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"},
                },
            }),
        );
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.header("mcp-session-id").unwrap().to_owned()
    }

    pub(crate) fn call(
        &self,
        token: &str,
        session: &str,
        tool: &str,
        arguments: &Value,
    ) -> Response {
        let bearer = format!("Bearer {token}");
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.post(
            &[("Authorization", &bearer), ("Mcp-Session-Id", session)],
            &json!({
                "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments},
            }),
        )
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn terminate(&mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
        }
    }
}

impl Response {
    fn read(mut from: BufReader<TcpStream>) -> Self {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let mut response = Self { status, headers, body: String::new() };
        let bytes = if response.header("transfer-encoding") == Some("chunked") {
            chunks(from)
        } else {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).unwrap();
            bytes
        };
        response.body = String::from_utf8(bytes).unwrap();
        response
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC message in it, as JSON or as the last event.
    pub(crate) fn message(&self) -> Value {
        let mut data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let last = data.rfind(|data| data.starts_with('{'));
        serde_json::from_str(last.unwrap_or(&self.body))
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.body))
    }

    pub(crate) fn outcome(&self) -> Result<Vec<String>, String> {
        if self.status == 200 { outcome(&self.message()) } else { Err(self.status.to_string()) }
    }
}

fn chunks(mut from: impl std::io::BufRead) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        let size = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        from.read_exact(&mut chunk).unwrap();
        if size == 0 {
            return all;
        }
        all.extend_from_slice(&chunk[..size]);
    }
}
