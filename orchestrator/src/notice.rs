//! The system's own words to people in a chat: why there is no answer, and what to do.

use std::time::Duration;

use crate::engine::{EngineError, ModelError};

/// One sentence about what happened, and one about what to do.
#[must_use]
pub fn failure(error: &EngineError) -> String {
    match error {
        EngineError::Unreachable(_) => {
            "I could not reach the AI engine. It may be starting: please send your message again \
             in a minute, or run `openpact doctor` where OpenPact runs."
                .into()
        }
        EngineError::NoSession { .. } => {
            "The AI engine has lost this conversation. Please send your message again: I'll begin \
             a new one."
                .into()
        }
        EngineError::NotStarted => {
            "The AI engine did not take your message up. Please send it again.".into()
        }
        EngineError::Interrupted { tool: None } => {
            "The AI engine stopped in the middle of its answer. Please send your message again."
                .into()
        }
        EngineError::Interrupted { tool: Some(tool) } => format!(
            "The AI engine stopped in the middle of its answer, after it had used `{tool}`. What \
             it did until then is done; please look before you ask again."
        ),
        EngineError::Lost { waited } => format!(
            "The AI engine went away in the middle of its answer and did not come back within {}. \
             Please look whether it runs (`openpact doctor`), then ask again.",
            span(*waited)
        ),
        EngineError::Model { kind, message } => model(*kind, message),
        EngineError::Empty => {
            "The model gave an empty answer. Please ask again, or in other words.".into()
        }
        EngineError::Stalled { silent } => format!(
            "Nothing happened for {}, so I stopped waiting for an answer. Please ask again.",
            span(*silent)
        ),
        EngineError::TooLong { limit } => format!(
            "The answer took longer than {}, so I stopped it (`orchestrator.turn_timeout` in \
             config.yaml). Please ask for less at once.",
            span(*limit)
        ),
        EngineError::TooManySteps { limit } => format!(
            "The model needed more than {limit} steps, so I stopped it (`orchestrator.max_steps` \
             in config.yaml). Please ask for less at once."
        ),
        EngineError::Stopped => "Stopped.".into(),
    }
}

fn model(kind: ModelError, message: &str) -> String {
    let message = message.trim().trim_end_matches('.');
    match kind {
        ModelError::Key => format!(
            "The model's provider refused the key ({message}). Please check `engine.key` in \
             config.yaml."
        ),
        ModelError::Missing => format!(
            "The model's provider does not know the model ({message}). Please check \
             `engine.model` in config.yaml."
        ),
        ModelError::Busy => format!(
            "The model's provider is busy or its quota is used up ({message}). Please try again \
             later."
        ),
        ModelError::Failing => {
            format!("The model's provider keeps failing ({message}). Please try again later.")
        }
        ModelError::TooLong => {
            "This conversation is longer than the model can take in. Please begin a new one with \
             /new."
                .into()
        }
        ModelError::Filtered => {
            "The model's provider refused to answer this (content filter). Please ask in other \
             words."
                .into()
        }
        ModelError::Unreachable => format!(
            "The model's provider can't be reached ({message}). Please check `engine.url` in \
             config.yaml and the network."
        ),
        ModelError::Other => format!("The model failed ({message}). Please try again."),
    }
}

/// A duration in words: `90 seconds`, `10 minutes`.
#[must_use]
pub fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=1 => "a second".into(),
        2..=119 => format!("{seconds} seconds"),
        _ => format!("{} minutes", seconds / 60),
    }
}
