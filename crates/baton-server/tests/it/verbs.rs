use baton_protocol::domain::{AgentCard, AgentSkill, Artifact, ArtifactId, JsonObject, Message, Part};
use baton_server::{AgentError, Asked, Builder, Content, FileContent, ReadMessage as _, Server, Turn};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::callers::ByHeader;
use crate::harness::{TestServer, message, message_to, serve, state};

#[derive(Deserialize)]
struct Order {
    item: String,
    count: u32,
}

/// Calls the method of `Turn` that the first word of the message names.
async fn verbs(turn: Turn) -> Result<(), AgentError> {
    let text = turn.text();
    match text.split(' ').next().unwrap_or_default() {
        "working" => turn.progress("half way").await?,
        "say" => turn.say(Content::from("look:").with(Content::json(&json!({"a": 1}))?)).await?,
        "completed" => turn.complete_with("all done").await?,
        "failed" => turn.fail("no luck").await?,
        "rejected" => turn.reject("not me").await?,
        "input" => drop(turn.ask(Content::from("which?").with(Content::json(&["a", "b"])?))),
        "auth" => drop(turn.require_auth("who are you?")),
        "text" => turn.text_artifact("notes", "a text").await?,
        "json" => turn.artifact_json("result", &json!({"total": 3, "of": ["x"]})).await?,
        "file" => turn.artifact_file("a.csv", "text/csv", "1,2\n").await?,
        "artifact" => {
            let mut artifact = Artifact::new(ArtifactId::parse("fixed")?, vec![Part::text("one")]);
            artifact.metadata = Some(JsonObject::parse(r#"{"k":1}"#)?);
            turn.artifact(artifact).await?;
        }
        "stream" => {
            let mut stream = turn.stream_text_as(ArtifactId::parse("fixed")?, Some("poem"));
            for word in ["one ", "two ", "three"] {
                stream.write(word).await?;
            }
            stream.finish().await?;
        }
        "broken" => turn.artifact_json("x", &std::collections::HashMap::from([(vec![1], 2)])).await?,
        "order" => {
            let Order { item, count } = turn.data()?;
            turn.text_artifact("order", format!("{count} x {item}")).await?;
        }
        "answer" => {
            let order: Order = turn.ask("what?").await?.data()?;
            turn.text_artifact("order", format!("{} x {}", order.count, order.item)).await?;
        }
        "files" => {
            for file in turn.files() {
                let what = match file.content {
                    FileContent::Bytes(bytes) => format!("{} bytes", bytes.len()),
                    FileContent::Url(url) => format!("at {url}"),
                };
                turn.text_artifact(file.name.unwrap_or("?"), what).await?;
            }
        }
        "who" => {
            let (owner, tenant) = (turn.owner(), turn.tenant());
            turn.text_artifact("who", format!("{owner} of {tenant} by {}", turn.skill())).await?;
        }
        other => return Err(AgentError::new(format!("no verb {other}"))),
    }
    Ok(())
}

fn builder() -> Builder {
    let mut card = AgentCard::new("verbs", "Shows every verb", "1");
    card.default_input_modes = vec!["*/*".to_owned()];
    Server::builder(card).task_skill(AgentSkill::new("verbs", "verbs", "All"), verbs)
}

async fn with_parts(server: &TestServer, text: &str, more: Value) -> Value {
    let mut params = message(text);
    params["message"]["parts"].as_array_mut().unwrap().extend(more.as_array().unwrap().iter().cloned());
    server.call("SendMessage", params).await.result()["task"].clone()
}

#[tokio::test]
async fn p08_every_verb_is_seen_as_it_was_meant() {
    let server = serve(builder()).await;
    for (said, expected, shown) in [
        ("completed", "COMPLETED", json!([{"text": "all done"}])),
        ("failed", "FAILED", json!([{"text": "no luck"}])),
        ("rejected", "REJECTED", json!([{"text": "not me"}])),
        ("input", "INPUT_REQUIRED", json!([{"text": "which?"}, {"data": ["a", "b"]}])),
        ("auth", "AUTH_REQUIRED", json!([{"text": "who are you?"}])),
        ("nonsense", "FAILED", json!([{"text": "no verb nonsense"}])),
    ] {
        let task = server.send(said).await;
        assert_eq!(state(&task), expected, "{said}");
        assert_eq!(task["status"]["message"]["parts"], shown, "{said}");
        assert_eq!(task["status"]["message"]["taskId"], task["id"], "{said}");
    }
    for (said, name, parts) in [
        ("text", "notes", json!([{"text": "a text"}])),
        ("json", "result", json!([{"data": {"total": 3, "of": ["x"]}}])),
        ("file", "a.csv", json!([{"raw": "MSwyCg==", "filename": "a.csv", "mediaType": "text/csv"}])),
        ("stream", "poem", json!([{"text": "one two three"}])),
    ] {
        let task = server.send(said).await;
        assert_eq!(state(&task), "COMPLETED", "{said}");
        let artifact = &task["artifacts"][0];
        assert_eq!(artifact["name"], name, "{said}");
        let joined: String =
            artifact["parts"].as_array().unwrap().iter().filter_map(|p| p["text"].as_str()).collect();
        if joined.is_empty() {
            assert_eq!(artifact["parts"], parts, "{said}");
        } else {
            assert_eq!(joined, parts[0]["text"].as_str().unwrap(), "{said}");
        }
    }
    let artifact = server.send("artifact").await["artifacts"][0].clone();
    assert_eq!((&artifact["artifactId"], &artifact["metadata"]), (&json!("fixed"), &json!({"k": 1})));
    for (said, parts) in
        [("working", json!([{"text": "half way"}])), ("say", json!([{"text": "look:"}, {"data": {"a": 1}}]))]
    {
        let mut stream = server.stream("SendStreamingMessage", message(said), None).await.ok().unwrap();
        let events = stream.rest().await;
        let told = events.iter().filter_map(|event| event.result()["statusUpdate"]["status"].get("message"));
        assert_eq!(told.map(|message| &message["parts"]).collect::<Vec<_>>(), [&parts], "{said}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p08_data_and_files_are_read_and_what_is_wrong_is_told() {
    let server = serve(builder()).await;
    let task = with_parts(&server, "order", json!([{"data": {"item": "tea", "count": 2}}])).await;
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "2 x tea");
    for (parts, told) in [
        (json!([{"data": {"item": "tea", "count": "two"}}]), "message.parts[1].data.count: invalid type"),
        (json!([]), "the message has no data part"),
    ] {
        let task = with_parts(&server, "order", parts).await;
        assert_eq!(state(&task), "FAILED");
        let reason = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(reason.starts_with(told), "{reason}");
    }
    let broken = server.send("broken").await;
    let reason = broken["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(reason.contains("cannot be written as JSON"), "{reason}");

    let asked = server.send("answer").await;
    let mut answer = message_to(&asked, "");
    answer["message"]["parts"] = json!([{"data": {"item": "milk", "count": 1}}]);
    let answered = server.call("SendMessage", answer).await.result()["task"].clone();
    assert_eq!(answered["artifacts"][0]["parts"][0]["text"], "1 x milk");

    let files = json!([
        {"raw": "AAEC", "filename": "a.bin", "mediaType": "application/octet-stream"},
        {"url": "https://a.example/b", "filename": "b"},
    ]);
    let task = with_parts(&server, "files", files).await;
    let told = |at: usize| (&task["artifacts"][at]["name"], &task["artifacts"][at]["parts"][0]["text"]);
    assert_eq!(told(0), (&json!("a.bin"), &json!("3 bytes")));
    assert_eq!(told(1), (&json!("b"), &json!("at https://a.example/b")));
    server.stop().await;
}

#[tokio::test]
async fn p08_an_agent_knows_who_asks_and_by_which_skill() {
    let server = serve(builder().authenticator(std::sync::Arc::new(ByHeader))).await;
    let mut params = message("who");
    params["tenant"] = json!("acme");
    let answer = server.call_with("SendMessage", params, &[("x-owner", "ann")]).await;
    assert_eq!(answer.result()["task"]["artifacts"][0]["parts"][0]["text"], "ann of acme by verbs");
    server.stop().await;
}

/// A function is a message agent with any of these return types.
#[tokio::test]
async fn p08_a_message_agent_is_one_function() {
    async fn text(asked: Asked) -> Result<String, AgentError> {
        Ok(format!("{} from {}", asked.text(), asked.owner))
    }
    async fn literal(_asked: Asked) -> Result<&'static str, AgentError> {
        Ok("fixed")
    }
    async fn parts(asked: Asked) -> Result<Vec<Part>, AgentError> {
        Ok(asked.message.parts)
    }
    async fn message_itself(asked: Asked) -> Result<Message, AgentError> {
        Ok(Message { metadata: Some(JsonObject::parse(r#"{"k":1}"#)?), ..asked.message })
    }
    async fn failing(_asked: Asked) -> Result<Content, AgentError> {
        Err("out of words".into())
    }
    let card = AgentCard::new("talkers", "Talk", "1");
    let skill = |id: &str| AgentSkill::new(id, id, id);
    let greeting = "hi".to_owned();
    let closure = move |_asked: Asked| {
        let greeting = greeting.clone();
        async move { Ok::<_, AgentError>(Part::text(greeting)) }
    };
    let builder = Server::builder(card)
        .message_skill(skill("text"), text)
        .message_skill(skill("literal"), literal)
        .message_skill(skill("parts"), parts)
        .message_skill(skill("message"), message_itself)
        .message_skill(skill("closure"), closure)
        .message_skill(skill("failing"), failing);
    let server = serve(builder).await;
    let ask = async |skill: &str| {
        let mut params = message("hello");
        params["message"]["metadata"] = json!({"skillId": skill});
        server.call("SendMessage", params).await
    };
    for (skill, expected) in [
        ("text", "hello from anonymous"),
        ("literal", "fixed"),
        ("parts", "hello"),
        ("message", "hello"),
        ("closure", "hi"),
    ] {
        let answer = ask(skill).await;
        let told = &answer.result()["message"];
        assert_eq!(told["parts"], json!([{"text": expected}]), "{skill}");
        assert_eq!(told["role"], "ROLE_AGENT", "{skill}");
        assert_eq!(told.get("metadata").cloned(), (skill == "message").then(|| json!({"k": 1})), "{skill}");
    }
    let failed = ask("failing").await;
    assert!(failed.body["error"]["message"].as_str().unwrap().contains("out of words"), "{}", failed.body);
    server.stop().await;
    // Also without a server.
    assert_eq!(text(Asked::of_text("hi")).await.unwrap(), "hi from anonymous");
}

#[tokio::test]
async fn p08_a_skill_by_its_id_must_be_on_the_card() {
    let card = || {
        let text = r#"{"name": "a", "description": "b", "version": "1", "skills": [
            {"id": "one", "name": "One", "description": "The first", "tags": ["first"]}]}"#;
        baton_server::card::read(text).unwrap()
    };
    let server = Server::builder(card()).task_skill("one", verbs).build().await.unwrap();
    assert_eq!(server.control().agents().count(), 1);
    let refused = Server::builder(card()).task_skill("two", verbs).build().await.unwrap_err().to_string();
    assert!(
        refused.contains("`two` has logic, but is not on the card") && refused.contains("`one`"),
        "{refused}"
    );
}
