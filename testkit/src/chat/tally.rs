//! Counts what became of messages.

use std::collections::HashMap;

use openpact_proto::frontend::v1::SendKind;

use super::{Became, State};

/// What became of the messages that people wrote on a platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// All of them.
    pub written: usize,
    /// Answered by the assistant, once.
    pub answered: usize,
    /// Failed with a notice, once.
    pub failed: usize,
    /// Refused at the door, with a reason.
    pub rejected: usize,
    /// Nothing became of them yet.
    pub open: usize,
    /// Answered or failed more than once: never right.
    pub doubled: usize,
    /// Posts that were handed out again and recognised: harmless.
    pub reposts: usize,
    /// Times that the frontend lost the orchestrator.
    pub disconnects: usize,
}

pub(super) fn of(state: &State) -> Tally {
    let mut ends: HashMap<&str, Vec<SendKind>> = HashMap::new();
    for post in &state.posts {
        for id in &post.answers {
            ends.entry(id).or_default().push(post.kind);
        }
    }
    let mut tally = Tally {
        written: state.written.len(),
        reposts: state.reposts,
        disconnects: state.disconnects,
        ..Tally::default()
    };
    for written in state.written.values() {
        match &written.became {
            Became::Waiting => tally.open += 1,
            Became::Rejected(_) => tally.rejected += 1,
            Became::Accepted(id) => match ends.get(id.as_str()).map(Vec::as_slice) {
                None | Some([]) => tally.open += 1,
                Some([SendKind::Answer]) => tally.answered += 1,
                Some([_]) => tally.failed += 1,
                Some(_) => tally.doubled += 1,
            },
        }
    }
    tally
}
