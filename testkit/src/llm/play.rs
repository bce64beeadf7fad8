//! Gives an answer, step by step.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::Shared;
use super::request::LlmRequest;
use super::script::Step;
use super::template;
use super::wire::{Completion, pieces};
use crate::http::{Gone, Writer};

/// Characters that are said at once.
const TEXT_PIECE: usize = 12;
/// Short, so that keys and escapes of the arguments are cut in two.
const ARGUMENT_PIECE: usize = 7;

/// An answer that is being given.
pub(super) struct Answer {
    shared: Arc<Shared>,
    request: LlmRequest,
    steps: Vec<Step>,
    said: Completion,
    writer: Writer,
    streamed: bool,
}

/// How the steps ended.
enum End {
    Finished(String),
    /// In the middle, in good manners.
    Early,
}

impl Answer {
    pub(super) fn new(
        shared: Arc<Shared>,
        request: LlmRequest,
        steps: Vec<Step>,
        writer: Writer,
    ) -> Self {
        let number = shared.count.fetch_add(1, Ordering::Relaxed);
        let prompt = request.body["messages"].to_string().len();
        let said = Completion::new(format!("chatcmpl-{number}"), request.model(), prompt);
        let streamed = request.body["stream"] == Value::Bool(true);
        shared.memory().open += 1;
        Self { shared, request, steps, said, writer, streamed }
    }

    /// Gives it; returns when all is said or the client has left.
    pub(super) async fn give(mut self) {
        if let Err(Gone) = self.try_give().await {
            tracing::debug!("the fake model's answer was not heard to its end");
        }
    }

    async fn try_give(&mut self) -> Result<(), Gone> {
        self.emit(&self.said.first()).await?;
        let End::Finished(reason) = self.play().await? else { return Ok(()) };
        if !self.streamed {
            return self.writer.write(self.said.whole(&reason).to_string()).await;
        }
        self.emit(&self.said.finish(&reason)).await?;
        if self.request.body["stream_options"]["include_usage"] == Value::Bool(true) {
            self.emit(&self.said.usage_chunk()).await?;
        }
        self.writer.write("data: [DONE]\n\n").await
    }

    async fn play(&mut self) -> Result<End, Gone> {
        for step in std::mem::take(&mut self.steps) {
            match step {
                Step::Text(text) => self.say(&text, TEXT_PIECE, Duration::ZERO).await?,
                Step::Slow { text, pieces, pace_ms } => {
                    let length = text.chars().count().div_ceil(pieces.max(1));
                    self.say(&text, length, Duration::from_millis(pace_ms)).await?;
                }
                Step::Reasoning(text) => {
                    for piece in pieces(&template::fill(&text, &self.request), TEXT_PIECE) {
                        let chunk = self.said.think(piece);
                        self.emit(&chunk).await?;
                    }
                }
                Step::Call { tool, arguments, raw, .. } => {
                    let filled = || template::fill_value(&arguments, &self.request).to_string();
                    let arguments = raw.unwrap_or_else(filled);
                    self.call(&tool, &arguments).await?;
                }
                Step::WaitMs(pause) => self.pause(Duration::from_millis(pause)).await?,
                Step::Hold(name) => self.hold(&name).await?,
                Step::Hang => return Err(self.writer.closed().await),
                Step::Cut => return Err(self.writer.cut().await),
                Step::Garbage => {
                    self.writer.write("data: {\"choices\": [{\"delta\n\n").await?;
                    return Ok(End::Early);
                }
                Step::Error(message) => {
                    let error = json!({"error": {"message": message, "type": "server_error",
                        "param": null, "code": null}});
                    self.emit(&error).await?;
                    return Ok(End::Early);
                }
                Step::End => return Ok(End::Early),
                Step::Finish(reason) => return Ok(End::Finished(reason)),
                // The handler has answered it; `Script::check` let it stand nowhere else.
                Step::Status { .. } => return Ok(End::Early),
            }
        }
        let reason = if self.said.has_calls() { "tool_calls" } else { "stop" };
        Ok(End::Finished(reason.to_owned()))
    }

    async fn say(&mut self, text: &str, length: usize, pace: Duration) -> Result<(), Gone> {
        for piece in pieces(&template::fill(text, &self.request), length) {
            let chunk = self.said.say(piece);
            self.emit(&chunk).await?;
            self.pause(pace).await?;
        }
        Ok(())
    }

    async fn call(&mut self, tool: &str, arguments: &str) -> Result<(), Gone> {
        let number = self.shared.count.fetch_add(1, Ordering::Relaxed);
        let start = self.said.call(&format!("call_{number}"), tool, arguments);
        self.emit(&start).await?;
        for piece in pieces(arguments, ARGUMENT_PIECE) {
            self.emit(&self.said.argue(piece)).await?;
        }
        Ok(())
    }

    async fn pause(&self, pause: Duration) -> Result<(), Gone> {
        if pause.is_zero() {
            return Ok(());
        }
        tokio::select! {
            gone = self.writer.closed() => Err(gone),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    async fn hold(&self, name: &str) -> Result<(), Gone> {
        let _held = Held::new(&self.shared, name);
        let released = || self.shared.memory().released.contains(name).then_some(());
        // Bounded by the client's patience and the fake's own life.
        let long = Duration::from_secs(24 * 60 * 60);
        tokio::select! {
            gone = self.writer.closed() => Err(gone),
            seen = self.shared.bell.wait(long, released, String::new) => seen.map_err(|_| Gone),
        }
    }

    async fn emit(&self, chunk: &Value) -> Result<(), Gone> {
        if !self.streamed {
            return Ok(());
        }
        self.writer.write(format!("data: {chunk}\n\n")).await
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.shared.memory().open -= 1;
        self.shared.bell.ring();
    }
}

/// An answer that stands at a hold, for as long as it does.
struct Held<'a> {
    shared: &'a Shared,
    name: &'a str,
}

impl<'a> Held<'a> {
    fn new(shared: &'a Shared, name: &'a str) -> Self {
        *shared.memory().held.entry(name.to_owned()).or_default() += 1;
        shared.bell.ring();
        Self { shared, name }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(held) = self.shared.memory().held.get_mut(self.name) {
            *held -= 1;
        }
        self.shared.bell.ring();
    }
}
