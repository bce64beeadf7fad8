//! What a tool answers.

use openpact_runtime::redact::Redactor;

/// What stands at the end of an answer that was cut.
const CUT: &str = "\n[cut here: the result was longer than this server sends]";

/// A tool's answer: texts that the model reads one after the other.
///
/// Everything is in the texts, since that's all an engine shows its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(Vec<String>);

impl Answer {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![text.into()])
    }

    /// With another text after the last one, so that the first can be taken
    /// exactly as it is.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>) -> Self {
        self.0.push(text.into());
        self
    }

    /// Its texts.
    #[must_use]
    pub fn into_texts(self) -> Vec<String> {
        self.0
    }

    /// Bytes of all texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(String::len).sum()
    }

    /// With no more than `limit` bytes, and a mark where it was cut.
    #[must_use]
    pub fn bounded(mut self, limit: usize) -> Self {
        let mut room = limit;
        for (index, text) in self.0.iter_mut().enumerate() {
            if text.len() > room {
                text.truncate(text.floor_char_boundary(room));
                text.push_str(CUT);
                self.0.truncate(index + 1);
                break;
            }
            room -= text.len();
        }
        self
    }

    /// With every secret that `redactor` knows taken out.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| {
            match redactor.redact(&text) {
                std::borrow::Cow::Borrowed(_) => None,
                std::borrow::Cow::Owned(clean) => Some(clean),
            }
            .unwrap_or(text)
        };
        Self(self.0.into_iter().map(clean).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_cut_at_a_character_and_says_so() {
        let answer = Answer::text("héllo").and("world");
        assert_eq!(answer.clone().bounded(11), answer);
        assert_eq!(answer.clone().bounded(8).into_texts(), ["héllo", &format!("wo{CUT}")]);
        assert_eq!(answer.bounded(2).into_texts(), [format!("h{CUT}")]);
    }
}
