//! Characters that are easily broken in JSON, lines and SSE events come back unchanged from streams and stores, in every
//! free-form member and every generation.

use baton_protocol::domain::{Artifact, ArtifactId, JsonObject, Part};
use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::faces::{Client, FACES, Say, shown};
use crate::fixtures::Backend;
use crate::harness::{TestServer, resumable, serve};
use crate::speakers::with_card;

/// Each kind of unusual characters alone, and one text with all of them.
const ODD: &[&str] = &[
    "\n",
    "\r",
    "\r\n\r\n",
    "\n\ndata: x\n\nid: 9\n\n",
    "\u{2028}\u{2029}\u{85}",
    "\u{0}",
    "\u{1}\u{7f}\u{1b}[31m",
    "\"'`\\\\\"",
    "</script><!-- & -->",
    "👩‍🚀 é e\u{301} ﷽ \u{202e}abc",
    "\u{feff}\u{fffe}\u{ffff}\u{fffd}\u{10ffff}\u{e000}",
    "\t \u{a0}\u{3000} ",
    "%00%0a ${x} {{x}} \\u0000 \\n",
    "null",
    "é\n\r\u{2028}\u{0}\"\\👩‍🚀\u{10ffff}\n\n",
];

/// Repeats the message's text in every member that an agent may fill.
async fn parrot(turn: Turn) -> Result<(), AgentError> {
    let text = turn.text();
    turn.progress(text.clone()).await?;
    let id = ArtifactId::parse("parrot").expect("an id");
    let mut artifact = Artifact::new(id, turn.message().parts.clone());
    artifact.name = Some(text.clone());
    artifact.description = Some(text.clone());
    artifact.metadata = Some(JsonObject::parse(&json!({text.as_str(): {"deep": [text]}}).to_string())?);
    turn.artifact_update(artifact.clone(), false, false).await?;
    artifact.parts = vec![Part::text(text.clone())];
    turn.artifact_update(artifact, true, true).await?;
    turn.complete_with(text).await?;
    Ok(())
}

fn message_with(odd: &str, id: &str) -> Say {
    let mut say = Say::text(id, odd);
    say.metadata = Some(json!({odd: [odd, {odd: odd}]}));
    say.parts = json!([
        {"text": odd, "metadata": {odd: odd}},
        {"data": {odd: [odd, {odd: odd}], "plain": odd}, "metadata": {odd: odd}},
        {"raw": "AA==", "filename": odd, "mediaType": "image/png", "metadata": {odd: odd}},
        {"url": format!("https://example.com/{odd}"), "filename": odd},
    ]);
    say
}

/// The expected events of the stream, and the expected task.
fn expected(odd: &str) -> (Value, Value) {
    let Say { parts, metadata, .. } = message_with(odd, "m");
    let says = json!([{"text": odd}]);
    let mut artifact = json!({
        "name": odd, "description": odd, "metadata": {odd: {"deep": [odd]}}, "parts": parts,
    });
    let whole = json!({"artifact": artifact, "append": false, "last": false});
    artifact["parts"] = says.clone();
    let events = json!([
        {"opens": "submitted"},
        {"state": "working", "says": null},
        {"state": "working", "says": says},
        whole,
        {"artifact": artifact, "append": true, "last": true},
        {"state": "completed", "says": says},
    ]);
    let mut all = parts.as_array().unwrap().clone();
    all.push(json!({"text": odd}));
    artifact["parts"] = json!(all);
    let history = json!([
        {"role": "user", "parts": parts, "metadata": metadata},
        {"role": "agent", "parts": says},
    ]);
    (
        events,
        json!({"task": {"state": "completed", "says": says, "artifacts": [artifact], "history": history}}),
    )
}

async fn check(server: &TestServer, number: &mut usize, ascii: bool) {
    for face in FACES {
        let client = Client { ascii, ..Client::new(server, face) };
        for odd in ODD {
            *number += 1;
            let (events, task) = expected(odd);
            let say = message_with(odd, &format!("m{number}"));
            let seen = client.stream(&say, None).await.unwrap().rest().await;
            assert_eq!(json!(shown(&seen)), events, "{face:?} {odd:?}");
            let told = client.send(&say).await;
            assert!(told.replayed, "{face:?} {odd:?}: the same message, and known as such");
            assert_eq!(told.shape, task, "{face:?} {odd:?}");
            assert_eq!(client.get(&told.id, None).await.shape, task, "{face:?} {odd:?}");
            let resumed = client.subscribe(&told.id, seen[1].number).await.unwrap().rest().await;
            assert_eq!(resumed, seen[2..], "{face:?} {odd:?}");
        }
    }
}

#[tokio::test]
async fn p04_any_text_survives_streams_and_stores_in_every_generation() {
    for backend in Backend::each() {
        let card = |card: &mut baton_protocol::domain::AgentCard| {
            card.default_input_modes = vec!["*/*".to_owned()];
            card.capabilities.state_transition_history = Some(false);
        };
        let server = serve(resumable(with_card(card, parrot)).store(backend.open().await)).await;
        let mut number = 0;
        for ascii in [false, true] {
            check(&server, &mut number, ascii).await;
        }
        server.stop().await;
    }
}
