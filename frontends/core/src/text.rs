//! Text as platforms measure and take it.

mod fence;
mod length;
mod split;

pub use length::{Length, Unit};
pub use split::split;
