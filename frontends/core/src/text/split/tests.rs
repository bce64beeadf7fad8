//! Where a text is cut, and that nothing of it is lost.

use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use proptest::{prop_assert, prop_assert_eq};

use super::*;

#[test]
fn pieces_break_where_it_disturbs_least() {
    #[rustfmt::skip]
    let cases: [(&str, &str, usize, &[&str]); 16] = [
        // what it shows                text                         longest  pieces
        ("nothing gives nothing",       " \n ",                        10, &[]),
        ("short text stays whole",      "hello\n",                     10, &["hello"]),
        ("a paragraph is best",         "one\ntwo\n\nthree\nfour",     16, &["one\ntwo", "three\nfour"]),
        ("unless it leaves little",     "a\n\nbbbb bbbb\ncccc",        13, &["a\n\nbbbb bbbb", "cccc"]),
        ("then a line",                 "one two\nthree four",         12, &["one two", "three four"]),
        ("then a word",                 "one two three",                9, &["one two", "three"]),
        ("a word that just fits",       "one two three",                7, &["one two", "three"]),
        ("white space at cuts goes",    "one   \n\n  two",              5, &["one", "  two"]),
        ("a long word is cut",          "abcdefgh",                     4, &["abcd", "efgh"]),
        ("a URL is cut at its marks",   "http://example.org/abc",      19, &["http://example.org/", "abc"]),
        ("no character is halved",      "ééé",                          4, &["éé", "é"]),
        ("nor one that is many",        "a👩‍🚀b",                          12, &["a👩‍🚀", "b"]),
        ("unless it's too long",        "👩‍🚀",                            8, &["👩‍", "🚀"]),
        ("a short line before a long word", "see\nabcdefghij",          10, &["see", "abcdefghij"]),
        ("spaces before a long word",   "    abcdefgh",                  8, &["abcdefgh"]),
        ("Chinese has no spaces",       "你好世界",                       7, &["你好", "世界"]),
    ];
    for (shows, text, longest, pieces) in cases {
        assert_eq!(split(text, Length::bytes(longest)), pieces, "{shows}");
    }
}

#[test]
fn code_stays_code() {
    #[rustfmt::skip]
    let cases: [(&str, &str, usize, &[&str]); 7] = [
        ("a block is closed and opened again",
         "```js\nfirst();\nsecond();\nthird();\n```\nend", 44,
         &["```js\nfirst();\nsecond();\nthird();\n```\nend"]),
        ("with the line that opened it",
         "```js\nfirst();\n\n  second();\nthird();\nlast();\n```\nend", 40,
         &["```js\nfirst();\n\n  second();\nthird();\n```", "```js\nlast();\n```\nend"]),
        ("its own end isn't sent twice",
         "```js\nfirst();\nsecond();\nthird();\n```\n\nend", 40,
         &["```js\nfirst();\nsecond();\nthird();\n```", "end"]),
        ("it isn't opened just to be closed",
         "some words before\nand more of them\n```js\nfirst();\n```", 42,
         &["some words before\nand more of them", "```js\nfirst();\n```"]),
        ("a long line is cut inside",
         "```\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n```", 36,
         &["```\naaaaaaaaaaaaaaaaaaaaaaaaaaaa\n```", "```\naaaaaaaaaaaa\n```"]),
        ("an end that is missing stays so",
         "```\nfirst line of code\nsecond line of code", 36,
         &["```\nfirst line of code\n```", "```\nsecond line of code"]),
        ("a fence that is long for a piece isn't repeated",
         "```js\nabc\nabcd\n```", 12,
         &["```js\nabc", "abcd\n```"]),
    ];
    for (shows, text, longest, pieces) in cases {
        assert_eq!(split(text, Length::characters(longest)), pieces, "{shows}");
    }
}

#[test]
fn a_character_longer_than_many_pieces_takes_linear_time() {
    let text = format!("e{}", "\u{301}".repeat(200_000));
    assert!(split(&text, Length::utf16(2000)).len() >= 100);
}

fn texts() -> impl Strategy<Value = String> {
    let bits = prop_oneof![
        "[a-z]{1,12}",
        "[ \n\t]{1,3}",
        "\n```[a-z]{0,4}\n",
        "\n {0,4}(~~~~|````)\n",
        prop::sample::select(vec![
            "👩‍🚀",
            "é",
            "e\u{301}\u{302}",
            "🇵🇹🇧🇷",
            "中文",
            "\r\n",
            "`x`",
            "\n\n"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec(bits, 0..40).prop_map(|bits| bits.concat())
}

fn lengths() -> impl Strategy<Value = Length> {
    let most = prop_oneof![4..12_usize, 12..120_usize];
    (most, 0..3).prop_map(|(most, unit)| match unit {
        0 => Length::bytes(most),
        1 => Length::utf16(most),
        _ => Length::characters(most),
    })
}

/// White space, or lines that close a code block.
fn may_be_lost(text: &str) -> bool {
    text.lines().all(|line| line.trim().trim_matches(['`', '~']).is_empty())
}

proptest! {
    #[test]
    fn pieces_fit_and_hold_the_whole_text_in_order(text in texts(), longest in lengths()) {
        let parts = parts(&text, longest);
        let mut at = 0;
        for part in &parts {
            let piece = part.to_string();
            prop_assert!(longest.fits(&piece), "{piece:?} is too long");
            prop_assert!(!piece.trim().is_empty());
            let starts = part.body.as_ptr().addr() - text.as_ptr().addr();
            prop_assert!(starts >= at && may_be_lost(&text[at..starts]), "lost {:?}", &text[at..starts]);
            at = starts + part.body.len();
        }
        prop_assert!(may_be_lost(&text[at..]), "lost {:?}", &text[at..]);
    }

    #[test]
    fn words_stay_whole_where_they_fit(words in prop::collection::vec("[a-zé]{1,8}", 1..60), most in 16..64_usize) {
        let pieces = split(&words.join(" "), Length::bytes(most));
        let again: Vec<_> = pieces.iter().flat_map(|piece| piece.split(' ')).collect();
        prop_assert_eq!(again, words);
    }

    #[test]
    fn the_same_text_gives_the_same_pieces(text in texts(), longest in lengths()) {
        prop_assert_eq!(split(&text, longest), split(&text, longest));
    }
}
