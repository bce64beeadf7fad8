//! Errors of the store and of requests as gRPC statuses.

use openpact_store::StoreError;
use tonic::Status;

/// What a client is told of a store error. The log gets the causes.
pub(super) fn of_store(error: &StoreError) -> Status {
    match error {
        StoreError::Full { .. } => Status::resource_exhausted(error.to_string()),
        StoreError::Missing { .. } => Status::not_found(error.to_string()),
        StoreError::Version { .. } => Status::failed_precondition(error.to_string()),
        StoreError::Database { .. } => {
            tracing::error!(error = %openpact_runtime::chain(error), "the store failed");
            Status::unavailable("the database failed; the orchestrator's log has the details")
        }
    }
}

/// A request that lacks something or has something that can't be.
pub(super) fn invalid(what: impl Into<String>) -> Status {
    Status::invalid_argument(what)
}
