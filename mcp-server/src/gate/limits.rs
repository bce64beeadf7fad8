//! How much goes on at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ToolError;

/// Bounds the calls that run and those that wait for their turn.
#[derive(Debug)]
pub(super) struct Limits {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
    waiting: usize,
}

/// A place among those that run or wait.
#[derive(Debug)]
pub(super) struct Place {
    permit: OwnedSemaphorePermit,
    turns: Arc<Semaphore>,
}

/// The right to run, given back when dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _place: OwnedSemaphorePermit,
    _turn: OwnedSemaphorePermit,
}

impl Limits {
    pub(super) fn new(running: usize, waiting: usize) -> Self {
        let places = running.saturating_add(waiting).min(Semaphore::MAX_PERMITS);
        let turns = running.min(Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(places)),
            turns: Arc::new(Semaphore::new(turns)),
            waiting,
        }
    }

    /// A place, unless too many have one.
    pub(super) fn enter(&self) -> Result<Place, ToolError> {
        match Arc::clone(&self.places).try_acquire_owned() {
            Ok(permit) => Ok(Place { permit, turns: Arc::clone(&self.turns) }),
            Err(_full) => Err(ToolError::Busy { limit: self.waiting }),
        }
    }
}

impl Place {
    /// Waits for the turn, first come, first served.
    pub(super) async fn turn(self) -> Turn {
        let turn = self.turns.acquire_owned().await.expect("nobody closes the semaphore");
        Turn { _place: self.permit, _turn: turn }
    }
}
