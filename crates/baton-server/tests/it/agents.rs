use baton_server::{AgentError, Turn};

/// Does what the first word of the message says; anything else is echoed.
pub(crate) async fn obedient(turn: Turn) -> Result<(), AgentError> {
    let text = turn.text();
    match text.split(' ').next().unwrap_or_default() {
        "hold" => turn.cancellation().cancelled().await,
        "ask" => drop(turn.ask("What else?")),
        "fail" => turn.fail("as asked").await?,
        "reject" => turn.reject("as asked").await?,
        // One word per task the message refers to.
        "references" => {
            let ids: Vec<&str> = turn.references().iter().map(|task| task.id.as_str()).collect();
            turn.text_artifact("references", ids.join(" ")).await?;
        }
        _ => turn.text_artifact("echo", text).await?,
    }
    Ok(())
}
