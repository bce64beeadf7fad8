//! Digests by which a caller says which version of a file it means.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// How many hex digits are shown: enough to tell versions apart, few enough
/// for a model to copy without a slip.
const SHOWN: usize = 16;

/// The SHA-256 of a file's bytes. Shown as its first 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from(Sha256::new_with_prefix(bytes))
    }

    fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl From<Sha256> for Digest {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex()[..SHOWN])
    }
}

/// A digest as a caller gives it: 16 to 64 hex digits, `sha256:` before them or not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ExpectedDigest(String);

impl ExpectedDigest {
    /// Whether this is `digest`, or the beginning of it.
    #[must_use]
    pub fn is(&self, digest: Digest) -> bool {
        digest.hex().starts_with(&self.0)
    }
}

impl TryFrom<String> for ExpectedDigest {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let digits = text.trim();
        let digits = digits.strip_prefix("sha256:").unwrap_or(digits).to_ascii_lowercase();
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hex && (SHOWN..=64).contains(&digits.len()) {
            Ok(Self(digits))
        } else {
            Err(format!("`{text}` is not a digest: give the 16 hex digits that a read showed"))
        }
    }
}

impl JsonSchema for ExpectedDigest {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_known_by_its_beginning() {
        let digest = Digest::of(b"hello");
        let full = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(digest.to_string(), full[..16]);
        #[rustfmt::skip]
        let cases: [(&str, Option<bool>); 7] = [
            // given                                    is it the digest?
            ("2cf24dba5fb0a30e",                        Some(true)),
            (full,                                      Some(true)),
            (" sha256:2CF24DBA5FB0A30E ",               Some(true)),
            ("2cf24dba5fb0a30f",                        Some(false)),
            ("2cf24dba",                                None),
            ("not a digest at all",                     None),
            ("",                                        None),
        ];
        for (given, is) in cases {
            let expected = ExpectedDigest::try_from(given.to_owned());
            assert_eq!(expected.ok().map(|expected| expected.is(digest)), is, "{given}");
        }
    }
}
