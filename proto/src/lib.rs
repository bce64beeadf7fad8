//! The contract between OpenPact's processes.
//!
//! Read `proto/openpact/frontend/v1/frontend.proto` first: it is how a message
//! comes in and an answer goes out. `control.proto` is what operators and the
//! MCP server ask. The types here are generated from those files at build time;
//! there is no behaviour in this crate.

#![allow(missing_docs, reason = "the documentation of generated types is in the .proto files")]

/// Messages and services, by package.
pub mod frontend {
    /// `openpact.frontend.v1`
    #[allow(clippy::all, reason = "generated")]
    pub mod v1 {
        tonic::include_proto!("openpact.frontend.v1");
    }
}

/// Messages and services for operators and tools.
pub mod control {
    /// `openpact.control.v1`
    #[allow(clippy::all, reason = "generated")]
    pub mod v1 {
        tonic::include_proto!("openpact.control.v1");
    }
}

/// The descriptors of every message and service, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
