//! Pauses between tries: longer each time, and never the same for all.

use std::time::Duration;

/// Pauses that double up to a limit, each shortened by chance by up to a half,
/// so that many clients of one server don't come back at the same moment.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// The next pause.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next.min(self.longest);
        self.next = (pause * 2).min(self.longest);
        shortened(pause)
    }

    /// The pause when there is no hurry.
    pub(super) fn longest(&self) -> Duration {
        shortened(self.longest)
    }

    /// It went well: begin with the first pause again.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

fn shortened(pause: Duration) -> Duration {
    // Without chance the full pause is as good.
    let chance = getrandom::u32().map_or(0.0, f64::from) / f64::from(u32::MAX);
    pause.mul_f64(1.0 - chance / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_begin_anew() {
        let millis = Duration::from_millis;
        let mut backoff = Backoff::new(millis(100), millis(500));
        for full in [100, 200, 400, 500, 500] {
            let pause = backoff.next();
            assert!(pause >= millis(full / 2) && pause <= millis(full), "{full}: {pause:?}");
        }
        backoff.reset();
        assert!(backoff.next() <= millis(100));
    }
}
