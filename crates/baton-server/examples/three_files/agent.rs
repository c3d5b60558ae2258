//! The executor: what the agent does, in the words of a turn.

use std::hash::{BuildHasher as _, RandomState};

use baton_server::{AgentError, Asked, Turn};

/// A task: it may ask, it says how far it is, and its result is an artifact.
pub(crate) async fn roll(turn: Turn) -> Result<(), AgentError> {
    let mut text = turn.text();
    let (count, sides) = loop {
        match dice(&text) {
            Some(dice) => break dice,
            None => text = turn.ask("Which dice? 2d6 are two with six sides.").await?.text(),
        }
    };
    if !(1..=100).contains(&count) || !(2..=1000).contains(&sides) {
        return turn.fail("I have 100 dice, with 2 to 1000 sides").await;
    }
    turn.progress(format!("Rolling {count}d{sides}")).await?;
    let rolls: Vec<u64> = (0..count).map(|at| RandomState::new().hash_one(at) % sides + 1).collect();
    turn.artifact_json("roll", &rolls).await?;
    turn.complete_with(format!("You rolled {}", rolls.iter().sum::<u64>())).await
}

/// A message in, a message out: no task.
pub(crate) async fn explain(_asked: Asked) -> Result<&'static str, AgentError> {
    Ok("2d6 are two dice with six sides; I roll them and add them up.")
}

/// `2d6` anywhere in a text.
fn dice(text: &str) -> Option<(u64, u64)> {
    text.split_whitespace().find_map(|word| {
        let (count, sides) = word.trim_matches(|c: char| c.is_ascii_punctuation()).split_once('d')?;
        Some((count.parse().ok()?, sides.parse().ok()?))
    })
}
