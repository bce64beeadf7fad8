//! What keys mean.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::editor::To;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Insert(char),
    /// Sends what was written, or continues the line behind a backslash.
    Enter,
    Newline,
    Go(To),
    Delete(To),
    PasteCut,
    Up,
    Down,
    Earlier,
    Later,
    Complete,
    /// Takes back what is half done.
    Escape,
    /// Stops the answer, clears the line, or leaves.
    Interrupt,
    /// Leaves, if nothing is written.
    Leave,
    Clear,
}

/// What `key` asks for, if it's one that we know.
pub(crate) fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let has = |modifier| key.modifiers.contains(modifier);
    let (control, alt) = (has(KeyModifiers::CONTROL), has(KeyModifiers::ALT));
    let shift = has(KeyModifiers::SHIFT);
    Some(match key.code {
        KeyCode::Enter if alt || shift || control => Action::Newline,
        KeyCode::Enter => Action::Enter,
        KeyCode::Tab => Action::Complete,
        KeyCode::Esc => Action::Escape,
        KeyCode::Left if control || alt => Action::Go(To::WordLeft),
        KeyCode::Right if control || alt => Action::Go(To::WordRight),
        KeyCode::Left => Action::Go(To::Left),
        KeyCode::Right => Action::Go(To::Right),
        KeyCode::Home => Action::Go(To::LineStart),
        KeyCode::End => Action::Go(To::LineEnd),
        KeyCode::Up => Action::Up,
        KeyCode::Down => Action::Down,
        KeyCode::Backspace if control || alt => Action::Delete(To::WordLeft),
        KeyCode::Delete if control || alt => Action::Delete(To::WordRight),
        KeyCode::Backspace => Action::Delete(To::Left),
        KeyCode::Delete => Action::Delete(To::Right),
        KeyCode::Char(c) if control && !alt => return with_control(c.to_ascii_lowercase()),
        KeyCode::Char(c) if alt && !control => return with_alt(c.to_ascii_lowercase()),
        // Both together is AltGr on some keyboards.
        KeyCode::Char(c) => Action::Insert(c),
        _ => return None,
    })
}

fn with_control(c: char) -> Option<Action> {
    Some(match c {
        'a' => Action::Go(To::LineStart),
        'b' => Action::Go(To::Left),
        'c' => Action::Interrupt,
        'd' => Action::Leave,
        'e' => Action::Go(To::LineEnd),
        'f' => Action::Go(To::Right),
        'h' => Action::Delete(To::Left),
        'j' => Action::Newline,
        'k' => Action::Delete(To::LineEnd),
        'l' => Action::Clear,
        'n' => Action::Later,
        'p' => Action::Earlier,
        'u' => Action::Delete(To::LineStart),
        'w' => Action::Delete(To::WordLeft),
        'y' => Action::PasteCut,
        _ => return None,
    })
}

fn with_alt(c: char) -> Option<Action> {
    Some(match c {
        'b' => Action::Go(To::WordLeft),
        'd' => Action::Delete(To::WordRight),
        'f' => Action::Go(To::WordRight),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_they_mean_elsewhere() {
        let none = KeyModifiers::NONE;
        #[rustfmt::skip]
        let cases = [
            (KeyCode::Char('a'), none,                  Some(Action::Insert('a'))),
            (KeyCode::Char('A'), KeyModifiers::SHIFT,   Some(Action::Insert('A'))),
            (KeyCode::Char('a'), KeyModifiers::CONTROL, Some(Action::Go(To::LineStart))),
            (KeyCode::Char('@'), KeyModifiers::CONTROL | KeyModifiers::ALT, Some(Action::Insert('@'))),
            (KeyCode::Enter,     none,                  Some(Action::Enter)),
            (KeyCode::Enter,     KeyModifiers::ALT,     Some(Action::Newline)),
            (KeyCode::Enter,     KeyModifiers::SHIFT,   Some(Action::Newline)),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, Some(Action::Interrupt)),
            (KeyCode::F(1),      none,                  None),
        ];
        for (code, modifiers, expected) in cases {
            assert_eq!(action(KeyEvent::new(code, modifiers)), expected, "{code:?} {modifiers:?}");
        }
        let released = KeyEvent::new_with_kind(KeyCode::Char('a'), none, KeyEventKind::Release);
        assert_eq!(action(released), None);
    }
}
