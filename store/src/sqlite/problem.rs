//! What goes wrong inside a transaction, before it's known what it was for.

use std::error::Error;

use crate::StoreError;

/// Why a piece of work failed.
#[derive(Debug)]
pub(super) enum Problem {
    /// The database failed.
    Sqlite(rusqlite::Error),
    /// The store's answer.
    Store(StoreError),
}

impl Problem {
    pub(super) fn missing(what: &'static str, id: &str) -> Self {
        Self::Store(StoreError::Missing { what, id: id.to_owned() })
    }

    /// The error as the caller sees it.
    pub(super) fn explain(self, doing: &'static str) -> StoreError {
        match self {
            Self::Sqlite(source) => database(doing, source),
            Self::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// Why an answer never came.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// [`Sqlite::close`](super::Sqlite::close) was called.
    #[error("the store is closed")]
    Closed,
    /// A defect of ours. It was reported where it happened.
    #[error("the store's code panicked")]
    Panicked,
}

pub(super) fn database(
    doing: &'static str,
    source: impl Error + Send + Sync + 'static,
) -> StoreError {
    StoreError::Database { doing, source: Box::new(source) }
}
