//! Ids that sort by the time they were made.

use std::sync::{Mutex, PoisonError};

use ulid::{Generator, Ulid};

static GENERATOR: Mutex<Option<Generator>> = Mutex::new(None);

/// A new id: 26 characters of Crockford's base 32 (a ULID), in lower case.
///
/// Ids made by one process rise strictly; ids of several processes sort by
/// their millisecond.
#[must_use]
pub fn fresh() -> String {
    let mut generator = GENERATOR.lock().unwrap_or_else(PoisonError::into_inner);
    let id = generator
        .get_or_insert_with(Generator::new)
        .generate()
        .unwrap_or_else(|_| Ulid::generate());
    id.to_string().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise() {
        let ids: Vec<_> = (0..1000).map(|_| fresh()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }
}
