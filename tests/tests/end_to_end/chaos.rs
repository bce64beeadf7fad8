//! Everything is killed, again and again, while people go on writing.

use std::time::Duration;

use openpact_testkit::chat::{FakeChat, Platform};
use openpact_testkit::harness::Stack;
use openpact_testkit::llm::{FakeLlm, Rule, call, slow, text};
use serde_json::json;

const MESSAGES: usize = 200;
const CHANNELS: usize = 20;
/// How often each of the three processes is killed.
const KILLS: usize = 10;
/// Long enough for every restart of the engine, six seconds of a core each.
const WITHIN: Duration = Duration::from_secs(900);

/// Some answers are quick, some take their time, some use a tool.
fn model() -> [Rule; 2] {
    let appended = json!({"file": "memory/chaos.md", "text": "- {{user}}"});
    [
        Rule::matching("#[0-9]*[05]\\b")
            .round([call("openpact_memory_append", appended)])
            .round([text("noted: {{user}}")]),
        Rule::matching("#[0-9]*[37]\\b").reply([slow(
            "this answer comes slowly, piece by piece, so that something can die in its middle",
            12,
            Duration::from_millis(120),
        )]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_ends_once_whatever_is_killed() {
    let llm = FakeLlm::start(model()).await.unwrap();
    let stack = Stack::builder().llm(&llm).start().await.unwrap();
    let chat = FakeChat::start(stack.layout(), Platform::default());

    let mut chance = Chance::new();
    let mut kills: Vec<_> = ["engine", "orchestrator", "mcp"]
        .into_iter()
        .flat_map(|process| std::iter::repeat_n(process, KILLS))
        .collect();
    chance.shuffle(&mut kills);
    let mut done = [("engine", 0), ("orchestrator", 0), ("mcp", 0)];
    let mut written = 0;
    for (round, process) in kills.iter().enumerate() {
        // What is due by now is written, in bursts.
        while written < MESSAGES * (round + 1) / kills.len() {
            chat.say(&format!("c{}", written % CHANNELS), &format!("message #{written}"));
            written += 1;
        }
        let moment = chance.below(4_000);
        tokio::time::sleep(Duration::from_millis(moment)).await;
        // One that is just being restarted is waited for, so that each kill counts.
        let until = tokio::time::Instant::now() + WITHIN;
        while stack.kill(process).is_err() {
            assert!(tokio::time::Instant::now() < until, "{process} did not come back");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for (name, count) in &mut done {
            *count += usize::from(name == process);
        }
    }
    let report = chat.settled(WITHIN).await.unwrap();

    println!("seed {}, killed {done:?}", chance.seed);
    println!("{report}");
    assert_eq!((report.messages, report.waiting), (MESSAGES, 0), "{report}");
    assert_eq!((report.doubled.len(), report.doubles), (0, 0), "{report}");
    assert_eq!(report.answered + report.failed + report.rejected, MESSAGES, "{report}");
    assert!(done.iter().all(|(_, count)| *count == KILLS), "{done:?}");

    // Afterwards it's as good as new.
    let sent = stack.openpact(["send", "how are you?"]).await.unwrap();
    assert!(sent.status.success(), "{}", sent.stderr);
    drop(chat);
    assert!(stack.stop().await.unwrap().success());
}

/// Random numbers from a seed that a failure shows (xorshift64*).
struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    fn new() -> Self {
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let seed = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or(now.as_nanos() as u64) | 1;
        Self { seed, state: seed }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let other = self.below(at as u64 + 1) as usize;
            items.swap(at, other);
        }
    }
}
