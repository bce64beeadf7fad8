//! What a settings file and an environment become, and what is said of bad ones.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::*;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Engine {
    url: String,
    model: String,
    listen: Option<SocketAddr>,
    #[serde(deserialize_with = "secret::deserialize")]
    key: Option<SecretString>,
    #[serde(deserialize_with = "duration::deserialize")]
    start_timeout: Duration,
    #[serde(deserialize_with = "duration::deserialize")]
    idle: Option<Duration>,
    #[serde(deserialize_with = "bytes::deserialize")]
    limit_bytes: usize,
    retries: u8,
    ratio: f64,
    offline: bool,
    mode: Mode,
    allow: Vec<String>,
    rules: Vec<Rule>,
    limits: std::collections::BTreeMap<String, u32>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Ask,
    Auto,
    Until(u16),
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    tool: String,
    #[serde(default)]
    paths: Vec<String>,
}

/// A folder with `config.yaml` in it; errors name it `~`.
struct Given {
    folder: tempfile::TempDir,
}

impl Given {
    fn file(text: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.yaml"), text).unwrap();
        Self { folder }
    }

    fn engine(&self, environment: &[(&str, &str)]) -> Result<Engine, String> {
        Settings::load_with(
            &self.folder.path().join("config.yaml"),
            environment.iter().map(|(name, value)| (*name, *value)),
        )
        .and_then(|settings| settings.section("engine"))
        .map_err(|error| {
            crate::chain(&error).replace(&self.folder.path().display().to_string(), "~")
        })
    }
}

fn engine(text: &str) -> Result<Engine, String> {
    Given::file(text).engine(&[])
}

#[test]
fn a_section_has_what_was_written_and_defaults_for_the_rest() {
    let engine = engine(
        r#"
# The engine and its model.
engine:
  url: http://127.0.0.1:11434/v1
  model: 1.10
  listen: "[::1]:7000"
  key: 'sk: #1'
  start_timeout: 1m 30s
  limit_bytes: 64KiB
  retries: 0x10
  ratio: 2
  offline: true
  mode: auto
  allow: [read, "yes", 7]
  rules:
    - tool: workspace_write
      paths: &some [notes, "*.md"]
    - {tool: workspace_move, paths: *some}
  limits: {calls: 5}
mcp:
"#,
    )
    .unwrap();
    assert_eq!(engine.url, "http://127.0.0.1:11434/v1");
    assert_eq!(engine.model, "1.10", "a text stays as it's written");
    assert_eq!(engine.listen, Some("[::1]:7000".parse().unwrap()));
    assert_eq!(engine.key.unwrap().expose_secret(), "sk: #1");
    assert_eq!(engine.start_timeout, Duration::from_secs(90));
    assert_eq!(engine.idle, None);
    assert_eq!(engine.limit_bytes, 65536);
    assert_eq!(engine.retries, 16);
    assert!((engine.ratio - 2.0).abs() < f64::EPSILON);
    assert!(engine.offline);
    assert_eq!(engine.mode, Mode::Auto);
    assert_eq!(engine.allow, ["read", "yes", "7"]);
    assert_eq!(engine.rules[1].tool, "workspace_move");
    assert_eq!(engine.rules[1].paths, ["notes", "*.md"]);
    assert_eq!(engine.limits["calls"], 5);
}

#[test]
fn a_file_that_is_missing_or_empty_gives_the_defaults() {
    for text in ["", "# nothing\n", "---\n", "engine:\n", "\u{feff}engine: {}\n", "mcp: {}"] {
        assert_eq!(engine(text).unwrap().retries, 0, "{text:?}");
    }
    let nowhere = Settings::load_with(Path::new("/nowhere/config.yaml"), [("", ""); 0]).unwrap();
    assert_eq!(nowhere.section::<Engine>("engine").unwrap().retries, 0);
}

#[test]
fn an_error_says_where_what_and_the_way_out() {
    #[rustfmt::skip]
    let cases = [
        // names nobody knows
        ("engine:\n  modle: x", "~/config.yaml:2: unknown key `engine.modle`: did you mean `model`?"),
        ("engine:\n  start-timeout: 1s", "~/config.yaml:2: unknown key `engine.start-timeout`: did you mean `start_timeout`?"),
        ("engine:\n  rules:\n  - tool: a\n    pahts: []", "~/config.yaml:4: unknown key `engine.rules.0.pahts`: did you mean `paths`?"),
        ("engine:\n  rules:\n  - tool: a\n    zzz: []", "~/config.yaml:4: unknown key `engine.rules.0.zzz`: known are `tool`, `paths`"),
        ("\nengin:\n  model: x", "~/config.yaml:2: unknown section `engin`: did you mean `engine`?"),
        ("discord: {}", "~/config.yaml:1: unknown section `discord`: known are `engine`, `orchestrator`, `mcp`"),
        ("engine:\n  mode: atuo", "~/config.yaml:2: `engine.mode`: `atuo` is none of its values: did you mean `auto`?"),
        // wrong types
        ("engine:\n  retries: many", "~/config.yaml:2: `engine.retries`: expected a whole number from 0 to 255, found `many`"),
        ("engine:\n  retries: 256", "~/config.yaml:2: `engine.retries`: expected a whole number from 0 to 255, found `256`"),
        ("engine:\n  retries: -1", "~/config.yaml:2: `engine.retries`: expected a whole number from 0 to 255, found `-1`"),
        ("engine:\n  retries: \"3\"", "~/config.yaml:2: `engine.retries`: expected a whole number from 0 to 255, found the text \"3\""),
        ("engine:\n  ratio: .nan", "~/config.yaml:2: `engine.ratio`: expected a number, found `.nan`"),
        ("engine:\n  offline: yes", "~/config.yaml:2: `engine.offline`: expected `true` or `false`, found `yes`"),
        ("engine:\n  model: [a]", "~/config.yaml:2: `engine.model`: expected a text, found a list"),
        ("engine:\n  model:", "~/config.yaml:2: `engine.model`: expected a text, found nothing"),
        ("engine:\n  allow: read", "~/config.yaml:2: `engine.allow`: expected a list such as `[a, b]`, found `read`"),
        ("engine:\n  allow:\n  - a\n  - {b: c}", "~/config.yaml:4: `engine.allow.1`: expected a text, found keys and values"),
        ("engine:\n  limits: 5", "~/config.yaml:2: `engine.limits`: expected keys and values, found `5`"),
        ("engine:\n  limits:\n    calls: x", "~/config.yaml:3: `engine.limits.calls`: expected a whole number from 0 to 4294967295, found `x`"),
        ("engine:\n  listen: here", "~/config.yaml:2: `engine.listen`: invalid socket address syntax, found `here`"),
        ("engine:\n  start_timeout: 30", "~/config.yaml:2: `engine.start_timeout`: expected a time with its unit such as `30s`, `10m` or `1h 30m`, found `30`"),
        ("engine:\n  start_timeout: 900 years", "~/config.yaml:2: `engine.start_timeout`: expected a time of at most 100 years, found `900 years`"),
        ("engine:\n  limit_bytes: some", "~/config.yaml:2: `engine.limit_bytes`: expected a number of bytes such as `65536`, `64KiB` or `1MiB`, found `some`"),
        ("engine:\n  rules:\n  - paths: []", "~/config.yaml:3: `engine.rules.0`: the key `tool` is missing"),
        ("engine:\n  mode: {ask: 3}", "~/config.yaml:2: `engine.mode`: `ask` takes no value"),
        ("engine:\n  mode: until", "~/config.yaml:2: `engine.mode`: `until` needs a value of its own"),
        // wrong shape
        ("- engine", "~/config.yaml:1: expected sections such as `engine:` with keys below, found a list"),
        ("engine", "~/config.yaml:1: expected sections such as `engine:` with keys below, found `engine`"),
        ("engine: on", "~/config.yaml:1: `engine`: expected keys and values, found `on`"),
        ("engine:\n  model: a\n  url: b\n  model: c", "~/config.yaml:4: `engine.model`: was set before, on line 2: delete one"),
        ("engine: {}\n---\nmcp: {}", "~/config.yaml:2: a second document starts here: keep one and delete the `---` line"),
        ("engine:\n  ? [a]\n  : b", "~/config.yaml:2: `engine`: expected a key, found a list, keys or an alias"),
        // not YAML
        ("engine:\n\tmodel: x", "~/config.yaml:2: this line is indented with a tab: use spaces"),
        ("engine:\n  allow: &a [*a]", "~/config.yaml:2: `engine.allow`: this alias stands inside what it repeats"),
    ];
    for (text, says) in cases {
        assert_eq!(engine(text).unwrap_err(), says, "{text:?}");
    }
    for text in ["engine: [", "engine: \"", "engine:\n model: a: b", "engine: *nobody", "engine: }"]
    {
        let said = engine(text).unwrap_err();
        assert!(said.contains(": this is not valid YAML: "), "{text:?}: {said}");
    }
}

#[test]
fn the_environment_goes_before_the_file() {
    let file = Given::file("engine:\n  model: small\n  retries: 1\n");
    let engine = file
        .engine(&[
            ("OPENPACT_ENGINE_MODEL", "big: #1 *x"),
            ("OPENPACT_ENGINE_RETRIES", "7"),
            ("OPENPACT_ENGINE_URL", ""),
            ("OPENPACT_ENGINE_ALLOW", "[read, 'write']"),
            ("OPENPACT_ENGINE_KEY", "'[quoted]'"),
            ("OPENPACT_ENGINE_MODE", "{until: 5}"),
            ("OPENPACT_ENGINE_LIMITS__CALLS", "6"),
            ("OPENPACT_ENGINE_START_TIMEOUT", "${WAIT}s"),
            ("WAIT", "5"),
            // Another section's, and no settings at all.
            ("OPENPACT_MCP_TOKEN", "t"),
            ("OPENPACT_LOG", "debug"),
            ("OPENPACT_LOG_FORMAT", "json"),
            ("OPENPACT_TOOLS_TOKEN", "t"),
            ("ENGINE_MODEL", "none"),
        ])
        .unwrap();
    assert_eq!(engine.model, "big: #1 *x");
    assert_eq!(engine.retries, 7);
    assert_eq!(engine.url, "");
    assert_eq!(engine.allow, ["read", "write"]);
    assert_eq!(engine.key.unwrap().expose_secret(), "[quoted]");
    assert_eq!(engine.mode, Mode::Until(5));
    assert_eq!(engine.limits["calls"], 6);
    assert_eq!(engine.start_timeout, Duration::from_secs(5));
    let alone = Given::file("engine:\n").engine(&[("OPENPACT_ENGINE_MODEL", "x")]).unwrap();
    assert_eq!(alone.model, "x");
}

#[test]
fn an_error_names_the_variable_it_is_in() {
    #[rustfmt::skip]
    let cases = [
        ("OPENPACT_ENGINE_MODLE", "x", "environment variable `OPENPACT_ENGINE_MODLE`: unknown key `engine.modle`: did you mean `model`?"),
        ("OPENPACT_ENGINE_RETRIES", "x", "environment variable `OPENPACT_ENGINE_RETRIES`: `engine.retries`: expected a whole number from 0 to 255, found `x`"),
        ("OPENPACT_ENGINE_ALLOW", "[read", "environment variable `OPENPACT_ENGINE_ALLOW`: starts as a list, a map or a quoted text does, but is not valid YAML: put a plain text that starts so into single quotes"),
        ("OPENPACT_ENGINE_RULES", "[{tool: a, pathes: []}]", "environment variable `OPENPACT_ENGINE_RULES`: unknown key `engine.rules.0.pathes`: did you mean `paths`?"),
        ("OPENPACT_ENIGNE_MODEL", "x", "environment variable `OPENPACT_ENIGNE_MODEL`: there is no such section: did you mean `OPENPACT_ENGINE_MODEL`?"),
    ];
    for (name, value, says) in cases {
        assert_eq!(Given::file("").engine(&[(name, value)]).unwrap_err(), says);
    }
    use std::os::unix::ffi::OsStringExt as _;
    let odd = [("OPENPACT_ENGINE_MODEL", OsString::from_vec(vec![0xff]))];
    let error = Settings::load_with(Path::new("/nowhere"), odd).unwrap_err();
    assert_eq!(error.to_string(), "environment variable `OPENPACT_ENGINE_MODEL`: is not UTF-8");
}

#[test]
fn a_value_may_stand_in_a_variable_or_a_file() {
    let given = Given::file(
        "engine:\n  url: http://${HOST}:${PORT}/$${x}/$y\n  key: file:keys/llm\n  retries: ${N}\n  \
         model: \"${MODEL}\"\n  allow: [\"file:${FOLDER}/one\"]\n",
    );
    fs::create_dir(given.folder.path().join("keys")).unwrap();
    fs::write(given.folder.path().join("keys/llm"), "sk-${N} \r\n\n").unwrap();
    fs::write(given.folder.path().join("one"), "two").unwrap();
    let folder = given.folder.path().to_str().unwrap().to_owned();
    let engine = given
        .engine(&[
            ("HOST", "h"),
            ("PORT", "1"),
            ("N", "3"),
            ("MODEL", "file:keys/llm ${N}"),
            ("FOLDER", &folder),
        ])
        .unwrap();
    assert_eq!(engine.url, "http://h:1/${x}/$y");
    assert_eq!(engine.key.unwrap().expose_secret(), "sk-${N} ");
    assert_eq!(engine.retries, 3);
    assert_eq!(engine.model, "file:keys/llm ${N}", "a variable's value is taken as it is");
    assert_eq!(engine.allow, ["two"]);
}

#[test]
fn a_reference_that_leads_nowhere_says_so_without_the_value() {
    #[rustfmt::skip]
    let cases = [
        ("model: ${NOBODY}", "~/config.yaml:2: `engine.model`: the environment variable `NOBODY` is not set"),
        ("model: ${SECRET", "~/config.yaml:2: `engine.model`: `${` starts a variable's name and `}` ends it: write `$${` for the characters themselves"),
        ("model: ${}", "~/config.yaml:2: `engine.model`: `${` starts a variable's name and `}` ends it: write `$${` for the characters themselves"),
        ("retries: ${SECRET}", "~/config.yaml:2: `engine.retries`: expected a whole number from 0 to 255, found another value, which is not shown"),
        ("mode: ${SECRET}", "~/config.yaml:2: `engine.mode`: `…` is none of its values: known are `ask`, `auto`, `until`"),
        ("start_timeout: ${SECRET}", "~/config.yaml:2: `engine.start_timeout`: expected a time with its unit such as `30s`, `10m` or `1h 30m`"),
        ("key: file:nowhere", "~/config.yaml:2: `engine.key`: could not read the value from `~/nowhere`: No such file or directory (os error 2)"),
        ("key: file:.", "~/config.yaml:2: `engine.key`: could not read the value from `~/.`: it is not a regular file"),
        ("key: file:big", "~/config.yaml:2: `engine.key`: could not read the value from `~/big`: it is longer than 65536 bytes"),
        ("limits: {hunter2: \"${SECRET}\"}", "~/config.yaml:2: `engine.limits.hunter2`: expected a whole number from 0 to 4294967295, found another value, which is not shown"),
    ];
    for (line, says) in cases {
        let given = Given::file(format!("engine:\n  {line}\n"));
        fs::write(given.folder.path().join("big"), vec![b'x'; 65537]).unwrap();
        assert_eq!(given.engine(&[("SECRET", "swordfish")]).unwrap_err(), says);
    }
    // Another section's references are none of this one's business.
    Given::file("mcp:\n  key: ${NOBODY}\n").engine(&[]).unwrap();
}

#[test]
fn one_value_can_be_read_from_a_section_of_another_process() {
    let given = Given::file("mcp:\n  listen: 127.0.0.1:${PORT}\n  token: ${NOBODY}\n");
    let path = given.folder.path().join("config.yaml");
    let settings = Settings::load_with(&path, [("PORT", "7")]).unwrap();
    let listen: Option<SocketAddr> = settings.value("mcp", "listen").unwrap();
    assert_eq!(listen, Some("127.0.0.1:7".parse().unwrap()));
    assert_eq!(settings.value::<String>("engine", "url").unwrap(), None);
    let error = settings.value::<u16>("mcp", "listen").unwrap_err().to_string();
    assert!(error.contains("config.yaml:2: `mcp.listen`: expected a whole number"), "{error}");
}

#[test]
fn files_that_cannot_be_read_are_refused() {
    let long = format!("engine: {{}}\n#{}", "x".repeat(1 << 20));
    let cases: [(&[u8], &str); 2] = [
        (long.as_bytes(), "it is longer than 1048576 bytes"),
        (b"engine:\n  model: \xff\n", "line 2 is not UTF-8: save the file as UTF-8"),
    ];
    for (text, says) in cases {
        let said = Given::file(text).engine(&[]).unwrap_err();
        assert_eq!(said, format!("~/config.yaml: could not read the settings: {says}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let error = Settings::load_with(folder.path(), [("", ""); 0]).unwrap_err();
    assert!(crate::chain(&error).ends_with("it is not a regular file"), "{error}");
}

#[test]
fn hostile_files_end_in_an_error_and_soon() {
    let mut laughs = String::from("engine:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let again = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs += &format!("  a{level}: &a{level} [{again}]\n");
    }
    let cases = [
        ("a bomb of aliases", laughs, "too many values"),
        ("deep lists", format!("engine: {}", "[".repeat(500_000)), "recursion limit exceeded"),
        ("deeper lists than are read", format!("engine: {}", "[".repeat(100)), "nested too deep"),
        ("deep keys", format!("engine: {}", "? ".repeat(300_000)), ""),
        ("deep dashes", "- ".repeat(300_000), "nested too deep"),
        ("a wide list", format!("engine: [{}]", "a,".repeat(400_000)), "too many values"),
        ("a long line", "a".repeat(1_000_000), "expected sections"),
        ("many anchors", format!("engine: {}x", "&a ".repeat(200_000)), "not valid YAML"),
        ("a NUL", "engine:\n  model: \"a\0b\"".to_owned(), ""),
    ];
    for (shows, text, says) in cases {
        let begun = Instant::now();
        if let Err(said) = engine(&text) {
            assert!(said.contains(says), "{shows}: {said}");
        } else {
            assert!(says.is_empty(), "{shows}");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{shows}: {:?}", begun.elapsed());
    }
}

#[test]
fn what_is_written_can_be_shown_with_its_place_and_without_secrets() {
    let given = Given::file("engine:\n  model: m\n  key: sk-1\n  allow: [a]\nmcp:\n  key: ${K}\n");
    let path = given.folder.path().join("config.yaml");
    let settings = Settings::load_with(&path, [("OPENPACT_ENGINE_MODEL", "n")]).unwrap();
    let written: Vec<_> = settings
        .written()
        .into_iter()
        .map(|(path, value, place)| format!("{path} {value} {}", place.rsplit('/').next().unwrap()))
        .collect();
    assert_eq!(
        written,
        [
            "engine.model n environment variable OPENPACT_ENGINE_MODEL",
            "engine.key ******** config.yaml:3",
            "engine.allow[0] a config.yaml:4",
            "mcp.key ${K} config.yaml:6",
        ]
    );
    assert!(!format!("{settings:?}").contains("sk-1"));
}
