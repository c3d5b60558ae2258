use baton_protocol::domain::{Artifact, ArtifactId, JsonObject, JsonText, Message, Part};
use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::fixtures::{Backend, Gate, agent_with};
use crate::harness::{
    RpcEvent, Stream, TestServer, id, kinds, message, serve, serve_agent, state, with_agent,
};

/// Characters that could end a line, an event or a string too early.
const NASTY: &str =
    "a\nb\rc\r\nd\u{2028}e\u{2029}f\u{0}g\n\ndata: h\nid: 9\n\n: i\u{85}\u{feff}\u{1F642}\"\\";

async fn open(server: &TestServer, text: &str) -> Stream {
    server.stream("SendStreamingMessage", message(text), None).await.ok().expect("a stream")
}

/// The text that a client gets by joining the artifact events of a stream.
fn streamed_text(events: &[RpcEvent]) -> String {
    let mut text = String::new();
    for event in events {
        let update = &event.result()["artifactUpdate"];
        if update.is_object() && update["append"] != true {
            assert_eq!(text, "", "the artifact begins once");
        }
        text.push_str(&parts_text(&update["artifact"]));
    }
    text
}

fn parts_text(artifact: &Value) -> String {
    let parts = artifact["parts"].as_array().cloned().unwrap_or_default();
    parts.iter().map(|part| part["text"].as_str().expect("a text part")).collect()
}

#[tokio::test]
async fn p04_a_thousand_quick_events_arrive_whole_and_in_order() {
    async fn quick(turn: Turn) -> Result<(), AgentError> {
        for n in 0..1000 {
            turn.progress(n.to_string()).await?;
        }
        Ok(())
    }
    let server = serve_agent(quick).await;
    let events = open(&server, "go").await.rest().await;
    assert_eq!(events.len(), 1003);
    for (n, event) in events[2..1002].iter().enumerate() {
        let parts = &event.result()["statusUpdate"]["status"]["message"]["parts"];
        assert_eq!((event.id, parts), (Some(n as u64 + 4), &json!([{"text": n.to_string()}])));
    }
    let history = server.get(id(&events[0].result()["task"])).await["history"].clone();
    assert_eq!(history.as_array().unwrap().len(), 1001, "no text is lost");
}

#[tokio::test]
async fn a_slow_reader_loses_nothing_and_holds_nobody_up() {
    async fn heavy(turn: Turn) -> Result<(), AgentError> {
        for n in 0..1000 {
            turn.progress(format!("{n} {}", "x".repeat(8 * 1024))).await?;
        }
        Ok(())
    }
    let server = serve_agent(heavy).await;
    let mut slow = open(&server, "go").await;
    let task = slow.next().await.unwrap().result()["task"].clone();
    // 8 MB exceed the sockets' buffers: the task must end although nobody reads.
    server.eventually(id(&task), "COMPLETED").await;
    let events = slow.rest().await;
    assert_eq!(events.len(), 1002);
    for (n, event) in events[1..1001].iter().enumerate() {
        let text = &event.result()["statusUpdate"]["status"]["message"]["parts"][0]["text"];
        assert!(text.as_str().unwrap().starts_with(&format!("{n} x")), "{n}");
    }
}

#[tokio::test]
async fn streamed_text_is_merged_and_nothing_of_it_is_lost() {
    async fn tokens(turn: Turn) -> Result<(), AgentError> {
        let mut text = turn.stream_text("story");
        for n in 0..2000 {
            text.write(&format!("wörd{n} ")).await?;
        }
        text.finish().await?;
        Ok(())
    }
    let server = serve_agent(tokens).await;
    let events = open(&server, "go").await.rest().await;
    let expected: String = (0..2000).map(|n| format!("wörd{n} ")).collect();
    assert_eq!(streamed_text(&events), expected);
    assert!(events.len() < 500, "{} events for 2000 tokens", events.len());
    let chunks: Vec<_> =
        events.iter().map(|event| &event.result()["artifactUpdate"]).filter(|u| u.is_object()).collect();
    assert_eq!(chunks[0]["artifact"]["name"], "story");
    assert_eq!(chunks.last().unwrap()["lastChunk"], true);
    let task = server.get(id(&events[0].result()["task"])).await;
    assert_eq!(task["artifacts"].as_array().unwrap().len(), 1);
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": expected}]));
}

/// The frames have the pieces as the agent sent them; the task has the joined text.
#[tokio::test]
async fn p04_streamed_text_is_one_part_and_given_parts_stay_as_they_are() {
    async fn pieces(turn: Turn) -> Result<(), AgentError> {
        let piece =
            |text: &str| Ok::<_, AgentError>(Artifact::new(ArtifactId::parse("a")?, vec![Part::text(text)]));
        match turn.text().as_str() {
            "stream" => {
                let mut text = turn.stream_text_as(ArtifactId::parse("a")?, None);
                for word in ["one ", "two ", "three"] {
                    text.write(word).await?;
                    // A status in between, so that two words are not merged into one event.
                    turn.progress(word).await?;
                }
                text.finish().await?;
            }
            "unfinished" => {
                let mut text = turn.stream_text_as(ArtifactId::parse("a")?, None);
                text.write("one ").await?;
                turn.progress("so far").await?;
                text.write("two").await?;
            }
            "both" => {
                let mut text = turn.stream_text_as(ArtifactId::parse("a")?, None);
                text.write("one ").await?;
                turn.artifact_update(piece("given")?, true, false).await?;
                text.write("two ").await?;
                turn.progress("so far").await?;
                text.write("three").await?;
                turn.artifact_update(piece("")?, true, false).await?;
                text.finish().await?;
            }
            _ => {
                turn.artifact_update(piece("one ")?, false, false).await?;
                turn.artifact_update(piece("two")?, true, false).await?;
                turn.artifact_update(piece("")?, true, true).await?;
            }
        }
        Ok(())
    }
    for backend in Backend::each() {
        let server = serve(with_agent(pieces).store(backend.open().await)).await;
        for (said, frames, parts) in [
            ("stream", &["one ", "two ", "three", ""][..], &["one two three"][..]),
            ("unfinished", &["one ", "two"], &["one two"]),
            ("both", &["one ", "given", "two ", "three", "", ""], &["one ", "given", "two three", ""]),
            ("given", &["one ", "two", ""], &["one ", "two", ""]),
        ] {
            let events = open(&server, said).await.rest().await;
            let updates = events.iter().map(|event| &event.result()["artifactUpdate"]);
            let updates: Vec<_> = updates.filter(|update| update.is_object()).collect();
            let shown: Vec<_> =
                updates.iter().map(|it| it["artifact"]["parts"][0]["text"].as_str()).collect();
            assert_eq!(shown, frames.iter().map(|text| Some(*text)).collect::<Vec<_>>(), "{said}");
            let task = server.get(id(&events[0].result()["task"])).await;
            let parts: Vec<_> = parts.iter().map(|text| json!({"text": text})).collect();
            assert_eq!(task["artifacts"][0]["parts"], json!(parts), "{said}");
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn streamed_text_reaches_a_reader_before_the_turn_ends() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        let mut text = turn.stream_text("story");
        for word in ["once ", "upon "] {
            text.write(word).await?;
            gate.pass().await;
        }
        text.finish().await?;
        Ok(())
    }))
    .await;
    let mut stream = open(&server, "go").await;
    let (mut seen, mut waiting_for) = (Vec::new(), vec!["upon ", "once "]);
    while let Some(event) = stream.next().await {
        seen.push(event);
        if waiting_for.last().is_some_and(|word| streamed_text(&seen).ends_with(word)) {
            waiting_for.pop();
            gate.let_pass(1);
        }
    }
    assert_eq!(streamed_text(&seen), "once upon ");
}

#[tokio::test]
async fn text_streamed_again_under_the_same_id_replaces_what_was_there() {
    async fn twice(turn: Turn) -> Result<(), AgentError> {
        for words in [["a first ", "try"], ["the second ", "one"]] {
            let mut text = turn.stream_text_as(ArtifactId::parse("text")?, None);
            for word in words {
                // Nothing is written meanwhile: the second text stream begins while the first is still buffered.
                text.write(word).await?;
            }
        }
        Ok(())
    }
    let task = serve_agent(twice).await.send("go").await;
    let artifacts = task["artifacts"].as_array().unwrap();
    assert_eq!((artifacts.len(), parts_text(&artifacts[0])), (1, "the second one".to_owned()));
}

#[tokio::test]
async fn text_over_the_event_limit_is_split_and_folds_back_equal() {
    async fn long(turn: Turn) -> Result<(), AgentError> {
        turn.text_artifact("long", NASTY.repeat(turn.text().parse()?)).await?;
        Ok(())
    }
    let server = serve_agent(long).await;
    let count = 3 * 1024 * 1024 / NASTY.len();
    let events = open(&server, &count.to_string()).await.rest().await;
    assert!(kinds(&events).iter().filter(|kind| *kind == "artifactUpdate").count() >= 3);
    for event in &events {
        assert!(event.envelope.to_string().len() <= 1024 * 1024 + 1024, "no event is over the limit");
    }
    assert_eq!(streamed_text(&events), NASTY.repeat(count));
    let task = server.get(id(&events[0].result()["task"])).await;
    assert_eq!(parts_text(&task["artifacts"][0]), NASTY.repeat(count));
    assert_eq!(task["artifacts"][0]["name"], "long");
}

#[tokio::test]
async fn what_cannot_be_split_fails_the_task_and_says_why() {
    async fn heavy(turn: Turn) -> Result<(), AgentError> {
        let big = 1024 * 1024;
        match turn.text().as_str() {
            "raw" => {
                let part = Part::raw(vec![7; big], "application/octet-stream", "big");
                turn.artifact(Artifact::new(ArtifactId::parse("big")?, vec![part])).await?;
            }
            _ => turn.progress("x".repeat(big)).await?,
        }
        turn.complete().await?;
        Ok(())
    }
    let server = serve_agent(heavy).await;
    for text in ["raw", "status"] {
        let task = server.send(text).await;
        assert_eq!(state(&task), "FAILED");
        let reason = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(reason.contains("invalid response") && reason.contains("1048576"), "{reason}");
        assert_eq!(task.get("artifacts"), None);
    }
}

#[tokio::test]
async fn free_form_members_survive_the_frames() {
    async fn mirror(turn: Turn) -> Result<(), AgentError> {
        let asked: &Message = turn.message();
        let mut artifact = Artifact::new(ArtifactId::parse("mirror")?, asked.parts.clone());
        artifact.name = Some(NASTY.to_owned());
        artifact.description = Some(NASTY.to_owned());
        artifact.metadata = asked.metadata.clone();
        artifact.extensions = asked.extensions.clone();
        artifact.parts.push(Part::data(JsonText::parse(&format!("[\n\n  {}\r\n]", json!(NASTY)))?));
        artifact.parts[0].metadata = Some(JsonObject::parse(&json!({NASTY: NASTY}).to_string())?);
        turn.artifact(artifact).await?;
        turn.complete_with(NASTY).await?;
        Ok(())
    }
    let server = serve_agent(mirror).await;
    let mut params = message(NASTY);
    params["message"]["metadata"] = json!({NASTY: [NASTY, {"deep": NASTY}]});
    params["message"]["extensions"] = json!([NASTY]);
    params["message"]["parts"] = json!([
        {"text": NASTY, "filename": NASTY},
        {"data": {NASTY: NASTY}, "metadata": {NASTY: NASTY}},
        {"url": "https://example.org/a", "filename": NASTY, "mediaType": "text/plain"},
    ]);
    let mut stream = server.stream("SendStreamingMessage", params.clone(), None).await.ok().unwrap();
    let events = stream.rest().await;
    assert_eq!(kinds(&events), ["task", "working", "artifactUpdate", "completed"]);

    let said = &events[0].result()["task"]["history"][0];
    for member in ["parts", "metadata", "extensions"] {
        assert_eq!(said[member], params["message"][member], "{member}");
    }
    let artifact = &events[2].result()["artifactUpdate"]["artifact"];
    assert_eq!((&artifact["name"], &artifact["description"]), (&json!(NASTY), &json!(NASTY)));
    assert_eq!(artifact["metadata"], params["message"]["metadata"]);
    assert_eq!(artifact["parts"][0]["metadata"], json!({NASTY: NASTY}));
    assert_eq!(artifact["parts"][3]["data"], json!([NASTY]));
    let end = &events[3].result()["statusUpdate"]["status"]["message"];
    assert_eq!(end["parts"], json!([{"text": NASTY}]));
    let task = server.get(id(&events[0].result()["task"])).await;
    assert_eq!(task["artifacts"][0], *artifact);
    assert_eq!(task["history"][0]["parts"], params["message"]["parts"]);
}
