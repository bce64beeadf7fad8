//! Waiting for something to be seen, with a bound and a reason.

use std::time::Duration;

use tokio::sync::watch;

/// How long a test waits for what should happen soon, unless it says otherwise.
/// Generous: a loaded machine isn't a failure, and nobody waits it out but a
/// test that fails anyway.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Something a test waited for didn't happen in time.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {}: {what}", humantime::format_duration(*.within))]
pub struct NotSeen {
    /// How long was waited.
    pub within: Duration,
    /// What there was instead.
    pub what: String,
}

/// Rings when something changed, so that whoever waits looks again.
#[derive(Debug)]
pub(crate) struct Bell(watch::Sender<u64>);

impl Bell {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn ring(&self) {
        self.0.send_modify(|times| *times += 1);
    }

    /// Waits for it to ring from now on, starting with this call and not with
    /// the first poll.
    pub(crate) fn rung(&self) -> impl Future<Output = ()> + use<> {
        let mut rings = self.0.subscribe();
        async move {
            // The bell is gone: nothing will ever change.
            if rings.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Looks at once and then whenever it rings, until `look` sees something.
    /// `instead` says what there is when the time is up.
    pub(crate) async fn wait<T>(
        &self,
        within: Duration,
        mut look: impl FnMut() -> Option<T>,
        instead: impl FnOnce() -> String,
    ) -> Result<T, NotSeen> {
        let mut rings = self.0.subscribe();
        let seen = async {
            loop {
                rings.borrow_and_update();
                if let Some(seen) = look() {
                    return Some(seen);
                }
                rings.changed().await.ok()?;
            }
        };
        match tokio::time::timeout(within, seen).await {
            Ok(Some(seen)) => Ok(seen),
            Ok(None) | Err(_) => Err(NotSeen { within, what: instead() }),
        }
    }
}
