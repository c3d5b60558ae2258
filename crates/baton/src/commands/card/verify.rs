//! `baton card verify`: verifies the signatures of a card.

use std::path::PathBuf;

use baton_client::{CardKeys, CardTrust};
use baton_protocol::signature::card::CardForm;
use serde_json::json;

use super::keys::{signature_words, with_keys, with_servers, with_sets};
use super::with_card;
use crate::client::agent;
use crate::client::error::{CallError, Code};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output::text::Section;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct CardVerify {
    /// The card: a file, its address, or the agent's address. The same as --agent-card.
    #[arg(value_name = "CARD", conflicts_with = "agent_card")]
    card: Option<String>,

    /// A file with the public key: PEM (P-256 or Ed25519), or a JSON Web Key. Repeatable.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,

    /// A JSON Web Key Set: a file, or its address. Repeatable.
    #[arg(long, value_name = "FILE|URL")]
    jwks: Vec<String>,

    /// A server whose key sets are trusted, if the card's signature names one there. Repeatable.
    #[arg(long, value_name = "URL")]
    key_server: Vec<String>,

    /// Let only signatures count that cover every member. One that leaves out what is empty, as two SDKs make it, does not.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: CardVerify) -> Result<(), Failure> {
    let CardVerify { card, key, jwks, key_server, strict, options } = args;
    let options = with_card(options, card);
    let keys = if strict { CardKeys::default().require_every_member() } else { CardKeys::default() };
    client::run(&options, async |call| verify(call, keys.clone(), &key, &jwks, &key_server).await).await
}

async fn verify(
    call: &Call,
    keys: CardKeys,
    key_files: &[PathBuf],
    sets: &[String],
    servers: &[String],
) -> Result<(), CallError> {
    let has_keys = !(key_files.is_empty() && sets.is_empty() && servers.is_empty());
    let mut keys = with_servers(with_keys(keys, "--key", key_files)?, servers)?;
    for set in sets {
        keys = match set.starts_with("http://") || set.starts_with("https://") {
            true => {
                let text = agent::text_at(call, set).await?;
                let added = keys.add_key_set(&text);
                added.map_err(|error| CallError::usage(format!("--jwks {set}: {error}")))?
            }
            false => with_sets(keys, "--jwks", &[set.into()])?,
        };
    }
    let found = agent::discover(call, &keys).await?;
    let wrong = |message: String, hint: &str| CallError::new(Code::CardInvalid, message).with_hint(hint);
    let refused = match &found.signature {
        CardTrust::Verified { .. } => None,
        CardTrust::Absent => {
            let hint = "its owner can sign it: `baton card sign`, or [signing] in the server's configuration";
            Some(wrong("the card has no signature".to_owned(), hint))
        }
        CardTrust::Unverifiable { reasons } => {
            let hint = match has_keys {
                true => {
                    "check that the key is the right one, from a source that you trust; if it is, the card was changed"
                }
                false => "name a key that you trust: --key FILE, --jwks FILE|URL or --key-server URL",
            };
            Some(wrong(format!("the card cannot be verified: {}", reasons.join("; ")), hint))
        }
    };
    if let (Some(error), false) = (&refused, call.output.is_text()) {
        return Err(error.clone());
    }
    call.output.result(&as_json(&found.signature), || {
        let mut section = Section::default();
        section.field("Agent", &found.card.name);
        section.field("Signature", signature_words(&found.signature));
        Ok(section.end())
    })?;
    refused.map_or(Ok(()), Err)
}

fn as_json(trust: &CardTrust) -> String {
    match trust {
        CardTrust::Verified { key_id, algorithm, form, uncovered } => {
            let mut found = json!({"signature": "verified", "keyId": key_id, "algorithm": algorithm});
            if *form == CardForm::WithoutEmpty {
                found["emptyMembersCovered"] = false.into();
            }
            if !uncovered.is_empty() {
                found["uncovered"] = json!(uncovered);
            }
            found.to_string()
        }
        CardTrust::Absent | CardTrust::Unverifiable { .. } => "{}".to_owned(),
    }
}
