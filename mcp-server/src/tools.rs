//! The tools there are.
//!
//! A new one is a type that implements [`Tool`](crate::tool::Tool) and a line
//! in [`all`]. No tool calls another, and none opens a file except through
//! [`crate::workspace`].

mod glob;
pub mod memory;
pub mod workspace_delete;
pub mod workspace_edit;
pub mod workspace_list;
pub mod workspace_move;
pub mod workspace_read;
pub mod workspace_search;
pub mod workspace_write;

use openpact_runtime::redact::contains_mark;

use crate::error::ToolError;
use crate::tool::Registry;

/// All tools, in the order in which clients list them.
#[must_use]
pub fn all() -> Registry {
    Registry::default()
        .with::<workspace_read::WorkspaceRead>()
        .with::<workspace_write::WorkspaceWrite>()
        .with::<workspace_edit::WorkspaceEdit>()
        .with::<workspace_list::WorkspaceList>()
        .with::<workspace_search::WorkspaceSearch>()
        .with::<workspace_delete::WorkspaceDelete>()
        .with::<workspace_move::WorkspaceMove>()
        .with::<memory::MemoryRead>()
        .with::<memory::MemoryWrite>()
        .with::<memory::MemoryAppend>()
}

/// Refuses text that would put a redactor's mark in place of a secret.
fn unmarked(what: &str, text: &str) -> Result<(), ToolError> {
    if contains_mark(text) {
        return Err(ToolError::Redacted { what: format!("`{what}`") });
    }
    Ok(())
}
