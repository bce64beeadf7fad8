//! A process that was started as the engine is reaches nothing of ours.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use openpact_cli::child;
use openpact_cli::engine::sandbox::{Enforced, Level, Sandbox, support};

/// A shell in the sandbox of an engine whose only folder is `own`.
fn confined(own: &Path, sandbox: Sandbox, script: &str) -> Output {
    let shell = Path::new("/bin/sh");
    let Sandbox { start, connect, .. } = sandbox;
    let mut sandbox = Sandbox { connect, ..Sandbox::of_program(shell) };
    sandbox.start.extend(start);
    sandbox.write.push(own.to_owned());
    let openpact = Path::new(env!("CARGO_BIN_EXE_openpact"));
    let mut command: Command = child::confined(openpact, Level::Strict, &sandbox, shell);
    command
        .args(["-c", script])
        .current_dir(own)
        .env_clear()
        .output()
        .expect("the openpact program starts")
}

fn programs() -> Sandbox {
    let start =
        ["/bin/cat", "/bin/touch", "/bin/ln", "/usr/bin/cat", "/usr/bin/touch", "/usr/bin/ln"];
    Sandbox { start: start.map(Into::into).into(), ..Sandbox::default() }
}

/// Without Landlock there's nothing to test; the shipped default says so at every start.
fn can_confine() -> bool {
    support() != Enforced::Not
}

#[test]
fn it_cannot_read_secrets_the_assistants_files_or_homes() {
    if !can_confine() {
        return;
    }
    let workspace = tempfile::tempdir().unwrap();
    let at = |name: &str| workspace.path().join(name);
    for folder in ["secure/data/keys", "ai-data", "engine", "home/.ssh"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    let files = [
        "secure/config.yaml",
        "secure/data/keys/operator.token",
        "ai-data/MEMORY.md",
        "home/.ssh/id",
    ];
    for file in files {
        fs::write(at(file), "the secret").unwrap();
        let path = at(file);
        let tries = [
            format!("cat '{}'", path.display()),
            format!("cat \"/proc/self/root{}\"", path.display()),
            format!("ln -s '{0}' link; cat link", path.display()),
            format!("cat '../{file}'"),
            format!("echo x >> '{}'", path.display()),
            format!("ln '{}' hard; cat hard", path.display()),
            format!("touch '{}.new'", path.display()),
        ];
        for script in tries {
            let output = confined(&at("engine"), programs(), &script);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(!output.status.success() && !said.contains("secret"), "{script}: {output:?}");
        }
        assert_eq!(fs::read_to_string(at(file)).unwrap(), "the secret");
    }
    assert_eq!(fs::read_dir(at("ai-data")).unwrap().count(), 1);
}

#[test]
fn it_can_use_its_own_folder_and_start_nothing_else() {
    if !can_confine() {
        return;
    }
    let own = tempfile::tempdir().unwrap();
    let output = confined(own.path(), programs(), "echo mine > file; cat file; echo x > /dev/null");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "mine\n", "{output:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(own.path().join("file")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);

    for script in
        ["/usr/bin/id", "cat /bin/sh > own; chmod +x own; ./own -c id", "/usr/bin/env true"]
    {
        let output = confined(own.path(), Sandbox::default(), script);
        assert!(!output.status.success(), "{script}: {output:?}");
    }
}

#[test]
fn it_has_no_powers_left_and_can_signal_nobody() {
    if support() != Enforced::Fully {
        return;
    }
    let own = tempfile::tempdir().unwrap();
    let output = confined(own.path(), programs(), "cat /proc/self/status");
    let status = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    // What a user who isn't root could get back is out of reach with the line below these.
    let root = rustix::process::geteuid().is_root();
    let bound = if root { "CapBnd:" } else { "CapEff:" };
    for set in ["CapInh:", "CapPrm:", "CapEff:", bound, "CapAmb:"] {
        assert_eq!(line(set).trim_start_matches('0'), "", "{set}");
    }
    assert_eq!(line("NoNewPrivs:"), "1");

    let id = std::process::id();
    let output = confined(own.path(), programs(), &format!("kill -0 {id}"));
    assert!(!output.status.success(), "{output:?}");
    let output = confined(own.path(), programs(), &format!("cat /proc/{id}/environ"));
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn it_reaches_the_ports_it_was_given_and_no_other() {
    if support() != Enforced::Fully {
        return;
    }
    // bash, for its /dev/tcp; any shell script could bring its own.
    let bash = Path::new("/bin/bash");
    if !bash.exists() {
        return;
    }
    let (ours, other) =
        (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let own = tempfile::tempdir().unwrap();
    let mut sandbox = Sandbox::of_program(bash);
    sandbox.connect.push(port(&ours));
    for (listener, reached) in [(&ours, true), (&other, false)] {
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", port(listener));
        let openpact = Path::new(env!("CARGO_BIN_EXE_openpact"));
        let mut command = child::confined(openpact, Level::Strict, &sandbox, bash);
        let output = command.args(["-c", &script]).current_dir(own.path()).output().unwrap();
        assert_eq!(output.status.success(), reached, "{output:?}");
    }
}
