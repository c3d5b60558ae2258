//! Whether other machines may reach the server: with authentication and encryption, or if the operator allows it.

use super::agents::AgentPlan;
use super::auth::AuthPlan;
use super::problem::{Problem, Problems};
use super::schema::Config;

const OR_ELSE: &str = "listen at 127.0.0.1, or accept it with --allow-public (`allow_public = true`)";
const KEY: &str = "--api-key @FILE (or [auth] in the configuration)";
const TLS: &str =
    "--tls-cert and --tls-key (--tls-self-signed to try it; --trusted-proxy if a proxy in front has TLS)";

/// What is missing for an address that other machines can reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listening {
    /// Nobody is authenticated at all.
    open: bool,
    /// The agents that anybody may call, though others need a credential.
    open_agents: Vec<String>,
    clear_text: bool,
    allowed: bool,
}

impl Listening {
    pub(crate) fn of(config: &Config, auth: &AuthPlan, agents: &[AgentPlan]) -> Self {
        let is_open = |plan: &&AgentPlan| {
            plan.card.security_requirements.iter().any(|requirement| requirement.schemes.is_empty())
        };
        Listening {
            open: !auth.enforces(),
            open_agents: agents.iter().filter(is_open).map(|plan| plan.id.clone()).collect(),
            clear_text: config.trusted_proxies.is_empty() && !config.tls.is_on(),
            allowed: *config.allow_public,
        }
    }

    /// Whether anybody may call an agent without being known.
    pub(crate) fn has_anonymous_callers(&self) -> bool {
        self.open || !self.open_agents.is_empty()
    }

    /// Why the server must not listen at this address that other machines can reach.
    pub(crate) fn refused_at(&self, public: &str) -> Option<String> {
        if self.allowed {
            return None;
        }
        let everybody = "whoever reaches it can read and change every task";
        let text = match (self.open, self.clear_text) {
            (true, true) => {
                format!("nobody is authenticated: {everybody}. Give it {KEY} and {TLS}, {OR_ELSE}")
            }
            (true, false) => format!("nobody is authenticated: {everybody}. Give it {KEY}, {OR_ELSE}"),
            (false, true) => format!(
                "credentials and tasks would cross the network in clear text. Give it {TLS}, {OR_ELSE}"
            ),
            (false, false) => {
                let agent = self.open_agents.first()?;
                format!("agent `{agent}` needs no credential. Take `none` out of its requirements, {OR_ELSE}")
            }
        };
        Some(format!("other machines may reach {public}, and {text}"))
    }
}

/// The addresses that need no name server; a name is checked when it has been resolved.
pub(crate) fn check(config: &Config, listening: &Listening, problems: &mut Problems) {
    if let Some(public) = config.listen.public_address()
        // With a mistake in [auth] it is unknown who would be authenticated.
        && !problems.concern_auth()
        && let Some(text) = listening.refused_at(&public.to_string())
    {
        problems.add(Problem::new(config.listen.source().clone(), "listen", text));
    }
    let metrics = &config.metrics.listen;
    if let Some(public) = metrics.as_ref().and_then(|listen| listen.public_address())
        && !*config.allow_public
    {
        let text = format!("other machines may reach {public} and read the metrics. Either {OR_ELSE}");
        problems.add(Problem::new(metrics.source().clone(), "metrics.listen", text));
    }
}
