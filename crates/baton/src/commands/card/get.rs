//! `baton card get`: shows an agent's card, checks it, or shows the extended one.

use std::path::PathBuf;

use baton_client::CardKeys;

use super::keys::{signature_words, with_servers, with_sets};
use crate::client::agent::{self, Agent, Found};
use crate::client::error::{CallError, Code};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct CardGet {
    /// Check the card against the schema of A2A 1.0.
    #[arg(long)]
    validate: bool,

    /// Show the card that authenticated callers get.
    #[arg(long)]
    extended: bool,

    /// A file with keys (a JSON Web Key Set) that are trusted to sign the card. Repeatable.
    #[arg(long, value_name = "FILE")]
    card_keys: Vec<PathBuf>,

    /// A server whose key sets are trusted, if the card's signature names one there. Repeatable.
    #[arg(long, value_name = "URL")]
    key_server: Vec<String>,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: CardGet) -> Result<(), Failure> {
    client::run(&args.options, async |call| get(call, &args).await).await
}

async fn get(call: &Call, args: &CardGet) -> Result<(), CallError> {
    let CardGet { validate, extended, .. } = *args;
    let keys = with_sets(CardKeys::default(), "--card-keys", &args.card_keys)?;
    let keys = with_servers(keys, &args.key_server)?;
    let found = match extended {
        true => Agent::connect(call).await?.extended_card(call, &keys).await?,
        false => agent::discover(call, &keys).await?,
    };
    let problems = if validate { problems(&found)? } else { Vec::new() };
    let wrong = || {
        let error =
            CallError::new(Code::CardInvalid, format!("the card is not valid: {}", problems.join("; ")));
        error.with_hint("fix the members that are named; `baton test` tells more")
    };
    if !problems.is_empty() && !call.output.is_text() {
        return Err(wrong());
    }
    let signature = signature_words(&found.signature);
    if !call.output.is_text() {
        // The document is the card itself and has no place for it.
        output::note(&format!("Signature: {signature}"));
    }
    call.output.result(&found.json, || {
        let mut section = output::card::card(&found.card, Some(&signature), call.output.is_verbose());
        if validate {
            section.field("Valid", problems.is_empty().to_string());
            problems.iter().for_each(|problem| section.field("Problem", problem));
        }
        Ok(section.end())
    })?;
    if problems.is_empty() { Ok(()) } else { Err(wrong()) }
}

/// What is wrong with the card as it was received.
fn problems(found: &Found) -> Result<Vec<String>, CallError> {
    let card = serde_json::from_str(&found.received)
        .map_err(|error| CallError::new(Code::CardInvalid, format!("the card is not JSON: {error}")))?;
    Ok(baton_lab::native::card_problems(&card))
}
