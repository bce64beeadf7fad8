//! The fake model, as a client sees it over HTTP.

use std::time::Duration;

use eventsource_stream::Eventsource as _;
use futures_util::{StreamExt as _, TryStreamExt as _};
use openpact_testkit::llm::{
    FakeLlm, MODEL, Rule, Script, Step, call, hold, reasoning, slow, status, text, too_many,
};
use serde_json::{Value, json};

fn client() -> reqwest::Client {
    // Another test of this process may have installed it.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(Duration::from_secs(20)).build().expect("a client")
}

async fn post(llm: &FakeLlm, body: &Value) -> reqwest::Response {
    let url = format!("{}/chat/completions", llm.url());
    client().post(url).bearer_auth("sk-right").json(body).send().await.expect("an answer")
}

fn asking(user: &str) -> Value {
    json!({
        "model": MODEL, "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": user}],
        "tools": [{"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}],
    })
}

/// What a stream brought before it ended, and whether it ended well.
async fn frames(response: reqwest::Response) -> (Vec<String>, Result<(), String>) {
    let mut stream = response.bytes_stream().eventsource();
    let mut frames = Vec::new();
    loop {
        match stream.next().await {
            Some(Ok(event)) => frames.push(event.data),
            Some(Err(error)) => return (frames, Err(error.to_string())),
            None => return (frames, Ok(())),
        }
    }
}

async fn chunks(llm: &FakeLlm, user: &str) -> Vec<Value> {
    let (mut frames, ended) = frames(post(llm, &asking(user)).await).await;
    assert_eq!(ended, Ok(()));
    assert_eq!(frames.pop().as_deref(), Some("[DONE]"));
    frames.iter().map(|frame| serde_json::from_str(frame).expect("JSON")).collect()
}

fn joined(chunks: &[Value], pointer: &str) -> String {
    chunks.iter().filter_map(|chunk| chunk.pointer(pointer)?.as_str()).collect()
}

fn finish(chunks: &[Value]) -> Vec<&str> {
    let reason = |chunk: &'_ Value| chunk.pointer("/choices/0/finish_reason").cloned();
    chunks
        .iter()
        .filter(|chunk| reason(chunk).is_some_and(|reason| reason.is_string()))
        .filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str())
        .collect()
}

#[tokio::test]
async fn an_answer_comes_in_pieces_with_its_reason_and_its_usage() {
    let llm = FakeLlm::start([Rule::user("hello")
        .reply([reasoning("they are being polite"), text("hello to you too, {{user}}")])])
    .await
    .unwrap();
    let chunks = chunks(&llm, "hello").await;
    assert_eq!(joined(&chunks, "/choices/0/delta/content"), "hello to you too, hello");
    assert_eq!(joined(&chunks, "/choices/0/delta/reasoning_content"), "they are being polite");
    assert_eq!(finish(&chunks), ["stop"]);
    let usage = &chunks.last().unwrap()["usage"];
    assert_eq!(chunks.last().unwrap()["choices"], json!([]));
    assert_eq!(
        usage["total_tokens"].as_u64().unwrap(),
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap()
    );
    assert_eq!(llm.requests()[0].rule, Some(1));
    assert_eq!(llm.requests()[0].headers["authorization"], "sk-***");
}

#[tokio::test]
async fn tool_calls_come_in_pieces_that_make_the_arguments() {
    let arguments = json!({"text": "{{user}} \"quoted\" é", "deep": ["{{tool_results}}"]});
    let llm = FakeLlm::start([Rule::any().reply([call("t", arguments), call("t", json!({}))])])
        .await
        .unwrap();
    let chunks = chunks(&llm, "hi").await;
    let deltas: Vec<_> =
        chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0")).collect();
    let of = |index: u64| {
        let pieces = deltas.iter().filter(move |delta| delta["index"] == index);
        let arguments = pieces.clone().filter_map(|delta| delta["function"]["arguments"].as_str());
        (pieces.clone().count(), serde_json::from_str(&arguments.collect::<String>()).unwrap())
    };
    let (pieces, first): (usize, Value) = of(0);
    assert!(pieces > 3, "{pieces}");
    assert_eq!(first, json!({"text": "hi \"quoted\" é", "deep": ["0"]}));
    assert_eq!(of(1).1, json!({}));
    assert_ne!(deltas[0]["id"], deltas.iter().find(|delta| delta["index"] == 1).unwrap()["id"]);
    assert_eq!(finish(&chunks), ["tool_calls"]);
}

#[tokio::test]
async fn a_whole_answer_says_the_same_as_a_stream() {
    let llm = FakeLlm::start([Rule::any().reply([
        reasoning("hm"),
        text("let me see"),
        call("t", json!({"x": 1})),
    ])])
    .await
    .unwrap();
    let mut body = asking("hi");
    body["stream"] = json!(false);
    body.as_object_mut().unwrap().remove("stream_options");
    let answer: Value = post(&llm, &body).await.json().await.unwrap();
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], "let me see");
    assert_eq!(message["reasoning_content"], "hm");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"x":1}"#);
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn refusals_look_like_the_real_ones() {
    let mut script = Script::from([
        Rule::user("limit").reply([too_many(3)]),
        Rule::user("down").reply([status(503)]),
        Rule::user("wrong tool").reply([call("nobody_offered_this", json!({}))]),
    ]);
    script.key = Some("sk-right".to_owned());
    let llm = FakeLlm::start(script).await.unwrap();
    let unknown_model = json!({"model": "gpt-9", "messages": [{"role": "user", "content": "x"}]});
    #[rustfmt::skip]
    let cases = [
        // the body             status  code                           part of the message
        (asking("limit"),       429,    json!("rate_limit_exceeded"),  "Rate limit"),
        (asking("down"),        503,    json!(null),                   "overloaded"),
        (asking("wrong tool"),  400,    json!(null),                   "rule 3 calls the tool `nobody_offered_this`"),
        (unknown_model,         404,    json!("model_not_found"),      "`gpt-9` does not exist"),
        (json!({"model": MODEL}), 400,  json!(null),                   "Missing required parameter: 'messages'"),
        (json!(null),           400,    json!(null),                   "must provide a model"),
    ];
    for (body, expected, code, part) in cases {
        let response = post(&llm, &body).await;
        let retry =
            response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(response.status(), expected, "{body}");
        assert_eq!(retry.is_some(), expected == 429);
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{body}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(part), "{answer}");
    }
    assert_eq!(llm.complaints().len(), 4, "{:?}", llm.complaints());

    let url = format!("{}/models", llm.url());
    for (key, expected) in [(None, 401), (Some("sk-wrong"), 401), (Some("sk-right"), 200)] {
        let request = client().get(&url);
        let request = match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), expected, "{key:?}");
        let body: Value = response.json().await.unwrap();
        match key {
            Some("sk-right") => assert_eq!(body["data"][0]["id"], MODEL),
            Some(_) => assert_eq!(body["error"]["code"], "invalid_api_key"),
            None => assert_eq!(body["error"]["code"], Value::Null),
        }
    }
    let url = format!("{}/chat/completions", llm.url());
    let sent = client().post(url).bearer_auth("sk-right").body("{").send().await.unwrap();
    assert_eq!(sent.status(), 400);
    assert!(sent.text().await.unwrap().contains("could not parse the JSON body"));
}

#[tokio::test]
async fn streams_break_in_each_of_the_ways_they_do() {
    let said = || text("as far as this");
    let llm = FakeLlm::start([
        Rule::user("cut").reply([said(), Step::Cut]),
        Rule::user("end").reply([said(), Step::End]),
        Rule::user("garbage").reply([said(), Step::Garbage]),
        Rule::user("error").reply([said(), Step::Error("overloaded".into())]),
        Rule::user("length").reply([said(), Step::Finish("length".into())]),
        Rule::user("filter").reply([Step::Finish("content_filter".into())]),
        Rule::user("nothing").reply([]),
    ])
    .await
    .unwrap();
    #[rustfmt::skip]
    let cases = [
        // asked     ends well  last frame before [DONE]                  finish       text
        ("cut",      false,     None,                                     None,        "as far as this"),
        ("end",      true,      None,                                     None,        "as far as this"),
        ("garbage",  true,      Some(r#"{"choices": [{"delta"#),          None,        "as far as this"),
        ("error",    true,      Some(r#"{"error":{"message":"overloaded""#), None,     "as far as this"),
        ("length",   true,      Some("[DONE]"),                           Some("length"), "as far as this"),
        ("filter",   true,      Some("[DONE]"),                           Some("content_filter"), ""),
        ("nothing",  true,      Some("[DONE]"),                           Some("stop"), ""),
    ];
    for (asked, well, last, finished, said) in cases {
        let (frames, ended) = frames(post(&llm, &asking(asked)).await).await;
        assert_eq!(ended.is_ok(), well, "{asked}: {ended:?}");
        if let Some(last) = last {
            assert!(frames.last().unwrap().starts_with(last), "{asked}: {frames:?}");
        }
        let chunks: Vec<Value> =
            frames.iter().filter_map(|frame| serde_json::from_str(frame).ok()).collect();
        assert_eq!(finish(&chunks).first().copied(), finished, "{asked}");
        assert_eq!(joined(&chunks, "/choices/0/delta/content"), said, "{asked}");
    }
}

#[tokio::test]
async fn an_answer_is_held_until_the_test_releases_it() {
    let llm =
        FakeLlm::start([Rule::any().reply([text("so far"), hold("here"), text(", so good")])])
            .await
            .unwrap();
    let asked = asking("hi");
    let (read, ()) = tokio::join!(async { frames(post(&llm, &asked).await).await }, async {
        llm.held("here").await.unwrap();
        assert_eq!(llm.open(), 1);
        llm.release("here");
    });
    assert!(read.0.iter().any(|frame| frame.contains("good")), "{read:?}");
    llm.quiet().await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_answer() {
    let llm = FakeLlm::start([
        Rule::user("slow").reply([slow("0123456789", 10, Duration::from_secs(60))]),
        Rule::user("then").reply([text("x"), Step::Hang]),
        Rule::user("never").reply([Step::Hang]),
    ])
    .await
    .unwrap();
    for asked in ["slow", "then"] {
        let mut stream = post(&llm, &asking(asked)).await.bytes_stream();
        assert!(stream.try_next().await.unwrap().is_some());
        assert_eq!(llm.open(), 1, "{asked}");
        drop(stream);
        llm.quiet().await.unwrap();
    }
    let body = asking("never");
    let never = post(&llm, &body);
    let seen = llm.seen(|request| request.user() == "never");
    tokio::select! {
        response = never => panic!("{response:?}"),
        seen = seen => assert_eq!(seen.unwrap().tools, ["t"]),
    }
}

#[tokio::test]
async fn what_is_not_seen_is_told_with_what_was() {
    let llm = FakeLlm::start(Script::default()).await.unwrap();
    assert_eq!(joined(&chunks(&llm, "ho").await, "/choices/0/delta/content"), "echo: ho");
    let error = llm
        .seen_within(Duration::from_millis(20), |request| request.user() == "hi")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("20ms") && error.contains(r#""ho" with 0 tool results"#), "{error}");
}

#[tokio::test]
async fn stopping_frees_the_port_though_answers_are_open() {
    let llm = FakeLlm::start([Rule::any().reply([text("x"), Step::Hang])]).await.unwrap();
    let response = post(&llm, &asking("hi")).await;
    tokio::time::timeout(Duration::from_secs(5), llm.stop()).await.unwrap();
    let (_frames, _ended) = frames(response).await;
    let address = llm.url().replace("http://", "").replace("/v1", "").parse().unwrap();
    FakeLlm::listen(address, Script::default()).await.unwrap();
}
