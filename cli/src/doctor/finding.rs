//! What a check saw, and how it's told.

use std::fmt::Write as _;

use console::Style;
use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// As it should be.
    Fine,
    /// Good to know; nothing has to be done.
    Note,
    /// It works, and something should be done.
    Warning,
    /// It doesn't work before something is done.
    Failed,
}

/// What one check saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// What was looked at.
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    /// What is the case.
    pub(super) text: String,
    /// What to do about it; empty when nothing is.
    pub(super) advice: String,
}

impl Finding {
    /// It's as it should be.
    pub(super) fn fine(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Fine, text: text.into(), advice: String::new() }
    }

    /// It's good to know.
    pub(super) fn note(check: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, ..Self::fine(check, text) }
    }

    /// It should be mended.
    pub(super) fn warning(
        check: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Warning, advice: advice.into(), ..Self::fine(check, text) }
    }

    /// It must be mended.
    pub(super) fn failed(
        check: &'static str,
        text: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Failed, advice: advice.into(), ..Self::fine(check, text) }
    }
}

/// For people: a line each, and one more for what to do.
pub(super) fn as_text(found: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { check, verdict, text: says, advice } in found {
        let (mark, style) = match verdict {
            Verdict::Fine => ("✓", Style::new().green()),
            Verdict::Note => ("·", Style::new().dim()),
            Verdict::Warning => ("!", Style::new().yellow()),
            Verdict::Failed => ("✗", Style::new().red()),
        };
        let mark = style.apply_to(mark);
        writeln!(text, "{mark} {check:<14} {says}").expect("a String takes everything");
        if !advice.is_empty() {
            writeln!(text, "  {:<14} → {advice}", "").expect("a String takes everything");
        }
    }
    let count = |wanted| found.iter().filter(|finding| finding.verdict == wanted).count();
    let summary = match (count(Verdict::Failed), count(Verdict::Warning)) {
        (0, 0) => "Everything is fine.".to_owned(),
        (0, warnings) => format!("It works; {warnings} to look at."),
        (failed, warnings) => format!("{failed} to mend, {warnings} to look at."),
    };
    text + "\n" + &summary + "\n"
}

/// For programs.
pub(super) fn as_json(found: &[Finding]) -> String {
    serde_json::to_string_pretty(found).expect("text and names are always JSON") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_what_to_do_and_programs_a_list() {
        let found = [
            Finding::fine("kernel", "Landlock confines the engine"),
            Finding::failed("model", "no model is configured", "name one"),
        ];
        let text = console::strip_ansi_codes(&as_text(&found)).into_owned();
        let expected = "\
✓ kernel         Landlock confines the engine
✗ model          no model is configured
                 → name one

1 to mend, 0 to look at.
";
        assert_eq!(text, expected);
        let list: serde_json::Value = serde_json::from_str(&as_json(&found)).unwrap();
        assert_eq!(list[1]["verdict"], "failed");
        assert_eq!(list[1]["advice"], "name one");
    }
}
