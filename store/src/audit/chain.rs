//! How one entry's hash follows from the one before it.

use sha2::{Digest as _, Sha256};

use super::Entry;

/// The hash that the first entry follows.
pub(super) const START: [u8; 32] = [0; 32];

/// The hash of `entry` at `sequence`, after an entry whose hash is `previous`.
///
/// Every field goes in with its length before it, so that no two entries look
/// the same to the hash. The layout is part of the format: a change needs a
/// new domain word.
pub(super) fn hash(previous: &[u8; 32], sequence: u64, entry: &Entry) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    field(b"openpact audit 1");
    field(previous);
    field(&sequence.to_be_bytes());
    field(&entry.at_ms.to_be_bytes());
    field(entry.client.as_bytes());
    for optional in [&entry.session, &entry.call] {
        field(if optional.is_some() { b"1" } else { b"0" });
        field(optional.as_deref().unwrap_or_default().as_bytes());
    }
    field(entry.tool.as_bytes());
    field(&entry.arguments);
    field(entry.decision.as_str().as_bytes());
    field(entry.rule.as_bytes());
    field(entry.outcome.as_str().as_bytes());
    field(&entry.result_bytes.to_be_bytes());
    field(&micros(entry).to_be_bytes());
    hasher.finalize().into()
}

/// The duration as it's kept: whole microseconds.
pub(super) fn micros(entry: &Entry) -> i64 {
    i64::try_from(entry.duration.as_micros()).unwrap_or(i64::MAX)
}
