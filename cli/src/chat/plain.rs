//! Makes somebody else's text harmless for a terminal.

use std::borrow::Cow;

/// `text` without anything that a terminal would obey: escape sequences and all
/// other control characters but line breaks and tabs become visible signs, and so
/// do the marks that turn the reading direction around.
///
/// For whatever a model, a tool or a person elsewhere wrote. A terminal's own
/// answers to a sequence (a title, a clipboard) would come back as typed text.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // A line break of another system, not a jump to the line's begin.
            '\r' if rest.peek() == Some(&'\n') => {}
            c if is_harmful(c) => shown.push(sign(c)),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn is_harmful(c: char) -> bool {
    let reverses = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\n' && c != '\t') || reverses
}

/// Unicode has pictures for the oldest control characters.
fn sign(c: char) -> char {
    match u32::from(c) {
        low @ 0..=0x1f => char::from_u32(0x2400 + low).unwrap_or('\u{fffd}'),
        0x7f => '\u{2421}',
        _ => '\u{fffd}',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_would_obey_is_left() {
        #[rustfmt::skip]
        let cases = [
            // what it shows        text                             shown
            ("plain text",          "a\tb\nç 👩‍🚀",                     "a\tb\nç 👩‍🚀"),
            ("a colour",            "\x1b[31mred\x1b[0m",            "␛[31mred␛[0m"),
            ("a title",             "\x1b]0;title\x07",              "␛]0;title␇"),
            ("one in eight bits",   "\u{9b}2J",                      "\u{fffd}2J"),
            ("erasing",             "secret\x08\x08\x7f",            "secret␈␈␡"),
            ("overwriting a line",  "yes\rno",                       "yes␍no"),
            ("lines of Windows",    "a\r\nb",                        "a\nb"),
            ("turned around",       "a\u{202e}b",                    "a\u{fffd}b"),
        ];
        for (shows, text, shown) in cases {
            assert_eq!(harmless(text), shown, "{shows}");
        }
    }
}
