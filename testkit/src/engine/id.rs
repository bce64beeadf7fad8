//! Ids in the engine's own form: they sort by the time they were made, and the
//! engine relies on that.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

static LAST: Mutex<u64> = Mutex::new(0);

/// Milliseconds since 1970, as the engine writes times.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A new id: `msg_23003864e001…`, 48 bits of time and count, then padding
/// where the engine has random characters.
pub(super) fn fresh(prefix: &str) -> String {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    *last = (now() << 12).max(*last + 1);
    format!("{prefix}_{:012x}FakeEngineFake", *last & 0xffff_ffff_ffff)
}
