//! Redacts JSON: what it says, not how it's written.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::scan::Secrets;

/// Redacts every string, number and key in `value`; says whether it changed.
pub(super) fn redact(secrets: &Secrets, value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => match secrets.redact(&number.to_string()) {
            Cow::Borrowed(_) => false,
            Cow::Owned(text) => {
                *value = Value::String(text);
                true
            }
        },
        Value::String(text) => match secrets.redact(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(redacted) => {
                *text = redacted;
                true
            }
        },
        Value::Array(items) => {
            // No short cut: each has to be looked at.
            items.iter_mut().fold(false, |changed, item| redact(secrets, item) | changed)
        }
        Value::Object(map) => {
            let changed =
                map.values_mut().fold(false, |changed, item| redact(secrets, item) | changed);
            redact_keys(secrets, map) | changed
        }
    }
}

fn redact_keys(secrets: &Secrets, map: &mut Map<String, Value>) -> bool {
    if map.keys().all(|key| matches!(secrets.redact(key), Cow::Borrowed(_))) {
        return false;
    }
    for (key, value) in std::mem::take(map) {
        let redacted = secrets.redact(&key).into_owned();
        let mut key = redacted.clone();
        // Two keys that differed in their secrets only stay two.
        let mut count = 2;
        while map.contains_key(&key) {
            key = format!("{redacted} {count}");
            count += 1;
        }
        map.insert(key, value);
    }
    true
}
