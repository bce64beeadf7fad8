//! What killed processes left in `secure/run`.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use openpact_runtime::layout::Layout;

/// Processes whose address and process id are in `secure/run`.
pub(crate) const PROCESSES: [&str; 3] = ["mcp", "engine", "orchestrator"];

/// How long something that listens on this machine may take to take a connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// The address that a process wrote down, if it's one.
pub(crate) fn address(layout: &Layout, process: &str) -> Option<SocketAddr> {
    fs::read_to_string(layout.address_file(process)).ok()?.trim().parse().ok()
}

/// The process id that `up` wrote down.
pub(crate) fn process_id(layout: &Layout, process: &str) -> Option<u32> {
    fs::read_to_string(layout.pid_file(process)).ok()?.trim().parse().ok()
}

/// Whether something takes connections there.
pub(crate) fn is_listening(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, PATIENCE).is_ok()
}

/// Processes of an earlier life that have an address and don't listen there.
pub(crate) fn find(layout: &Layout) -> Vec<&'static str> {
    let stale = |name: &&'static str| {
        layout.address_file(name).exists() && !address(layout, name).is_some_and(is_listening)
    };
    PROCESSES.into_iter().filter(stale).collect()
}

/// Removes the files of processes that are gone. Call it with the lock held:
/// whatever `up` started before has ended with it. What still listens was started by hand;
/// those processes are returned.
pub(super) fn clean(layout: &Layout) -> Vec<&'static str> {
    let mut listening = Vec::new();
    for name in PROCESSES {
        remove(&layout.pid_file(name));
        if address(layout, name).is_some_and(is_listening) {
            listening.push(name);
        } else {
            remove(&layout.address_file(name));
        }
    }
    listening
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "could not be removed");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn files_of_the_dead_go_and_those_of_the_living_stay() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path()).unwrap();
        layout.create().unwrap();
        let living = TcpListener::bind("127.0.0.1:0").unwrap();
        let dead = TcpListener::bind("127.0.0.1:0").unwrap();
        for (name, listener) in [("mcp", &living), ("engine", &dead)] {
            let address = format!("{}\n", listener.local_addr().unwrap());
            fs::write(layout.address_file(name), address).unwrap();
            fs::write(layout.pid_file(name), "1\n").unwrap();
        }
        fs::write(layout.address_file("orchestrator"), "not an address").unwrap();
        drop(dead);
        assert_eq!(find(&layout), ["engine", "orchestrator"]);
        assert_eq!(clean(&layout), ["mcp"]);
        let left: Vec<_> =
            fs::read_dir(layout.run()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["mcp.addr"]);
    }
}
