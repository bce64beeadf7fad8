//! Markdown for a terminal: the text stays as it was written, and what it means
//! shows in its look.
//!
//! Marks stay visible except those of bold text, so that nothing is lost where
//! a terminal shows no looks, and code can be copied.

use super::look::{Line, Look};

/// The lines of `text`, each looking like what it is.
pub(crate) fn lines(text: &str, base: Look) -> Vec<Line> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in text.trim_matches('\n').lines() {
        let trimmed = line.trim_start();
        let marks = fence_marks(trimmed);
        match (fence, marks) {
            (None, Some(marks)) => {
                fence = Some(marks);
                lines.push(Line::verbatim(line, Look { dim: true, ..base }));
            }
            (Some(open), Some(marks)) if closes(trimmed, open, marks) => {
                fence = None;
                lines.push(Line::verbatim(line, Look { dim: true, ..base }));
            }
            (Some(_), _) => lines.push(Line::verbatim(line, base)),
            (None, None) => lines.push(prose(line, trimmed, base)),
        }
    }
    lines
}

fn fence_marks(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let marks = &line[..line.len() - rest.len()];
    (marks.len() >= 3 && !(mark == '`' && rest.contains('`'))).then_some(marks)
}

fn closes(line: &str, open: &str, marks: &str) -> bool {
    marks.starts_with(open) && line.trim_end().len() == marks.len()
}

fn prose(line: &str, trimmed: &str, base: Look) -> Line {
    let indent = line.len() - trimmed.len();
    let hashes = trimmed.len() - trimmed.trim_start_matches('#').len();
    if (1..=6).contains(&hashes) && trimmed[hashes..].starts_with(' ') {
        return Line::new(line, Look { bold: true, ..base });
    }
    if trimmed.starts_with('>') {
        return Line::new(line, Look { dim: true, ..base }).hanging(indent + 2);
    }
    if trimmed.starts_with('|') {
        return Line::verbatim(line, base);
    }
    inline(line, base).hanging(indent + bullet(trimmed))
}

/// How wide the mark of a list item is; 0 if it's none.
fn bullet(line: &str) -> usize {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let rest = &line[digits..];
    let is_numbered =
        (1..=9).contains(&digits) && (rest.starts_with(". ") || rest.starts_with(") "));
    let is_bullet = digits == 0 && ["- ", "* ", "+ ", "• "].iter().any(|it| rest.starts_with(it));
    if is_numbered {
        digits + 2
    } else if is_bullet {
        2
    } else {
        0
    }
}

/// Bold text without its marks, code dim with them.
fn inline(line: &str, base: Look) -> Line {
    let mut styled = Line::default();
    let mut rest = line;
    let mut plain = 0;
    while let Some(at) = rest[plain..].find(['`', '*', '\\']).map(|at| at + plain) {
        let (before, marked) = rest.split_at(at);
        let ticks = marked.len() - marked.trim_start_matches('`').len();
        let found = if let Some(bold) = marked.strip_prefix("**") {
            bold.find("**")
                .filter(|end| is_bold(&bold[..*end]))
                .map(|end| (&bold[..end], Look { bold: true, ..base }, &bold[end + 2..]))
        } else if ticks > 0 {
            marked[ticks..].find(&marked[..ticks]).map(|end| {
                let (code, rest) = marked.split_at(end + 2 * ticks);
                (code, Look { dim: true, ..base }, rest)
            })
        } else {
            None
        };
        if let Some((text, look, after)) = found {
            styled.push(before, base);
            styled.push(text, look);
            (rest, plain) = (after, 0);
        } else {
            // Not a mark after all, and nor is what a backslash stands before.
            let escaped = marked.starts_with('\\');
            let skipped = marked.chars().take(if escaped { 2 } else { ticks.max(1) });
            plain = at + skipped.map(char::len_utf8).sum::<usize>();
        }
    }
    styled.push(rest, base);
    styled
}

fn is_bold(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(' ') && !text.ends_with(' ') && !text.contains('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is bold in `<>`, what is dim in `()`.
    fn shown(text: &str) -> String {
        let mut out = Vec::new();
        for (number, line) in lines(text, Look::PLAIN).iter().enumerate() {
            if number > 0 {
                out.push(b'\n');
            }
            line.write(&mut out).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let mut parts = text.split("\x1b[");
        let mut shown = parts.next().unwrap_or_default().to_owned();
        let mut close = "";
        for (code, text) in parts.filter_map(|part| part.split_once('m')) {
            let mark = match code {
                "1" => "<",
                "2" => "(",
                _ => close,
            };
            close = if code == "1" { ">" } else { ")" };
            shown.push_str(mark);
            shown.push_str(text);
        }
        shown
    }

    #[test]
    fn what_text_means_shows_in_its_look() {
        #[rustfmt::skip]
        let cases = [
            ("plain",                               "plain"),
            ("some **bold** text",                  "some <bold> text"),
            ("and `code` too",                      "and (`code`) too"),
            ("``a ` b`` c",                         "(``a ` b``) c"),
            ("2 ** 3 ** 4",                         "2 ** 3 ** 4"),
            ("**open",                              "**open"),
            ("*italic* stays",                      "*italic* stays"),
            (r"\`no\` code",                        r"\`no\` code"),
            ("`**no bold**`",                       "(`**no bold**`)"),
            ("# Heading",                           "<# Heading>"),
            ("#hashtag",                            "#hashtag"),
            ("> quoted",                            "(> quoted)"),
            ("```rust\nlet **a** = 1;\n```\n**b**", "(```rust)\nlet **a** = 1;\n(```)\n<b>"),
            ("````\n```\n````",                     "(````)\n```\n(````)"),
            ("\n\none\n\ntwo\n\n",                  "one\n\ntwo"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn list_items_hang_at_their_text() {
        for (text, second) in
            [("- one two", "  two"), ("10. one two", "    two"), ("  * one two", "    two")]
        {
            let rows = lines(text, Look::PLAIN)[0].wrapped(9.min(text.len() - 2));
            assert_eq!(rows[1].text(), second, "{text}");
        }
    }
}
