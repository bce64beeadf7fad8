//! The audit log of tool calls: append-only and hash-chained.
