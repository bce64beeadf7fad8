//! Message ids in the engine's own order.

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Makes ids such as `msg_f9d2c1a7b00101AbCdEfGhIjKl`.
///
/// The engine sorts a session's messages by id and decides by that order
/// whether a question is answered, so ours have to fit between its own: 48 bits
/// of time (milliseconds times 4096, plus a counter) in hexadecimal, then
/// randomness. The time is the engine's, which may run on another machine.
#[derive(Debug, Default)]
pub(super) struct MessageIds {
    state: Mutex<Clock>,
}

#[derive(Debug, Default)]
struct Clock {
    /// The engine's clock minus ours, in milliseconds.
    offset: i64,
    last: u64,
}

impl MessageIds {
    /// Learns the engine's clock from a time it has just stamped.
    pub(super) fn synchronise(&self, engine_milliseconds: f64) {
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970 fit")]
        let engine = engine_milliseconds as i64;
        let offset = engine - i64::try_from(now()).unwrap_or(i64::MAX);
        // Below this it's the time that the answer travelled.
        let offset = if offset.abs() < 250 { 0 } else { offset };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).offset = offset;
    }

    /// A fresh id, later than all before it.
    pub(super) fn fresh(&self) -> String {
        let mut clock = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let time = now().saturating_add_signed(clock.offset);
        clock.last = (time * 4096).max(clock.last + 1);
        id(clock.last)
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn id(time: u64) -> String {
    let mut random = [0_u8; 14];
    if getrandom::fill(&mut random).is_err() {
        // The time alone is unique in this process; the rest only guards
        // against ids of others in the same session, which nobody else makes.
        tracing::warn!("the system gives no random numbers");
    }
    let tail: String =
        random.iter().map(|byte| char::from(DIGITS[usize::from(*byte) % DIGITS.len()])).collect();
    format!("msg_{:012x}{tail}", time & 0xffff_ffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_engines_shape_and_rise() {
        let ids = MessageIds::default();
        let made: Vec<_> = (0..1000).map(|_| ids.fresh()).collect();
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(|id| id.len() == 4 + 12 + 14 && id.starts_with("msg_")));
    }

    #[test]
    fn a_known_time_gives_the_engines_digits() {
        assert!(id(1_796_000_000_000 * 4096 + 1).starts_with("msg_229f12800001"));
    }

    #[test]
    fn an_engine_that_is_ahead_is_followed() {
        let ids = MessageIds::default();
        let before = ids.fresh();
        #[expect(clippy::cast_precision_loss, reason = "a test")]
        ids.synchronise(now() as f64 + 3_600_000.0);
        assert!(ids.fresh() > before);
    }
}
