//! One delivery: its pieces, and what is done when the platform doesn't take one.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::Shared;
use crate::adapter::{Adapter, Piece, SendError};
use crate::message::{Body, Delivery};
use crate::{text, wire};

/// How often a piece is tried before the orchestrator is told. It tries again
/// later, and what waits behind this delivery goes first.
const TRIES: u32 = 6;
/// The longest wait that a platform may ask for without the orchestrator being told.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long the platform may take to answer one call.
const CALL: Duration = Duration::from_secs(60);

/// Why a delivery ends here.
enum Stuck {
    /// It never succeeds.
    ForGood(String),
    /// The orchestrator is to try it again later.
    ForNow(String),
    /// The process is to stop.
    Stopped,
}

impl<A: Adapter> Shared<A> {
    /// Posts what isn't posted yet and reports each piece, or why it can't be.
    pub(super) async fn deliver(&self, delivery: &Delivery) {
        let (reason, permanent) = match self.post(delivery).await {
            Ok(()) | Err(Stuck::Stopped) => return,
            Err(Stuck::ForGood(reason)) => (reason, true),
            Err(Stuck::ForNow(reason)) => (reason, false),
        };
        tracing::warn!(delivery = delivery.id, reason, permanent, "a delivery failed");
        self.report(delivery, wire::failed(&delivery.id, &reason, permanent)).await;
    }

    async fn post(&self, delivery: &Delivery) -> Result<(), Stuck> {
        let Some(to) = self.adapter.place(&delivery.place) else {
            let channel = &delivery.place.channel;
            return Err(Stuck::ForGood(format!("`{channel}` is no channel of this platform")));
        };
        self.live.clear_the_stage(&delivery.place.channel).await;
        match &delivery.body {
            Body::Text { text, .. } | Body::Ask { text, .. } => {
                self.post_pieces(&to, delivery, text).await
            }
            Body::Edit { message_id, text } => self.edit(&to, delivery, message_id, text).await,
        }
    }

    async fn post_pieces(
        &self,
        to: &A::Place,
        delivery: &Delivery,
        text: &str,
    ) -> Result<(), Stuck> {
        let pieces = text::split(text, A::LIMIT);
        if pieces.is_empty() {
            return Err(Stuck::ForGood("its text is empty".into()));
        }
        let of = u32::try_from(pieces.len()).map_err(|_| Stuck::ForGood("it's too long".into()))?;
        for (index, text) in (0..).zip(&pieces) {
            if delivery.delivered.contains(&index) {
                continue;
            }
            let nonce = format!("{}-{index}", delivery.id);
            let known = self.receipts().of(&nonce);
            let message_id = match known {
                Some(message_id) => message_id,
                None => {
                    let piece = Piece { text, index, of, nonce: &nonce, delivery };
                    let message_id = self.try_often(|| self.adapter.send(to, piece)).await?;
                    self.receipts().keep(&nonce, &message_id);
                    message_id
                }
            };
            self.report(delivery, wire::delivered(&delivery.id, index, of, &message_id)).await;
        }
        Ok(())
    }

    async fn edit(
        &self,
        to: &A::Place,
        delivery: &Delivery,
        message_id: &str,
        text: &str,
    ) -> Result<(), Stuck> {
        // A message can't become two, so only the beginning is shown.
        let text = text::split(text, A::LIMIT).into_iter().next().unwrap_or_default();
        self.try_often(|| self.adapter.edit(to, message_id, &text)).await?;
        self.report(delivery, wire::delivered(&delivery.id, 0, 1, message_id)).await;
        Ok(())
    }

    async fn try_often<T, F>(&self, call: impl Fn() -> F) -> Result<T, Stuck>
    where
        F: Future<Output = Result<T, SendError>>,
    {
        let mut tries = 0;
        loop {
            if self.stop.is_cancelled() {
                return Err(Stuck::Stopped);
            }
            tries += 1;
            let error = match self.once(call()).await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let reason = openpact_runtime::chain(&error);
            let pause = match error {
                SendError::Gone => return Err(Stuck::ForGood(reason)),
                SendError::TooFast(wait) if wait <= LONGEST_WAIT => wait,
                SendError::TooFast(_) => return Err(Stuck::ForNow(reason)),
                SendError::Failed(_) => self.pause * 2_u32.pow(tries - 1),
            };
            if tries == TRIES {
                return Err(Stuck::ForNow(reason));
            }
            tracing::debug!(reason, ?pause, "the platform is asked again");
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => return Err(Stuck::Stopped),
            }
        }
    }

    /// One call of the adapter: bounded, and a panic in it ends it alone.
    async fn once<T>(
        &self,
        call: impl Future<Output = Result<T, SendError>>,
    ) -> Result<T, SendError> {
        let call = AssertUnwindSafe(tokio::time::timeout(CALL, call)).catch_unwind();
        match call.await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(SendError::Failed("it did not answer within a minute".into())),
            Err(_) => Err(SendError::Failed("posting panicked".into())),
        }
    }

    async fn report(
        &self,
        delivery: &Delivery,
        report: openpact_proto::frontend::v1::FrontendMessage,
    ) {
        // Nobody waits to hear of a change without an id.
        if !delivery.id.is_empty() && self.reports.send(report).await.is_err() {
            tracing::debug!(delivery = delivery.id, "nobody takes reports any more");
        }
    }
}
