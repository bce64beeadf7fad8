//! How a value may be spelt as a whole.
//!
//! Escapes of single characters are not listed here, as there are too many
//! ways to mix them: [`super::reading`] undoes them in the text instead. Only
//! what is written backwards after it was escaped has to be listed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::mark;

/// The shortest value that is looked for, in bytes. Shorter ones turn up in
/// text that has nothing to do with them.
const SHORTEST: usize = 6;
/// The longest value that is looked for.
const LONGEST: usize = 64 * 1024;
/// A line of a value of several lines is looked for by itself from here on.
const SHORTEST_LINE: usize = 16;
/// Above this, a value is looked for in fewer spellings, to save memory.
const LONG: usize = 1024;

/// Why a value can't be kept out of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It would be found everywhere.
    #[error("it has fewer than {SHORTEST} characters without the blanks around it")]
    TooShort,
    /// It would take too much memory.
    #[error("it has more than {LONGEST} bytes")]
    TooLong,
    /// Every mark would be redacted again.
    #[error("it is a part of the mark `{}NAME]` itself", mark::OPENING)]
    PartOfMark,
}

pub(super) fn check(value: &str) -> Result<(), Unfit> {
    if value.len() < SHORTEST {
        return Err(Unfit::TooShort);
    }
    if value.len() > LONGEST {
        return Err(Unfit::TooLong);
    }
    if mark::OPENING.contains(&value.to_ascii_uppercase()) {
        return Err(Unfit::PartOfMark);
    }
    Ok(())
}

/// A run of bytes that gives a value away, in any case of its ASCII letters.
pub(super) struct Spelling {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    /// The base64 character after it holds bits of the value too. (So may the
    /// one before it, at most four of the first byte, and it stays: a stream
    /// would have to hold every last character back for it.)
    pub(super) after: bool,
}

/// All spellings of `value`, each once.
pub(super) fn all(value: &str) -> Vec<Spelling> {
    let mut spellings = Spellings::default();
    let value = value.trim();
    spellings.whole(value);
    if value.contains('\r') {
        spellings.whole(&Zeroizing::new(value.replace("\r\n", "\n")));
    }
    let mut lines = value.split(['\r', '\n']).map(str::trim).peekable();
    if lines.next().is_some() && lines.peek().is_some() {
        // Text may break lines elsewhere; breaks in it are passed over.
        spellings.both_ways(&Zeroizing::new(value.replace(['\r', '\n'], "")));
        // The first and last line of a PEM file are in every such file.
        for line in value.split(['\r', '\n']).map(str::trim) {
            if line.len() >= SHORTEST_LINE && !line.starts_with("-----") {
                spellings.both_ways(line);
            }
        }
    }
    spellings.into_vec()
}

#[derive(Default)]
struct Spellings {
    /// By bytes; the value is [`Spelling::after`].
    found: BTreeMap<Vec<u8>, bool>,
}

impl Spellings {
    fn whole(&mut self, value: &str) {
        self.both_ways(value);
        if value.len() > LONG {
            for shift in 0..3 {
                self.base64(value, shift, &BASE64_STANDARD_NO_PAD, false);
            }
            return;
        }
        let reversed = Zeroizing::new(backwards(value));
        for value in [value, &reversed] {
            self.both_ways(&hex(value));
            for shift in 0..3 {
                self.base64(value, shift, &BASE64_STANDARD_NO_PAD, true);
                self.base64(value, shift, &BASE64_URL_SAFE_NO_PAD, true);
            }
        }
        for escaped in escaped(value) {
            self.add(backwards(&escaped).into_bytes(), false);
        }
    }

    fn both_ways(&mut self, text: &str) {
        self.add(text.as_bytes().to_vec(), false);
        self.add(backwards(text).into_bytes(), false);
    }

    /// What base64 makes of `value` for sure when `shift` bytes (modulo 3)
    /// stand before it and anything after it.
    fn base64(&mut self, value: &str, shift: usize, alphabet: &impl base64::Engine, both: bool) {
        let mut bytes = Zeroizing::new(vec![0; shift]);
        bytes.extend_from_slice(value.as_bytes());
        let text = Zeroizing::new(alphabet.encode(&*bytes));
        // A character holds six bits: the ones that share a byte before the
        // value or after it are not for sure.
        let first = (shift * 8).div_ceil(6);
        let last = bytes.len() * 8 / 6;
        let sure = &text[first..last];
        self.add(sure.as_bytes().to_vec(), !bytes.len().is_multiple_of(3));
        if both {
            self.add(backwards(sure).into_bytes(), shift > 0);
        }
    }

    fn add(&mut self, mut bytes: Vec<u8>, after: bool) {
        bytes.make_ascii_lowercase();
        if bytes.len() >= SHORTEST {
            *self.found.entry(bytes).or_default() |= after;
        }
    }

    fn into_vec(self) -> Vec<Spelling> {
        let found = self.found.into_iter();
        found.map(|(bytes, after)| Spelling { bytes: Zeroizing::new(bytes), after }).collect()
    }
}

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a String takes everything");
        hex
    })
}

/// `value` as encoders in wide use escape it.
fn escaped(value: &str) -> [String; 7] {
    let percent = |kept: &str, blank: &str| {
        value.bytes().fold(String::new(), |mut text, byte| {
            match char::from(byte) {
                ' ' => text.push_str(blank),
                c if c.is_ascii_alphanumeric() || kept.contains(c) => text.push(c),
                _ => write!(text, "%{byte:02X}").expect("a String takes everything"),
            }
            text
        })
    };
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    [
        percent("-._~", "%20"),
        percent("-._~/", "%20"),
        percent("-._~!*'()", "%20"),
        percent("-._*", "+"),
        json.replace('/', "\\/"),
        json,
        html.replace('"', "&quot;").replace('\'', "&#39;"),
    ]
}
