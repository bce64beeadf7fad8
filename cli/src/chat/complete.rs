//! Completion of commands by Tab.

/// A command, what it does, and the words it takes.
struct Command {
    name: &'static str,
    does: &'static str,
    words: &'static [&'static str],
}

const fn command(name: &'static str, does: &'static str) -> Command {
    Command { name, does, words: &[] }
}

/// The commands of a chat. What they do is the orchestrator's; only `/quit` is ours.
const COMMANDS: [Command; 9] = [
    command("/new", "begin a new session"),
    command("/sessions", "this channel's sessions"),
    command("/switch", "go on with an earlier session"),
    command("/stop", "stop the running answer"),
    command("/context", "the model, and how full its memory is"),
    Command {
        name: "/mode",
        does: "how much of the work you see",
        words: &["simple", "thinking", "tools", "full"],
    },
    Command { name: "/model", does: "the model of this channel", words: &["default"] },
    command("/help", "the commands"),
    command("/quit", "leave"),
];

/// What Tab makes of what was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// There is nothing to complete.
    None,
    /// This is to be written behind the cursor.
    Append(String),
    /// Several are possible: what to show.
    Several(String),
}

/// Completes `text`, which ends at the cursor.
pub(crate) fn complete(text: &str) -> Completion {
    if !text.starts_with('/') || text.contains('\n') {
        return Completion::None;
    }
    let Some((name, word)) = text.split_once(' ') else {
        let fits = COMMANDS.iter().filter(|it| it.name.starts_with(text));
        return choose(text, fits.map(|it| (it.name, it.does)));
    };
    let words = COMMANDS.iter().find(|it| it.name == name).map_or(&[][..], |it| it.words);
    choose(word, words.iter().filter(|it| it.starts_with(word)).map(|it| (*it, "")))
}

fn choose<'a>(written: &str, fits: impl Iterator<Item = (&'a str, &'a str)>) -> Completion {
    let fits: Vec<_> = fits.collect();
    let Some((first, _)) = fits.first() else { return Completion::None };
    if let [(only, _)] = fits.as_slice() {
        return Completion::Append(format!("{} ", &only[written.len()..]));
    }
    // Names are plain ASCII, so bytes are characters.
    let same = |at: &usize| {
        fits.iter().all(|(fit, _)| fit.as_bytes().get(*at) == first.as_bytes().get(*at))
    };
    let common = (0..first.len()).take_while(same).count();
    if common > written.len() {
        return Completion::Append(first[written.len()..common].to_owned());
    }
    let shown = fits.iter().map(|(fit, does)| match *does {
        "" => (*fit).to_owned(),
        does => format!("{fit} ({does})"),
    });
    Completion::Several(shown.collect::<Vec<_>>().join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_their_words_are_completed() {
        let append = |text: &str| Completion::Append(text.into());
        #[rustfmt::skip]
        let cases = [
            ("hello",       Completion::None),
            ("/x",          Completion::None),
            ("/n",          append("ew ")),
            ("/q",          append("uit ")),
            ("/m",          append("ode")),
            ("/mode ",      Completion::Several("simple  thinking  tools  full".into())),
            ("/mode th",    append("inking ")),
            ("/new x",      Completion::None),
            ("/s",          Completion::Several(
                "/sessions (this channel's sessions)  /switch (go on with an earlier session)  \
                 /stop (stop the running answer)".into())),
        ];
        for (text, expected) in cases {
            assert_eq!(complete(text), expected, "{text}");
        }
    }
}
