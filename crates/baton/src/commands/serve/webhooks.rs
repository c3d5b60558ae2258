//! Whether the server takes webhooks, and which: what the configuration does not say follows from who can call.

use std::net::SocketAddr;

use baton_server::PushOptions;

use crate::config::{AgentPlan, Loaded};

/// `None` if webhooks are off.
pub(super) fn options(loaded: &Loaded, addresses: &[SocketAddr]) -> Option<PushOptions> {
    let Loaded { config, agents, listening, .. } = loaded;
    let is_local = addresses.iter().all(|address| address.ip().is_loopback())
        && config.trusted_proxies.is_empty()
        && config.public_url.is_none();
    // Anybody could make such a server call any address on the internet, very often.
    let is_amplifier = !is_local && listening.has_anonymous_callers();
    if !config.push.enabled.unwrap_or(!is_amplifier) {
        if config.push.enabled.is_none() {
            tracing::info!(
                "webhooks are off: others may call this server without authentication; `[push] enabled = true` switches \
                 them on"
            );
        }
        return None;
    }
    if is_amplifier {
        tracing::warn!(
            "push.enabled is on, and others may call this server without authentication: they can make it call any address \
             on the internet"
        );
    }
    if *config.push.jwt && config.public_url.is_none() {
        tracing::warn!("push.jwt is on without `public_url`: the JWTs of webhooks do not say who made them");
    }
    let is_for_trying = is_local && agents.iter().all(AgentPlan::is_demo);
    let development = config.push.development.unwrap_or(is_for_trying);
    if development && !is_for_trying {
        tracing::warn!("push.development is on: webhooks may call this machine, and may use http");
    }
    Some(config.push.options(development))
}
