//! SIGHUP: reads the configuration again and applies what can change while serving: cards and the key that signs them, limits,
//! users and secrets, the certificate, whether requests are logged. Files that are written to are opened again.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use baton_protocol::domain::AgentCard;
use baton_server::Control;
use baton_server::auth::Chain;
use baton_server::card::CardSigning;
use baton_server::tls::TlsOptions;

use crate::config::{self, AgentPlan, AuthPlan, Config, Inputs, Loaded, Problem, Problems};
use crate::log;
use crate::signals::{Hangup, Hangups};

/// Reloads at every SIGHUP, until one means that the terminal has closed.
pub(crate) async fn watch(mut hangups: Hangups, mut reload: Reload) {
    while let Hangup::Reload = hangups.next().await {
        reload.now().await;
    }
}

/// The running server's configuration and its inputs.
#[derive(Debug)]
pub(crate) struct Reload {
    inputs: Inputs,
    control: Control,
    /// `None` if nobody was authenticated at the start.
    auth: Option<Arc<Chain>>,
    /// The schemes in effect.
    schemes: AuthPlan,
    /// The configuration at start, without its schemes: compared with the new one to see what a restart would change.
    started: Loaded,
    /// The latest valid configuration; its limits are in effect.
    current: Config,
    /// The current card of each agent.
    cards: HashMap<String, AgentCard>,
    /// The current certificate.
    tls: Option<TlsOptions>,
    /// What signs the cards.
    signing: Option<CardSigning>,
    /// Where the server listens, which no reload changes.
    address: SocketAddr,
}

/// The result for an agent's card.
enum Card {
    Same,
    Replaced,
    /// It needs a restart, because its skills differ.
    Waits,
}

/// The result for the certificate.
enum Certificate {
    Same,
    Replaced,
    /// HTTPS instead of HTTP, or the other way round, needs a restart.
    Waits,
}

/// A key belongs to its certificate, so it need not be compared.
fn is_same(old: &TlsOptions, new: &TlsOptions) -> bool {
    (&old.certificate, &old.clients, old.min_version) == (&new.certificate, &new.clients, new.min_version)
}

impl Reload {
    pub(crate) fn new(
        mut inputs: Inputs,
        control: Control,
        auth: Option<Arc<Chain>>,
        mut started: Loaded,
        tls: Option<TlsOptions>,
        address: SocketAddr,
    ) -> Self {
        // If the file is missing at a reload, that is an error; the defaults must not be used instead.
        inputs.keep_to(started.file.as_deref());
        let cards = started.agents.iter().map(|plan| (plan.id.clone(), plan.card.clone())).collect();
        let (current, schemes) = (started.config.clone(), std::mem::take(&mut started.auth));
        let signing = started.signing.take();
        Reload { inputs, control, auth, schemes, current, started, cards, tls, signing, address }
    }

    /// Applies everything that can change while serving, or nothing if the new configuration has a mistake.
    async fn now(&mut self) {
        log::reopen();
        match self.inputs.load_again(&self.schemes).await.and_then(|loaded| self.check(loaded)) {
            Ok(loaded) => self.apply(loaded),
            Err(problems) => {
                for problem in problems.lines() {
                    tracing::error!(problem, "configuration not reloaded, nothing was changed");
                }
            }
        }
    }

    /// What can be checked only of a running server: its address may have been a name, and is another one than the new
    /// configuration's if `listen` was changed; its certificate may not come from a file.
    fn check(&self, mut loaded: Loaded) -> Result<Loaded, Problems> {
        if !self.address.ip().to_canonical().is_loopback()
            && let Some(text) = loaded.listening.refused_at(&self.address.to_string())
        {
            return Err(Problem::new(loaded.config.listen.source().clone(), "listen", text).into());
        }
        if *self.started.config.tls.self_signed {
            loaded.tls = match self.tls.clone() {
                Some(own) if *loaded.config.tls.self_signed => Some(loaded.config.with_tls_clients(own)?),
                // Another certificate needs a restart, as the key `tls.self_signed` does.
                own => own,
            };
        }
        Ok(loaded)
    }

    fn apply(&mut self, loaded: Loaded) {
        let Loaded { config: new, agents, auth, tls, signing, .. } = loaded;
        let mut applied = config::changes(&self.current, &new).live;
        let mut waiting = config::changes(&self.started.config, &new).restart;
        self.follow_auth(&new, &auth, &mut applied, &mut waiting);
        for plan in &agents {
            match self.replace_card(plan) {
                Card::Same => {}
                Card::Replaced => applied.push(card_key(plan, &new)),
                Card::Waits => waiting.push(card_key(plan, &new)),
            }
            let started = self.started.agents.iter().find(|started| started.id == plan.id);
            match started.map(|started| started.follow_extended(plan)) {
                None | Some(Ok(false)) => {}
                Some(Ok(true)) => applied.push(format!("{}.extended", card_key(plan, &new))),
                Some(Err(())) => waiting.push(format!("{}.extended", card_key(plan, &new))),
            }
            // A new agent needs a restart, and is reported that way.
            let _ = self.control.set_limits(&plan.id, plan.limits.clone());
        }
        match self.replace_certificate(tls) {
            Certificate::Same => {}
            Certificate::Replaced => applied.push("tls".to_owned()),
            Certificate::Waits => waiting.push("tls".to_owned()),
        }
        match self.replace_signing(signing) {
            Ok(false) => {}
            Ok(true) => applied.push("signing".to_owned()),
            Err(()) => waiting.push("signing".to_owned()),
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

    /// Replaces users, tokens, keys and throttling. Those who are gone or have changed are refused from the next request on, and
    /// what they have open is ended; what the others have open goes on.
    fn follow_auth(
        &mut self,
        new: &Config,
        auth: &AuthPlan,
        applied: &mut Vec<String>,
        waiting: &mut Vec<String>,
    ) {
        let followed = self.schemes.follow(auth);
        if let (Some(chain), true) = (&self.auth, followed.replaced)
            && let Err(error) = chain.replace(self.schemes.chain())
        {
            tracing::error!(%error, "callers are authenticated as before");
        }
        if !followed.withdrawn.is_empty() {
            tracing::warn!(
                schemes = followed.withdrawn.join(", "),
                "no longer configured: nobody gets in by these schemes any more; cards name them until a restart"
            );
        }
        if !followed.declared_as_before.is_empty() {
            tracing::warn!(
                schemes = followed.declared_as_before.join(", "),
                "cards name and declare these schemes as before until a restart; what is enforced is new"
            );
        }
        let waits = |key: &String| followed.waits(key);
        waiting.extend(config::changes(&self.started.config, new).auth.into_iter().filter(waits));
        let mut keys = config::changes(&self.current, new).auth;
        keys.retain(|key| !waits(key));
        if keys.is_empty() && followed.replaced {
            // A secret in a file or a variable is another one; the key that names it is the same.
            keys.push("auth".to_owned());
        }
        applied.extend(keys);
    }

    /// Checked when it was loaded.
    fn replace_certificate(&mut self, new: Option<TlsOptions>) -> Certificate {
        match (&self.tls, new) {
            (None, None) => Certificate::Same,
            (Some(old), Some(new)) => {
                if is_same(old, &new) {
                    return Certificate::Same;
                }
                if let Err(error) = self.control.replace_tls(&new) {
                    tracing::error!(%error, "certificate not replaced");
                    return Certificate::Same;
                }
                self.tls = Some(new);
                Certificate::Replaced
            }
            _ => Certificate::Waits,
        }
    }

    /// Whether it was replaced. `Err` if that needs a restart, since a public URL does.
    fn replace_signing(&mut self, new: Option<CardSigning>) -> Result<bool, ()> {
        let is_same = match (&self.signing, &new) {
            (None, None) => true,
            (Some(old), Some(new)) => old.is_same(new),
            _ => false,
        };
        if !is_same {
            self.control.sign_cards(new.clone()).map_err(drop)?;
            self.signing = new;
        }
        Ok(!is_same)
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
                let old = self.cards.insert(new.id.clone(), new.card.clone());
                warn_of_version(&new.id, old.as_ref().unwrap_or(&started.card), &new.card);
                Card::Replaced
            }
            Err(error) => {
                tracing::error!(agent = new.id, %error, "card not replaced");
                Card::Same
            }
        }
    }
}

/// Tells the author of a card that changed, but not its version: clients may keep what they have for as long as that stays.
pub(crate) fn warn_of_version(agent: &str, old: &AgentCard, new: &AgentCard) {
    if old != new && old.version == new.version {
        tracing::warn!(
            agent,
            version = new.version,
            "the card changed, and its version did not: give it a new one"
        );
    }
}

/// The configuration key of an agent's card.
fn card_key(plan: &AgentPlan, config: &Config) -> String {
    let listed = config.agents.iter().any(|agent| agent.id.as_ref().is_some_and(|id| id.as_str() == plan.id));
    if listed { format!("agent[{}].card", plan.id) } else { "card".to_owned() }
}
