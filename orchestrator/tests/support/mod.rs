//! An orchestrator in this process, an engine that says what it's told to, and a frontend.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

pub mod engine;
pub mod frontend;

use std::path::Path;
use std::sync::Arc;

use openpact_orchestrator::config::Config;
use openpact_orchestrator::{Orchestrator, Parts};
use openpact_runtime::layout::Layout;
use openpact_store::sqlite::Sqlite;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::engine::Scripted;
use self::frontend::Frontend;

/// An orchestrator that runs.
pub struct Running {
    pub layout: Layout,
    pub store: Sqlite,
    stop: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Running {
    /// Starts one in `workspace`.
    pub async fn start(workspace: &Path, engine: Arc<Scripted>) -> Self {
        Self::with(workspace, engine, Config::default()).await
    }

    /// Starts one with other settings.
    pub async fn with(workspace: &Path, engine: Arc<Scripted>, config: Config) -> Self {
        let layout = Layout::new(workspace).unwrap();
        layout.create().unwrap();
        let store = Sqlite::open(&layout.state_db()).unwrap();
        let stop = CancellationToken::new();
        let parts = Parts { store: Arc::new(store.clone()), engine, secrets: [] };
        let bound = Orchestrator::bind(&layout, &config, parts, stop.clone()).await.unwrap();
        let task = tokio::spawn(bound.serve());
        Self { layout, store, stop, task }
    }

    /// A frontend of `provider`.
    pub async fn frontend(&self, provider: &str) -> Frontend {
        Frontend::attach(&self.layout, provider).await
    }

    /// Stops as a signal would.
    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
        self.store.close().await.unwrap();
    }
}
