//! Replacements as callers see them.

use proptest::prelude::*;

use super::*;

fn one<'a>(old: &'a str, new: &'a str) -> Replacement<'a> {
    Replacement { old, new, all: false }
}

fn all<'a>(old: &'a str, new: &'a str) -> Replacement<'a> {
    Replacement { old, new, all: true }
}

/// What it shows, the file, the edits, the file then.
type Case<'a> = (&'a str, &'a [u8], &'a [Replacement<'a>], &'a [u8]);

#[test]
fn only_what_is_meant_changes() {
    #[rustfmt::skip]
    let cases: [Case<'_>; 16] = [
        // what it shows                      file                           edits                          file then
        ("a word",                            b"a = 1\n",                    &[one("1", "2")],              b"a = 2\n"),
        ("mixed ends and a bare CR",          b"a\r\nb\r\nc\nd\re\r\n",      &[one("b\nc", "B\nC\nX")],     b"a\r\nB\r\nC\r\nX\nd\re\r\n"),
        ("as many lines keep their ends",     b"a\nb\r\nc\n",                &[one("a\nb\nc", "A\nb\nC")],  b"A\nb\r\nC\n"),
        ("CRLF given, LF in the file",        b"a\nb\n",                     &[one("a\r\nb", "x\r\ny")],    b"x\ny\n"),
        ("LF given, CRLF in the file",        b"a\r\nb\r\n",                 &[one("a\nb\n", "a\nb\nc\n")], b"a\r\nb\r\nc\r\n"),
        ("a line is removed whole",           b"a\r\nb\r\nc\r\n",            &[one("b\n", "")],             b"a\r\nc\r\n"),
        ("a line end is removed",             b"a\r\nb\r\n",                 &[one("a\nb", "ab")],          b"ab\r\n"),
        ("no break at the end stays none",    b"a\nb",                       &[one("b", "c")],              b"a\nc"),
        ("the byte order mark stays",         b"\xef\xbb\xbfa\r\n",          &[one("a", "b")],              b"\xef\xbb\xbfb\r\n"),
        ("text to the letter, no template",   b"x",                          &[one("x", r"C:\dir\$1 ${HOME} \0")], br"C:\dir\$1 ${HOME} \0"),
        ("every place",                       b"x x\nx\n",                   &[all("x", "yy")],             b"yy yy\nyy\n"),
        ("each edit sees the one before",     b"a\n",                        &[one("a", "b"), one("b", "c")], b"c\n"),
        ("characters stay whole",             "é è".as_bytes(),              &[one("é", "è")],              "è è".as_bytes()),
        ("overlapping places, left to right", b"aaa",                        &[all("aa", "b")],             b"ba"),
        ("bare CRs are data",                 b"a\rb\n",                     &[one("a\rb", "a\rc")],        b"a\rc\n"),
        ("a NUL is data",                     b"a\0b",                       &[one("b", "c")],              b"a\0c"),
    ];
    for (shows, file, edits, then) in cases {
        let edited = apply(file, edits).unwrap();
        assert_eq!(
            edited.content.escape_ascii().to_string(),
            then.escape_ascii().to_string(),
            "{shows}"
        );
    }
}

#[test]
fn what_is_refused_says_how_to_mend_it() {
    let numbered = "1: fn a() {\n2:   b\n";
    #[rustfmt::skip]
    let cases: [(&str, &[u8], &[Replacement<'_>], &str); 10] = [
        // what it shows          file                     edits                        said
        ("several places",        b"x = 1\ny\nx = 1\nx = 1\n", &[one("x = 1", "z")],    "3 times, at lines 1, 3, 4"),
        ("not there",             b"a\n",                  &[one("b", "c")],            "edit 1: `old_text` is not in the file; nothing"),
        ("the second of two",     b"a\n",                  &[one("a", "b"), one("a", "c")], "edit 2"),
        ("nothing to look for",   b"a\n",                  &[one("", "c")],             "`old_text` is empty"),
        ("nothing to change",     b"a\n",                  &[one("a", "a")],            "changes nothing"),
        ("only ends differ",      b"a\nb",                 &[one("a\nb", "a\r\nb")],    "changes nothing"),
        ("a trailing blank lost", b"a  \nb\n",             &[one("a\nb", "c")],         "line 1 differs from it only in blanks"),
        ("line numbers pasted",   b"fn a() {\n  b\n",      &[one(numbered, "c")],       "line numbers"),
        ("Latin-1",               b"// na\xefve\n",        &[one("na", "nb")],          "not UTF-8 text (it may be Latin-1"),
        ("UTF-16",                b"\xff\xfea\0",          &[one("a", "b")],            "it looks like UTF-16"),
    ];
    for (shows, file, edits, said) in cases {
        let error = apply(file, edits).unwrap_err().to_string();
        assert!(error.contains(said), "{shows}: {error}");
    }
}

proptest! {
    /// Whatever the line ends, text before and after the place keeps its bytes.
    #[test]
    fn bytes_around_the_place_stay(
        before in "([a-c]|\r|\n|\r\n|é){0,20}",
        after in "([a-c]|\r|\n|\r\n|é){0,20}",
        new in "([x-z]|\n){0,8}",
    ) {
        // A break between, so that no `\r` and `\n` meet across the place.
        let file = format!("{before}|OLD|{after}");
        let edited = apply(file.as_bytes(), &[one("OLD", &new)]).unwrap();
        let content = String::from_utf8(edited.content).unwrap();
        let head = format!("{before}|");
        let tail = format!("|{after}");
        prop_assert!(content.starts_with(&head));
        prop_assert!(content.ends_with(&tail));
        let middle = &content[head.len()..content.len() - tail.len()];
        prop_assert_eq!(middle.replace("\r\n", "\n"), new);
    }

    /// Replacing and replacing back gives the same file when ends are uniform.
    #[test]
    fn there_and_back_is_the_same_file(
        lines in prop::collection::vec("[a-d]{0,4}", 1..12),
        crlf in any::<bool>(),
        at in any::<prop::sample::Index>(),
    ) {
        let ending = if crlf { "\r\n" } else { "\n" };
        let mut lines = lines;
        let at = at.index(lines.len());
        lines[at] = "HERE".into();
        let file = lines.join(ending);
        let there = apply(file.as_bytes(), &[one("HERE", "one\nTHERE\nthree")]).unwrap().content;
        let back = apply(&there, &[one("one\nTHERE\nthree", "HERE")]).unwrap().content;
        prop_assert_eq!(String::from_utf8(back).unwrap(), file);
    }
}
