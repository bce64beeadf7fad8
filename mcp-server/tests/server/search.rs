//! `workspace_search` and `workspace_list`.

use serde_json::{Value, json};

use crate::driver::{Client, Workspace};

#[test]
fn lines_are_found_with_their_place() {
    let workspace = Workspace::with(&[
        ("a.md", "one\nTwo needle\nthree\nneedle needle\n"),
        ("sub/b.txt", "a.b\r\naxb\r\n"),
        ("bin", "needle\0"),
    ]);
    #[rustfmt::skip]
    let cases: [(&str, Value, &str); 9] = [
        // what it shows          arguments                                       found
        ("plain text",            json!({"pattern": "needle"}),                   "a.md:2: Two needle\na.md:4: needle needle\n"),
        ("case told apart",       json!({"pattern": "two", "case_sensitive": true}), "[nothing found in 3 files]"),
        ("case not told apart",   json!({"pattern": "two"}),                      "a.md:2: Two needle\n"),
        ("plain text is plain",   json!({"pattern": "a.b"}),                      "sub/b.txt:1: a.b\n"),
        ("an expression",         json!({"pattern": "a.b$", "regex": true}),      "sub/b.txt:1: a.b\nsub/b.txt:2: axb\n"),
        ("by name",               json!({"pattern": "e", "glob": "*.txt"}),       "[nothing found in 1 files]"),
        ("in a folder",           json!({"pattern": "axb", "path": "sub"}),       "sub/b.txt:2: axb\n"),
        ("at a line's start",     json!({"pattern": "^t", "regex": true}),        "a.md:2: Two needle\na.md:3: three\n"),
        ("every line",            json!({"pattern": "^", "regex": true, "glob": "*.txt"}), "sub/b.txt:1: a.b\nsub/b.txt:2: axb\n"),
    ];
    let mut client = Client::start(&workspace);
    for (shows, arguments, found) in cases {
        assert_eq!(client.call("workspace_search", arguments).unwrap()[0], found, "{shows}");
    }
    for (pattern, said) in
        [("(", "no regular expression"), ("", "empty"), ("a{9999}{9999}", "no regular expression")]
    {
        let error = client.refused("workspace_search", json!({"pattern": pattern, "regex": true}));
        assert!(error.contains(said), "{pattern}: {error}");
    }
}

#[test]
fn much_to_find_is_bounded_and_says_so() {
    let workspace = Workspace::with(&[("many.txt", &"needle\n".repeat(1000))]);
    workspace.put("wide.txt", format!("{}needle{}", "x".repeat(5000), "y".repeat(5000)));
    let mut client = Client::start(&workspace);
    let answer =
        client.call("workspace_search", json!({"pattern": "needle", "glob": "many*"})).unwrap();
    assert_eq!(answer[0].lines().count(), 200);
    assert!(answer[1].contains("there may be more"), "{}", answer[1]);
    let wide =
        client.call("workspace_search", json!({"pattern": "needle", "glob": "wide*"})).unwrap();
    assert!(wide[0].len() < 300 && wide[0].contains("xneedley"), "{}", wide[0]);
}

#[test]
fn a_long_list_shows_the_upper_levels_and_says_so() {
    let workspace = Workspace::new();
    for index in 0..600 {
        workspace.put(&format!("top{index:03}"), "");
        workspace.put(&format!("deep/er/{index:03}"), "");
    }
    let mut client = Client::start(&workspace);
    let answer = client.call("workspace_list", json!({})).unwrap();
    assert_eq!(answer[0].lines().count(), 1000);
    assert_eq!(answer[0].lines().filter(|line| line.starts_with("top")).count(), 600);
    assert!(answer[1].contains("only 1000 entries of more"), "{}", answer[1]);
    let answer = client.call("workspace_list", json!({"depth": 1})).unwrap();
    assert_eq!(answer[0].lines().count(), 601);
    let answer = client.call("workspace_list", json!({"path": "deep", "glob": "00*"})).unwrap();
    assert_eq!(answer[0].lines().count(), 10);
    assert_eq!(client.call("workspace_list", json!({"glob": "none"})).unwrap(), ["[nothing in .]"]);
    let error = client.refused("workspace_list", json!({"path": "top000"}));
    assert_eq!(error, "`top000` is not a folder");
}
