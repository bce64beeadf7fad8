//! The MCP server beside its peer, as a client on standard input and output
//! sees both.

mod client;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value as Json, json};

use crate::figure::{Figure, Value, median_and_p95};
use crate::{peer, program, resident, say};
use client::Client;

const PEER: &str = "server-filesystem";
const MIB: usize = 1024 * 1024;

/// A server that can be started.
struct Server<'a> {
    command: &'a dyn Fn() -> Command,
    /// The call that reads the file.
    read: Json,
}

/// Starts and reads so many times, turn by turn, so that whatever else the
/// machine does meets both.
pub(crate) fn measure(starts: usize, reads: usize) -> anyhow::Result<Vec<Figure>> {
    let (ours, theirs) = (program::path("openpact-mcp")?, peer::filesystem()?);
    let folder = tempfile::tempdir()?;
    let root = folder.path().canonicalize()?;
    let our_command = || {
        let mut command = Command::new(&ours);
        command.arg("--stdio").arg("--workspace").arg(&root);
        command
    };
    // The first start lays out the workspace.
    drop(Client::start(our_command())?);
    let file = root.join("ai-data/large.txt");
    std::fs::write(&file, text())?;
    let their_command = || {
        let mut command = Command::new("node");
        command.arg(&theirs).arg(root.join("ai-data"));
        command
    };
    let ours = Server {
        command: &our_command,
        read: json!({"name": "workspace_read",
            "arguments": {"path": "large.txt", "max_bytes": 2 * MIB}}),
    };
    let theirs = Server {
        command: &their_command,
        read: json!({"name": "read_text_file", "arguments": {"path": file}}),
    };

    say(&format!("starting openpact-mcp and {PEER} {starts} times each"));
    let ([our_start, their_start], [our_memory, their_memory]) = start(&ours, &theirs, starts)?;
    say(&format!("reading 1 MiB {reads} times each"));
    let (plain, [our_read, their_read]) = read(&ours, &theirs, &file, reads)?;
    let our_twentieth = their_start / 20;
    Ok(vec![
        Figure {
            what: "MCP server, exec to tools/list",
            ours: Value::Time(our_start),
            other: Some((PEER, Value::Time(their_start))),
            goal: Some(Value::Time(our_twentieth.min(Duration::from_millis(20)))),
        },
        Figure {
            what: "MCP server, idle memory",
            ours: Value::Bytes(our_memory),
            other: Some((PEER, Value::Bytes(their_memory))),
            goal: Some(Value::Bytes(15 * MIB as u64)),
        },
        Figure {
            what: "reading 1 MiB through the tool",
            ours: Value::Time(our_read),
            other: Some(("plain read and JSON", Value::Time(plain))),
            goal: Some(Value::Time(plain * 3)),
        },
        Figure {
            what: "reading 1 MiB through the tool",
            ours: Value::Time(our_read),
            other: Some((PEER, Value::Time(their_read))),
            goal: None,
        },
    ])
}

/// Median times from exec to the answered `tools/list`, and memory after it.
fn start(
    ours: &Server<'_>,
    theirs: &Server<'_>,
    times: usize,
) -> anyhow::Result<([Duration; 2], [u64; 2])> {
    let mut all = [Vec::new(), Vec::new()];
    let mut memory = [0; 2];
    for round in 0..=times {
        for (index, server) in [ours, theirs].into_iter().enumerate() {
            let begun = Instant::now();
            let mut client = Client::start((server.command)())?;
            let tools = client.call("tools/list", &json!({}))?;
            let taken = begun.elapsed();
            let count = tools["result"]["tools"].as_array().map_or(0, Vec::len);
            anyhow::ensure!(count > 0, "a server has no tools: {tools}");
            // The first start of each reads its program from the disk.
            if round == 0 {
                memory[index] = resident::idle(client.pid())?;
            } else {
                all[index].push(taken);
            }
        }
    }
    Ok((all.map(|times| median_and_p95(times).0), memory))
}

/// Median times of a plain read with JSON encoding, and of the same file
/// through each server.
fn read(
    ours: &Server<'_>,
    theirs: &Server<'_>,
    file: &Path,
    times: usize,
) -> anyhow::Result<(Duration, [Duration; 2])> {
    let mut plain = Vec::new();
    let mut all = [Vec::new(), Vec::new()];
    let mut clients = [Client::start((ours.command)())?, Client::start((theirs.command)())?];
    for round in 0..=times {
        let begun = Instant::now();
        let answer = json!({"content": [{"type": "text", "text": std::fs::read_to_string(file)?}]});
        let encoded = serde_json::to_vec(&answer)?;
        let taken = begun.elapsed();
        anyhow::ensure!(encoded.len() > MIB, "the file is too small");
        if round > 0 {
            plain.push(taken);
        }
        for (index, (client, server)) in clients.iter_mut().zip([ours, theirs]).enumerate() {
            let begun = Instant::now();
            let line = client.ask("tools/call", &server.read)?;
            let taken = begun.elapsed();
            if round == 0 {
                whole(&line, file).context("the tool didn't give the whole file")?;
            } else {
                all[index].push(taken);
            }
        }
    }
    Ok((median_and_p95(plain).0, all.map(|times| median_and_p95(times).0)))
}

/// Whether an answer holds all of the file.
fn whole(line: &[u8], file: &Path) -> anyhow::Result<()> {
    let answer: Json = serde_json::from_slice(line)?;
    let content = std::fs::read_to_string(file)?;
    let blocks = answer["result"]["content"].as_array().context("no content")?;
    let has = |block: &Json| block["text"].as_str().is_some_and(|text| text.contains(&content));
    anyhow::ensure!(blocks.iter().any(has), "{:.500}", answer.to_string());
    Ok(())
}

/// 1 MiB of lines as people write them: some quotes, some letters beyond ASCII.
fn text() -> String {
    let line = "The quick brown fox jumps over the \"lazy\" dog, café na praça, line ";
    let mut text = String::with_capacity(MIB + 100);
    for number in 0_u64.. {
        text.push_str(line);
        text.push_str(&number.to_string());
        text.push('\n');
        if text.len() >= MIB {
            break;
        }
    }
    text
}
