//! `docs/configuration.md` says what is so: its examples load, its tables have
//! every key with its default.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use openpact_cli::engine::settings::EngineSettings;
use openpact_runtime::settings::{SECTIONS, Settings, SettingsError};
use serde::de::DeserializeOwned;

#[test]
fn the_examples_load() {
    let page = page();
    let examples: Vec<_> = page.split("```yaml\n").skip(1).collect();
    assert!(examples.len() >= 3, "the page has examples");
    for example in examples {
        let example = example.split("```").next().unwrap();
        // What the example reads from a file is there on the reader's machine.
        let example = example.replace("file:/run/secrets/mcp-token", "a-token-that-is-long-enough");
        let settings = load(&example).unwrap();
        settings.section::<EngineSettings>("engine").unwrap();
        settings.section::<openpact_orchestrator::config::Config>("orchestrator").unwrap();
        settings.section::<openpact_mcp::config::Config>("mcp").unwrap();
    }
}

#[test]
fn every_section_is_on_the_page_with_all_its_keys_and_their_defaults() {
    let headings: Vec<_> = page()
        .lines()
        .filter_map(|line| {
            Some(line.strip_prefix("## Section `")?.trim_end_matches('`').to_owned())
        })
        .collect();
    assert_eq!(headings, SECTIONS);
    is_complete::<EngineSettings>("engine");
    is_complete::<openpact_orchestrator::config::Config>("orchestrator");
    is_complete::<openpact_mcp::config::Config>("mcp");
}

/// Holds the table of `section` against the type that reads it.
fn is_complete<T: DeserializeOwned + Default + Debug>(section: &'static str) {
    let table = table(section);
    let written: String = table
        .iter()
        .filter(|(_, default)| default != "unset")
        .map(|(key, default)| format!("  {key}: {default}\n"))
        .collect();
    let read: T = load(&format!("{section}:\n{written}")).unwrap().section(section).unwrap();
    assert_eq!(format!("{read:#?}"), format!("{:#?}", T::default()), "defaults of `{section}`");

    // A key that is none makes the type name those it has.
    let nonsense = load(&format!("{section}:\n  this_is_not_a_key: 1\n")).unwrap();
    let error = nonsense.section::<T>(section).unwrap_err().to_string();
    let known: BTreeSet<_> = error.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    let listed: BTreeSet<_> = table.into_iter().map(|(key, _)| key).collect();
    assert_eq!(listed, known, "keys of `{section}`");
}

/// Keys and defaults in the table below the heading of `section`.
fn table(section: &str) -> Vec<(String, String)> {
    let page = page();
    let part = page.split(&format!("## Section `{section}`")).nth(1).unwrap();
    part.split("\n## ")
        .next()
        .unwrap()
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            let key = cells.next()?.trim_end_matches('`');
            Some((key.to_owned(), cells.next()?.trim_matches('`').to_owned()))
        })
        .collect()
}

fn load(text: &str) -> Result<Settings, SettingsError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    fs::write(&file, text).unwrap();
    Settings::load_with(&file, [("ANTHROPIC_API_KEY", "a-key")])
}

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join("docs/configuration.md")).unwrap()
}
