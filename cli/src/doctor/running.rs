//! What runs now: processes, their addresses, and whether a message would be answered.

use std::net::{SocketAddr, TcpListener};

use openpact_proto::control::v1::GetStatusResponse;
use openpact_runtime::layout::Layout;

use super::finding::Finding;
use crate::control;
use crate::engine::settings::EngineSettings;
use crate::up::stale;

/// Looks at what runs, or at whether it could.
pub(super) async fn look(
    layout: &Layout,
    engine: &EngineSettings,
    written: &[(String, String, String)],
) -> Vec<Finding> {
    let listening = |name: &str| stale::address(layout, name).is_some_and(stale::is_listening);
    let mut found: Vec<_> = stale::PROCESSES
        .into_iter()
        .filter(|name| listening(name))
        .map(|name| Finding::fine("process", process(layout, name)))
        .collect();
    if listening("orchestrator") {
        found.push(match control::status(layout).await {
            Ok(status) => answering(&status),
            Err(error) => Finding::failed(
                "status",
                openpact_runtime::chain(error.as_ref()),
                format!("look at {}", layout.log_file("orchestrator").display()),
            ),
        });
    } else {
        found.push(Finding::note("status", "nothing runs here; `openpact up` starts it"));
    }
    let configured = written.iter().filter_map(|(path, value, _)| {
        let path = match path.as_str() {
            "mcp.listen" => "mcp.listen",
            "orchestrator.listen" => "orchestrator.listen",
            _ => return None,
        };
        Some((path, value.trim_matches('"').parse().ok()?))
    });
    let ports = configured.chain([("engine.listen", engine.listen)]);
    found.extend(ports.filter_map(|(path, address)| port(layout, path, address)));
    found
}

fn process(layout: &Layout, name: &str) -> String {
    let address = stale::address(layout, name).map(|at| at.to_string()).unwrap_or_default();
    match stale::process_id(layout, name) {
        Some(id) => format!("{name} listens at {address} (process {id})"),
        None => format!("{name} listens at {address} (not started by `openpact up`)"),
    }
}

fn answering(status: &GetStatusResponse) -> Finding {
    if status.ready {
        let text = format!(
            "a message would be answered ({} running, {} waiting)",
            status.running_turns, status.waiting_messages
        );
        return Finding::fine("status", text);
    }
    let problem = status.engine.as_ref().map(|engine| engine.problem.as_str()).unwrap_or_default();
    let text = format!("a message would not be answered: {} {problem}", status.reason);
    Finding::failed("status", text.trim_end(), "wait a minute; then look into secure/log")
}

/// A port that is configured must be free, unless it's ours that has it.
fn port(layout: &Layout, path: &'static str, address: SocketAddr) -> Option<Finding> {
    let process = path.split('.').next().unwrap_or_default();
    let ours = stale::address(layout, process).is_some_and(|at| at.port() == address.port());
    if address.port() == 0 || (ours && stale::is_listening(address)) {
        return None;
    }
    Some(match TcpListener::bind(address) {
        Ok(_) => Finding::fine("port", format!("`{path}`: {address} is free")),
        Err(error) => Finding::failed(
            "port",
            format!("`{path}`: {address} can't be used: {error}"),
            "end what has it, or set another port",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[tokio::test]
    async fn a_port_that_somebody_has_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path()).unwrap();
        layout.create().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = taken.local_addr().unwrap();
        let engine = EngineSettings { listen, ..EngineSettings::default() };
        let found = look(&layout, &engine, &[]).await;
        let verdicts: Vec<_> = found.iter().map(|f| (f.check, f.verdict)).collect();
        assert_eq!(verdicts, [("status", Verdict::Note), ("port", Verdict::Failed)]);

        // Once it's the engine that has it, all is well.
        std::fs::write(layout.address_file("engine"), listen.to_string()).unwrap();
        let found = look(&layout, &engine, &[]).await;
        let verdicts: Vec<_> = found.iter().map(|f| (f.check, f.verdict)).collect();
        assert_eq!(verdicts, [("process", Verdict::Fine), ("status", Verdict::Note)]);
    }
}
