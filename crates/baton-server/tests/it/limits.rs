use std::time::Duration;

use baton_protocol::domain::{AgentCard, Artifact, ArtifactId, JsonObject, Part};
use baton_server::Options;
use baton_server::{AgentError, Content, Turn};
use serde_json::{Value, json};

use crate::faces::{Client, FACES, Say};
use crate::fixtures::{Gate, agent_with};
use crate::harness::{id, message_to, serve, state, with_agent};
use crate::speakers::with_card;

fn narrow() -> Options {
    let mut options = Options::default();
    options.max_parts = 3;
    options.max_metadata_bytes = 64;
    options.max_object_keys = 4;
    options.max_json_depth = 3;
    options.max_artifacts = 2;
    options.max_artifact_bytes = 100;
    options.max_history = 4;
    options
}

fn keys(count: usize) -> Value {
    (0..count).map(|n| (n.to_string(), json!(n))).collect::<serde_json::Map<_, _>>().into()
}

/// Values at a limit are accepted and values above it refused, in every generation; nothing of a refused send is stored.
#[tokio::test]
async fn s09_a_message_holds_no_more_than_it_may() {
    async fn quiet(_turn: Turn) -> Result<(), AgentError> {
        Ok(())
    }
    let text = |count: usize| json!(vec![json!({"text": "x"}); count]);
    let data = |value: Value| json!([{"text": "go"}, {"data": value}]);
    let noted = |bytes: usize| Some(json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())}));
    for face in FACES {
        let card = |card: &mut AgentCard| {
            card.default_input_modes = vec!["*/*".to_owned()];
            card.capabilities.state_transition_history = Some(false);
        };
        let server = serve(with_card(card, quiet).options(narrow())).await;
        let client = Client::new(&server, face);
        for (n, (what, parts, metadata, fits)) in [
            ("parts", text(3), None, true),
            ("parts", text(4), None, false),
            ("bytes of metadata", text(1), noted(64), true),
            ("bytes of metadata", text(1), noted(65), false),
            ("bytes of two", json!([{"text": "x", "metadata": {"a": 1}}]), noted(60), false),
            ("keys of metadata", text(1), Some(keys(4)), true),
            ("keys of metadata", text(1), Some(keys(5)), false),
            ("keys of data", data(keys(4)), None, true),
            ("keys of data", data(keys(5)), None, false),
            ("keys within data", data(json!([keys(1), [keys(5)]])), None, false),
            ("depth of data", data(json!({"a": [[1]]})), None, true),
            ("depth of data", data(json!({"a": [[[1]]]})), None, false),
        ]
        .into_iter()
        .enumerate()
        {
            let mut say = Say::text(&format!("m-{n}"), "go");
            (say.parts, say.metadata) = (parts, metadata);
            let heard = client.send(&say).await.shape;
            // In the protobuf of 0.3 data is an object.
            let refused =
                [json!({"error": "INVALID_PARAMS"}), json!({"error": "unsayable"})].contains(&heard);
            assert_eq!(refused, !fits, "{face:?} {what}: {heard}");
        }
        let kept = server.task_count().await;
        assert_eq!(kept, 5, "{face:?}");
    }
}

/// Exceeds the limit that the message names.
async fn immoderate(turn: Turn) -> Result<(), AgentError> {
    let artifact = |id: &str, bytes: usize| {
        let parts = vec![Part::text("x".repeat(bytes))];
        Ok::<_, AgentError>(Artifact::new(ArtifactId::parse(id)?, parts))
    };
    match turn.text().as_str() {
        "enough" => {
            turn.artifact(artifact("a", 50)?).await?;
            turn.artifact(artifact("b", 50)?).await?;
            turn.artifact(artifact("b", 40)?).await?;
            turn.progress("1").await?;
            turn.progress("2").await?;
        }
        "artifacts" => {
            for id in ["a", "b", "c"] {
                turn.artifact(artifact(id, 1)?).await?;
            }
        }
        "bytes" => {
            for n in 0..3 {
                turn.artifact_update(artifact("a", 40)?, n > 0, false).await?;
            }
        }
        "history" => {
            for n in 0..5 {
                turn.progress(n.to_string()).await?;
            }
        }
        "parts" => {
            let parts = vec![Part::text("x"); 4];
            turn.artifact(Artifact::new(ArtifactId::parse("a")?, parts)).await?;
        }
        "keys" => turn.say(Content::json(&keys(5))?).await?,
        "metadata" => {
            let mut artifact = artifact("a", 1)?;
            artifact.metadata = Some(JsonObject::parse(&json!({"a": "x".repeat(64)}).to_string())?);
            turn.artifact(artifact).await?;
        }
        _ => drop(turn.ask("and?")),
    }
    Ok(())
}

#[tokio::test]
async fn s22_an_agent_that_says_more_than_it_may_has_failed_its_task_and_the_reason_is_told() {
    let server = serve(with_agent(immoderate).options(narrow())).await;
    assert_eq!(state(&server.send("enough").await), "COMPLETED");
    for (what, told) in [
        ("artifacts", "more than 2 artifacts"),
        ("bytes", "more than 100 bytes in artifacts"),
        ("history", "more than 4 messages in one task"),
        ("parts", "an artifact whose parts holds more than 3 parts"),
        ("keys", "a message whose parts[0].data holds an object with 5 members; 4 are allowed"),
        ("metadata", "an artifact whose metadata has 72 bytes"),
    ] {
        let task = server.send(what).await;
        assert_eq!(state(&task), "FAILED", "{what}");
        let reason = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(
            reason.starts_with("The agent gave an invalid response") && reason.contains(told),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn s22_a_task_whose_history_is_full_takes_no_more_messages_and_stays_as_it_is() {
    let server = serve(with_agent(immoderate).options(narrow())).await;
    let task = server.send("talk").await;
    let again = server.call("SendMessage", message_to(&task, "talk")).await;
    assert_eq!(state(&again.result()["task"]), "INPUT_REQUIRED");
    // The history has two messages of the user and two of the agent.
    let refused = server.call("SendMessage", message_to(&task, "talk")).await;
    assert_eq!((refused.error_code(), refused.status), (-32050, 429));
    assert_eq!(server.get(id(&task)).await, again.result()["task"]);
    server.stop().await;
}

/// A task that gets messages before its agent fills the history; then the agent takes two of the messages and answers each.
async fn with_some_waiting(more: bool, end: &str) -> Value {
    let gate = Gate::new();
    let agent = agent_with(&gate, move |gate, turn| async move {
        gate.pass().await;
        turn.say("a").await?;
        turn.say("b").await?;
        turn.say("c").await?;
        for _ in 0..2 {
            while turn.next_message().is_none() {
                turn.sleep(Duration::from_millis(1)).await?; // tidy: allow-sleep an agent that looks for messages now and then
            }
            turn.say("heard").await?;
        }
        if more {
            turn.say("and more").await?;
        }
        turn.complete().await
    });
    let server = serve(with_agent(agent).options(narrow())).await;
    let task = server.start("work").await;
    let mut codes = Vec::new();
    for n in 0..4 {
        let mut params = message_to(&task, &n.to_string());
        params["configuration"] = json!({"returnImmediately": true});
        codes.push(server.call("SendMessage", params).await.status);
    }
    assert_eq!(codes, [200, 200, 200, 429], "waiting messages count");
    gate.let_pass(1);
    server.eventually(id(&task), end).await
}

#[tokio::test]
async fn s22_what_was_acknowledged_is_taken_and_answered_whatever_the_history_holds() {
    let task = with_some_waiting(false, "COMPLETED").await;
    let said = task["history"].as_array().unwrap();
    let said: Vec<_> = said.iter().map(|said| said["parts"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(said[..8], ["work", "a", "b", "c", "0", "heard", "1", "heard"]);
    // Only answers to waiting messages may exceed the limit.
    let task = with_some_waiting(true, "FAILED").await;
    assert!(task["status"]["message"].to_string().contains("more than 4 messages"), "{task}");
}
