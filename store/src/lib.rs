//! OpenPact's durable state behind traits.
//!
//! [`audit`] is the MCP server's append-only log.

pub mod audit;
