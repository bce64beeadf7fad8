//! The gate with tools made for the purpose.

use std::sync::atomic::{AtomicUsize, Ordering};

use openpact_runtime::redact::Redactor;
use openpact_store::audit::{Outcome, read};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::policy::Effect;
use crate::tool::Tool;
use crate::workspace::Workspace;

/// Does what a test wants.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, tag = "do", rename_all = "snake_case")]
enum Probe {
    Say { text: String },
    PanicAtOnce,
    PanicInside,
    Hold,
    WaitForEver,
    IgnoreTheStop,
}

/// Tells that a `Hold` is running.
static HOLDING: Notify = Notify::const_new();

/// How many `WaitForEver` have ended because they were told to.
static ENDED: AtomicUsize = AtomicUsize::new(0);

impl Tool for Probe {
    const NAME: &'static str = "probe";
    const EFFECT: Effect = Effect::Read;

    async fn run(self, call: Call) -> Result<Answer, ToolError> {
        match self {
            Self::Say { text } => Ok(Answer::text(text)),
            Self::PanicAtOnce => panic!("on purpose"),
            Self::PanicInside => call.blocking(|_, _| panic!("on purpose")).await,
            Self::Hold => {
                HOLDING.notify_one();
                call.stop.cancelled().await;
                Err(ToolError::Cancelled)
            }
            Self::WaitForEver => {
                call.stop.cancelled().await;
                ENDED.fetch_add(1, Ordering::Relaxed);
                Err(ToolError::Cancelled)
            }
            Self::IgnoreTheStop => std::future::pending().await,
        }
    }
}

/// Something that leaves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tell {}

impl Tool for Tell {
    const NAME: &'static str = "tell";
    const EFFECT: Effect = Effect::External;

    async fn run(self, _call: Call) -> Result<Answer, ToolError> {
        Ok(Answer::text("told"))
    }
}

struct Fixture {
    folder: tempfile::TempDir,
    gate: Gate,
}

impl Fixture {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        change(&mut config);
        let gate = Gate::new(
            &config,
            Registry::default().with::<Probe>().with::<Tell>(),
            Toolbox {
                workspace: Workspace::open(folder.path()).unwrap(),
                redactor: Redactor::new([("KEY".to_owned(), "a-secret-of-some-length".into())]),
            },
            AuditLog::new(folder.path().join("tools.db")),
        );
        Self { folder, gate }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        self.call_until(tool, arguments, CancellationToken::new()).await
    }

    async fn call_until(
        &self,
        tool: &str,
        arguments: Value,
        stop: CancellationToken,
    ) -> Result<String, ToolError> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let request =
            Request { tool: tool.into(), arguments, door: Door::Stdio, client: None, stop };
        self.gate.call(request).await.map(|answer| answer.into_texts().concat())
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let entries = read(&self.folder.path().join("tools.db"), 0, 100).unwrap();
        entries.into_iter().map(|recorded| recorded.entry.outcome).collect()
    }
}

#[tokio::test]
async fn a_panic_ends_its_own_call_alone() {
    let fixture = Fixture::new(|_| {});
    for what in ["panic_at_once", "panic_inside"] {
        let error = fixture.call("probe", json!({"do": what})).await.unwrap_err();
        assert!(matches!(error, ToolError::Panicked { tool: "probe" }), "{what}: {error}");
    }
    assert_eq!(fixture.call("probe", json!({"do": "say", "text": "hi"})).await.unwrap(), "hi");
    assert_eq!(fixture.outcomes(), [Outcome::Failed, Outcome::Failed, Outcome::Done]);
}

#[tokio::test]
async fn what_leaves_needs_an_approver_or_a_rule() {
    let error = Fixture::new(|_| {}).call("tell", json!({})).await.unwrap_err();
    assert!(matches!(error, ToolError::NoApprover { .. }), "{error}");
    let allowing =
        Fixture::new(|config| config.allow = vec!["tell".to_owned().try_into().unwrap()]);
    assert_eq!(allowing.call("tell", json!({})).await.unwrap(), "told");
}

#[tokio::test]
async fn answers_are_redacted_and_bounded() {
    let fixture = Fixture::new(|config| config.max_result_bytes = 100);
    let secret = "it is a-secret-of-some-length";
    let said = fixture.call("probe", json!({"do": "say", "text": secret})).await.unwrap();
    assert_eq!(said, "it is [REDACTED:KEY]");
    let long = "x".repeat(1000);
    let said = fixture.call("probe", json!({"do": "say", "text": long})).await.unwrap();
    assert!(said.starts_with(&"x".repeat(100)) && said.ends_with("than this server sends]"));
    // Where it's cut, no half of a secret may show.
    let across = format!("{}a-secret-of-some-length", "x".repeat(90));
    let said = fixture.call("probe", json!({"do": "say", "text": across})).await.unwrap();
    assert!(!said.contains("a-secret"), "{said}");
}

#[tokio::test]
async fn calls_end_at_their_deadline_or_when_taken_back() {
    let fixture = Fixture::new(|config| config.call_timeout = Duration::from_millis(50));
    for what in ["wait_for_ever", "ignore_the_stop"] {
        let error = fixture.call("probe", json!({"do": what})).await.unwrap_err();
        assert!(matches!(error, ToolError::TimedOut { .. }), "{what}: {error}");
    }
    assert_eq!(ENDED.load(Ordering::Relaxed), 1);
    let stop = CancellationToken::new();
    stop.cancel();
    let error =
        fixture.call_until("probe", json!({"do": "wait_for_ever"}), stop).await.unwrap_err();
    assert!(matches!(error, ToolError::Cancelled), "{error}");
    assert_eq!(fixture.outcomes(), [Outcome::TimedOut, Outcome::TimedOut, Outcome::Cancelled]);
}

#[tokio::test]
async fn only_so_many_wait_and_their_turn_comes() {
    let fixture = Fixture::new(|config| {
        config.max_concurrent_calls = 1;
        config.max_waiting_calls = 1;
    });
    let stop = CancellationToken::new();
    let say = || fixture.call("probe", json!({"do": "say", "text": "hi"}));
    let running = fixture.call_until("probe", json!({"do": "hold"}), stop.clone());
    let others = async {
        HOLDING.notified().await;
        let (one, other) = (say(), say());
        tokio::pin!(one, other);
        // The one that is refused ends at once, the other when its turn comes.
        let refused = tokio::select! {
            answer = &mut one => (answer, true),
            answer = &mut other => (answer, false),
        };
        stop.cancel();
        let said = if refused.1 { other.await } else { one.await };
        (refused.0, said)
    };
    let (running, (refused, said)) = tokio::join!(running, others);
    assert!(matches!(running, Err(ToolError::Cancelled)));
    assert!(matches!(refused, Err(ToolError::Busy { limit: 1 })));
    assert_eq!(said.unwrap(), "hi");
}
