//! OpenPact's durable state behind traits.
//!
//! Read [`model`] first: what is kept. [`State`] is what a store of the
//! orchestrator's state can do, [`sqlite`] the embedded one. [`audit`] is the
//! MCP server's append-only log. The store keeps and finds; it decides nothing.

pub mod audit;
pub mod model;
pub mod sqlite;
mod state;

pub use state::{State, StoreError};
