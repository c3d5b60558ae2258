//! What the demo agent does, one small function per behaviour. Every wait ends when the turn should stop.

use std::time::Duration;

use baton_protocol::domain::{Artifact, ArtifactId, JsonText, Part, PartContent, Role};
use baton_server::{AgentError, Stopped, Turn};

use super::choice::Behaviour;
use super::phrases;

/// Long enough for tests to poll, subscribe and cancel; conformance tests wait up to 30 s.
const LONG_WORK: Duration = Duration::from_secs(5);
/// Two steps take over a second, which is enough for a second stream to join the first.
const STEP: Duration = Duration::from_millis(600);
/// Between the chunks of a story: slow enough to watch, and longer than the time within which text is merged.
const CHUNK: Duration = Duration::from_millis(200);

const STORY: [&str; 4] = [
    "The runner took the baton. ",
    "The rain came, and the stadium emptied. ",
    "She kept to her lane, for somebody was waiting there. ",
    "And the baton never touched the ground.",
];

type Done = Result<(), AgentError>;

pub(super) async fn act(behaviour: Behaviour, turn: &Turn) -> Done {
    match behaviour {
        // The router sends these to the other skill; if one arrives here anyway, it is echoed.
        Behaviour::Echo | Behaviour::Message => echo(turn).await,
        Behaviour::Complete => complete(turn).await,
        Behaviour::ArtifactText => hand_over(turn, "note", Part::text("A note, as you wished.")).await,
        Behaviour::ArtifactFile => hand_over(turn, "file", file()).await,
        Behaviour::ArtifactFileUrl => hand_over(turn, "link", link()).await,
        Behaviour::ArtifactData => hand_over(turn, "data", data()?).await,
        Behaviour::StreamBasic => work_in_steps(turn).await,
        Behaviour::StreamChunked => tell_a_story(turn).await,
        Behaviour::LongRunning => work_long(turn).await,
        Behaviour::InputRequired => ask_once(turn).await,
        Behaviour::MultiTurn => ask_until_done(turn).await,
        Behaviour::AuthRequired => ask_to_sign_in(turn).await,
        Behaviour::WaitForCancel => wait_for_cancel(turn).await,
        Behaviour::Reject => turn.reject("The demo agent refuses this task, as it was told to.").await,
        Behaviour::Fail => turn.fail("The task failed, as it was told to.").await,
    }
}

/// Returns text as one text part; a message without text is returned part by part.
async fn echo(turn: &Turn) -> Done {
    let message = turn.message();
    let has_text = message.parts.iter().any(|part| matches!(part.content, PartContent::Text(_)));
    let parts = if has_text { vec![Part::text(turn.text())] } else { message.parts.clone() };
    turn.artifact(artifact("echo", parts)?).await?;
    turn.complete().await
}

async fn complete(turn: &Turn) -> Done {
    turn.artifact(artifact("reply", vec![Part::text(format!("You said: {}", turn.text()))])?).await?;
    turn.complete_with("The task is complete.").await
}

async fn hand_over(turn: &Turn, name: &str, part: Part) -> Done {
    turn.artifact(artifact(name, vec![part])?).await?;
    turn.complete().await
}

fn file() -> Part {
    Part::raw(b"The baton never touched the ground.\n".to_vec(), "text/plain", "baton.txt")
}

fn link() -> Part {
    Part::url("https://example.com/baton.txt", "text/plain", "baton.txt")
}

fn data() -> Result<Part, AgentError> {
    let value = r#"{"event":"relay","legs":4,"dropped":false,"splits":[10.1,9.8,9.9,9.6]}"#;
    Ok(Part { media_type: Some("application/json".to_owned()), ..Part::data(JsonText::parse(value)?) })
}

async fn work_in_steps(turn: &Turn) -> Done {
    turn.progress("Working on it.").await?;
    pause(turn, STEP).await?;
    turn.artifact(artifact("result", vec![Part::text("The result of two steps.")])?).await?;
    pause(turn, STEP).await?;
    turn.complete().await
}

async fn tell_a_story(turn: &Turn) -> Done {
    turn.progress("Once upon a time…").await?;
    for (place, text) in STORY.into_iter().enumerate() {
        pause(turn, CHUNK).await?;
        let chunk = artifact("story", vec![Part::text(text)])?;
        turn.artifact_update(chunk, place > 0, place + 1 == STORY.len()).await?;
    }
    turn.complete().await
}

async fn work_long(turn: &Turn) -> Done {
    turn.progress("This takes a few seconds.").await?;
    pause(turn, LONG_WORK).await?;
    turn.artifact(artifact("result", vec![Part::text("It took a while, but here it is.")])?).await?;
    turn.complete().await
}

async fn ask_once(turn: &Turn) -> Done {
    if is_first(turn) {
        let _ends_the_turn = turn.ask("What should the demo agent call you?");
        return Ok(());
    }
    if phrases::is_enough(turn.message()) {
        return phrases::greet(turn).await;
    }
    hand_over(turn, "answer", Part::text(format!("You answered: {}", turn.text()))).await
}

async fn ask_until_done(turn: &Turn) -> Done {
    if phrases::is_enough(turn.message()) && !is_first(turn) {
        let count = messages(turn);
        return hand_over(turn, "talk", Part::text(format!("We are done after {count} messages."))).await;
    }
    let _ends_the_turn = turn.ask("Go on; say `done` when it is enough.");
    Ok(())
}

async fn ask_to_sign_in(turn: &Turn) -> Done {
    if is_first(turn) {
        // There is nothing to sign in to: any message counts as signed in.
        let _ends_the_turn = turn.require_auth("Sign in at https://example.com/login, then send a message.");
        return Ok(());
    }
    hand_over(turn, "welcome", Part::text("You are signed in, or so you say.")).await
}

async fn wait_for_cancel(turn: &Turn) -> Done {
    turn.progress("Waiting to be canceled.").await?;
    turn.cancellation().cancelled().await;
    Err(Stopped.into())
}

/// True in the turn that the task's first message started.
pub(super) fn is_first(turn: &Turn) -> bool {
    messages(turn) <= 1
}

/// The number of messages from the user so far, including this turn's.
fn messages(turn: &Turn) -> usize {
    turn.task().history.iter().filter(|message| message.role == Role::User).count()
}

/// The id is the name, so that a turn that is run again replaces its earlier artifact.
pub(super) fn artifact(name: &str, parts: Vec<Part>) -> Result<Artifact, AgentError> {
    Ok(Artifact { name: Some(name.to_owned()), ..Artifact::new(ArtifactId::parse(name)?, parts) })
}

pub(super) async fn pause(turn: &Turn, time: Duration) -> Result<(), Stopped> {
    turn.cancellation().run_until_cancelled(tokio::time::sleep(time)).await.ok_or(Stopped)
}
