//! An MCP client as small as one can be, so that what's measured is the server.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;
use serde_json::{Value, json};

/// A server on the other end of two pipes. Dropping it kills it.
pub(super) struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    count: u64,
}

impl Client {
    /// Starts a server and introduces itself.
    pub(super) fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("start {command:?}"))?;
        let input = child.stdin.take().context("a pipe to the server")?;
        let output = child.stdout.take().context("a pipe from the server")?;
        let output = BufReader::with_capacity(256 * 1024, output);
        let mut client = Self { child, input, output, count: 0 };
        let about = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "openpact-bench", "version": env!("CARGO_PKG_VERSION")},
        });
        client.call("initialize", &about)?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.write(&ready)?;
        Ok(client)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The answer to a request.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let answer = serde_json::from_slice(&self.ask(method, params)?)?;
        Ok(answer)
    }

    /// The answer to a request, as it came.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Vec<u8>> {
        self.count += 1;
        let id = self.count;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = Vec::new();
            let read = self.output.read_until(b'\n', &mut line)?;
            anyhow::ensure!(read > 0, "the server ended before it answered `{method}`");
            // A notification isn't an answer. Large answers aren't parsed: that
            // would be the client's time.
            let small = line.len() < 64 * 1024;
            let parsed = small.then(|| serde_json::from_slice::<Value>(&line)).transpose()?;
            let Some(message) = parsed else { return Ok(line) };
            if message["id"] == id {
                anyhow::ensure!(message.get("error").is_none(), "`{method}`: {message}");
                return Ok(line);
            }
        }
    }

    fn write(&mut self, message: &Value) -> anyhow::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.input.write_all(line.as_bytes()).context("write to the server")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself; waiting takes it off the process table.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}
