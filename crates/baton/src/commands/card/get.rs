//! `baton card get`: shows an agent's card, checks it, or shows the extended one.

use std::path::PathBuf;

use baton_client::{CardKeys, CardTrust, Origin};

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
    let keys = keys(args)?;
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

fn keys(args: &CardGet) -> Result<CardKeys, CallError> {
    let mut keys = CardKeys::default();
    for path in &args.card_keys {
        let wrong = |error: &dyn std::fmt::Display| {
            CallError::usage(format!("--card-keys {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        keys = keys.add_key_set(&text).map_err(|error| wrong(&error))?;
    }
    for server in &args.key_server {
        let origin =
            Origin::parse(server).map_err(|error| CallError::usage(format!("--key-server {error}")))?;
        keys = keys.trust_key_server(origin);
    }
    Ok(keys)
}

/// Exactly one of verified, unverifiable and absent.
fn signature_words(trust: &CardTrust) -> String {
    match trust {
        CardTrust::Absent => "absent".to_owned(),
        CardTrust::Verified { key_id, algorithm } => format!("verified kid={key_id} alg={algorithm}"),
        CardTrust::Unverifiable { reasons } => format!("unverifiable ({})", reasons.join("; ")),
    }
}

/// What is wrong with the card as it was received.
fn problems(found: &Found) -> Result<Vec<String>, CallError> {
    let card = serde_json::from_str(&found.received)
        .map_err(|error| CallError::new(Code::CardInvalid, format!("the card is not JSON: {error}")))?;
    Ok(baton_lab::native::card_problems(&card))
}
