//! Fenced code blocks: where they open and close.

/// The line that opened a code block, such as three backticks and `rust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence<'a> {
    /// The whole line, without white space at its end.
    pub(super) opening: &'a str,
    /// The backticks or tildes, with what stood before them.
    pub(super) closing: &'a str,
    marks: &'a str,
}

/// The fence that is open after `line`, if `open` was open before it.
///
/// Any indentation will do: in lists fences stand deeper than at the top, and a
/// model doesn't count spaces.
pub(super) fn after<'a>(line: &'a str, open: Option<Fence<'a>>) -> Option<Fence<'a>> {
    let line = line.trim_end();
    let text = line.trim_start_matches([' ', '\t']);
    let Some(mark) = text.chars().next().filter(|mark| matches!(mark, '`' | '~')) else {
        return open;
    };
    let rest = text.trim_start_matches(mark);
    let marks = &text[..text.len() - rest.len()];
    match open {
        Some(fence) => {
            let closes = fence.marks.starts_with(mark)
                && marks.len() >= fence.marks.len()
                && rest.is_empty();
            if closes { None } else { open }
        }
        // Three backticks and a fourth later in the line are code within a line.
        None if marks.len() >= 3 && (mark == '~' || !rest.contains('`')) => {
            let closing = &line[..line.len() - rest.len()];
            Some(Fence { opening: line, closing, marks })
        }
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_open_and_close_as_in_markdown() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], Option<&str>); 9] = [
            // what it shows                    lines                        open at the end
            ("no fence",                        &["text", "`code`"],         None),
            ("an open one",                     &["```rust", "fn"],          Some("```rust")),
            ("a closed one",                    &["```", "x", "```"],        None),
            ("a longer one closes",             &["```", "`````"],           None),
            ("a shorter one doesn't",           &["````", "```"],            Some("````")),
            ("tildes don't close backticks",    &["```", "~~~"],             Some("```")),
            ("words don't close",               &["```", "```rust"],         Some("```")),
            ("in a list",                       &["  ```js ", "  x"],        Some("  ```js")),
            ("code within a line",              &["```x```"],                None),
        ];
        for (shows, lines, open) in cases {
            let fence = lines.iter().fold(None, |open, line| after(line, open));
            assert_eq!(fence.map(|fence| fence.opening), open, "{shows}");
        }
    }
}
