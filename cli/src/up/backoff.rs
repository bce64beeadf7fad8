//! When a process that ended is started again.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::{Duration, Instant};

/// The first wait. A crash in the middle of a turn shouldn't be felt.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait while it may still be an accident.
const LONGEST: Duration = Duration::from_secs(10);
/// The wait once it's plain that it isn't.
const SLOW: Duration = Duration::from_secs(30);
/// So many ends …
const LIMIT: usize = 15;
/// … within this time are no accident.
const WINDOW: Duration = Duration::from_secs(5 * 60);

/// Remembers how a process has been doing.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Ends in a row without the process having been of use.
    failures: u32,
    ends: VecDeque<Instant>,
}

/// How long to wait before the next start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    /// The time, with a fifth of chance in it so that processes don't start in step.
    pub(super) time: Duration,
    /// It ends again and again: somebody should look.
    pub(super) hopeless: bool,
}

impl Backoff {
    /// The process ended `now`; `was_ready` tells whether it had been of use before.
    pub(super) fn ended(&mut self, was_ready: bool, now: Instant) -> Wait {
        self.ends.push_back(now);
        self.ends.retain(|end| now.duration_since(*end) < WINDOW);
        self.failures = if was_ready { 0 } else { self.failures.saturating_add(1) };
        if self.ends.len() > LIMIT {
            return Wait { time: jittered(SLOW), hopeless: true };
        }
        let doubled = FIRST.saturating_mul(1 << self.failures.min(10));
        Wait { time: jittered(doubled.min(LONGEST)), hopeless: false }
    }

    /// Ends in a row without the process having been of use.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }
}

fn jittered(time: Duration) -> Duration {
    time.mul_f64(0.9 + 0.2 * chance())
}

/// A number from 0 to 1 that nobody needs to be unable to guess.
#[expect(clippy::cast_precision_loss, reason = "chance needs no precision")]
pub(super) fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(wait: Wait, time: Duration) -> bool {
        wait.time >= time.mul_f64(0.9) && wait.time <= time.mul_f64(1.1)
    }

    #[test]
    fn failures_in_a_row_wait_ever_longer_and_an_accident_hardly_at_all() {
        let mut backoff = Backoff::default();
        let now = Instant::now();
        for (was_ready, milliseconds) in
            [(false, 200), (false, 400), (false, 800), (true, 100), (false, 200)]
        {
            let wait = backoff.ended(was_ready, now);
            assert!(about(wait, Duration::from_millis(milliseconds)), "{wait:?} {milliseconds}");
            assert!(!wait.hopeless);
        }
        for _ in 0..8 {
            backoff.ended(false, now);
        }
        assert!(about(backoff.ended(false, now), LONGEST));
    }

    #[test]
    fn too_many_ends_in_a_while_are_no_accident_until_the_while_is_over() {
        let mut backoff = Backoff::default();
        let now = Instant::now();
        for _ in 0..LIMIT {
            assert!(!backoff.ended(true, now).hopeless);
        }
        let wait = backoff.ended(true, now);
        assert!(wait.hopeless && about(wait, SLOW));
        assert!(!backoff.ended(true, now + WINDOW).hopeless);
    }
}
