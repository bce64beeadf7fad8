//! The shape of the workspace: who builds on whom, who owns what, what every file has.
//!
//! The tables are the documentation. A line that changes here is a decision.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

/// Who builds on whom, and on whom else for its tests.
#[rustfmt::skip]
const BUILDS_ON: [(&str, &str, &str); 10] = [
    ("proto",          "",                             ""),
    ("runtime",        "",                             ""),
    ("store",          "runtime",                      ""),
    ("mcp-server",     "runtime store",                ""),
    ("orchestrator",   "proto runtime store",          ""),
    ("frontends/core", "proto runtime",                ""),
    ("cli",            "frontends/core proto runtime", ""),
    ("testkit",        "proto runtime",                ""),
    ("tests",          "",                             "cli mcp-server orchestrator runtime store testkit"),
    ("bench",          "testkit",                      ""),
];

/// Crates of others that stay with their owners.
const OWNERS: [(&str, &str); 5] = [
    ("rmcp", "mcp-server"),
    ("rusqlite", "store"),
    ("landlock", "cli mcp-server"),
    ("tonic-health", "orchestrator"),
    ("tonic-reflection", "orchestrator"),
];

/// Words that may stand only in some modules of a crate: words, crate, modules.
const INSIDE: [(&[&str], &str, &str); 2] = [
    (&["tonic", "openpact_proto", "prost_types"], "orchestrator", "grpc"),
    (&["transport::Server"], "orchestrator", "grpc"),
];

/// Modules that guard the rest of their crate and know nothing of its protocol.
const GUARDS: [(&str, &[&str], &str); 1] =
    [("mcp-server", &["workspace", "policy", "confine", "edit", "gate"], "rmcp")];

/// TLS is rustls: none of these is in the dependency graph.
const BANNED: [&str; 4] = ["openssl", "openssl-sys", "native-tls", "openssl-src"];

/// Past this many lines, a file holds a second subject.
const LONGEST_FILE: usize = 800;

#[test]
fn crates_build_on_what_the_table_says() {
    let metadata = metadata();
    let folders = folders(&metadata);
    let mut found = BTreeMap::new();
    for package in metadata.workspace_packages() {
        let builds_on = |test: bool| -> BTreeSet<String> {
            let dependencies = package.dependencies.iter();
            dependencies
                .filter(|other| (other.kind == DependencyKind::Development) == test)
                .filter_map(|other| folders.get(other.name.as_str()).cloned())
                .collect()
        };
        found.insert(folder(package), (builds_on(false), builds_on(true)));
    }
    let table: BTreeMap<_, _> = BUILDS_ON
        .iter()
        .map(|(folder, all, tests)| ((*folder).to_owned(), (words(all), words(tests))))
        .collect();
    for (folder, builds_on) in &found {
        assert_eq!(Some(builds_on), table.get(folder), "what `{folder}` builds on");
    }
    assert_eq!(found.len(), table.len(), "the table has a crate that isn't there");
}

#[test]
fn crates_of_others_stay_with_their_owners() {
    let metadata = metadata();
    for (name, owners) in OWNERS {
        let users: BTreeSet<String> = metadata
            .workspace_packages()
            .into_iter()
            .filter(|package| {
                package
                    .dependencies
                    .iter()
                    .any(|other| other.name == name && other.kind != DependencyKind::Development)
            })
            .map(folder)
            .collect();
        assert_eq!(users, words(owners), "who builds on `{name}`");
    }
}

#[test]
fn protocols_stay_at_the_edge_they_belong_to() {
    for (words, owner, module) in INSIDE {
        let source = root().join(owner).join("src");
        assert!(source.join(format!("{module}.rs")).is_file(), "`{owner}` has no `{module}`");
        for file in rust_files(&source) {
            let inside = is_of(&file, &source, module);
            for word in words {
                assert!(inside || !knows(&file, word), "{} knows `{word}`", file.display());
            }
        }
    }
    for (folder, modules, word) in GUARDS {
        let source = root().join(folder).join("src");
        for module in modules {
            assert!(source.join(format!("{module}.rs")).is_file(), "`{folder}` has no `{module}`");
            for file in rust_files(&source).iter().filter(|file| is_of(file, &source, module)) {
                assert!(!knows(file, word), "{} knows `{word}`", file.display());
            }
        }
    }
}

#[test]
fn only_the_orchestrator_serves_grpc() {
    for (folder, _, _) in BUILDS_ON.iter().filter(|(folder, ..)| *folder != "orchestrator") {
        for file in rust_files(&root().join(folder).join("src")) {
            assert!(!knows(&file, "transport::Server"), "{} serves gRPC", file.display());
        }
    }
}

#[test]
fn nothing_links_openssl() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for name in BANNED {
        assert!(!lock.contains(&format!("name = \"{name}\"\n")), "`{name}` is in Cargo.lock");
    }
}

#[test]
fn the_page_on_architecture_has_a_heading_for_each_crate() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let crates = page.split("\n## ").find(|part| part.starts_with("The crates\n"));
    let crates = crates.expect("there is a heading `## The crates`");
    let headings: Vec<_> =
        crates.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix("/`")).collect();
    let folders: Vec<_> = BUILDS_ON.iter().map(|(folder, ..)| *folder).collect();
    assert_eq!(headings, folders);
}

#[test]
fn every_file_says_what_it_is_for_and_none_is_too_long() {
    let mut wrong = Vec::new();
    for file in rust_files(&root()) {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().count();
        if !text.starts_with("//! ") {
            wrong.push(format!("{} doesn't begin with `//!`", file.display()));
        }
        if lines > LONGEST_FILE {
            wrong.push(format!("{} has {lines} lines: what else is in it?", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_written_on() {
    // In two parts, or this file would name them. `/root` by itself is on every machine.
    let paths = [
        concat!("/wo", "rk/").to_owned(),
        concat!("/root/.ca", "rgo").to_owned(),
        concat!("/root/.rus", "tup").to_owned(),
        format!("{}/", root().display()),
    ];
    let mut wrong = Vec::new();
    for file in files(&root()) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for path in &paths {
            let names = text.match_indices(path.as_str()).any(|(at, _)| {
                // It may end a longer path or an address; it's the root's that is meant.
                let before = text[..at].chars().next_back();
                before.is_none_or(|c| !(c.is_alphanumeric() || "/.-_}>".contains(c)))
            });
            if names {
                wrong.push(format!("{} names `{path}`", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> Metadata {
    MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap()
}

/// The folder of each crate of ours, by its name.
fn folders(metadata: &Metadata) -> BTreeMap<String, String> {
    let packages = metadata.workspace_packages().into_iter();
    packages.map(|package| (package.name.to_string(), folder(package))).collect()
}

fn folder(package: &Package) -> String {
    let folder = package.manifest_path.as_std_path().parent().unwrap();
    folder.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Whether `file` is the module `module` of the crate in `source`, or below it.
fn is_of(file: &Path, source: &Path, module: &str) -> bool {
    let below = file.strip_prefix(source).unwrap();
    below.starts_with(module) || below == Path::new(&format!("{module}.rs"))
}

/// Whether the code in `file`, comments aside, uses `word`.
fn knows(file: &Path, word: &str) -> bool {
    let text = fs::read_to_string(file).unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.match_indices(word).map(move |(at, _)| (line, at))).any(
        |(line, at)| {
            let of_word = |c: char| c.is_alphanumeric() || c == '_';
            let after = &line[at + word.len()..];
            !line[..at].ends_with(of_word) && !after.starts_with(of_word)
        },
    )
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut all = files(folder);
    all.retain(|file| file.extension().is_some_and(|end| end == "rs"));
    all
}

/// Every file below `folder` that is ours: not built, not installed, not git's.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if ["target", "node_modules", ".git", ".venv"].iter().any(|other| name == *other) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}
