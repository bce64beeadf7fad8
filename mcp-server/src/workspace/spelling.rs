//! Names that look the same.
//!
//! `é` can be one character or two, and macOS writes a narrow no-break space
//! into the names of screenshots. Whoever types such a name rarely types the
//! same characters, so a name that isn't there is looked for once more by its
//! looks. Otherwise reads fail for no visible reason and writes make a twin.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::Dir;
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization as _;

/// Entries of a folder that are looked at; a name beyond them isn't found by looks.
const MOST_ENTRIES: usize = 50_000;
/// Names offered when none looks the same.
const MOST_OFFERED: usize = 3;

/// What a folder has to offer for a name that isn't in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Alike {
    /// Exactly one name looks the same.
    One(OsString),
    /// Several do, which is for a person to sort out.
    Several(Vec<String>),
    /// None does; these differ in case or by a letter.
    None(Vec<String>),
}

/// Looks through the folder `dir` for names that look like `wanted`.
pub(super) fn alike(dir: &OwnedFd, wanted: &OsStr) -> Result<Alike, Errno> {
    let Some(wanted) = wanted.to_str() else { return Ok(Alike::None(Vec::new())) };
    let looks = fold(wanted);
    let careless = looks.to_lowercase();
    let (mut same, mut close) = (Vec::new(), Vec::new());
    for entry in Dir::read_from(dir)?.take(MOST_ENTRIES) {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let Some(text) = name.to_str() else { continue };
        let folded = fold(text);
        if folded == looks {
            same.push(name.to_owned());
        } else if close.len() < MOST_OFFERED && folded.to_lowercase() == careless {
            close.push(text.to_owned());
        }
    }
    Ok(match same.len() {
        0 => Alike::None(close),
        1 => Alike::One(same.remove(0)),
        _ => {
            let mut names: Vec<_> = same.iter().map(|name| shown(name)).collect();
            names.sort();
            Alike::Several(names)
        }
    })
}

/// How a name looks: composed, and every blank a plain space.
pub(super) fn fold(name: &str) -> String {
    name.nfc().map(|character| if character.is_whitespace() { ' ' } else { character }).collect()
}

/// A name with what is not ASCII written out, so that twins can be told apart.
fn shown(name: &OsStr) -> String {
    name.to_string_lossy().chars().flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_looks() {
        #[rustfmt::skip]
        let cases: [(&[&str], &str, Alike); 5] = [
            // in the folder                  wanted          found
            (&["Cafe\u{301}.md", "x"],        "Caf\u{e9}.md", Alike::One("Cafe\u{301}.md".into())),
            (&["9.41\u{202f}AM.png"],         "9.41 AM.png",  Alike::One("9.41\u{202f}AM.png".into())),
            (&["a\u{a0}b", "a\u{2009}b"],     "a b",          Alike::Several(vec![r"a\u{2009}b".into(), r"a\u{a0}b".into()])),
            (&["README.md"],                  "readme.md",    Alike::None(vec!["README.md".into()])),
            (&["other"],                      "readme.md",    Alike::None(vec![])),
        ];
        for (names, wanted, found) in cases {
            let folder = tempfile::tempdir().unwrap();
            for name in names {
                std::fs::write(folder.path().join(name), "").unwrap();
            }
            let dir = std::fs::File::open(folder.path()).unwrap().into();
            assert_eq!(alike(&dir, OsStr::new(wanted)).unwrap(), found, "{wanted}");
        }
    }
}
