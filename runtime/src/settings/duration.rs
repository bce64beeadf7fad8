//! `#[serde(deserialize_with = "runtime::settings::duration::deserialize")]`: a time with its unit, `30s`.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// A hundred years: longer is a slip, and clocks can't add much more.
const LONGEST: Duration = Duration::from_hours(24 * 36525);

/// Reads a `Duration`, or an `Option` of one: `30s`, `1h 30m`, `500ms`.
pub fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromDuration,
{
    let text = Option::<String>::deserialize(deserializer)?;
    let time = text.map(|text| parse(&text)).transpose().map_err(D::Error::custom)?;
    T::from_duration(time).ok_or_else(|| D::Error::custom(EXPECTED))
}

const EXPECTED: &str = "expected a time with its unit such as `30s`, `10m` or `1h 30m`";

fn parse(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text.trim()).map_err(|_| EXPECTED.to_owned())?;
    if time > LONGEST { Err("expected a time of at most 100 years".to_owned()) } else { Ok(time) }
}

/// What can hold a time in a settings struct.
pub trait FromDuration: Sized {
    /// The value for this time; `None` where nothing was written.
    fn from_duration(time: Option<Duration>) -> Option<Self>;
}

impl FromDuration for Duration {
    fn from_duration(time: Option<Duration>) -> Option<Self> {
        time
    }
}

impl FromDuration for Option<Duration> {
    fn from_duration(time: Option<Duration>) -> Option<Self> {
        Some(time)
    }
}
