//! Agents for tests that call one server in several generations.

use baton_protocol::domain::{AgentCard, AgentSkill, Artifact, ArtifactId, JsonText, Part, PartContent};
use baton_server::{AgentError, Asked, Builder, Server, Turn};

use crate::fixtures::{Gate, agent_with};
use crate::harness::{TestServer, serve};

/// A task skill that does what the message's first word says, and a message skill. The history in 0.1 has messages here,
/// not states.
pub(crate) async fn actors(gate: &Gate) -> TestServer {
    serve(actors_builder(gate)).await
}

/// The same as a builder, for tests with a store of their own.
pub(crate) fn actors_builder(gate: &Gate) -> Builder {
    let mut card = AgentCard::new("actors", "They play", "1.0.0");
    card.default_input_modes = vec!["*/*".to_owned()];
    card.capabilities.state_transition_history = Some(false);
    let (act, talk) = (AgentSkill::new("act", "act", "acts"), AgentSkill::new("talk", "talk", "talks"));
    let builder = Server::builder(card).task_skill(act, agent_with(gate, actor));
    #[cfg(feature = "grpc")]
    let builder = builder.grpc();
    builder.message_skill(talk, talker).default_skill("act")
}

async fn actor(gate: Gate, turn: Turn) -> Result<(), AgentError> {
    match turn.text().split(['\n', ' ']).next().unwrap_or_default() {
        "hold" => turn.cancellation().cancelled().await,
        "gated" => {
            gate.pass().await;
            work(&turn).await?;
        }
        "ask" => drop(turn.ask("what else?")),
        "auth" => {
            turn.require_auth("who are you?");
            gate.pass().await;
            turn.resume().await?;
            turn.complete_with("welcome").await?;
        }
        "fail" => turn.fail("as asked").await?,
        "reject" => turn.reject("as asked").await?,
        // Parts that only 1.0 has: data that is not an object, text with a file name and a media type.
        "odd" => {
            let data = ["[1]", "\"two\"", "3.5", "null", "true"];
            let data = data.map(|text| PartContent::Data(JsonText::parse(text).expect("JSON")));
            let mut parts: Vec<Part> = data.into_iter().map(bare).collect();
            parts.push(Part {
                filename: Some("a.md".to_owned()),
                media_type: Some("text/markdown".to_owned()),
                ..Part::text("# a")
            });
            let id = ArtifactId::parse("odd").expect("an id");
            turn.artifact(Artifact::new(id, parts)).await?;
        }
        "parts" => {
            let id = ArtifactId::parse("parts").expect("an id");
            turn.artifact(Artifact::new(id, turn.message().parts.clone())).await?;
        }
        _ => work(&turn).await?,
    }
    Ok(())
}

/// Produces every kind of stream event.
async fn work(turn: &Turn) -> Result<(), AgentError> {
    turn.progress("half way").await?;
    let id = ArtifactId::parse("list").expect("an id");
    let mut list = Artifact::new(id.clone(), vec![Part::text("one")]);
    list.name = Some("list".to_owned());
    list.description = Some("of numbers".to_owned());
    turn.artifact_update(list, false, false).await?;
    turn.artifact_update(Artifact::new(id, vec![Part::text("two")]), true, true).await?;
    turn.text_artifact("summary", "two numbers").await?;
    turn.complete_with("done").await?;
    Ok(())
}

fn bare(content: PartContent) -> Part {
    Part { content, filename: None, media_type: None, metadata: None }
}

async fn talker(asked: Asked) -> Result<String, AgentError> {
    Ok(format!("you said: {}", asked.text()))
}
