//! `baton serve config check`: reports everything that `serve` would refuse, without opening anything.

#[cfg(unix)]
use crate::admin;
use crate::args::Settings;
use crate::config::{self, AgentPlan, Loaded, Problem};
use crate::exit::Failure;

pub(crate) async fn run(settings: Settings) -> Result<(), Failure> {
    let wrong = |problems: config::Problems| Failure::usage(problems.to_string());
    let loaded = settings.into_inputs().load().await.map_err(wrong)?;
    #[cfg(unix)]
    if let Some(reason) = admin::refused_socket(&loaded.config) {
        let place = loaded.config.admin.socket.source().clone();
        return Err(Failure::usage(Problem::new(place, "admin.socket", reason).to_string()));
    }
    super::warn(&loaded.warnings);
    super::print(&verdict(&loaded))
}

/// Names the file and the agents, so that the user sees if another file was checked than intended.
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
    format!("ok: {file}\n{agents}  store  {}\n{}", *loaded.config.store.url, callers(loaded))
}

/// Who may call, agent by agent if they differ.
fn callers(loaded: &Loaded) -> String {
    let who = |plan: &AgentPlan| {
        let any_of = plan.card.security_requirements.iter().map(|requirement| {
            let scheme = |(name, scopes): &(String, Vec<String>)| match &scopes[..] {
                [] => name.clone(),
                scopes => format!("{name}({})", scopes.join(" ")),
            };
            requirement.schemes.iter().map(scheme).collect::<Vec<_>>().join("+")
        });
        let mut any_of: Vec<_> = any_of.collect();
        if any_of.is_empty() {
            any_of = loaded.auth.names().map(str::to_owned).collect();
        }
        match any_of.iter().any(String::is_empty) {
            true => "anybody".to_owned(),
            false => format!("need {}", any_of.join(" or ")),
        }
    };
    if !loaded.auth.enforces() {
        return "  callers  anybody, unless the store has keys\n".to_owned();
    }
    let each: Vec<_> = loaded.agents.iter().map(|plan| (plan, who(plan))).collect();
    match &each[..] {
        [(_, first), rest @ ..] if rest.iter().all(|(_, who)| who == first) => {
            format!("  callers  {first}\n")
        }
        several => several.iter().map(|(plan, who)| format!("  callers  {} {who}\n", plan.id)).collect(),
    }
}
