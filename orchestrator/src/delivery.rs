//! Brings what the store holds for a frontend to it, until it's confirmed.
//!
//! One pump a stream. It reads the store page by page, hands out what isn't on
//! its way, and hands it out again if no confirmation comes. Confirmations go
//! into the store first; a crash at any point means that something is handed
//! out again under the same id, which the frontend recognises.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openpact_store::model::Delivery;
use openpact_store::{State, StoreError};
use tokio::time::Instant;

use crate::hub::{Outgoing, Seat};

/// How many deliveries may be with a frontend and not confirmed.
const IN_FLIGHT: usize = 128;
/// How long a frontend may take to confirm before it's handed the same again.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(120);
/// How often something is handed out before it counts as undeliverable.
const ATTEMPTS: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Deliveries a page.
const PAGE: u32 = 64;
/// Nothing waits longer than this for a wake-up that went missing.
const SWEEP: Duration = Duration::from_secs(30);

/// What of one frontend's deliveries is on its way.
#[derive(Debug, Clone, Default)]
pub struct Flights {
    again: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Flights {
    /// The delivery is done, one way or the other. `true`: now there is room again.
    fn landed(&self, id: &str) -> bool {
        let was_full = self.is_full();
        self.again().remove(id);
        was_full
    }

    /// Forgets what may be handed out again.
    fn prune(&self) {
        let now = Instant::now();
        self.again().retain(|_, when| *when > now);
    }

    /// It's to be handed out again, but not before `when`.
    fn again_at(&self, id: &str, when: Instant) {
        self.again().insert(id.to_owned(), when);
    }

    fn is_under_way(&self, id: &str) -> bool {
        self.again().get(id).is_some_and(|when| *when > Instant::now())
    }

    fn is_full(&self) -> bool {
        let now = Instant::now();
        self.again().values().filter(|when| **when > now).count() >= IN_FLIGHT
    }

    fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        self.again().values().filter(|when| **when > now).min().copied()
    }

    fn again(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands a frontend what is for it, for as long as it's connected.
pub async fn pump(store: Arc<dyn State>, seat: Arc<Seat>, flights: Flights) {
    loop {
        match hand_out(&*store, &seat, &flights).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::error!(error = %openpact_runtime::chain(&error), "deliveries can't be read");
            }
        }
        let sweep = Instant::now() + SWEEP;
        let next = flights.next().map_or(sweep, |next| next.min(sweep));
        tokio::select! {
            () = seat.woken() => {}
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

/// `false`: the frontend is gone.
async fn hand_out(store: &dyn State, seat: &Seat, flights: &Flights) -> Result<bool, StoreError> {
    flights.prune();
    let mut after = String::new();
    loop {
        let frontend = seat.frontend();
        let page =
            store.pending_deliveries(&frontend.provider, &frontend.channels, &after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(true) };
        after = last.id.clone();
        for delivery in page {
            if flights.is_full() {
                return Ok(true);
            }
            if flights.is_under_way(&delivery.id) || !seat.owns(&delivery.new.place) {
                continue;
            }
            if delivery.attempt >= ATTEMPTS {
                store.fail_delivery(&delivery.id, "it failed too often").await?;
                flights.landed(&delivery.id);
                continue;
            }
            if !hand(store, seat, flights, delivery).await? {
                return Ok(false);
            }
        }
    }
}

async fn hand(
    store: &dyn State,
    seat: &Seat,
    flights: &Flights,
    mut delivery: Delivery,
) -> Result<bool, StoreError> {
    delivery.attempt += 1;
    flights.again_at(&delivery.id, Instant::now() + CONFIRMED_WITHIN);
    // The first time needs no note: without one it's the first time again.
    if delivery.attempt > 1 {
        store.begin_delivery(&delivery.id).await?;
        return Ok(seat.send(Outgoing::Deliver(Box::new(delivery))).await);
    }
    let id = delivery.id.clone();
    let there = seat.send(Outgoing::Deliver(Box::new(delivery))).await;
    store.begin_delivery(&id).await?;
    Ok(there)
}

/// A frontend posted a piece.
pub async fn confirmed(
    store: &dyn State,
    seat: &Seat,
    flights: &Flights,
    id: &str,
    piece: (u32, u32),
    platform_message_id: &str,
) -> Result<(), StoreError> {
    let (piece, pieces) = piece;
    let done = store.confirm_piece(id, piece, pieces, platform_message_id).await?;
    if done && flights.landed(id) {
        seat.wake();
    }
    Ok(())
}

/// A frontend couldn't post.
pub async fn failed(
    store: &dyn State,
    seat: &Seat,
    flights: &Flights,
    id: &str,
    reason: &str,
    permanent: bool,
) -> Result<(), StoreError> {
    if permanent {
        tracing::warn!(delivery = id, reason, "a delivery failed for good");
        store.fail_delivery(id, reason).await?;
        if flights.landed(id) {
            seat.wake();
        }
        return Ok(());
    }
    let attempt = store.delivery(id).await?.attempt;
    let pause = FIRST_PAUSE * 2_u32.saturating_pow(attempt.min(16));
    tracing::info!(delivery = id, attempt, reason, "a delivery failed and is tried again");
    flights.again_at(id, Instant::now() + pause.min(LONGEST_PAUSE));
    seat.wake();
    Ok(())
}
