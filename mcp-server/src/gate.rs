//! The one function through which every tool call goes: [`Gate::call`].
//!
//! Read its body: it's design and documentation. What a tool does is the
//! tool's; whether it runs, for how long, what may leave and what is recorded
//! is decided here, for all tools alike.

mod limits;
mod record;

use std::sync::Arc;
use std::time::{Duration, Instant};

use openpact_store::audit::AuditLog;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::caller::{Caller, Door};
use crate::config::Config;
use crate::error::ToolError;
use crate::policy::{Policy, Verdict};
use crate::tool::{Answer, Call, Entry, Registry, Run, Toolbox};

use limits::Limits;
use record::Record;

/// How long a call that was stopped may take to notice.
const STOPPING: Duration = Duration::from_secs(1);

/// A call as a client makes it.
#[derive(Debug)]
pub struct Request {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, a stamp perhaps among them.
    pub arguments: Map<String, Value>,
    /// How the client came in.
    pub door: Door,
    /// What the client calls itself.
    pub client: Option<String>,
    /// Cancelled when the client no longer wants it.
    pub stop: CancellationToken,
}

/// What every call has to pass.
#[derive(Debug)]
pub struct Gate {
    registry: Registry,
    toolbox: Arc<Toolbox>,
    policy: Policy,
    audit: AuditLog,
    limits: Limits,
    timeout: Duration,
    max_result_bytes: usize,
    tasks: TaskTracker,
}

impl Gate {
    /// A gate before the tools of `registry`.
    #[must_use]
    pub fn new(config: &Config, registry: Registry, toolbox: Toolbox, audit: AuditLog) -> Self {
        Self {
            registry,
            toolbox: Arc::new(toolbox),
            policy: Policy::new(config),
            audit,
            limits: Limits::new(config.max_concurrent_calls, config.max_waiting_calls),
            timeout: config.call_timeout,
            max_result_bytes: config.max_result_bytes,
            tasks: TaskTracker::new(),
        }
    }

    /// The tools there are.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Answers a call, whatever becomes of it, and records it.
    pub async fn call(&self, request: Request) -> Result<Answer, ToolError> {
        let Request { tool, mut arguments, door, client, stop } = request;
        let caller = Caller::identify(door, client, &mut arguments);
        let mut record = Record::begin(&caller, &tool, &arguments);
        self.audit.ready().await.map_err(ToolError::NotRecorded)?;
        let answer = self
            .decide_and_run(&tool, arguments, caller, &stop, &mut record)
            .await
            .map(|answer| answer.redacted(&self.toolbox.redactor).bounded(self.max_result_bytes));
        self.audit.append(record.end(&answer)).await.map_err(ToolError::RecordLost)?;
        answer
    }

    /// Waits until no call is running, for those that were told to stop.
    pub async fn drained(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    async fn decide_and_run(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        caller: Caller,
        stop: &CancellationToken,
        record: &mut Record,
    ) -> Result<Answer, ToolError> {
        let entry = self.registry.find(tool).ok_or_else(|| self.registry.unknown(tool))?;
        let run = entry.prepare(arguments)?;
        let began = Instant::now();
        let place = self.limits.enter()?;
        let turn = tokio::select! {
            turn = place.turn() => turn,
            () = stop.cancelled() => return Err(ToolError::Cancelled),
            () = tokio::time::sleep(self.timeout) => return Err(self.timed_out()),
        };
        self.decide(entry, record)?;
        let call = Call { toolbox: Arc::clone(&self.toolbox), caller, stop: stop.child_token() };
        let left = self.timeout.saturating_sub(began.elapsed());
        self.run(entry, run, call, left, turn).await
    }

    /// Asks the policy; an approval has nobody to come from yet.
    fn decide(&self, entry: &Entry, record: &mut Record) -> Result<(), ToolError> {
        let verdict = self.policy.decide(entry.name, entry.effect);
        record.decided(&verdict);
        let tool = entry.name.to_owned();
        match verdict {
            Verdict::Allow(_) => Ok(()),
            Verdict::Deny(rule) => Err(ToolError::Denied { tool, rule: rule.to_string() }),
            Verdict::Ask(rule) => Err(ToolError::NoApprover { tool, rule: rule.to_string() }),
        }
    }

    /// Runs the tool as a task of its own, so that its panic ends nothing else.
    async fn run(
        &self,
        entry: &Entry,
        run: Run,
        call: Call,
        left: Duration,
        turn: limits::Turn,
    ) -> Result<Answer, ToolError> {
        let stop = call.stop.clone();
        let mut task = self.tasks.spawn(async move {
            let answer = run(call).await;
            // Held until the work has really ended, so that work which is slow
            // to stop still counts.
            drop(turn);
            answer
        });
        let stopped = tokio::select! {
            ended = &mut task => {
                return ended.unwrap_or_else(|_panic| Err(ToolError::Panicked { tool: entry.name }));
            }
            () = stop.cancelled() => ToolError::Cancelled,
            () = tokio::time::sleep(left) => self.timed_out(),
        };
        stop.cancel();
        if tokio::time::timeout(STOPPING, &mut task).await.is_err() {
            tracing::warn!(tool = entry.name, "a call is slow to stop");
        }
        Err(stopped)
    }

    fn timed_out(&self) -> ToolError {
        ToolError::TimedOut { after: self.timeout }
    }
}

#[cfg(test)]
mod tests;
