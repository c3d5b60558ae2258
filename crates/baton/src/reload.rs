//! SIGHUP: the configuration is read again, and what can change while serving does: cards, limits, whether requests are
//! logged.

use baton_server::Control;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use crate::config::{self, AgentPlan, Config, Inputs, Loaded, Problems};
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
    /// As it is in effect, where it can change.
    current: Loaded,
}

impl Reload {
    pub(crate) fn new(mut inputs: Inputs, control: Control, started: Loaded) -> Self {
        // A file that has gone is a mistake to tell of, not a reason to fall back to the defaults.
        inputs.keep_to(started.file.as_deref());
        Reload { inputs, control, current: started.clone(), started }
    }

    /// All of the new configuration that can be put into effect, or, if anything is wrong with it, nothing.
    async fn now(&mut self) {
        match self.read().await {
            Ok(loaded) => self.apply(loaded),
            Err(problems) => {
                for problem in problems.lines() {
                    tracing::error!(problem, "configuration not reloaded, all stays as it was");
                }
            }
        }
    }

    async fn read(&self) -> Result<Loaded, Problems> {
        let loaded = self.inputs.load()?;
        // What it would log was logged at the start.
        config::prove(&loaded.agents).with_subscriber(NoSubscriber::default()).await?;
        Ok(loaded)
    }

    fn apply(&mut self, loaded: Loaded) {
        let Loaded { config: new, agents, .. } = &loaded;
        let cards = agents.iter().filter(|plan| self.replace_card(plan)).count();
        for plan in agents {
            // An agent that is not there yet needs a restart, and is named below.
            let _ = self.control.set_limits(&plan.id, plan.limits.clone());
        }
        self.control.set_options(new.engine_options());
        self.control.log_requests(*new.log.requests);
        self.tell(new, cards);
        self.current = loaded;
    }

    /// Was there another card to serve?
    fn replace_card(&self, new: &AgentPlan) -> bool {
        let same_id = |plan: &&AgentPlan| plan.id == new.id;
        let Some(started) = self.started.agents.iter().find(same_id) else { return false };
        let served = self.current.agents.iter().find(same_id);
        // A card for other skills than run here has to wait for the restart that brings them.
        if !started.has_skills_of(new) || served.is_some_and(|served| served.card == new.card) {
            return false;
        }
        match self.control.replace_card(&new.id, new.card.clone()) {
            Ok(()) => true,
            Err(error) => {
                tracing::error!(agent = new.id, %error, "card not replaced");
                false
            }
        }
    }

    fn tell(&self, new: &Config, cards: usize) {
        let changed = config::changes(&self.current.config, new).live;
        tracing::info!(cards, changed = changed.join(", "), "configuration reloaded");
        let waiting = config::changes(&self.started.config, new).restart;
        if !waiting.is_empty() {
            tracing::warn!(keys = waiting.join(", "), "needs a restart");
        }
    }
}
