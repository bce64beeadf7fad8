//! `workspace_read`: what comes back and how it goes on.

use serde_json::{Value, json};

use crate::driver::{Client, Workspace, digest};

fn lines(from: usize, to: usize) -> String {
    (from..=to).map(|line| format!("line {line}\n")).collect()
}

#[test]
fn the_text_comes_exactly_and_the_note_tells_the_rest() {
    #[rustfmt::skip]
    let cases: [(&str, &str, Value, &str, &str); 9] = [
        // what it is          file            arguments                  text           note begins
        ("a small file",       "a\nb\n",       json!({}),                 "a\nb\n",      "[f: all 2 lines, 4 bytes, digest "),
        ("no break at its end","a\nb",         json!({}),                 "a\nb",        "[f: all 2 lines, 3 bytes, digest "),
        ("an empty file",      "",             json!({}),                 "",            "[f: empty, 0 bytes, digest "),
        ("some lines",         "a\nb\nc\n",    json!({"offset": 2, "limit": 1}), "b\n",  "[f: lines 2-2 of 3, 6 bytes, digest "),
        ("the last lines",     "a\nb\nc\n",    json!({"offset": 2}),      "b\nc\n",      "[f: lines 2-3 of 3, 6 bytes, digest "),
        ("beyond the end",     "a\n",          json!({"offset": 9}),      "",            "[f: lines in it: 1; nothing at 9, 2 bytes"),
        ("line ends as is",    "a\r\nb\rc\n",  json!({}),                 "a\r\nb\rc\n", "[f: all 2 lines, 7 bytes, digest "),
        ("a byte order mark",  "\u{feff}a\n",  json!({}),                 "\u{feff}a\n", "[f: all 1 line, 5 bytes, digest "),
        ("offset 0 is 1",      "a\n",          json!({"offset": 0}),      "a\n",         "[f: all 1 line"),
    ];
    let workspace = Workspace::new();
    let mut client = Client::start(&workspace);
    for (what, file, arguments, text, note) in cases {
        workspace.put("f", file);
        let mut arguments = arguments;
        arguments["path"] = json!("f");
        let answer = client.call("workspace_read", arguments).unwrap();
        assert_eq!(answer[0], text, "{what}");
        assert!(answer[1].starts_with(note), "{what}: {}", answer[1]);
    }
}

#[test]
fn a_long_file_is_read_in_parts_that_join_to_the_whole() {
    let whole = lines(1, 4321);
    let workspace = Workspace::with(&[("long.txt", &whole)]);
    let mut client = Client::start(&workspace);
    let (mut joined, mut offset, mut parts) = (String::new(), 1, 0);
    loop {
        let answer =
            client.call("workspace_read", json!({"path": "long.txt", "offset": offset})).unwrap();
        let all: usize = answer.iter().map(String::len).sum();
        let breaks = answer.join("\n\n").lines().count();
        assert!(all <= 50 * 1024 && breaks <= 2000, "{all} bytes, {breaks} lines");
        joined.push_str(&answer[0]);
        parts += 1;
        match answer[1].split_once("go on with `offset` ") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(joined, whole);
    assert!(parts > 2);
}

#[test]
fn a_line_that_is_too_long_is_cut_and_says_how_to_get_it() {
    let workspace = Workspace::with(&[("wide.txt", &format!("{}\nnext\n", "é".repeat(40_000)))]);
    let mut client = Client::start(&workspace);
    let answer = client.call("workspace_read", json!({"path": "wide.txt"})).unwrap();
    assert!(answer[0].chars().all(|c| c == 'é') && answer[0].len() > 49_000);
    assert!(answer[1].contains("line 1 is cut here after"), "{}", answer[1]);
    assert!(answer[1].contains("larger `max_bytes`"), "{}", answer[1]);
    let whole = json!({"path": "wide.txt", "max_bytes": 100_000});
    assert_eq!(client.call("workspace_read", whole).unwrap()[0].len(), 80_006);
    let error =
        client.refused("workspace_read", json!({"path": "wide.txt", "max_bytes": 9_000_000}));
    assert!(error.contains("at most 4194304"), "{error}");
}

#[test]
fn a_mebibyte_is_read_at_once_when_asked_for() {
    let whole = lines(1, 100_000);
    let workspace = Workspace::with(&[("big.txt", &whole)]);
    let mut client = Client::start(&workspace);
    let answer =
        client.call("workspace_read", json!({"path": "big.txt", "max_bytes": 4_194_304})).unwrap();
    assert_eq!(answer[0], whole);
    let short = client.call("workspace_read", json!({"path": "big.txt", "limit": 1})).unwrap();
    assert_eq!(digest(&short[1]), digest(&answer[1]));
}

#[test]
fn arguments_that_do_not_fit_are_explained() {
    let workspace = Workspace::with(&[("a", "a")]);
    let mut client = Client::start(&workspace);
    #[rustfmt::skip]
    let cases: [(Value, &[&str]); 6] = [
        // arguments                            said
        (json!({}),                             &["missing field `path`", "it takes `path` (required), `offset`"]),
        (json!({"path": 1}),                    &["`path`: invalid type: integer `1`, expected a string"]),
        (json!({"path": "a", "offset": "2"}),   &["`offset`: invalid type: string \"2\""]),
        (json!({"path": "a", "offset": -1}),    &["`offset`: invalid value"]),
        (json!({"path": "a", "file": "b"}),     &["unknown field `file`"]),
        (json!({"path": "../a"}),               &["`path`: `../a` holds `..`"]),
    ];
    for (arguments, said) in cases {
        let error = client.refused("workspace_read", arguments.clone());
        for words in said {
            assert!(error.contains(words), "{arguments}: {error}");
        }
    }
    let error = client.refused("workspace_reed", json!({}));
    assert!(error.contains("-32602") && error.contains("close to it: `workspace_read`"), "{error}");
}
