//! SIGHUP: the configuration is read again, and what can change while serving does: cards, limits, whether requests are
//! logged.

use std::collections::HashMap;

use baton_protocol::domain::AgentCard;
use baton_server::Control;

use crate::config::{self, AgentPlan, Config, Inputs, Loaded};
use crate::signals::{Hangup, Hangups};

/// Reads again at every hangup, until one says that the terminal is gone.
pub(crate) async fn watch(mut hangups: Hangups, mut reload: Reload) {
    while let Hangup::Reload = hangups.next().await {
        reload.now().await;
    }
}

/// What runs, and what it was made from.
#[derive(Debug)]
pub(crate) struct Reload {
    inputs: Inputs,
    control: Control,
    /// As it was at the start: what is compared to see what a restart would change.
    started: Loaded,
    /// The latest that was read; its limits are in effect.
    current: Config,
    /// The card that each agent is served with.
    cards: HashMap<String, AgentCard>,
}

/// What became of an agent's card.
enum Card {
    Same,
    Replaced,
    /// Only a restart brings the skills it is for.
    Waits,
}

impl Reload {
    pub(crate) fn new(mut inputs: Inputs, control: Control, started: Loaded) -> Self {
        // A file that has gone is a mistake to tell of, not a reason to fall back to the defaults.
        inputs.keep_to(started.file.as_deref());
        let cards = started.agents.iter().map(|plan| (plan.id.clone(), plan.card.clone())).collect();
        Reload { inputs, control, current: started.config.clone(), started, cards }
    }

    /// All of the new configuration that can be put into effect, or, if anything is wrong with it, nothing.
    async fn now(&mut self) {
        match self.inputs.load().await {
            Ok(loaded) => self.apply(loaded),
            Err(problems) => {
                for problem in problems.lines() {
                    tracing::error!(problem, "configuration not reloaded, all stays as it was");
                }
            }
        }
    }

    fn apply(&mut self, loaded: Loaded) {
        let Loaded { config: new, agents, .. } = loaded;
        let mut applied = config::changes(&self.current, &new).live;
        let mut waiting = config::changes(&self.started.config, &new).restart;
        for plan in &agents {
            match self.replace_card(plan) {
                Card::Same => {}
                Card::Replaced => applied.push(card_key(plan, &new)),
                Card::Waits => waiting.push(card_key(plan, &new)),
            }
            // An agent that is not there yet needs a restart, and is named as such.
            let _ = self.control.set_limits(&plan.id, plan.limits.clone());
        }
        self.control.set_options(new.engine_options());
        self.control.log_requests(*new.log.requests);
        self.current = new;
        let applied = if applied.is_empty() { "nothing".to_owned() } else { applied.join(", ") };
        tracing::info!(applied, "configuration reloaded");
        if !waiting.is_empty() {
            tracing::warn!(keys = waiting.join(", "), "not applied: needs a restart");
        }
    }

    fn replace_card(&mut self, new: &AgentPlan) -> Card {
        let Some(started) = self.started.agents.iter().find(|plan| plan.id == new.id) else {
            return Card::Same;
        };
        if self.cards.get(&new.id) == Some(&new.card) {
            return Card::Same;
        }
        if !started.has_skills_of(new) {
            return Card::Waits;
        }
        match self.control.replace_card(&new.id, new.card.clone()) {
            Ok(()) => {
                self.cards.insert(new.id.clone(), new.card.clone());
                Card::Replaced
            }
            Err(error) => {
                tracing::error!(agent = new.id, %error, "card not replaced");
                Card::Same
            }
        }
    }
}

/// Where the configuration has an agent's card.
fn card_key(plan: &AgentPlan, config: &Config) -> String {
    let listed = config.agents.iter().any(|agent| agent.id.as_ref().is_some_and(|id| id.as_str() == plan.id));
    if listed { format!("agent[{}].card", plan.id) } else { "card".to_owned() }
}
