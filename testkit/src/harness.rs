//! Real processes for tests: started on free ports, waited for by event, and
//! always ended, with all they started.

mod program;
mod stack;

pub use self::program::{Program, binary};
pub use self::stack::{Stack, StackBuilder};
