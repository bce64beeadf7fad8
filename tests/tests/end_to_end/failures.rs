//! What goes wrong with a model or an engine is said in the chat, once, and the
//! next message works.

use std::time::Duration;

use openpact_testkit::chat::{FakeChat, Platform};
use openpact_testkit::harness::Stack;
use openpact_testkit::llm::{FakeLlm, Rule, Script, Step, slow, status, text, too_many};

const WITHIN: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_is_explained_and_the_next_message_works() {
    #[rustfmt::skip]
    let cases: [(&str, Vec<Step>, &str); 7] = [
        ("a wrong key",     vec![status(401)],                             "refused the key"),
        ("an unknown model", vec![status(404)],                            "does not know the model"),
        ("a long wait",     vec![too_many(3600)],                          "keeps failing"),
        ("no stream end",   vec![text("so far so good"), Step::End],       "so far so good"),
        ("garbage",         vec![text("so"), Step::Garbage],               "keeps failing"),
        ("an empty answer", vec![Step::Finish("stop".into())],             "empty answer"),
        ("silence",         vec![text("well"), Step::Hang],                "Nothing happened for"),
    ];
    let rules = cases.iter().map(|(shows, steps, _)| Rule::user(*shows).reply(steps.clone()));
    let llm = FakeLlm::start(rules.collect::<Script>()).await.unwrap();
    let config = "orchestrator:\n  stall_timeout: 12s\n  provider_wait: 10s\n";
    let stack = Stack::builder().config(config).llm(&llm).start().await.unwrap();
    let chat = FakeChat::start(stack.layout(), Platform::default());
    // All at once: channels don't wait for one another.
    let channel = |at: usize| format!("c{at}");
    for (at, (shows, ..)) in cases.iter().enumerate() {
        chat.say(&channel(at), shows);
    }
    let report = chat.settled(WITHIN).await.unwrap();
    assert_eq!(report.doubled.len(), 0, "{report}");
    for (at, (shows, _, says)) in cases.iter().enumerate() {
        let posts = chat.visible(&channel(at));
        assert_eq!(posts.len(), 1, "{shows}: {posts:?}");
        assert!(posts[0].text.contains(says), "{shows}: {}", posts[0].text);
        chat.say(&channel(at), "and now?");
    }
    let report = chat.settled(WITHIN).await.unwrap();
    // The one whose stream had no end counts as answered, with a remark.
    assert_eq!((report.failed, report.answered), (cases.len() - 1, cases.len() + 1), "{report}");
    for (at, (shows, ..)) in cases.iter().enumerate() {
        assert!(chat.visible(&channel(at))[1].text.contains("and now?"), "{shows}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_once_costs_nothing_and_a_killed_engine_is_asked_again() {
    let broken = Rule::user("breaks").times(1).reply([text("half an ans"), Step::Cut]);
    let story = "a long story with many words, told slowly enough to be interrupted in its middle";
    let dies = Rule::user("dies").reply([slow(story, 15, Duration::from_millis(200))]);
    let llm = FakeLlm::start([broken, dies]).await.unwrap();
    let stack = Stack::builder().llm(&llm).start().await.unwrap();
    let chat = FakeChat::start(stack.layout(), Platform::default());

    chat.say("one", "breaks");
    chat.settled(WITHIN).await.unwrap();
    assert!(chat.visible("one")[0].text.starts_with("echo:"), "{:?}", chat.visible("one"));

    chat.say("two", "dies");
    llm.seen(|request| request.user().contains("dies")).await.unwrap();
    stack.kill("engine").unwrap();
    let report = chat.settled(WITHIN).await.unwrap();
    assert_eq!((report.answered, report.doubled.len()), (2, 0), "{report}");
    assert_eq!(chat.visible("two")[0].text, story);
}
