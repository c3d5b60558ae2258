//! `baton card lint`: says what is wrong with a card.

use baton_client::{CardKeys, Reference};
use baton_protocol::Generation;
use baton_protocol::signature::card::{BadDocument, CardDocument};

use super::with_card;
use crate::client::agent;
use crate::client::error::{CallError, Code};
use crate::client::options::{Options, SETTINGS_HELP};
use crate::client::{self, Call};
use crate::exit::Failure;
use crate::output::text::Section;

#[derive(Debug, clap::Args)]
#[command(after_help = SETTINGS_HELP)]
pub(crate) struct CardLint {
    /// The card: a file, its address, or the agent's address. The same as --agent-card.
    #[arg(value_name = "CARD", conflicts_with = "agent_card")]
    card: Option<String>,

    #[command(flatten)]
    options: Options,
}

pub(crate) async fn run(args: CardLint) -> Result<(), Failure> {
    let options = with_card(args.options, args.card);
    client::run(&options, async |call| lint(call).await).await
}

async fn lint(call: &Call) -> Result<(), CallError> {
    let text = text_of(call).await?;
    let problems = problems(&text);
    let wrong = || {
        let error =
            CallError::new(Code::CardInvalid, format!("the card is not valid: {}", problems.join("; ")));
        error.with_hint("fix the members that are named; `baton card new` prints a card to start with")
    };
    if !problems.is_empty() && !call.output.is_text() {
        return Err(wrong());
    }
    call.output.result(r#"{"valid":true}"#, || {
        let mut section = Section::default();
        section.field("Valid", problems.is_empty().to_string());
        problems.iter().for_each(|problem| section.field("Problem", problem));
        Ok(section.end())
    })?;
    if problems.is_empty() { Ok(()) } else { Err(wrong()) }
}

/// The card as it is written. One that cannot be read as a card is looked at, too, if it is a file.
async fn text_of(call: &Call) -> Result<String, CallError> {
    match &call.settings.agent_card {
        Some(file) if matches!(file.parse(), Ok(Reference::File(_))) && !file.contains('#') => {
            agent::text_at(call, file).await
        }
        _ => Ok(agent::discover(call, &CardKeys::default()).await?.received),
    }
}

fn problems(text: &str) -> Vec<String> {
    let Ok(json) = serde_json::from_str(text) else { return vec!["the card is not JSON".to_owned()] };
    let read = CardDocument::read(text);
    let older = |generation: Generation| {
        let version = generation.version();
        vec![format!(
            "supportedInterfaces: expected to be there, found a card of {version}; clients of 1.0 cannot read it"
        )]
    };
    match &read {
        Err(BadDocument::Json(problem)) => vec![problem.clone()],
        Err(BadDocument::V0_1) => older(Generation::V0_1),
        Ok(document) if document.generation == Generation::V0_3 => older(Generation::V0_3),
        _ => {
            let mut found = baton_lab::native::card_lint(&json);
            if let (Err(error), true) = (read, found.is_empty()) {
                found.push(error.to_string());
            }
            found
        }
    }
}
