//! Whether the server takes webhooks, and which: what the configuration does not say follows from who can call.

use std::net::SocketAddr;

use baton_server::PushOptions;

use crate::config::{AgentPlan, Loaded};

/// What was decided.
pub(super) struct Webhooks {
    pub(super) enabled: bool,
    /// They may be on this machine.
    pub(super) development: bool,
    /// Anybody could make the server call any address on the internet, very often.
    is_amplifier: bool,
    /// Nobody else can call, and only the demo agent is called.
    is_for_trying: bool,
}

impl Webhooks {
    pub(super) fn of(loaded: &Loaded, addresses: &[SocketAddr]) -> Self {
        let Loaded { config, agents, listening, .. } = loaded;
        // Whoever gives it other names than those of this machine has something in front of it that others can call.
        let is_local = addresses.iter().all(|address| address.ip().is_loopback())
            && config.trusted_proxies.is_empty()
            && config.allowed_hosts.is_empty()
            && config.public_url.is_none();
        let is_amplifier = !is_local && listening.has_anonymous_callers();
        let is_for_trying = is_local && agents.iter().all(AgentPlan::is_demo);
        Webhooks {
            enabled: config.push.enabled.unwrap_or(!is_amplifier),
            development: config.push.development.unwrap_or(is_for_trying),
            is_amplifier,
            is_for_trying,
        }
    }

    /// For the server, with what its operator should know in the log. `None` if webhooks are off.
    pub(super) fn options(&self, loaded: &Loaded) -> Option<PushOptions> {
        let config = &loaded.config;
        if !self.enabled {
            if config.push.enabled.is_none() {
                tracing::info!(
                    "webhooks are off: others may call this server without authentication; `[push] enabled = true` switches \
                     them on"
                );
            }
            return None;
        }
        if self.is_amplifier {
            tracing::warn!(
                "push.enabled is on, and others may call this server without authentication: they can make it call any \
                 address on the internet"
            );
        }
        if *config.push.jwt && config.public_url.is_none() {
            tracing::warn!(
                "push.jwt is on without `public_url`: the JWTs of webhooks do not say who made them"
            );
        }
        if self.development && !self.is_for_trying {
            tracing::warn!("push.development is on: webhooks may call this machine, and may use http");
        }
        Some(config.push.options(self.development))
    }

    /// For the welcome text.
    pub(super) fn told(&self, loaded: &Loaded) -> String {
        let Loaded { config, agents, .. } = loaded;
        if !self.enabled {
            return match config.push.enabled.is_none() {
                true => "off, since others may call without authentication; `[push] enabled = true` switches them on",
                false => "off (`push.enabled`)",
            }
            .to_owned();
        }
        let (without, with): (Vec<_>, Vec<_>) = agents.iter().partition(|plan| !plan.takes_webhooks());
        let except: Vec<_> = without.iter().map(|plan| &*plan.id).collect();
        let except = match (&with[..], &except[..]) {
            ([], _) => return "off: the card does not declare `pushNotifications`".to_owned(),
            (_, []) => String::new(),
            (_, except) => format!(", except for {}, whose cards do not declare them", except.join(", ")),
        };
        match self.development {
            true => format!("on, for development: also to this machine, and by http{except}"),
            false => format!("on{except}"),
        }
    }
}
