//! `baton card new`: makes a card to start with.

use baton_protocol::domain::{AgentCard, AgentInterface, AgentSkill};
use baton_protocol::wire::v1;

use crate::client::error::CallError;
use crate::client::options::Options;
use crate::client::{self, Call};
use crate::exit::Failure;

/// Below the help of the command.
const USE_HELP: &str = "\
`baton serve` takes the card by `--card FILE` (`[card] file`), fills in its own addresses, and refuses skills that have no
logic. `baton card lint` says what is wrong with a card after it was changed.

Exit status: 0 done; 1 failed; 2 usage.";

#[derive(Debug, clap::Args)]
#[command(after_help = USE_HELP)]
pub(crate) struct CardNew {
    /// The agent's name, for people.
    #[arg(default_value = "My agent")]
    name: String,

    /// What the agent does, for people and models.
    #[arg(long, value_name = "TEXT", default_value = "Answers messages")]
    description: String,

    /// The agent's own version.
    #[arg(long, value_name = "VERSION", default_value = "1.0.0")]
    agent_version: String,

    /// Where the agent is called: JSON-RPC of A2A 1.0.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:3000/")]
    url: String,

    /// The id of a skill. Repeatable.
    #[arg(long, value_name = "ID", default_value = "answer")]
    skill: Vec<String>,
}

pub(crate) async fn run(args: CardNew) -> Result<(), Failure> {
    client::run(&Options::default(), async |call| new(call, args)).await
}

fn new(call: &Call, args: CardNew) -> Result<(), CallError> {
    let CardNew { name, description, agent_version, url, skill } = args;
    for (what, text) in
        [("name", &name), ("--description", &description), ("--agent-version", &agent_version)]
    {
        if text.trim().is_empty() {
            return Err(CallError::usage(format!("{what} is empty; a card needs it")));
        }
    }
    if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(CallError::usage(format!(
            "--url {url}: expected an address such as https://agent.example/"
        )));
    }
    let mut card = AgentCard::new(&name, &description, &agent_version);
    card.interfaces.push(AgentInterface {
        url,
        protocol_binding: "JSONRPC".to_owned(),
        protocol_version: "1.0".to_owned(),
        tenant: None,
    });
    card.capabilities.streaming = Some(true);
    for id in &skill {
        let mut entry = AgentSkill::new(id, id, &description);
        entry.tags = vec![id.clone()];
        card.skills.push(entry);
    }
    let mut json = Vec::new();
    v1::write_card(&mut json, &card);
    call.output.json(&String::from_utf8_lossy(&json))
}
