//! What a place in a text may be read as.
//!
//! `%41` is three characters or an `A`; which of them whoever wrote it meant
//! can't be told, so all readings are followed.

use std::ops::Range;

/// How often a text may have been escaped, one way after the other.
const LAYERS: u8 = 3;

/// The most bytes of text that are read as one character.
pub(super) const LONGEST: usize = 48;

/// One way to read the text from some place on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    bytes: [u8; 4],
    length: u8,
    /// Where the text goes on.
    pub(super) next: usize,
}

impl Reading {
    fn byte(byte: u8, next: usize) -> Self {
        Self { bytes: [byte, 0, 0, 0], length: 1, next }
    }

    fn char(char: char, next: usize) -> Self {
        let mut bytes = [0; 4];
        let length = char.encode_utf8(&mut bytes).len();
        Self { bytes, length: u8::try_from(length).expect("at most four"), next }
    }

    fn nothing(next: usize) -> Self {
        Self { bytes: [0; 4], length: 0, next }
    }

    /// What is read: a byte, a character's bytes, or nothing.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn is(&self, byte: u8) -> bool {
        self.bytes() == [byte]
    }
}

/// Whether a place that holds this byte has more readings than one.
pub(super) const fn is_ambiguous(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&' | b'+' | b'\n' | b'\r')
}

/// Whether an ambiguous byte stands for itself after all, as can be told at a
/// glance: most do in programs and prose.
pub(super) fn is_plain(text: &[u8], at: usize) -> bool {
    let Some(&next) = text.get(at + 1) else { return false };
    match text[at] {
        // A digit may be an escape itself: `%%34%31`.
        b'%' if next == b'%' => text.get(at + 2).is_some_and(|digit| !digit.is_ascii_hexdigit()),
        b'%' => !next.is_ascii_hexdigit() && !is_ambiguous(next),
        // Two of a value's, three layers deep, are sixteen. Of a longer run only
        // the end is read, or hostile text would cost too much.
        b'\\' => text[at..].starts_with(&[b'\\'; 17]),
        b'&' => {
            let name = text[at + 1..].iter().take_while(|byte| is_of_entity(**byte)).count();
            text.get(at + 1 + name).is_some_and(|end| *end != b';')
        }
        _ => false,
    }
}

const fn is_of_entity(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'#'
}

/// All readings of a place.
pub(super) struct Readings {
    /// As it is, first; then as escapes.
    pub(super) all: Vec<Reading>,
    /// The text ended within what could become an escape.
    pub(super) cut_off: bool,
}

/// Reads `text` at `at`, which must be within.
pub(super) fn of(text: &[u8], at: usize) -> Readings {
    let mut reader = Reader { text, cut_off: false };
    let mut all = reader.read(at, LAYERS);
    let breaks: Vec<_> = all
        .iter()
        .filter(|reading| reading.is(b'\n') || reading.is(b'\r'))
        .filter(|reading| is_passed_over(text, at..reading.next))
        .map(|reading| Reading::nothing(reading.next))
        .collect();
    all.extend(breaks);
    all.retain(|reading| reading.next - at <= LONGEST);
    Readings { all, cut_off: reader.cut_off && text.len() - at < LONGEST }
}

/// Whether the line break at `place` may be read as nothing.
///
/// It may have come in when a long text was wrapped. One is passed over, not a
/// run of them, so that what is held back stays short.
pub(super) fn is_passed_over(text: &[u8], place: Range<usize>) -> bool {
    let (before, written) = (&text[..place.start], &text[place]);
    let in_a_run = before.ends_with(written) || written == b"\r" && before.ends_with(b"\n");
    !in_a_run
}

struct Reader<'a> {
    text: &'a [u8],
    cut_off: bool,
}

impl Reader<'_> {
    /// The readings at `at` if `layers` of escapes may lie over each other;
    /// none behind the end.
    fn read(&mut self, at: usize, layers: u8) -> Vec<Reading> {
        let Some(&byte) = self.text.get(at) else {
            self.cut_off = true;
            return Vec::new();
        };
        if layers == 0 || !is_ambiguous(byte) {
            return vec![Reading::byte(byte, at + 1)];
        }
        let mut all = vec![Reading::byte(byte, at + 1)];
        let mut more = Vec::new();
        for below in 0..layers {
            for sign in &all {
                self.escape(*sign, below, &mut more);
            }
            // Most texts are escaped once, and looking further finds nothing.
            let nested =
                more.iter().any(|reading| matches!(reading.bytes(), [byte] if is_ambiguous(*byte)));
            let follow = &self.text[at + 1..self.text.len().min(at + 13)];
            for reading in more.drain(..) {
                if !all.contains(&reading) {
                    all.push(reading);
                }
            }
            if !nested && !follow.iter().copied().any(is_ambiguous) {
                break;
            }
        }
        all
    }

    /// What `sign` starts, if that is an escape whose other characters lie
    /// under `below` more layers.
    fn escape(&mut self, sign: Reading, below: u8, all: &mut Vec<Reading>) {
        match sign.bytes() {
            b"%" => all.extend(self.hex(sign.next, 2, below).map(as_byte)),
            b"\\" => self.backslash(sign.next, below, all),
            b"&" => self.entity(sign.next, all),
            b"+" => all.push(Reading::byte(b' ', sign.next)),
            _ => {}
        }
    }

    /// `digits` hex digits from `at` on: each value they may be, and what follows.
    fn hex(
        &mut self,
        at: usize,
        digits: u8,
        layers: u8,
    ) -> impl Iterator<Item = (u32, usize)> + use<> {
        let mut values = vec![(0, at)];
        for _ in 0..digits {
            let mut longer = Vec::new();
            for (value, at) in values {
                for reading in self.read(at, layers) {
                    let digit = match reading.bytes() {
                        [byte] => char::from(*byte).to_digit(16),
                        _ => None,
                    };
                    longer.extend(digit.map(|digit| (value << 4 | digit, reading.next)));
                }
            }
            values = longer;
        }
        values.into_iter()
    }

    /// What follows a backslash in JSON, in programs, in Markdown.
    fn backslash(&mut self, at: usize, layers: u8, all: &mut Vec<Reading>) {
        for sign in self.read(at, layers) {
            let next = sign.next;
            let [byte] = sign.bytes() else { continue };
            match byte {
                b'n' => all.push(Reading::byte(b'\n', next)),
                b'r' => all.push(Reading::byte(b'\r', next)),
                b't' => all.push(Reading::byte(b'\t', next)),
                b'b' => all.push(Reading::byte(8, next)),
                b'f' => all.push(Reading::byte(12, next)),
                b'x' => {
                    // A byte in some languages, a character in others.
                    let codes: Vec<_> = self.hex(next, 2, layers).collect();
                    all.extend(codes.iter().copied().map(as_byte));
                    all.extend(
                        codes.into_iter().filter(|(code, _)| *code > 0x7f).filter_map(as_char),
                    );
                }
                b'u' => {
                    let units: Vec<_> = self.hex(next, 4, layers).collect();
                    for (unit, next) in units {
                        match unit {
                            0xd800..0xdc00 => all.extend(self.low_half(unit, next, layers)),
                            _ => all.extend(as_char((unit, next))),
                        }
                    }
                    all.extend(self.braces(next));
                }
                byte if byte.is_ascii_punctuation() || *byte == b' ' => {
                    all.push(Reading::byte(*byte, next));
                }
                _ => {}
            }
        }
    }

    /// The second of two `\u` that make one character.
    fn low_half(&mut self, high: u32, at: usize, layers: u8) -> Vec<Reading> {
        let mut all = Vec::new();
        for slash in self.read(at, layers).into_iter().filter(|sign| sign.is(b'\\')) {
            for u in self.read(slash.next, layers).into_iter().filter(|sign| sign.is(b'u')) {
                all.extend(self.hex(u.next, 4, layers).filter_map(|(low, next)| {
                    let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                    as_char((0x10000 + ((high - 0xd800) << 10) + low, next))
                }));
            }
        }
        all
    }

    /// `\u{1f600}`.
    fn braces(&mut self, at: usize) -> Option<Reading> {
        let rest = self.text.get(at..).unwrap_or_default();
        if rest.first() != Some(&b'{') {
            return None;
        }
        let (code, length) = self.until(&rest[1..], b'}', 8)?;
        as_char((u32::from_str_radix(code, 16).ok()?, at + 1 + length))
    }

    /// What follows an `&` in HTML: `#65;`, `#x41;`, `amp;`.
    fn entity(&mut self, at: usize, all: &mut Vec<Reading>) {
        let rest = self.text.get(at..).unwrap_or_default();
        let Some((name, length)) = self.until(rest, b';', 10) else { return };
        let code = match name.as_bytes() {
            [b'#', b'x' | b'X', ..] => u32::from_str_radix(&name[2..], 16).ok(),
            [b'#', ..] => name[1..].parse().ok(),
            _ => ENTITIES.iter().find(|(known, _)| *known == name).map(|(_, c)| u32::from(*c)),
        };
        all.extend(code.and_then(|code| as_char((code, at + length))));
    }

    /// ASCII up to `end`, and its length with `end`; at most `longest` before it.
    fn until<'b>(&mut self, rest: &'b [u8], end: u8, longest: usize) -> Option<(&'b str, usize)> {
        let name = rest.iter().take(longest + 1).take_while(|byte| is_of_entity(**byte));
        let length = name.count();
        self.cut_off |= length == rest.len();
        let found = rest.get(length) == Some(&end);
        found.then(|| (std::str::from_utf8(&rest[..length]).unwrap_or_default(), length + 1))
    }
}

fn as_byte((code, next): (u32, usize)) -> Reading {
    Reading::byte(u8::try_from(code).expect("two hex digits are a byte"), next)
}

fn as_char((code, next): (u32, usize)) -> Option<Reading> {
    char::from_u32(code).map(|c| Reading::char(c, next))
}

/// The names HTML has for what secrets are made of.
#[rustfmt::skip]
const ENTITIES: [(&str, char); 37] = [
    ("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("nbsp", ' '),
    ("excl", '!'), ("num", '#'), ("dollar", '$'), ("percnt", '%'), ("lpar", '('), ("rpar", ')'),
    ("ast", '*'), ("midast", '*'), ("plus", '+'), ("comma", ','), ("period", '.'), ("sol", '/'),
    ("colon", ':'), ("semi", ';'), ("equals", '='), ("quest", '?'), ("commat", '@'), ("lsqb", '['),
    ("lbrack", '['), ("bsol", '\\'), ("rsqb", ']'), ("rbrack", ']'), ("Hat", '^'), ("lowbar", '_'),
    ("grave", '`'), ("lcub", '{'), ("verbar", '|'), ("rcub", '}'), ("hyphen", '-'), ("Tab", '\t'),
    ("NewLine", '\n'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_and_as_every_escape() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str]); 22] = [
            ("a",              &["a"]),
            ("%41",            &["%", "A"]),
            ("%4",             &["%"]),
            ("%zz",            &["%"]),
            ("%2541",          &["%", "%", "A"]),
            ("%25%34%31",      &["%", "%", "A"]),
            ("+",              &["+", " "]),
            ("\\n",            &["\\", "\n", ""]),
            ("\n",             &["\n", ""]),
            ("\\\\",           &["\\", "\\"]),
            ("\\\"",           &["\\", "\""]),
            ("\\u00e9",        &["\\", "é"]),
            ("\\x41",          &["\\", "A"]),
            ("\\u{1F600}",     &["\\", "😀"]),
            ("\\ud83d\\ude00", &["\\", "😀"]),
            ("\\ud83dx",       &["\\"]),
            ("\\q",            &["\\"]),
            ("&amp;",          &["&", "&"]),
            ("&#x41;",         &["&", "A"]),
            ("&#65;",          &["&", "A"]),
            ("&amp;#65;",      &["&", "&", "A"]),
            ("&nobody;",       &["&"]),
        ];
        for (text, expected) in cases {
            let all = of(text.as_bytes(), 0).all;
            let read: Vec<_> =
                all.iter().map(|reading| str::from_utf8(reading.bytes()).unwrap()).collect();
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn what_could_become_an_escape_is_known_to_be_cut_off() {
        let cases = [
            ("%", true),
            ("%4", true),
            ("%g", false),
            ("%41", false),
            ("\\", true),
            ("\\u00", true),
            ("&am", true),
            ("&a m", false),
            ("&abcdefghijklmnop", false),
            ("\\u{12", true),
            ("\n", false),
            ("\\ud83d", true),
        ];
        for (text, cut_off) in cases {
            assert_eq!(of(text.as_bytes(), 0).cut_off, cut_off, "{text:?}");
        }
    }
}
