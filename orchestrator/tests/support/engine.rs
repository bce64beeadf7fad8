//! An engine that does what a test says and remembers what it was asked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use openpact_orchestrator::engine::{
    Answer, Ask, Engine, EngineError, Health, Progress, ProgressSender, Usage,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

type Result<T> = std::result::Result<T, EngineError>;
type Step = Box<dyn FnOnce() -> Result<Answer> + Send>;

/// See the module.
#[derive(Default)]
pub struct Scripted {
    inner: Mutex<Inner>,
    /// Something was asked or collected.
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    steps: VecDeque<Step>,
    asked: Vec<Ask>,
    collected: Vec<(String, String)>,
    sessions: u32,
    messages: u32,
    /// Questions whose text contains the key wait for the value.
    gates: HashMap<String, Arc<Notify>>,
}

impl Scripted {
    /// Answers every question with `echo: ` and its last line.
    pub fn echo() -> Arc<Self> {
        Arc::default()
    }

    /// What the next question, or collection, comes to.
    pub fn next(&self, step: impl FnOnce() -> Result<Answer> + Send + 'static) {
        self.inner.lock().unwrap().steps.push_back(Box::new(step));
    }

    /// Questions that contain `text` wait until the result is notified.
    pub fn hold(&self, text: &str) -> Arc<Notify> {
        let gate = Arc::new(Notify::new());
        self.inner.lock().unwrap().gates.insert(text.to_owned(), Arc::clone(&gate));
        gate
    }

    /// Everything that was asked.
    pub fn asked(&self) -> Vec<Ask> {
        self.inner.lock().unwrap().asked.clone()
    }

    /// Every (session, message) that was collected.
    pub fn collected(&self) -> Vec<(String, String)> {
        self.inner.lock().unwrap().collected.clone()
    }

    /// Waits until it was asked or made to collect `times` times in all.
    pub async fn busy(&self, times: usize) {
        loop {
            let changed = self.changed.notified();
            {
                let inner = self.inner.lock().unwrap();
                if inner.asked.len() + inner.collected.len() >= times {
                    return;
                }
            }
            changed.await;
        }
    }

    async fn perform(
        &self,
        text: &str,
        progress: &ProgressSender,
        stop: &CancellationToken,
    ) -> Result<Answer> {
        let (gate, step) = {
            let mut inner = self.inner.lock().unwrap();
            let gates = inner.gates.iter();
            let gate = gates.filter(|(key, _)| text.contains(*key)).map(|(_, gate)| gate).next();
            (gate.cloned(), inner.steps.pop_front())
        };
        self.changed.notify_waiters();
        if let Some(gate) = gate {
            drop(
                progress
                    .send(Progress::Text { part: "p".into(), more: "half a story".into() })
                    .await,
            );
            tokio::select! {
                () = gate.notified() => {}
                () = stop.cancelled() => return Err(EngineError::Stopped),
            }
        }
        match step {
            Some(step) => step(),
            None => Ok(says(&format!("echo: {}", text.lines().last().unwrap_or_default()))),
        }
    }
}

/// An answer of one text.
pub fn says(text: &str) -> Answer {
    Answer { text: text.into(), all_text: text.into(), ..Answer::default() }
}

#[async_trait]
impl Engine for Scripted {
    async fn health(&self) -> Result<Health> {
        Ok(Health { version: "test".into(), tools: Ok(()) })
    }

    async fn create_session(&self, _title: &str) -> Result<String> {
        let mut inner = self.inner.lock().unwrap();
        inner.sessions += 1;
        // Unlike those of an engine that ran before.
        Ok(format!("ses_{}_{}", openpact_runtime::id::fresh(), inner.sessions))
    }

    fn message_id(&self) -> String {
        let mut inner = self.inner.lock().unwrap();
        inner.messages += 1;
        format!("msg_{}_{}", openpact_runtime::id::fresh(), inner.messages)
    }

    async fn answer(
        &self,
        ask: &Ask,
        progress: &ProgressSender,
        stop: &CancellationToken,
    ) -> Result<Answer> {
        self.inner.lock().unwrap().asked.push(ask.clone());
        self.perform(&ask.text, progress, stop).await
    }

    async fn collect(
        &self,
        session: &str,
        message: &str,
        progress: &ProgressSender,
        stop: &CancellationToken,
    ) -> Result<Answer> {
        let call = (session.to_owned(), message.to_owned());
        self.inner.lock().unwrap().collected.push(call);
        self.perform("collected", progress, stop).await
    }

    async fn usage(&self, _session: &str) -> Result<Option<Usage>> {
        Ok(None)
    }
}
