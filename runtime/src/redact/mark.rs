//! The mark that stands where a secret stood.

use std::fmt::Write as _;

/// How every mark begins.
pub(super) const OPENING: &str = "[REDACTED:";

/// The longest name that a mark carries.
const LONGEST_NAME: usize = 64;

/// Writes the mark of the secret called `name`.
pub(super) fn push(text: &mut String, name: &str) {
    write!(text, "{OPENING}{name}]").expect("a String takes everything");
}

/// A secret's name as its mark carries it: ASCII letters, digits, `_`, `-` and
/// `.`; whatever else becomes `_`.
pub(super) fn name(name: &str) -> String {
    let name: String =
        name.chars().take(LONGEST_NAME).map(|c| if is_of_name(c) { c } else { '_' }).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// Whether `text` carries a mark.
///
/// Every write path refuses such text: written to a file, the mark would take
/// the place of what the file really held.
#[must_use]
pub fn contains_mark(text: &str) -> bool {
    text.match_indices(OPENING).any(|(at, opening)| {
        let rest = &text[at + opening.len()..];
        let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        (1..=LONGEST_NAME).contains(&end) && rest[end..].starts_with(']')
    })
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_told_from_text_about_marks() {
        let cases = [
            ("a [REDACTED:GITHUB_TOKEN] b", true),
            ("[REDACTED:[REDACTED:a-b.c]", true),
            ("[REDACTED:]", false),
            ("[REDACTED:a b]", false),
            ("[REDACTED:a", false),
            ("[REDACTED]", false),
            ("", false),
        ];
        for (text, has) in cases {
            assert_eq!(contains_mark(text), has, "{text}");
        }
    }

    #[test]
    fn every_name_makes_a_mark_that_is_found_again() {
        for odd in ["", "KEY", "a b]", "é", &"x".repeat(200)] {
            let mut text = String::new();
            push(&mut text, &name(odd));
            assert!(contains_mark(&text), "{text}");
        }
    }
}
