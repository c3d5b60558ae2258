//! Returns what it is sent: the smallest agent, for trying out a configuration.

use async_trait::async_trait;
use baton_protocol::domain::{Artifact, ArtifactId};
use baton_server::{Agent, AgentError, Asked, Content, MessageAgent, Turn};

pub(crate) struct Echo;

#[async_trait]
impl Agent for Echo {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let id = ArtifactId::parse("echo")?;
        turn.artifact(Artifact::new(id, turn.message().parts.clone())).await?;
        turn.complete().await
    }

    /// Nothing happens outside the task, and the artifact has a fixed id.
    fn rerunnable(&self) -> bool {
        true
    }
}

#[async_trait]
impl MessageAgent for Echo {
    async fn reply(&self, asked: Asked) -> Result<Content, AgentError> {
        Ok(asked.message.parts.into())
    }
}
