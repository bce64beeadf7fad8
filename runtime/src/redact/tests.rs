//! What is found in a text, what is left, and that nothing slips through.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn redactor(secrets: &[(&str, &str)]) -> Redactor {
    Redactor::new(secrets.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())))
}

fn streamed<'a>(redactor: &Redactor, pieces: impl IntoIterator<Item = &'a str>) -> String {
    let mut stream = redactor.stream();
    let mut text: String = pieces.into_iter().map(|piece| stream.push(piece)).collect();
    text += &stream.finish();
    text
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

#[test]
fn the_mark_stands_where_the_value_stood() {
    #[rustfmt::skip]
    let cases = [
        // what it shows         text                                        redacted
        ("nothing there",        "a quiet text",                             "a quiet text"),
        ("as it is",             "key=Zx9-Kq77-Lm!",                         "key=[REDACTED:K]!"),
        ("all of the text",      "Zx9-Kq77-Lm",                              "[REDACTED:K]"),
        ("twice",                "Zx9-Kq77-LmZx9-Kq77-Lm",                   "[REDACTED:K][REDACTED:K]"),
        ("beside other letters", "éZx9-Kq77-Lmé",                            "é[REDACTED:K]é"),
        ("upper case",           "ZX9-KQ77-LM",                              "[REDACTED:K]"),
        ("backwards",            "<mL-77qK-9xZ>",                            "<[REDACTED:K]>"),
        ("hex",                  "5a78392d4b7137372d4c6d",                   "[REDACTED:K]"),
        ("HEX",                  "5A78392D4B7137372D4C6D",                   "[REDACTED:K]"),
        ("hex escapes",          r"\x5a\x78\x39\x2d\x4b\x71\x37\x37\x2d\x4c\x6d", "[REDACTED:K]"),
        ("all percent",          "%5a%78%39%2d%4B%71%37%37%2d%4c%6d",        "[REDACTED:K]"),
        ("some percent",         "?k=Zx9%2dKq%377-Lm&x",                     "?k=[REDACTED:K]&x"),
        ("percent twice",        "Zx9%252dKq77%25%32%64Lm",                  "[REDACTED:K]"),
        ("JSON escapes",         r#"{"a":"\u005ax9\u002dKq77-Lm"}"#,         r#"{"a":"[REDACTED:K]"}"#),
        ("Markdown escapes",     r"Zx9\-Kq77\-Lm\!",                         r"[REDACTED:K]\!"),
        ("HTML escapes",         "&#90;x9&#x2D;Kq77&hyphen;Lm",              "[REDACTED:K]"),
        ("HTML and percent",     "&amp;#90;x9%2dKq77-Lm",                    "[REDACTED:K]"),
        ("broken over lines",    "Zx9-Kq\r\n77-Lm",                          "[REDACTED:K]"),
        ("a paragraph is not",   "Zx9-Kq\n\n77-Lm",                          "Zx9-Kq\n\n77-Lm"),
        ("behind a stray sign",  r"C:\%4Zx9-Kq77-Lm",                        r"C:\%4[REDACTED:K]"),
        // What is documented as not found.
        ("a part",               "x9-Kq77-Lm",                               "x9-Kq77-Lm"),
        ("spaced out",           "Z x 9 - K q 7 7 - L m",                    "Z x 9 - K q 7 7 - L m"),
    ];
    let redactor = redactor(&[("K", "Zx9-Kq77-Lm")]);
    for (shows, text, redacted) in cases {
        assert_eq!(redactor.redact(text), redacted, "{shows}");
        assert_eq!(streamed(&redactor, [text]), redacted, "{shows}, streamed");
        assert_eq!(streamed(&redactor, text.split_inclusive("")), redacted, "{shows}, by letters");
    }
}

#[test]
fn percent_and_form_encodings_of_odd_characters_are_found() {
    let redactor = redactor(&[("P", "p@ss/w+rd %25&é")]);
    for text in [
        "p@ss/w+rd %25&é",
        "p%40ss%2Fw%2Brd%20%2525%26%C3%A9",
        "p%40ss%2fw%2brd%20%2525%26%c3%a9",
        "p%40ss%2Fw%2Brd+%2525%26%C3%A9",
        "p%40ss/w%2Brd%20%2525%26%C3%A9",
        "p%2540ss%252Fw%252Brd%2520%252525%2526%25C3%25A9",
        "p@ss\\/w+rd %25&\\u00e9",
        "p@ss/w+rd %25&amp;é",
        "p@ss/w+rd %25&amp;&#233;",
        "é&52% dr+w/ss@p",
        "9A%3C%62%5252%02%drB2%wF2%ss04%p",
        "é;pma&52% dr+w/ss@p",
    ] {
        assert_eq!(redactor.redact(text), "[REDACTED:P]");
    }
}

#[test]
fn base64_is_found_in_each_alignment_and_nothing_of_it_is_left() {
    let secret = "tok-4f9Q2z";
    let redactor = redactor(&[("T", secret)]);
    for (before, after) in
        [("", ""), ("", "\n"), ("user:", ""), ("x:", ";y"), ("ab", ""), ("", "+/"), ("abc", "d")]
    {
        let plain = [before, secret, after].concat();
        let standard = BASE64_STANDARD.encode(&plain);
        let wrapped: Vec<_> = standard.as_bytes().chunks(5).map(String::from_utf8_lossy).collect();
        for text in [
            BASE64_URL_SAFE_NO_PAD.encode(&plain),
            wrapped.join("\n"),
            wrapped.join("\\r\\n"),
            backwards(&standard),
            BASE64_STANDARD.encode(backwards(&plain)),
            standard.replace('/', "\\/").replace('+', "%2B"),
            standard,
        ] {
            let redacted = redactor.redact(&format!("<{text}>")).into_owned();
            assert!(redacted.contains("[REDACTED:T]"), "{text}");
            let left = redacted.replace("[REDACTED:T]", "").replace(['\n', '\\'], "");
            // Only whole bytes of what stood around it, and padding.
            let around = (before.len() + after.len()).div_ceil(3) * 4 + 8;
            assert!(left.len() <= around, "{text}: {redacted}");
        }
    }
}

#[test]
fn of_values_that_overlap_nothing_is_left_and_the_first_names_them() {
    type Named<'a> = (&'a str, &'a str);
    #[rustfmt::skip]
    let cases: [(&[Named<'_>], &str, &str); 6] = [
        (&[("A", "abcdef"), ("B", "abcdefghij")],   "<abcdefghij>",     "<[REDACTED:B]>"),
        (&[("A", "abcdef"), ("B", "efghijkl")],     "<abcdefghijkl>",   "<[REDACTED:A]>"),
        (&[("A", "cdefgh"), ("B", "abcdefghij")],   "<abcdefghij>",     "<[REDACTED:B]>"),
        (&[("A", "abcdef"), ("B", "ghijkl")],       "<abcdefghijkl>",   "<[REDACTED:A][REDACTED:B]>"),
        (&[("Z", "zap77zap77")],                    "<zap77zap77zap77>", "<[REDACTED:Z]>"),
        (&[("A", "abcdef"), ("B", "abcdef")],       "<abcdef>",         "<[REDACTED:A]>"),
    ];
    for (secrets, text, redacted) in cases {
        let redactor = redactor(secrets);
        assert_eq!(redactor.redact(text), redacted);
        for cut in 0..=text.len() {
            let (a, b) = text.split_at(cut);
            assert_eq!(streamed(&redactor, [a, b]), redacted, "{a} {b}");
        }
        assert_eq!(streamed(&redactor, text.split_inclusive("")), redacted);
    }
}

#[test]
fn values_that_would_be_found_everywhere_are_refused() {
    for value in ["", "e", "[\n]", "build", "7", "      ", "  abc  ", "redacted", "REDACTED:"] {
        assert!(Redactor::check(value).is_err(), "{value:?}");
        let text = "build step e [\"n\", 77] redacted:       x";
        assert!(matches!(redactor(&[("S", value)]).redact(text), Cow::Borrowed(_)), "{value:?}");
    }
    assert_eq!(Redactor::check(&"x".repeat(70_000)), Err(Unfit::TooLong));
    assert_eq!(Redactor::check(" abcdef\n"), Ok(()));
}

#[test]
fn a_value_of_several_lines_is_found_whole_and_by_its_long_lines() {
    let key = "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0B\r\nshort\r\nAQEFAASCBKcwggSjAgEA\r\n\
               -----END KEY-----\r\n";
    let redactor = redactor(&[("PEM", key)]);
    #[rustfmt::skip]
    let cases = [
        (key.trim().to_owned(),               "[REDACTED:PEM]"),
        (key.trim().replace("\r\n", "\n"),    "[REDACTED:PEM]"),
        (key.trim().replace("\r\n", "\\n"),   "[REDACTED:PEM]"),
        (key.trim().replace("\r\n", ""),      "[REDACTED:PEM]"),
        (key.trim().replace("\r\n", "%0D%0A"), "[REDACTED:PEM]"),
        ("a AQEFAASCBKcwggSjAgEA b".to_owned(), "a [REDACTED:PEM] b"),
        ("AQEFAASCBKcwggSjAgEA\n\nMIIEvQIBADANBgkqhkiG9w0B".to_owned(), "[REDACTED:PEM]\n\n[REDACTED:PEM]"),
        ("short -----BEGIN KEY-----".to_owned(), "short -----BEGIN KEY-----"),
    ];
    for (text, redacted) in cases {
        assert_eq!(redactor.redact(&text), redacted, "{text:?}");
    }
}

#[test]
fn a_long_value_is_found_and_takes_no_time_for_ever() {
    let value: String = (0..8000).map(|i| char::from(b'a' + (i * i % 23) as u8)).collect();
    let redactor = redactor(&[("L", &value)]);
    let text = format!("<{value}> {} {}", BASE64_STANDARD.encode(&value), backwards(&value));
    let redacted = redactor.redact(&text).into_owned();
    assert_eq!(redacted.matches("[REDACTED:L]").count(), 3, "{redacted}");
}

#[test]
fn ordinary_text_passes_a_stream_at_once() {
    let redactor = redactor(&[("K", "correct-horse-42-battery")]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push("All is well."), "All is well.");
    assert_eq!(stream.push(" It is corre"), " It is ");
    assert_eq!(stream.push("lated."), "correlated.");
    assert_eq!(stream.push("correct-horse-42-batter"), "");
    assert_eq!(stream.push("y!"), "[REDACTED:K]!");
    assert_eq!(stream.push("100%"), "100");
    assert_eq!(stream.finish(), "%");
    assert_eq!(stream.push("again."), "again.");
}

#[test]
fn a_stream_holds_back_no_more_than_a_value() {
    let redactor = redactor(&[("Z", "zap77zap77"), ("K", "correct-horse-42-battery")]);
    for piece in ["zap77", "\n", "\\n", "%25", "\\", "&amp;", "c\n", "%63"] {
        let mut stream = redactor.stream();
        let mut given = 0;
        for sent in 1..2000 {
            given += stream.push(piece).replace("[REDACTED:Z]", "zap77").len();
            let held = sent * piece.len() - given;
            assert!(piece == "zap77" || held <= 60, "{piece:?} {held}");
        }
        assert!(stream.finish().len() <= 60);
    }
}

#[test]
fn json_is_redacted_in_keys_strings_and_numbers() {
    let redactor = redactor(&[("K", "Zx9-Kq77-Lm"), ("PIN", "48151623")]);
    let mut value = json!({
        "Zx9-Kq77-Lm": 1, "plain": [true, null, 2.5, "a Zx9-Kq77-Lm"],
        "zx9-kq77-lm": {"deep": [48151623, "\u{5a}x9-Kq77-Lm"]}, "last": 4815162,
    });
    assert!(redactor.redact_json(&mut value));
    assert_eq!(
        value.to_string(),
        json!({
            "[REDACTED:K]": 1, "plain": [true, null, 2.5, "a [REDACTED:K]"],
            "[REDACTED:K] 2": {"deep": ["[REDACTED:PIN]", "[REDACTED:K]"]}, "last": 4815162,
        })
        .to_string()
    );
    assert!(!redactor.redact_json(&mut value));
}

#[test]
fn clones_learn_of_new_secrets_and_nobody_prints_them() {
    let redactor = redactor(&[("OLD", "old-secret")]);
    let clone = redactor.clone();
    let mut stream = redactor.stream();
    assert_eq!(stream.push("new-"), "new-");
    redactor.replace([("NEW".to_owned(), "new-secret".into())]);
    assert_eq!(clone.redact("old-secret new-secret"), "old-secret [REDACTED:NEW]");
    assert_eq!(stream.push("new-secret."), "[REDACTED:NEW].");
    assert_eq!(format!("{redactor:?}"), "Redactor { secrets: 1 }");
    stream.push("new-sec");
    assert!(!format!("{stream:?}").contains("new-sec"), "{stream:?}");
}

/// A value as somebody might write it, never in two letters the same way.
fn escaped(value: &str, how: &[u8]) -> String {
    value
        .chars()
        .zip(how.iter().cycle())
        .map(|(c, how)| {
            let percent = |c: char| -> String {
                c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
            };
            let units = |c: char| -> String {
                c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect()
            };
            match how % 8 {
                0 => percent(c),
                1 => percent(c).to_lowercase(),
                2 => units(c),
                3 => format!("&#{};", u32::from(c)),
                4 => format!("&#x{:x};", u32::from(c)),
                5 => percent(c).replace('%', "%25"),
                6 => units(c).replace('\\', "\\\\"),
                _ => c.to_string(),
            }
        })
        .collect()
}

/// Cuts `text` into pieces of about these lengths.
fn pieces<'a>(mut text: &'a str, lengths: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        if text.is_empty() {
            break;
        }
        let (piece, rest) = text.split_at(text.ceil_char_boundary((*length).min(text.len())));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

const SECRET: &str = "[!-~]{2}[ -~é😀]{4,20}[!-~]{2}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_spelling_survives_in_any_surrounding_or_chunking(
        secret in SECRET,
        before in "[ -~\n]{0,9}",
        after in "[ -~\n]{0,9}",
        how in proptest::collection::vec(any::<u8>(), 1..9),
        lengths in proptest::collection::vec(1_usize..9, 1..5),
        kind in 0..8,
    ) {
        prop_assume!(Redactor::check(&secret).is_ok());
        let redactor = redactor(&[("S", &secret)]);
        let around = [before.as_str(), &secret, &after].concat();
        let spelt = match kind {
            1 => backwards(&secret),
            2 => hex(&secret),
            3 => hex(&backwards(&secret)),
            0 | 4 => BASE64_STANDARD.encode(&around),
            5 => BASE64_URL_SAFE_NO_PAD.encode(&around),
            6 => backwards(&BASE64_STANDARD.encode(&around)),
            _ => escaped(&secret, &how),
        };
        let text = format!("{before}{spelt}{after}");
        let redacted = redactor.redact(&text).into_owned();
        prop_assert!(redacted.contains("[REDACTED:S]"), "{text} {redacted}");
        prop_assert!(!redacted.contains(&spelt), "{text} {redacted}");
        prop_assert_eq!(streamed(&redactor, pieces(&text, &lengths)), redacted);
    }

    #[test]
    fn a_stream_gives_what_the_whole_text_would(
        secrets in proptest::collection::vec("[ab]{6,9}", 1..4),
        text in "[ab\n%+]{0,60}",
        lengths in proptest::collection::vec(1_usize..9, 1..5),
    ) {
        let named: Vec<_> = secrets.iter().map(|secret| ("S", secret.as_str())).collect();
        let redactor = redactor(&named);
        let redacted = redactor.redact(&text).into_owned();
        for secret in &secrets {
            prop_assert!(!redacted.contains(secret.as_str()));
        }
        prop_assert_eq!(streamed(&redactor, pieces(&text, &lengths)), redacted);
    }

    #[test]
    fn text_without_secrets_stays_as_it_is(
        text in "[a-z0-9 %&;\\\\\"/+\n\u{e9}]{0,200}",
        lengths in proptest::collection::vec(1_usize..9, 1..5),
    ) {
        let redactor = redactor(&[("S", "~Secret-Value~"), ("T", "#1#2#3#4")]);
        prop_assert!(matches!(redactor.redact(&text), Cow::Borrowed(_)));
        prop_assert_eq!(streamed(&redactor, pieces(&text, &lengths)), text);
    }

    #[test]
    fn no_text_makes_it_panic(secret in "\\PC{6,12}", text in "[\\PC%&\\\\#xu;{}0-9a-f\r\n]{0,80}") {
        let redactor = redactor(&[("S", &secret)]);
        let whole = redactor.redact(&text).into_owned();
        prop_assert_eq!(streamed(&redactor, text.split_inclusive("")), whole);
    }
}
