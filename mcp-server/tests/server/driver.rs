//! Starts the binary and speaks JSON-RPC with it.

pub(crate) mod http;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Long enough for any machine; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace folder of its own.
pub(crate) struct Workspace(tempfile::TempDir);

impl Workspace {
    pub(crate) fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::create_dir(folder.files()).unwrap();
        folder
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self::new();
        for (name, content) in files {
            folder.put(name, content);
        }
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.0.path().join("ai-data")
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.files().join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.at(name)).unwrap()).unwrap()
    }

    pub(crate) fn configure(&self, yaml: &str) {
        fs::create_dir_all(self.path().join("secure")).unwrap();
        fs::write(self.path().join("secure/config.yaml"), yaml).unwrap();
    }

    /// Holds a folder as a writer does, so that calls which write there wait.
    pub(crate) fn hold(&self, folder: &str) -> OwnedFd {
        let dir = OwnedFd::from(File::open(self.at(folder)).unwrap());
        rustix::fs::flock(&dir, rustix::fs::FlockOperation::LockExclusive).unwrap();
        dir
    }
}

pub(crate) fn command(workspace: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_openpact-mcp"));
    command.env_clear().env("OPENPACT_LOG", "warn").arg("--workspace").arg(workspace);
    command
}

/// A server on standard input and output.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    /// Messages that came while another was waited for.
    kept: VecDeque<Value>,
    next_id: u64,
}

impl Client {
    /// Starts one and shakes hands.
    pub(crate) fn start(workspace: &Workspace) -> Self {
        Self::start_with(&mut command(workspace.path()))
    }

    pub(crate) fn start_with(command: &mut Command) -> Self {
        let mut client = Self::spawn(command);
        let hello = client.request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "openpact", "{hello}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// Starts one without a word.
    pub(crate) fn silent(workspace: &Workspace) -> Self {
        Self::spawn(&mut command(workspace.path()))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child =
            command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, input, lines, kept: VecDeque::new(), next_id: 100 }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// The next message, whatever it is.
    pub(crate) fn receive(&mut self) -> Value {
        self.kept.pop_front().unwrap_or_else(|| self.read())
    }

    fn read(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server should answer");
        serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// The answer to the request `id`; what else comes is kept.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        if let Some(at) = self.kept.iter().position(|message| &message["id"] == id) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let message = self.read();
            if &message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    /// Asks for a tool call without waiting for its answer.
    pub(crate) fn begin(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn end(&mut self, id: &Value) -> Result<Vec<String>, String> {
        outcome(&self.answer(id))
    }

    /// Calls a tool: its texts, or the text of its error.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Result<Vec<String>, String> {
        let id = self.begin(tool, arguments);
        self.end(&id)
    }

    pub(crate) fn ok(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments).unwrap().join("\n")
    }

    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments.clone()).expect_err(&format!("{tool} {arguments}"))
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Ends the input and waits: how it ended, how long that took, and what
    /// was said meanwhile.
    pub(crate) fn finish(mut self) -> (ExitStatus, Duration, Vec<Value>) {
        let began = Instant::now();
        self.close_input();
        let status = self.wait();
        let took = began.elapsed();
        let mut said: Vec<Value> = self.kept.drain(..).collect();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => said.push(serde_json::from_slice(&line).unwrap()),
                Err(RecvTimeoutError::Disconnected) => return (status, took, said),
                Err(RecvTimeoutError::Timeout) => panic!("its output stays open"),
            }
        }
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the server should end");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        if let Ok(None) = self.child.try_wait() {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

/// A tool call's texts, or the text of its error.
pub(crate) fn outcome(answer: &Value) -> Result<Vec<String>, String> {
    if let Some(error) = answer.get("error") {
        return Err(format!("protocol error {}: {}", error["code"], error["message"]));
    }
    let texts: Vec<String> = answer["result"]["content"]
        .as_array()
        .unwrap_or_else(|| panic!("no content: {answer}"))
        .iter()
        .map(|block| block["text"].as_str().unwrap().to_owned())
        .collect();
    if answer["result"]["isError"] == true { Err(texts.join("\n")) } else { Ok(texts) }
}

/// The digest in an answer's note.
pub(crate) fn digest(text: &str) -> String {
    let at = text.find("digest ").unwrap_or_else(|| panic!("no digest: {text}")) + 7;
    text[at..at + 16].to_owned()
}

/// Runs the binary to its end: exit code, standard output, standard error.
pub(crate) fn run(command: &mut Command) -> (i32, String, String) {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (child.wait().unwrap().code().unwrap(), out, err)
}
