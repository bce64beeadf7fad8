//! Errors as text, with their causes.

use std::error::Error;
use std::fmt::Write as _;

/// `error` and all its causes on one line, joined by `: `.
///
/// For logs and for the one place where a process says why it ends. A cause
/// that repeats what the error above it already said is left out.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut said = text.clone();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !said.ends_with(&words) {
            write!(text, ": {words}").expect("a String takes everything");
        }
        said = words;
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{says}")]
    struct Layer {
        says: &'static str,
        #[source]
        cause: Option<Box<Layer>>,
    }

    fn layers(words: &[&'static str]) -> Layer {
        let mut cause = None;
        for says in words.iter().rev() {
            cause = Some(Box::new(Layer { says, cause }));
        }
        *cause.unwrap()
    }

    #[test]
    fn causes_follow_what_they_caused() {
        let cases: [(&[&str], &str); 3] = [
            (&["could not start"], "could not start"),
            (&["could not start", "port taken"], "could not start: port taken"),
            (&["could not start: port taken", "port taken"], "could not start: port taken"),
        ];
        for (words, text) in cases {
            assert_eq!(chain(&layers(words)), text);
        }
    }
}
