//! The chat on a terminal: keys and events in, lines and live rows out.

use std::io::{self, BufWriter, Stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event as Input, EventStream,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::{execute, terminal};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use openpact_frontend::message::{Content, Incoming, Place, User};
use openpact_proto::control::v1::Message;
use tokio_util::sync::CancellationToken;

use super::keys;
use super::screen::Screen;
use super::view::{Effect, View};
use crate::hub::{Attached, user};

/// How often what moves by itself is drawn anew.
const TICK: Duration = Duration::from_millis(100);

/// Talks until the person leaves, the terminal goes away or `stop`.
pub(super) async fn run(
    attached: &mut Attached,
    place: Place,
    earlier: &[Message],
    stop: CancellationToken,
) -> anyhow::Result<ExitCode> {
    let mut view = View::default();
    let channel = &place.channel;
    let greeting = format!("channel {channel} · /help shows the commands · Ctrl-D leaves");
    view.begin(&greeting, earlier);
    let raw = Raw::enter().context("put the terminal into raw mode")?;
    let size = terminal::size().context("ask the terminal for its size")?;
    let mut talk =
        Talk { view, screen: Screen::new(BufWriter::new(io::stdout()), size), place, user: user() };
    let talked = talk.go_on(attached, stop).await;
    let waiting = talk.view.is_busy();
    let ended = talk.end();
    drop(raw);
    talked.and(ended).context("write to the terminal")?;
    if waiting {
        let text = "the answer is still being made; the next chat shows it\n";
        io::Write::write_all(&mut io::stderr(), text.as_bytes())
            .context("write to the terminal")?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Talk {
    view: View,
    screen: Screen<BufWriter<Stdout>>,
    place: Place,
    user: User,
}

impl Talk {
    async fn go_on(&mut self, attached: &mut Attached, stop: CancellationToken) -> io::Result<()> {
        let mut keys = EventStream::new();
        let mut link = attached.hub.link();
        let mut submitted = FuturesUnordered::new();
        let mut tick = tokio::time::interval(TICK);
        self.draw()?;
        loop {
            let mut effect = None;
            tokio::select! {
                input = keys.next() => match input {
                    Some(input) => effect = self.input(input?),
                    None => return Ok(()),
                },
                event = attached.events.recv() => {
                    let Some(event) = event else { return Ok(()) };
                    if let Some(post) = self.view.event(event, Instant::now()) {
                        self.draw()?;
                        post.shown();
                    }
                }
                Some((message_id, verdict)) = submitted.next() => {
                    let message_id: String = message_id;
                    self.view.taken(&message_id, verdict);
                }
                changed = link.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    let now = link.borrow_and_update().clone();
                    self.view.link(&now);
                }
                _ = tick.tick(), if self.view.is_busy() => {}
                () = stop.cancelled() => return Ok(()),
            }
            match effect {
                None => {}
                Some(Effect::Quit) => return Ok(()),
                Some(Effect::Clear) => {
                    let live = self.live();
                    self.screen.clear(&live)?;
                }
                Some(Effect::Submit(text)) => {
                    let incoming = self.incoming(&text);
                    let message_id = incoming.message_id.clone();
                    self.view.sent(&message_id, &text, Instant::now());
                    let taken = attached.hub.submit(incoming);
                    submitted.push(async move { (message_id, taken.await) });
                }
            }
            self.draw()?;
        }
    }

    fn input(&mut self, input: Input) -> Option<Effect> {
        match input {
            Input::Key(key) => self.view.key(keys::action(key)?, Instant::now()),
            Input::Paste(text) => {
                self.view.paste(&text);
                None
            }
            Input::Resize(width, height) => {
                self.screen.resize((width, height));
                None
            }
            Input::FocusGained | Input::FocusLost | Input::Mouse(_) => None,
        }
    }

    fn incoming(&self, text: &str) -> Incoming {
        Incoming {
            place: self.place.clone(),
            message_id: openpact_runtime::id::fresh(),
            user: self.user.clone(),
            content: Content::typed(text),
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        let live = self.live();
        self.screen.update(&self.view.take_finished(), &live)
    }

    fn live(&self) -> super::screen::Live {
        self.view.live(self.screen.width(), self.screen.height(), Instant::now())
    }

    fn end(&mut self) -> io::Result<()> {
        self.screen.end(&self.view.take_finished())
    }
}

/// A terminal that gives us each key; it's as before when this is dropped.
struct Raw {
    enhanced: bool,
}

impl Raw {
    fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        // From here on the terminal is put right again whatever fails.
        let mut raw = Self { enhanced: false };
        execute!(io::stdout(), EnableBracketedPaste)?;
        // Tells Shift+Enter from Enter, where the terminal can.
        if terminal::supports_keyboard_enhancement().unwrap_or(false) {
            let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
            execute!(io::stdout(), PushKeyboardEnhancementFlags(flags))?;
            raw.enhanced = true;
        }
        Ok(raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let popped = if self.enhanced {
            execute!(io::stdout(), PopKeyboardEnhancementFlags)
        } else {
            Ok(())
        };
        let restored = popped
            .and(execute!(io::stdout(), DisableBracketedPaste))
            .and(terminal::disable_raw_mode());
        if let Err(error) = restored {
            tracing::warn!(%error, "the terminal could not be put right; `reset` does it");
        }
    }
}
