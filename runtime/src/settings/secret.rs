//! `#[serde(deserialize_with = "runtime::settings::secret::deserialize")]`: a value that never prints.

use secrecy::SecretString;
use serde::{Deserialize as _, Deserializer};

/// Reads a `SecretString`, or an `Option` of one, for which an empty text is `None`.
pub fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromSecret,
{
    Option::<String>::deserialize(deserializer)
        .and_then(|text| T::from_secret(text).map_err(serde::de::Error::custom))
}

/// What can hold a secret in a settings struct.
pub trait FromSecret: Sized {
    /// The secret of this text; `None` where nothing was written.
    fn from_secret(text: Option<String>) -> Result<Self, &'static str>;
}

impl FromSecret for SecretString {
    fn from_secret(text: Option<String>) -> Result<Self, &'static str> {
        text.filter(|text| !text.is_empty()).map(Self::from).ok_or("a secret can't be empty")
    }
}

impl FromSecret for Option<SecretString> {
    fn from_secret(text: Option<String>) -> Result<Self, &'static str> {
        Ok(text.filter(|text| !text.is_empty()).map(SecretString::from))
    }
}
