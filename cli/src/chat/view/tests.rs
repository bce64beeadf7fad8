//! Tests of what a terminal shows.

use openpact_frontend::message::{Body, Delivery, Place};

use super::super::editor::To;
use super::*;

fn at(seconds: u64) -> Instant {
    use std::sync::LazyLock;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    *START + Duration::from_secs(seconds)
}

fn post(kind: Kind, text: &str, answers: &[&str]) -> Event {
    let delivery = Delivery {
        id: format!("delivery of {text}"),
        place: Place::channel("main"),
        body: Body::Text { kind, text: text.into() },
        reply_to: String::new(),
        turn: "turn".into(),
        answers: answers.iter().map(|it| (*it).to_owned()).collect(),
        delivered: Vec::new(),
        attempt: 1,
    };
    Event::Post(Post::new(delivery).0)
}

fn draft(revision: u64, text: &str, reasoning: &str) -> Event {
    let (text, reasoning) = (text.into(), reasoning.into());
    Event::Draft(Draft { turn: "turn".into(), revision, text, reasoning })
}

fn tool(call: &str, state: ActivityState) -> Event {
    let (turn, call) = ("turn".into(), call.into());
    Event::Activity(Activity { turn, call, tool: "read".into(), state, detail: "a.txt".into() })
}

fn accepted(id: &str) -> Result<Accepted, SubmitError> {
    Ok(Accepted { id: id.into(), duplicate: false })
}

impl View {
    fn write(&mut self, text: &str) -> Option<Effect> {
        text.chars().find_map(|c| match c {
            '\t' => self.key(Action::Complete, at(0)),
            '\r' => self.key(Action::Enter, at(0)),
            c => self.key(Action::Insert(c), at(0)),
        })
    }

    /// What is to be printed, and below a line what is live at 30 by 10.
    fn shown(&mut self, seconds: u64) -> String {
        let finished = self.take_finished();
        let live = self.live(30, 10, at(seconds));
        let between = Line::new("----", Look::PLAIN);
        let rows = finished.iter().chain([&between]).chain(&live.rows);
        rows.map(|line| line.text().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn an_answer_grows_below_and_ends_above() {
    let mut view = View::default();
    assert_eq!(view.write("hello\r"), Some(Effect::Submit("hello".into())));
    view.sent("m", "hello", at(0));
    view.taken("m", accepted("id"));
    assert_eq!(view.shown(1), "› hello\n----\n⠋ 1s · Ctrl-C stops\n›");
    view.event(draft(1, "The", "I think."), at(1));
    view.event(draft(3, "The answer", "I think."), at(1));
    view.event(draft(2, "The ans", "I think."), at(1));
    view.event(tool("1", ActivityState::Running), at(1));
    assert_eq!(view.shown(2), "----\nI think.\nThe answer\n▸ read a.txt\n⠋ 2s · Ctrl-C stops\n›");
    view.event(tool("1", ActivityState::Completed), at(2));
    assert!(view.event(post(Kind::Answer, "The answer is 4.", &["id"]), at(3)).is_some());
    assert_eq!(view.shown(3), "✓ read a.txt\nI think.\nThe answer is 4.\n\n----\n›");
    assert!(!view.is_busy());
}

#[test]
fn an_answer_may_be_there_before_its_message_is_known_to_be_accepted() {
    let mut view = View::default();
    view.sent("m", "hello", at(0));
    view.event(post(Kind::Failure, "It broke.", &["id"]), at(0));
    assert!(view.is_busy());
    view.taken("m", accepted("id"));
    assert!(!view.is_busy());
    assert_eq!(view.shown(0), "› hello\n✗ It broke.\n\n----\n›");
}

#[test]
fn a_message_that_is_not_taken_is_told() {
    let mut view = View::default();
    view.sent("m", "hello", at(0));
    view.taken("m", Err(SubmitError::Rejected { reason: "too much".into() }));
    assert_eq!(view.shown(0), "› hello\n✗ not sent: too much\n----\n›");
}

#[test]
fn a_lost_connection_is_told_once_and_so_is_its_return() {
    let mut view = View::default();
    let down = |why: &str| Link::Down { why: why.into(), refused: false };
    let up = Link::Up { version: "1".into(), instance: "1".into() };
    view.link(&up);
    view.sent("m", "hello", at(0));
    view.shown(0);
    view.link(&down("it broke"));
    view.link(&down("refused"));
    let status = "no connection: what you wrote…";
    assert_eq!(
        view.shown(0).replace("is sent when it's back", ""),
        format!("connection lost (it broke);\n  trying again\n----\n{status}\n›")
            .replace("\n  trying", " trying")
            .replace("no connection: what you wrote…", "no connection: what you wrote")
    );
    view.link(&up);
    assert_eq!(view.shown(0), "connected again\n----\n⠋ 0s · Ctrl-C stops\n›");
}

#[test]
fn control_c_stops_then_clears_then_leaves() {
    let mut view = View::default();
    view.event(Event::Typing(true), at(0));
    view.write("half a");
    let stop = Some(Effect::Submit("/stop".into()));
    assert_eq!(view.key(Action::Interrupt, at(1)), stop);
    assert_eq!(view.key(Action::Interrupt, at(1)), None);
    assert_eq!(view.shown(1), "----\n›");
    assert_eq!(view.key(Action::Interrupt, at(2)), None);
    assert_eq!(view.shown(1), "----\n›\nCtrl-C once more leaves");
    assert_eq!(view.key(Action::Interrupt, at(9)), None);
    assert_eq!(view.key(Action::Interrupt, at(10)), Some(Effect::Quit));
    // What was cleared is not lost.
    view.key(Action::Up, at(11));
    assert_eq!(view.shown(11), "----\n› half a");
}

#[test]
fn several_lines_are_written_and_sent_as_one() {
    let mut view = View::default();
    view.write("one\\\rtwo");
    view.key(Action::Newline, at(0));
    view.paste("three\r\nfour");
    assert_eq!(view.shown(0), "----\n› one\n  two\n  three\n  four");
    assert_eq!(view.write("\r"), Some(Effect::Submit("one\ntwo\nthree\nfour".into())));
    view.sent("m", "one\ntwo", at(0));
    assert_eq!(view.shown(0), "› one\n  two\n----\n⠋ 0s · Ctrl-C stops\n›");
}

#[test]
fn commands_are_completed_and_ours_are_obeyed() {
    let mut view = View::default();
    view.write("/mode t\t");
    assert!(view.shown(0).ends_with("› /mode t\nthinking  tools"));
    assert_eq!(view.write("o\t\r"), Some(Effect::Submit("/mode tools".into())));
    assert_eq!(view.write("/q\t\r"), Some(Effect::Quit));
    assert_eq!(view.key(Action::Leave, at(0)), Some(Effect::Quit));
    view.write("ab");
    view.key(Action::Go(To::Left), at(0));
    assert_eq!(view.key(Action::Leave, at(0)), None);
    assert_eq!(view.shown(0), "----\n› a");
}

#[test]
fn what_was_said_last_is_shown_cut_short_and_not_delivered_twice() {
    let message = |id: &str, outgoing, text: &str| Message {
        id: id.into(),
        outgoing,
        text: text.into(),
        ..Message::default()
    };
    let long = (1..=20).map(|line| line.to_string()).collect::<Vec<_>>().join("\n");
    let mut view = View::default();
    let earlier = [
        message("1", false, "earlier"),
        message("delivery of known", true, "known"),
        message("3", true, &long),
    ];
    view.begin("hi", &earlier);
    let shown = view.shown(0);
    assert!(shown.starts_with("hi\n› earlier\nknown\n\n1\n2\n"), "{shown}");
    assert!(shown.ends_with("11\n12\n…\n\n----\n›"), "{shown}");
    assert!(view.event(post(Kind::Answer, "known", &[]), at(0)).is_some());
    assert_eq!(view.shown(0), "----\n›");
    view.key(Action::Up, at(0));
    assert_eq!(view.shown(0), "----\n› earlier");
}

#[test]
fn nothing_grows_beyond_the_screen() {
    let mut view = View::default();
    let text = "a line of some length that wraps\n".repeat(50);
    view.event(draft(1, &text, ""), at(0));
    view.event(Event::Typing(true), at(0));
    for call in 0..20 {
        view.event(tool(&call.to_string(), ActivityState::Running), at(0));
    }
    view.paste(&text);
    for (width, height) in [(30, 10), (5, 3), (200, 50), (4, 4)] {
        let live = view.live(width, height, at(0));
        let rows = &live.rows;
        assert!(rows.iter().all(|row| row.width() <= width), "{width} {height}");
        assert!(live.cursor.0 < rows.len() && live.cursor.1 < width, "{width} {height}");
        if height >= 10 {
            assert!(rows.len() < height, "{width} {height}: {}", rows.len());
        }
    }
}
