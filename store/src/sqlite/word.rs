//! The model's enums, moments and lists as the database keeps them.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::{At, DeliveryKind, Mode, Outcome};

/// Words that are never changed once they're in a database.
macro_rules! words {
    ($($name:ident { $($variant:ident = $word:literal),+ })+) => {$(
        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(match self { $(Self::$variant => $word,)+ }.into())
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                match value.as_str()? {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(FromSqlError::InvalidType),
                }
            }
        }
    )+};
}

words! {
    Mode { Simple = "simple", Thinking = "thinking", Tools = "tools", Full = "full" }
    Outcome { Answered = "answered", Failed = "failed", Cancelled = "cancelled" }
    DeliveryKind { Answer = "answer", Failure = "failure", Notice = "notice", Ask = "ask" }
}

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        value.as_i64().map(Self)
    }
}

/// A list in one column, as JSON.
pub(super) struct List<T>(pub(super) Vec<T>);

impl<T: DeserializeOwned> FromSql for List<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(FromSqlError::other)
    }
}

pub(super) fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("plain data has a JSON form")
}
