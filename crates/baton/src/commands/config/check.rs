//! `baton config check`: all that `serve` would refuse, before anything is opened.

use crate::args::Settings;
use crate::config::{self, AgentPlan, Loaded};
use crate::exit::Failure;

pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    let wrong = |problems: config::Problems| Failure::usage(problems.to_string());
    let loaded = settings.into_inputs().load().await.map_err(wrong)?;
    super::warn(&loaded.warnings);
    super::print(&verdict(&loaded))
}

/// With what was looked at: a file in another folder than one thinks is as good as none.
fn verdict(loaded: &Loaded) -> String {
    let file = match &loaded.file {
        Some(file) => file.display().to_string(),
        None => "there is no configuration file (no --config, no BATON_CONFIG, no ./baton.toml)".to_owned(),
    };
    let agent = |plan: &AgentPlan| {
        let name = if plan.is_demo() { "the demo agent" } else { &plan.card.name };
        format!("  agent  {} at {}: {name}\n", plan.id, plan.path())
    };
    let agents: String = loaded.agents.iter().map(agent).collect();
    format!("ok: {file}\n{agents}  store  {}\n", *loaded.config.store.url)
}
