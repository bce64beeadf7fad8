//! What all chat frontends share: the connection to the orchestrator, delivery, text.
//!
//! Read [`adapter`] first: it's what one platform brings. [`hub`] connects,
//! repeats what was not acknowledged and says how the connection is;
//! `delivery` brings what the orchestrator sends to the adapter, piece by piece
//! and once; `live` shows drafts and typing where nothing else waits for it;
//! [`text`] cuts long answers into pieces. [`message`] has the types all of them
//! speak of; only `wire` knows how they are encoded.

pub mod adapter;
mod delivery;
pub mod hub;
mod live;
pub mod message;
pub mod text;
mod wire;

pub use adapter::{Abilities, Adapter, Piece, SendError};
pub use hub::{Accepted, Config, Hub, Link, SubmitError, Target, attach};
