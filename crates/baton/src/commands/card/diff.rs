//! `baton card diff`: compares two cards by what they mean.

use std::cell::Cell;
use std::fmt::Write as _;

use baton_client::Discovered;
use baton_protocol::wire::v1;
use serde_json::{Value, json};

use super::compare::{Difference, differences};
use crate::client::agent;
use crate::client::error::CallError;
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output::safe;

/// Exit status of `diff`: the cards differ.
const DIFFERENT: u8 = 1;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct CardDiff {
    /// Two cards: files, their addresses, or the agents' addresses. With --agent-card one is enough, which is the second.
    #[arg(value_name = "CARD", num_args = 1..=2, required = true)]
    cards: Vec<String>,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: CardDiff) -> Result<(), Failure> {
    let CardDiff { cards, options } = args;
    let is_same = Cell::new(true);
    client::run(&options, async |call| {
        is_same.set(diff(call, &cards).await?);
        Ok(())
    })
    .await?;
    // The differences were printed.
    if is_same.get() { Ok(()) } else { Err(Failure::reported(DIFFERENT)) }
}

/// Whether they are the same.
async fn diff(call: &Call, cards: &[String]) -> Result<bool, CallError> {
    let (one, other) = match cards {
        [one, other] => (agent::find_at(call, one).await?, agent::find_at(call, other).await?),
        [other] if call.settings.agent_card.is_some() => {
            (agent::find(call).await?, agent::find_at(call, other).await?)
        }
        _ => return Err(CallError::usage("two cards are needed: `baton card diff old.json new.json`")),
    };
    let found = differences(&meaning(&one)?, &meaning(&other)?);
    let listed: Vec<Value> =
        found.iter().map(|it| json!({"path": it.path, "before": it.before, "after": it.after})).collect();
    let document = json!({"same": found.is_empty(), "differences": listed}).to_string();
    call.output.result(&document, || Ok(found.iter().map(line).collect()))?;
    Ok(found.is_empty())
}

/// The card in the words of 1.0, whatever generation it is of. Signatures are about a card, not part of what it says.
fn meaning(found: &Discovered) -> Result<Value, CallError> {
    let mut card = found.card.clone();
    card.signatures.clear();
    let mut json = Vec::new();
    v1::write_card(&mut json, &card);
    serde_json::from_slice(&json).map_err(|error| CallError::internal(error.to_string()))
}

fn line(difference: &Difference) -> String {
    let Difference { path, before, after } = difference;
    let mut line = match (before, after) {
        (None, Some(after)) => format!("added {path}: {after}"),
        (Some(before), None) => format!("removed {path}: {before}"),
        (before, after) => {
            let mut line = format!("changed {path}: ");
            for (value, rest) in [(before, " -> "), (after, "")] {
                let value = value.as_ref().map(Value::to_string).unwrap_or_default();
                // Writing to a string cannot fail.
                let _ = write!(line, "{value}{rest}");
            }
            line
        }
    };
    line = safe::line(&line);
    line.push('\n');
    line
}
