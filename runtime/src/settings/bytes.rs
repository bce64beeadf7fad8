//! `#[serde(deserialize_with = "runtime::settings::bytes::deserialize")]`: a size, `64KiB` or `65536`.

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};

/// Reads a whole number of bytes into any unsigned integer that can hold it.
pub fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let text = String::deserialize(deserializer)?;
    let bytes = parse(&text).ok_or_else(|| {
        D::Error::custom("expected a number of bytes such as `65536`, `64KiB` or `1MiB`")
    })?;
    T::try_from(bytes).map_err(|_| D::Error::custom("expected a smaller number of bytes"))
}

/// `None` if it isn't a size or is more than 2^64 - 1 bytes.
fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[end..].trim_start() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "KiB" => 1 << 10,
        "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_with_or_without_a_unit() {
        let cases = [
            ("0", Some(0)),
            ("65536", Some(65536)),
            ("64KiB", Some(65536)),
            ("64 KiB", Some(65536)),
            ("1MiB", Some(1 << 20)),
            ("2GiB", Some(2 << 30)),
            ("3kB", Some(3000)),
            ("", None),
            ("KiB", None),
            ("-1", None),
            ("1.5MiB", None),
            ("64kib", None),
            ("18446744073709551616", None),
            ("18446744073709551615KiB", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse(text), bytes, "{text:?}");
        }
    }
}
