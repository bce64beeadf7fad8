//! Looks for every spelling of every secret in every reading of a text.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use secrecy::{ExposeSecret as _, SecretString};

use super::mark;
use super::reading::{self, is_ambiguous};
use super::spelling::{self, Spelling};

/// The secrets and the machine that finds them.
#[derive(Default)]
pub(super) struct Secrets {
    names: Vec<String>,
    finder: Option<Finder>,
}

/// A place where a secret was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found<'a> {
    pub(super) range: Range<usize>,
    pub(super) name: &'a str,
}

/// What a scan saw.
pub(super) struct Seen<'a> {
    /// Where secrets are, in order, none touching another's characters.
    pub(super) found: Vec<Found<'a>>,
    /// What stands before here stays so, whatever is appended to the text.
    pub(super) settled: usize,
}

impl Secrets {
    /// The values must have been checked.
    pub(super) fn new(secrets: impl Iterator<Item = (String, SecretString)>) -> Self {
        let mut names = Vec::new();
        let mut spellings = Vec::new();
        for (name, value) in secrets {
            let all = spelling::all(value.expose_secret());
            spellings.extend(all.into_iter().map(|spelling| (names.len(), spelling)));
            names.push(mark::name(&name));
        }
        let finder = (!names.is_empty()).then(|| Finder::new(spellings));
        Self { names, finder }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = &self.finder else { return Cow::Borrowed(text) };
        let pass = finder.pass(text.as_bytes());
        if pass.hits.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut redacted = String::with_capacity(text.len());
        let mut at = 0;
        for found in self.places(finder, text, &pass) {
            redacted.push_str(&text[at..found.range.start]);
            mark::push(&mut redacted, found.name);
            at = found.range.end;
        }
        redacted.push_str(&text[at..]);
        Cow::Owned(redacted)
    }

    /// Scans a text that may go on.
    pub(super) fn see(&self, text: &str) -> Seen<'_> {
        let Some(finder) = &self.finder else {
            return Seen { found: Vec::new(), settled: text.len() };
        };
        let pass = finder.pass(text.as_bytes());
        let settled = finder.settled(text, &pass);
        Seen { found: self.places(finder, text, &pass), settled }
    }

    fn places<'a>(&'a self, finder: &Finder, text: &str, pass: &Pass) -> Vec<Found<'a>> {
        let mut all: Vec<_> = pass
            .hits
            .iter()
            .map(|hit| {
                let (secret, _) = &finder.spellings[hit.spelling];
                Found { range: finder.range(text, hit), name: &self.names[*secret] }
            })
            .collect();
        all.sort_by_key(|found| (found.range.start, Reverse(found.range.end)));
        let mut apart: Vec<Found<'a>> = Vec::new();
        for found in all {
            match apart.last_mut() {
                Some(last) if found.range.start < last.range.end => {
                    last.range.end = last.range.end.max(found.range.end);
                }
                _ => apart.push(found),
            }
        }
        apart
    }
}

/// A spelling that ends somewhere in the text.
#[derive(Debug, Clone, Copy)]
struct Hit {
    spelling: usize,
    end: usize,
}

/// What one pass over a text left.
struct Pass {
    hits: Vec<Hit>,
    /// Spellings that had begun where the text ended, or where an escape was
    /// cut off by its end.
    begun: Vec<(usize, StateID)>,
}

struct Finder {
    machine: NFA,
    start: StateID,
    /// Each with the secret it is of.
    spellings: Vec<(usize, Spelling)>,
    /// What the machine has read of which spelling in each of its states.
    /// Only streams ask.
    read: OnceLock<HashMap<StateID, Begun>>,
}

/// The first `length` bytes of a spelling.
#[derive(Debug, Clone, Copy)]
struct Begun {
    spelling: usize,
    length: usize,
}

impl Finder {
    fn new(spellings: Vec<(usize, Spelling)>) -> Self {
        let machine = NFA::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(spellings.iter().map(|(_, spelling)| spelling.bytes.as_slice()))
            .expect("the length of values is bounded");
        let start = machine.start_state(Anchored::No).expect("it searches unanchored");
        Self { machine, start, spellings, read: OnceLock::new() }
    }

    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.machine.next_state(Anchored::No, state, byte)
    }

    fn pass(&self, text: &[u8]) -> Pass {
        let mut pass = Pass { hits: Vec::new(), begun: Vec::new() };
        let mut here = vec![self.start];
        let mut there = Vec::new();
        // Readings of several bytes, and where they end.
        let mut ahead: Vec<(usize, StateID)> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            if let ([state], true) = (here.as_mut_slice(), ahead.is_empty()) {
                at = self.run(text, at, state, &mut pass.hits);
                if at == text.len() {
                    break;
                }
            }
            there.clear();
            let byte = text[at];
            if is_ambiguous(byte) && !matches!(byte, b'\n' | b'+') && !reading::is_plain(text, at) {
                let readings = reading::of(text, at);
                if readings.cut_off {
                    pass.begun.extend(here.iter().map(|state| (at, *state)));
                }
                for reading in readings.all {
                    for &state in &here {
                        let state = reading.bytes().iter().fold(state, |state, &byte| {
                            self.step(state, byte, reading.next, &mut pass.hits)
                        });
                        if reading.next == at + 1 {
                            there.push(state);
                        } else if state != self.start {
                            ahead.push((reading.next, state));
                        }
                    }
                }
            } else {
                // Also what is too frequent to ask for its readings.
                match byte {
                    b'\n' if reading::is_passed_over(text, at..at + 1) => {
                        there.extend_from_slice(&here);
                    }
                    b'+' => {
                        let step = |&state| self.step(state, b' ', at + 1, &mut pass.hits);
                        there.extend(here.iter().map(step));
                    }
                    _ => {}
                }
                let step = |&state| self.step(state, byte, at + 1, &mut pass.hits);
                there.extend(here.iter().map(step));
            }
            at += 1;
            there.extend(ahead.extract_if(.., |(next, _)| *next == at).map(|(_, state)| state));
            self.settle(&mut there);
            std::mem::swap(&mut here, &mut there);
        }
        pass.begun.extend(here.into_iter().map(|state| (text.len(), state)));
        pass
    }

    /// Goes on to the next place that has more readings than one.
    fn run(&self, text: &[u8], mut at: usize, state: &mut StateID, hits: &mut Vec<Hit>) -> usize {
        while let Some(&byte) = text.get(at).filter(|byte| !is_ambiguous(**byte)) {
            at += 1;
            *state = self.step(*state, byte, at, hits);
        }
        at
    }

    fn step(&self, state: StateID, byte: u8, end: usize, hits: &mut Vec<Hit>) -> StateID {
        let state = self.next(state, byte);
        if self.machine.is_match(state) {
            let found = 0..self.machine.match_len(state);
            hits.extend(found.map(|index| Hit {
                spelling: self.machine.match_pattern(state, index).as_usize(),
                end,
            }));
        }
        state
    }

    /// Keeps each state once, and the one where nothing has begun only if it's
    /// alone: the others see what it would.
    fn settle(&self, states: &mut Vec<StateID>) {
        if states.len() > 1 {
            states.sort_unstable();
            states.dedup();
            if states.len() > 1 {
                states.retain(|state| *state != self.start);
            }
        }
    }

    /// Where a hit's spelling stands, with the character that shares its bits.
    fn range(&self, text: &str, hit: &Hit) -> Range<usize> {
        let (_, spelling) = &self.spellings[hit.spelling];
        let bytes = text.as_bytes();
        // Most often it stands there as it is, and nobody has to look further.
        let start = hit.end.checked_sub(spelling.bytes.len());
        let start =
            start.filter(|start| bytes[*start..hit.end].eq_ignore_ascii_case(&spelling.bytes));
        let start = start.unwrap_or_else(|| begin(bytes, &spelling.bytes, hit.end));
        let mut end = hit.end;
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        if spelling.after && bytes.get(end).is_some_and(is_base64) {
            end += 1;
        }
        text.floor_char_boundary(start)..text.ceil_char_boundary(end)
    }

    fn settled(&self, text: &str, pass: &Pass) -> usize {
        let read = self.read.get_or_init(|| self.readable());
        let mut settled = text.len();
        for &(at, state) in &pass.begun {
            let start = match read.get(&state) {
                None => at,
                Some(begun) => {
                    let bytes = &self.spellings[begun.spelling].1.bytes[..begun.length];
                    begin(text.as_bytes(), bytes, at)
                }
            };
            settled = settled.min(start);
        }
        for hit in pass.hits.iter().filter(|hit| hit.end == text.len()) {
            if self.spellings[hit.spelling].1.after {
                settled = settled.min(self.range(text, hit).start);
            }
        }
        text.floor_char_boundary(settled)
    }

    fn readable(&self) -> HashMap<StateID, Begun> {
        let mut read: HashMap<StateID, Begun> = HashMap::new();
        for (index, (_, spelling)) in self.spellings.iter().enumerate() {
            let mut state = self.start;
            for (length, byte) in spelling.bytes.iter().enumerate() {
                state = self.next(state, *byte);
                let begun = Begun { spelling: index, length: length + 1 };
                read.entry(state).or_insert(begun);
            }
        }
        read
    }
}

/// Where the reading of `text` that ends at `end` with `bytes` begins; the
/// earliest place, if there are several.
fn begin(text: &[u8], bytes: &[u8], end: usize) -> usize {
    let mut earliest = None;
    let mut seen = HashSet::from([(bytes.len(), end)]);
    let mut open = vec![(bytes.len(), end)];
    while let Some((left, end)) = open.pop() {
        if left == 0 {
            earliest = earliest.min(Some(end)).or(Some(end));
            continue;
        }
        for at in end.saturating_sub(reading::LONGEST)..end {
            // Escapes start at such a place; anything else is one byte long.
            if at + 1 != end && !is_ambiguous(text[at]) {
                continue;
            }
            for reading in reading::of(text, at).all.iter().filter(|reading| reading.next == end) {
                let read = reading.bytes();
                let rest = left.saturating_sub(read.len());
                let fits = bytes[rest..left].eq_ignore_ascii_case(read);
                if fits && seen.insert((rest, at)) {
                    open.push((rest, at));
                }
            }
        }
    }
    earliest.expect("the machine read it from somewhere")
}
