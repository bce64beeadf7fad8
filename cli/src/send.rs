//! `openpact send`: one message, and its answer on standard output.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use openpact_frontend::message::Kind;
use openpact_runtime::Usage;
use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::chat::plain;
use crate::environment;
use crate::hub::aside::Aside;
use crate::hub::ask::{Answer, AskError, Asker};
use crate::hub::{Attached, ChannelArgs, Orchestrator, user};
use crate::workspace::WorkspaceArgs;

/// The longest text that is read from standard input: 1 MiB.
const LONGEST_INPUT: u64 = 1024 * 1024;

/// Sends one message to a running OpenPact and prints its answer.
///
/// Exit code 0: answered; 1: not answered, standard error says why; 2: the
/// command line is wrong, or OpenPact does not run.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    workspace: WorkspaceArgs,
    #[command(flatten)]
    channel: ChannelArgs,
    /// What to say; `-` or nothing: standard input. A command such as `/sessions` works too.
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Begins a new session first.
    #[arg(long)]
    new: bool,
    /// How long to wait for the answer.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Prints a JSON object instead of the text.
    #[arg(long)]
    json: bool,
    /// Says nothing of tool calls and the connection on standard error.
    #[arg(long, short)]
    quiet: bool,
}

/// Runs `openpact send`.
pub async fn run(args: Args, stop: CancellationToken) -> anyhow::Result<ExitCode> {
    let orchestrator = Orchestrator::of(args.workspace.layout()?)?;
    if environment::variable("OPENPACT_LOG").is_none() {
        orchestrator.keep_log("send")?;
    }
    let text = text(args.text).await?;
    let deadline = Instant::now() + args.timeout;
    let mut attached = orchestrator.attach("openpact send", &args.channel.channel, &stop);
    let mut aside = Aside::new(args.quiet);
    let code = async {
        tokio::select! {
            connected = orchestrator.connected(&attached.hub, deadline) => connected?,
            () = stop.cancelled() => return Ok(ExitCode::FAILURE),
        }
        let Attached { hub, events, .. } = &mut attached;
        let (place, user) = (args.channel.place(), user());
        let stop = stop.clone();
        let mut asker = Asker { hub, events, aside: &mut aside, place, user, stop };
        if args.new {
            let begun = asker.ask("/new", deadline).await?;
            asker.aside.note(begun.post.text());
            begun.post.shown();
        }
        match asker.ask(&text, deadline).await {
            Ok(answer) => print(answer, args.json, &aside),
            Err(error) => unanswered(&error, args.json, &aside),
        }
    };
    let code = code.await;
    attached.detach().await;
    code
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    /// `answered` or `failed`
    status: &'a str,
    /// The answer, or why there is none.
    text: &'a str,
    /// `answer`, `failure`, `notice`; absent if nothing came.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    /// As `openpact trace` takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<&'a str>,
}

/// Prints an answer and confirms it; one that could not be printed is not confirmed.
fn print(answer: Answer, json: bool, aside: &Aside) -> anyhow::Result<ExitCode> {
    let Answer { post, message_id, id, good } = answer;
    if json {
        let turn = Some(post.delivery.turn.as_str()).filter(|turn| !turn.is_empty());
        report(&Report {
            status: if good { "answered" } else { "failed" },
            text: post.text(),
            kind: Some(match post.kind() {
                Kind::Answer => "answer",
                Kind::Failure => "failure",
                Kind::Notice => "notice",
            }),
            id: id.as_deref(),
            message_id: Some(&message_id),
            delivery_id: Some(&post.delivery.id),
            turn,
        })?;
    } else if good {
        let mut out = std::io::stdout().lock();
        let text = post.text();
        let text = if out.is_terminal() { plain::harmless(text) } else { text.into() };
        writeln!(out, "{text}").and_then(|()| out.flush()).context("print the answer")?;
    }
    if !good {
        aside.say(post.text());
    }
    post.shown();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn unanswered(error: &AskError, json: bool, aside: &Aside) -> anyhow::Result<ExitCode> {
    let text = error.to_string();
    if json {
        let nothing = None::<&str>;
        report(&Report {
            status: "failed",
            text: &text,
            kind: nothing,
            id: nothing,
            message_id: nothing,
            delivery_id: nothing,
            turn: nothing,
        })?;
    }
    aside.say(&format!("openpact: {text}"));
    Ok(ExitCode::FAILURE)
}

fn report(report: &Report<'_>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, report).context("print the answer")?;
    writeln!(out).and_then(|()| out.flush()).context("print the answer")
}

/// What is to be sent.
async fn text(words: Vec<String>) -> anyhow::Result<String> {
    let text = match words.as_slice() {
        [] if std::io::stdin().is_terminal() => {
            let hint = "as in `openpact send \"What time is it?\"`, or on standard input";
            anyhow::bail!(Usage(format!("say what to send, {hint}")));
        }
        [] => input().await?,
        [dash] if dash == "-" => input().await?,
        words => words.join(" "),
    };
    if text.trim().is_empty() {
        anyhow::bail!(Usage("the message is empty: say what to send".into()));
    }
    Ok(text)
}

/// Standard input, whole.
async fn input() -> anyhow::Result<String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(LONGEST_INPUT + 1).read_to_end(&mut bytes)?;
        std::io::Result::Ok(bytes)
    });
    let bytes = read.await.context("read standard input")?.context("read standard input")?;
    if bytes.len() as u64 > LONGEST_INPUT {
        anyhow::bail!(Usage(format!("standard input is longer than {LONGEST_INPUT} bytes")));
    }
    let text =
        String::from_utf8(bytes).map_err(|_| Usage("standard input is not UTF-8 text".into()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
