//! Whether a message would be answered, watched from time to time.

use std::sync::Arc;
use std::time::Duration;

use openpact_store::model::At;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, EngineError};

/// Between two looks at an engine that is well, and at one that isn't.
const WELL: Duration = Duration::from_secs(10);
const UNWELL: Duration = Duration::from_millis(500);

/// What is known of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineStatus {
    /// It answers.
    pub healthy: bool,
    /// Its version, once known.
    pub version: String,
    /// Its tools are connected.
    pub tools_connected: bool,
    /// What is wrong, for people to read; empty if nothing is.
    pub problem: String,
}

/// What is known of the whole.
#[derive(Debug, Clone)]
pub struct Status {
    /// When this process started.
    pub started_at: At,
    /// The newest look at the engine.
    pub engine: watch::Receiver<EngineStatus>,
}

/// A status, and the work of keeping it true until `stop`.
pub fn watch(
    engine: Arc<dyn Engine>,
    stop: CancellationToken,
) -> (Status, impl Future<Output = ()> + Send + 'static) {
    let unknown = EngineStatus {
        healthy: false,
        version: String::new(),
        tools_connected: false,
        problem: "the engine was not asked yet".into(),
    };
    let (set, get) = watch::channel(unknown);
    let work = async move {
        loop {
            let now = tokio::select! {
                now = look(&*engine) => now,
                () = stop.cancelled() => return,
            };
            let pause = if now.problem.is_empty() { WELL } else { UNWELL };
            set.send_if_modified(|before| {
                let changed = *before != now;
                if changed {
                    tracing::info!(
                        healthy = now.healthy,
                        tools = now.tools_connected,
                        problem = now.problem,
                        "the engine's state changed"
                    );
                }
                *before = now;
                changed
            });
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => return,
            }
        }
    };
    (Status { started_at: At::now(), engine: get }, work)
}

async fn look(engine: &dyn Engine) -> EngineStatus {
    match engine.health().await {
        Ok(health) => EngineStatus {
            healthy: true,
            version: health.version,
            tools_connected: health.tools.is_ok(),
            problem: match health.tools {
                Ok(()) => String::new(),
                Err(problem) => format!("the engine is not connected to the MCP server: {problem}"),
            },
        },
        Err(error) => unwell(&error),
    }
}

fn unwell(error: &EngineError) -> EngineStatus {
    EngineStatus {
        healthy: false,
        version: String::new(),
        tools_connected: false,
        problem: openpact_runtime::chain(error),
    }
}
