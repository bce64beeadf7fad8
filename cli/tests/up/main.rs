//! `openpact up`, `status` and `doctor` as a person runs them, with stand-ins
//! for the other programs: what is looked at is how they're started, kept and ended.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::time::Duration;

mod bench;
mod stand_in;

use bench::{Bench, eventually, runs};

#[test]
fn a_new_workspace_becomes_ready_and_ends_clean() {
    let bench = Bench::new();
    let mut up = bench.up(&["--llm-url", "http://127.0.0.1:9/v1", "--model", "m", "--headless"]);
    assert_eq!(up.line(), "ready");
    let processes: Vec<u32> =
        ["mcp", "engine", "orchestrator"].map(|name| bench.process_id(name).unwrap()).into();
    assert!(processes.iter().all(|id| runs(*id)));

    let status = bench.openpact(&["status"]);
    assert!(status.status.success() && stdout(&status).contains("ready        yes"), "{status:?}");
    let second = bench.openpact(&["up", "--headless"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).contains(&format!("(process {})", up.id())), "{second:?}");

    let (code, rest) = up.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    let log = fs::read_to_string(bench.file("secure/log/up.log")).unwrap();
    assert!(log.contains("engine: ready") && log.contains("all: stopping"), "{log}");
    assert!(processes.iter().all(|id| !runs(*id)));
    assert_eq!(bench.run_files(), ["up.lock"]);
    let status = bench.openpact(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(stderr(&status).contains("openpact up"), "{status:?}");

    // The model is remembered.
    let mut up = bench.up(&["--headless"]);
    assert_eq!(up.line(), "ready");
    let started = fs::read_to_string(bench.file("started-orchestrator")).unwrap();
    assert!(started.contains("OPENPACT_ORCHESTRATOR_MODEL=openpact/m"), "{started}");
    up.end();
}

#[test]
fn whoever_is_killed_runs_again_at_the_same_place() {
    let bench = Bench::with_model();
    let mut up = bench.up(&["--headless"]);
    assert_eq!(up.line(), "ready");
    for name in ["mcp", "engine", "orchestrator"] {
        let (id, address) = (bench.process_id(name).unwrap(), bench.address(name));
        bench::kill(id);
        eventually(|| bench.process_id(name).is_some_and(|new| new != id));
        eventually(|| bench.openpact(&["status"]).status.success());
        if name != "orchestrator" {
            eventually(|| bench.address(name) == address);
        }
    }
    let (code, rest) = up.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""));
}

#[test]
fn when_up_is_killed_nothing_stays_and_the_next_one_cleans_up() {
    let bench = Bench::with_model();
    let mut up = bench.up(&["--headless"]);
    assert_eq!(up.line(), "ready");
    let processes = ["mcp", "engine", "orchestrator"].map(|name| bench.process_id(name).unwrap());
    up.kill();
    for id in processes {
        eventually(|| !runs(id));
    }
    assert!(bench.run_files().len() > 1);
    let doctor = bench.openpact(&["doctor"]);
    assert!(stdout(&doctor).contains("left an address"), "{}", stdout(&doctor));

    let mut up = bench.up(&["--headless"]);
    assert_eq!(up.line(), "ready");
    up.end();
    assert_eq!(bench.run_files(), ["up.lock"]);
}

#[test]
fn without_a_model_it_says_in_three_lines_how_to_name_one() {
    let bench = Bench::new();
    let output = bench.openpact(&["up", "--headless"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let lines = stderr(&output);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    for words in
        ["--llm-url http://127.0.0.1:11434/v1", "Ollama", "any provider that OpenCode supports"]
    {
        assert!(lines.contains(words), "{lines}");
    }
}

#[test]
fn what_is_wrong_with_the_settings_is_told_before_anything_starts() {
    #[rustfmt::skip]
    let cases = [
        ("engine:\n  modle: m\n",                               &[][..],                               "did you mean `model`"),
        ("engine:\n  model: m\n",                               &[],                                   "`engine.url` is not set"),
        ("",                                                    &["--model", "m"],                     "`engine.url` is not set"),
        ("",                                                    &["--llm-url", "x", "--model", "m"],   "must be like"),
        ("engine:\n  url: http://127.0.0.1:9/v1\n  model: m\n", &["--model", "n", "--llm-key-env", "sk-12"], "not the key itself"),
        ("engine:\n  url: http://127.0.0.1:9/v1\n  model: m\n", &["--model", "n", "--llm-key-env", "NONE_OF_THIS"], "is not set"),
    ];
    for (config, args, words) in cases {
        let bench = Bench::new();
        bench.configure(config);
        let output = bench.openpact(&[&["up", "--headless"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{config} {args:?} {output:?}");
        assert!(stderr(&output).contains(words), "{config} {args:?} {}", stderr(&output));
        assert_eq!(fs::read_to_string(bench.file("secure/config.yaml")).unwrap(), config);
    }
}

#[test]
fn a_process_whose_settings_are_wrong_ends_everything_with_its_own_words() {
    let bench = Bench::with_model();
    fs::write(bench.file("fail-orchestrator"), "2 orchestrator.turn_timeout must be positive")
        .unwrap();
    let output = bench.openpact(&["up", "--headless"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(stderr(&output).contains("orchestrator.turn_timeout must be positive"), "{output:?}");
    assert!(output.stdout.is_empty());
    assert_eq!(bench.run_files(), ["up.lock"]);

    let check = bench.openpact(&["config", "check"]);
    assert_eq!(check.status.code(), Some(2), "{check:?}");
    assert!(stderr(&check).contains("orchestrator: orchestrator.turn_timeout"), "{check:?}");
    assert_eq!(stdout(&check), "engine: fine\nmcp: fine\n");
}

#[test]
fn to_look_at_a_workspace_that_is_not_there_makes_none() {
    let bench = Bench::new();
    let doctor = bench.openpact(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    assert!(stdout(&doctor).contains("run `openpact up`"), "{doctor:?}");
    assert!(!bench.file("").exists());
}

#[test]
fn a_process_that_never_comes_up_is_told_with_its_log() {
    let bench = Bench::with_model();
    fs::write(bench.file("fail-mcp"), "7 no luck today").unwrap();
    let output = bench.openpact(&["up", "--headless"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("no luck today") && said.contains("secure/log/mcp.log"), "{said}");
    assert_eq!(bench.run_files(), ["up.lock"]);
}

#[test]
fn a_port_that_is_taken_is_told_and_one_for_everybody_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).unwrap();
    for (listen, code, words) in [
        (taken.1.as_str(), 1, "set another"),
        ("0.0.0.0:0", 2, "`engine.listen` must be on this machine"),
    ] {
        let bench = Bench::new();
        bench.configure(&format!(
            "engine:\n  url: http://127.0.0.1:9/v1\n  model: m\n  listen: {listen}\n"
        ));
        let output = bench.openpact(&["up", "--headless"]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(stderr(&output).contains(words), "{output:?}");
    }
}

#[test]
fn an_engine_of_another_version_is_refused() {
    let bench = Bench::with_model();
    fs::write(bench.file("engine-version"), "9.9.9").unwrap();
    let output = bench.openpact(&["up", "--headless"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("version \"9.9.9\""), "{output:?}");
}

#[test]
fn it_waits_until_a_message_would_be_answered_and_says_why_not_yet() {
    let bench = Bench::with_model();
    fs::write(bench.file("not-ready"), "the tools are not connected").unwrap();
    let mut up = bench.up(&["--headless"]);
    eventually(|| up.stderr().contains("not ready yet: the tools are not connected"));
    let status = bench.openpact(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(stdout(&status).contains("the tools are not connected"), "{status:?}");
    fs::remove_file(bench.file("not-ready")).unwrap();
    assert_eq!(up.line(), "ready");
    assert_eq!(up.end().0, Some(0));
}

#[test]
fn a_stop_while_it_starts_ends_everything() {
    let bench = Bench::with_model();
    fs::write(bench.file("not-ready"), "not today").unwrap();
    let up = bench.up(&["--headless"]);
    eventually(|| bench.process_id("orchestrator").is_some());
    let started = std::time::Instant::now();
    let (code, rest) = up.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(bench.run_files(), ["up.lock"]);
}

#[test]
fn the_doctor_has_a_verdict_on_everything() {
    let bench = Bench::with_model();
    let doctor = bench.openpact(&["doctor", "--json"]);
    // Nobody listens where the model should be.
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let found: Vec<serde_json::Value> = serde_json::from_slice(&doctor.stdout).unwrap();
    let failed: Vec<_> = found
        .iter()
        .filter(|f| f["verdict"] == "failed")
        .map(|f| f["check"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["model"], "{found:#?}");
    for check in [
        "program",
        "tools' walls",
        "disk",
        "workspace",
        "permissions",
        "keys",
        "configuration",
        "engine's walls",
        "processor",
        "engine",
        "status",
    ] {
        assert!(found.iter().any(|f| f["check"] == check), "{check}: {found:#?}");
    }

    let mut up = bench.up(&["--headless"]);
    assert_eq!(up.line(), "ready");
    let text = stdout(&bench.openpact(&["doctor"]));
    assert!(text.contains("a message would be answered"), "{text}");
    up.end();
}

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
