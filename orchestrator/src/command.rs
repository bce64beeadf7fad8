//! What people type behind a slash: `/new`, `/sessions`, `/switch`, `/stop`, …
//!
//! A command is decided from what the store says and carried out by one
//! transaction that records it, changes what it changes and queues its answer;
//! a command that's delivered twice is carried out once.

use std::fmt::Write as _;
use std::sync::Arc;

use openpact_store::model::{
    Accepted, Button, Channel, DeliveryKind, Effect, Mode, NewDelivery, NewMessage, Place, Session,
};
use openpact_store::{State, StoreError};

use crate::engine::{Engine, Usage};
use crate::hub::Hub;
use crate::notice::span;
use crate::session::Sessions;

/// How many sessions `/sessions` shows.
const SHOWN: u32 = 20;
/// How many a `/switch` looks through.
const SEARCHED: u32 = 500;
/// The longest title, in characters.
const LONGEST_TITLE: usize = 80;

/// A command and what it does, as `/help` shows them.
pub const HELP: [(&str, &str); 7] = [
    ("/new [title]", "begin a new session"),
    ("/sessions", "this channel's sessions"),
    ("/switch NUMBER", "go on with an earlier session"),
    ("/stop", "stop the running answer"),
    ("/context", "the model, and how full its memory is"),
    ("/mode [simple|thinking|tools|full]", "how much of the work you see"),
    ("/model [provider/model|default]", "the model of this channel"),
];

/// Carries commands out.
#[derive(Clone)]
pub struct Commands {
    /// Where everything is kept.
    pub store: Arc<dyn State>,
    /// Whom `/context` asks.
    pub engine: Arc<dyn Engine>,
    /// What `/stop` stops.
    pub sessions: Sessions,
    /// Who sees the answers.
    pub hub: Hub,
    /// The model of channels that didn't choose one.
    pub model: Option<String>,
}

/// What a command comes to.
struct Reply {
    effect: Effect,
    text: String,
    buttons: Vec<Button>,
}

impl Reply {
    fn text(text: impl Into<String>) -> Self {
        Self { effect: Effect::None, text: text.into(), buttons: Vec::new() }
    }

    fn changing(effect: Effect, text: impl Into<String>) -> Self {
        Self { effect, text: text.into(), buttons: Vec::new() }
    }
}

impl Commands {
    /// Carries out `name`, whose message is `message`; its answer is queued.
    pub async fn run(
        &self,
        message: NewMessage,
        name: &str,
        arguments: &str,
    ) -> Result<Accepted, StoreError> {
        let place = message.place.clone();
        let reply = self.decide(&place, name, arguments.trim()).await?;
        let buttons = if self.hub.has_buttons(&place) { reply.buttons } else { Vec::new() };
        let kind = if buttons.is_empty() { DeliveryKind::Notice } else { DeliveryKind::Ask };
        let delivery = NewDelivery {
            place: place.clone(),
            kind,
            text: reply.text,
            reply_to: message.message_id.clone(),
            buttons,
            answers: Vec::new(),
        };
        let accepted = self.store.accept_command(message, reply.effect, vec![delivery]).await?;
        self.hub.wake(&place.provider);
        Ok(accepted)
    }

    async fn decide(
        &self,
        place: &Place,
        name: &str,
        arguments: &str,
    ) -> Result<Reply, StoreError> {
        let name = name.trim_start_matches('/').to_lowercase();
        Ok(match name.as_str() {
            "new" => new(arguments),
            "sessions" => self.list(place).await?,
            "switch" => self.switch(place, arguments).await?,
            "stop" if self.sessions.stop(place) => Reply::text("Stopping."),
            "stop" => Reply::text("Nothing is running."),
            "context" => self.context(place).await?,
            "mode" => self.mode(place, arguments).await?,
            "model" => self.model(place, arguments).await?,
            "help" | "start" => Reply::text(help()),
            _ => Reply::text(format!("There is no command `/{}`.\n\n{}", shortened(&name), help())),
        })
    }

    async fn list(&self, place: &Place) -> Result<Reply, StoreError> {
        let sessions = self.store.sessions(Some(place), 0, SHOWN).await?;
        if sessions.is_empty() {
            return Ok(Reply::text("There is no session yet. Write something to begin one."));
        }
        let mut text = String::from("Sessions of this channel:\n");
        for (number, session) in (1..).zip(&sessions) {
            let current = if session.current { " ← current" } else { "" };
            write!(
                text,
                "\n{number}. {} ({}, {} ago){current}",
                title(session),
                counted(session.turns, "answer"),
                span(session.used_at.elapsed())
            )
            .expect("a String takes everything");
        }
        text.push_str("\n\n`/switch NUMBER` goes on with one of them.");
        let others = sessions.iter().filter(|session| !session.current).take(5);
        let buttons = others.map(|session| Button {
            id: session.id.clone(),
            label: title(session).chars().take(64).collect(),
            command: format!("/switch {}", session.id),
        });
        Ok(Reply { effect: Effect::None, text, buttons: buttons.collect() })
    }

    async fn switch(&self, place: &Place, wanted: &str) -> Result<Reply, StoreError> {
        if wanted.is_empty() {
            return Ok(Reply::text("Which one? `/sessions` shows the numbers."));
        }
        let sessions = self.store.sessions(Some(place), 0, SEARCHED).await?;
        // The number counts as `/sessions` does; an id never changes.
        let number = wanted.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let found = match number {
            Some(at) => sessions.get(at),
            None => sessions.iter().find(|session| session.id == wanted),
        };
        let Some(session) = found else {
            let wanted = shortened(wanted);
            return Ok(Reply::text(format!("There is no session `{wanted}`. See `/sessions`.")));
        };
        let effect = Effect::Switch { session: session.id.clone() };
        Ok(Reply::changing(effect, format!("Back in: {}", title(session))))
    }

    async fn context(&self, place: &Place) -> Result<Reply, StoreError> {
        let Some(channel) = self.store.channel(place).await? else {
            return Ok(Reply::text("Nothing was said here yet."));
        };
        let session = self.store.session(&channel.session).await?;
        let mut text = format!("Session: {}", title(&session));
        let asked = self.chosen_model(&channel);
        let used = match &session.engine_session {
            Some(session) => self.engine.usage(session).await,
            None => Ok(None),
        };
        match used {
            Ok(Some(usage)) => text.push_str(&figures(&usage)),
            Ok(None) => write!(text, "\nModel: {asked}\nNothing was answered in it yet.")
                .expect("a String takes everything"),
            Err(error) => {
                let why = openpact_runtime::chain(&error);
                tracing::warn!(error = %why, "the engine's figures can't be read");
                write!(text, "\nModel: {asked}\nThe engine can't be asked for figures now.")
                    .expect("a String takes everything");
            }
        }
        Ok(Reply::text(text))
    }

    async fn mode(&self, place: &Place, wanted: &str) -> Result<Reply, StoreError> {
        const MODES: [(&str, Mode, &str); 4] = [
            ("simple", Mode::Simple, "only answers"),
            ("thinking", Mode::Thinking, "answers and what the model thinks"),
            ("tools", Mode::Tools, "answers and tool calls"),
            ("full", Mode::Full, "everything"),
        ];
        let wanted = wanted.to_lowercase();
        if let Some((name, mode, shows)) = MODES.iter().find(|(name, ..)| *name == wanted) {
            let text = format!("Mode is now `{name}`: {shows}.");
            return Ok(Reply::changing(Effect::SetMode(*mode), text));
        }
        let mode = self.store.channel(place).await?.map_or(Mode::default(), |it| it.mode);
        let mut text = String::new();
        if !wanted.is_empty() {
            writeln!(text, "There is no mode `{}`.\n", shortened(&wanted))
                .expect("a String takes everything");
        }
        for (name, each, shows) in MODES {
            let mark = if each == mode { " ← now" } else { "" };
            writeln!(text, "- `{name}`: {shows}{mark}").expect("a String takes everything");
        }
        let buttons = MODES.iter().filter(|(_, each, _)| *each != mode).map(|(name, ..)| Button {
            id: (*name).into(),
            label: (*name).into(),
            command: format!("/mode {name}"),
        });
        Ok(Reply { effect: Effect::None, text: text.trim_end().into(), buttons: buttons.collect() })
    }

    async fn model(&self, place: &Place, wanted: &str) -> Result<Reply, StoreError> {
        let plain = |c: char| !c.is_whitespace() && !c.is_control();
        Ok(match wanted {
            "" => {
                let channel = self.store.channel(place).await?;
                let model = match &channel {
                    Some(channel) => self.chosen_model(channel),
                    None => self.default_model(),
                };
                Reply::text(format!("This channel's model is {model}."))
            }
            "default" => Reply::changing(
                Effect::SetModel(None),
                format!("This channel's model is now {}.", self.default_model()),
            ),
            name if name.contains('/') && name.len() <= 200 && name.chars().all(plain) => {
                Reply::changing(
                    Effect::SetModel(Some(name.to_owned())),
                    format!("This channel's model is now `{name}`."),
                )
            }
            name => Reply::text(format!(
                "`{}` is no model: write it as `provider/model`, or `default`.",
                shortened(name)
            )),
        })
    }

    fn chosen_model(&self, channel: &Channel) -> String {
        channel.model.as_ref().map_or_else(|| self.default_model(), |model| format!("`{model}`"))
    }

    fn default_model(&self) -> String {
        self.model.as_ref().map_or("the engine's default".into(), |model| format!("`{model}`"))
    }
}

fn new(title: &str) -> Reply {
    // One line, and none that a terminal or a chat would take for more than text.
    let title: String = title.chars().filter(|c| !c.is_control()).take(LONGEST_TITLE).collect();
    let text = if title.is_empty() {
        "A new session begins here. `/sessions` shows the earlier ones.".to_owned()
    } else {
        format!("A new session begins here: {title}")
    };
    Reply::changing(Effect::NewSession { title }, text)
}

fn help() -> String {
    let lines = HELP.iter().map(|(command, does)| format!("- `{command}`: {does}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn title(session: &Session) -> &str {
    if session.title.is_empty() { "untitled" } else { &session.title }
}

fn figures(usage: &Usage) -> String {
    let mut text = format!("\nModel: `{}`\nContext: {} tokens", usage.model, usage.context_tokens);
    if let Some(share) = (usage.context_tokens * 100).checked_div(usage.window_tokens) {
        write!(text, ", {share} % of {}", usage.window_tokens).expect("a String takes everything");
    }
    if usage.cached_tokens > 0 {
        write!(text, " ({} from the cache)", usage.cached_tokens)
            .expect("a String takes everything");
    }
    if usage.cost > 0.0 {
        write!(text, "\nLast answer's cost: ${:.4}", usage.cost)
            .expect("a String takes everything");
    }
    text
}

fn counted(number: u32, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// What somebody typed, as far as it's worth repeating, without what could end code marks.
fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && *c != '`').take(40).collect()
}
