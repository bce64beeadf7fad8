//! What the orchestrator adds to a turn.
//!
//! It stands between a chat platform and an engine that are both in this
//! process and share its clock: the way in is from the platform's send to the
//! engine's request, the way out from the engine's last event to the answer
//! that the platform is handed.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use openpact_testkit::Layout;
use openpact_testkit::chat::{FakeChat, Outcome, Platform};
use openpact_testkit::engine::FakeEngine;
use openpact_testkit::harness::{Process, Program};

use crate::figure::{Figure, Value, median_and_p95};
use crate::{program, resident, say};

/// How long starting and one turn may take.
const LONGEST: Duration = Duration::from_secs(60);
const MIB: u64 = 1024 * 1024;

/// Measures so many turns, one after the other.
pub(crate) fn measure(turns: usize) -> anyhow::Result<Vec<Figure>> {
    let runtime = tokio::runtime::Runtime::new().context("start the async runtime")?;
    runtime.block_on(run(turns))
}

async fn run(turns: usize) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let layout = Layout::new(folder.path())?;
    let engine = FakeEngine::start_in(&layout).await?;
    let orchestrator = start(&layout).await?;
    let chat = FakeChat::start(&layout, Platform::default());
    chat.connected().await?;
    let memory = resident::idle(u32::try_from(orchestrator.pid())?)?;

    say(&format!("measuring {turns} turns"));
    let (mut ways_in, mut ways_out) = (Vec::new(), Vec::new());
    let warm_up = turns.div_ceil(10);
    for turn in 0..warm_up + turns {
        let (way_in, way_out) = one(&chat, &engine, turn).await?;
        if turn >= warm_up {
            ways_in.push(way_in);
            ways_out.push(way_out);
        }
    }
    let both = ways_in.iter().zip(&ways_out).map(|(way_in, way_out)| *way_in + *way_out);
    let (both, both_slow) = median_and_p95(both.collect());
    let (way_in, _) = median_and_p95(ways_in);
    let (way_out, _) = median_and_p95(ways_out);
    let sync = sync(folder.path()).context("measure the disk")?;
    let time = |what, time, goal: Option<Duration>| Figure {
        what,
        ours: Value::Time(time),
        other: None,
        goal: goal.map(Value::Time),
    };
    Ok(vec![
        Figure {
            what: "orchestrator, idle memory",
            ours: Value::Bytes(memory),
            other: None,
            goal: Some(Value::Bytes(25 * MIB)),
        },
        Figure {
            other: Some(("one fsync of this disk", Value::Time(sync))),
            ..time("turn, added in all", both, Some(Duration::from_millis(5)))
        },
        time("turn, added in all, 95 of 100", both_slow, None),
        time("turn, message to engine's request", way_in, None),
        time("turn, engine's last event to answer", way_out, None),
    ])
}

async fn start(layout: &Layout) -> anyhow::Result<Process> {
    let orchestrator = Program::new(&program::path("openpact-orchestrator")?)
        .arg("--workspace")
        .arg(layout.root())
        .env("OPENPACT_ORCHESTRATOR_MODEL", "openpact/fake-model")
        .start()?;
    orchestrator.address(LONGEST, &layout.address_file("orchestrator")).await?;
    Ok(orchestrator)
}

/// One turn's way in and way out.
async fn one(
    chat: &FakeChat,
    engine: &FakeEngine,
    turn: usize,
) -> anyhow::Result<(Duration, Duration)> {
    let text = format!("turn {turn} of the bench");
    let message = chat.say("bench", &text);
    let outcome = chat.answered(&message, LONGEST).await?;
    let Outcome::Answered(answer) = outcome else { anyhow::bail!("turn {turn}: {outcome:?}") };
    anyhow::ensure!(answer.contains(&text), "turn {turn} was answered with {answer:?}");

    let sent = chat.sent().into_iter().find(|sent| sent.id == message).context("the message")?;
    let sent_at = sent.sent_at.context("the message was sent")?;
    let prompt = engine.prompts().pop().context("a prompt")?;
    anyhow::ensure!(prompt.text.contains(&text), "the last prompt is {:?}", prompt.text);
    let (_, idle_at) = engine.idle().pop().context("an idle session")?;
    let delivery = chat.deliveries().pop().context("a delivery")?;
    Ok((prompt.at - sent_at, delivery.at - idle_at))
}

/// How long the disk takes to keep 4 KiB.
fn sync(folder: &Path) -> anyhow::Result<Duration> {
    let mut file = File::create(folder.join("sync"))?;
    let times = (0..50).map(|_| {
        let begun = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        Ok(begun.elapsed())
    });
    Ok(median_and_p95(times.collect::<std::io::Result<_>>()?).0)
}
