//! Ids that sort by the time they were made.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ulid::Ulid;

static LAST: Mutex<Ulid> = Mutex::new(Ulid::nil());

/// A new id: 26 characters of Crockford's base 32 (a ULID), in lower case.
///
/// Ids made by one process rise strictly; ids of several processes sort by
/// their millisecond.
#[must_use]
pub fn fresh() -> String {
    let mut last = last();
    let now = Ulid::generate();
    // Within a millisecond, or if the clock was set back, it's counted on.
    *last = if now > *last { now } else { last.increment().unwrap_or_else(|next| next) };
    last.to_string().to_lowercase()
}

/// Makes the ids of this process sort after `id`, which an earlier process
/// made, even if the clock was set back since. Anything but an id is ignored.
pub fn continue_after(id: &str) {
    if let Ok(earlier) = Ulid::from_string(id) {
        let mut last = last();
        *last = earlier.max(*last);
    }
}

fn last() -> MutexGuard<'static, Ulid> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise() {
        let ids: Vec<_> = (0..1000).map(|_| fresh()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn ids_sort_after_one_made_by_a_clock_that_ran_ahead() {
        let ahead = Ulid::from_parts(Ulid::generate().timestamp_ms() + 86_400_000, 7);
        continue_after(&ahead.to_string().to_lowercase());
        continue_after("not an id");
        let (first, second) = (fresh(), fresh());
        assert!(ahead.to_string().to_lowercase() < first && first < second);
    }
}
