//! Every key with its default and its bounds. `config.default.toml` documents them; a test compares the two.

mod agent;
mod api_key;
mod auth;
mod connections;
mod limits;
mod push;
mod signing;
mod tls;

pub(crate) use agent::{Agent, AgentAddress, Card, Skill};
pub(crate) use api_key::{Admin, ApiKey};
pub(crate) use auth::{
    Auth, Basic, Bearer, Digest, Fetch, Introspection, Jwt, Mtls, OAuth2, Proxy, Throttle, TokenRules, User,
    begins,
};
pub(crate) use connections::Connections;
pub(crate) use limits::{AgentLimits, Limits, Retention};
pub(crate) use push::Push;
pub(crate) use signing::Signing;
pub(crate) use tls::Tls;

use std::path::PathBuf;
use std::time::Duration;

use baton_server::store::sqlite;

use super::default_store::DEMO_STORE;
use super::setting::{Section, Setting, Visit};
use super::value::{
    HostName, HttpUrl, Listen, LogFilter, LogFormat, Origin, PublicUrl, SecretText, StoreUrl, TrustedProxy,
};

const PORT: u16 = 3000;

/// The whole configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) listen: Setting<Listen>,
    pub(crate) public_url: Setting<Option<PublicUrl>>,
    pub(crate) trusted_proxies: Setting<Vec<TrustedProxy>>,
    pub(crate) allow_public: Setting<bool>,
    pub(crate) allowed_hosts: Setting<Vec<HostName>>,
    pub(crate) grpc: Setting<bool>,
    pub(crate) grpc_health: Setting<bool>,
    pub(crate) grpc_reflection: Setting<bool>,
    pub(crate) drain: Setting<Duration>,
    pub(crate) master_key: Setting<Option<SecretText>>,
    pub(crate) master_key_old: Setting<Option<SecretText>>,
    pub(crate) tls: Tls,
    pub(crate) store: Store,
    pub(crate) limits: Limits,
    pub(crate) connections: Connections,
    pub(crate) retention: Retention,
    pub(crate) push: Push,
    pub(crate) signing: Signing,
    pub(crate) cors: Cors,
    pub(crate) auth: Auth,
    pub(crate) admin: Admin,
    pub(crate) log: Log,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    /// The card and the skills of the agent at the root.
    pub(crate) card: Card,
    pub(crate) skills: Vec<Skill>,
    /// Agents at paths of their own.
    pub(crate) agents: Vec<Agent>,
}

#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) url: Setting<StoreUrl>,
    pub(crate) readers: Setting<usize>,
    pub(crate) batch: Setting<usize>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Cors {
    pub(crate) origins: Setting<Vec<Origin>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) filter: Setting<LogFilter>,
    pub(crate) format: Setting<LogFormat>,
    pub(crate) requests: Setting<bool>,
    pub(crate) audit: Setting<Option<PathBuf>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub(crate) enabled: Setting<bool>,
    pub(crate) listen: Setting<Option<Listen>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Traces {
    pub(crate) otlp: Setting<Option<HttpUrl>>,
    pub(crate) sample: Setting<f64>,
}

impl Default for Config {
    fn default() -> Self {
        let sqlite = sqlite::Options::default();
        Config {
            listen: Setting::new(Listen::local(PORT)),
            public_url: Setting::default(),
            trusted_proxies: Setting::default(),
            allow_public: Setting::default(),
            allowed_hosts: Setting::default(),
            grpc: Setting::default(),
            grpc_health: Setting::default(),
            grpc_reflection: Setting::default(),
            drain: Setting::new(Duration::from_secs(30)),
            master_key: Setting::default(),
            master_key_old: Setting::default(),
            tls: Tls::default(),
            store: Store {
                url: Setting::new(StoreUrl::Sqlite(DEMO_STORE.into())),
                readers: Setting::new(sqlite.readers).at_least(1).at_most(64),
                batch: Setting::new(sqlite.batch).at_least(1).at_most(10_000),
            },
            limits: Limits::default(),
            connections: Connections::default(),
            retention: Retention::default(),
            push: Push::default(),
            signing: Signing::default(),
            cors: Cors::default(),
            auth: Auth::default(),
            admin: Admin::default(),
            log: Log {
                filter: Setting::new(LogFilter::info()),
                format: Setting::new(LogFormat::Text),
                requests: Setting::default(),
                audit: Setting::default(),
            },
            metrics: Metrics { enabled: Setting::new(true), listen: Setting::default() },
            traces: Traces { otlp: Setting::default(), sample: Setting::new(1.0).at_least(0.0).at_most(1.0) },
            card: Card::default(),
            skills: Vec::new(),
            agents: Vec::new(),
        }
    }
}

impl Config {
    /// True if there is an agent at the root: a configured one, or the demo agent if no agent is configured.
    pub(crate) fn has_root_agent(&self) -> bool {
        self.agents.is_empty() || !self.skills.is_empty() || self.card.is_set()
    }
}

impl Section for Config {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("listen", &mut self.listen);
        visit.field("public_url", &mut self.public_url);
        visit.field("trusted_proxies", &mut self.trusted_proxies);
        visit.field("allow_public", &mut self.allow_public);
        visit.field("allowed_hosts", &mut self.allowed_hosts);
        visit.field("grpc", &mut self.grpc);
        visit.field("grpc_health", &mut self.grpc_health);
        visit.field("grpc_reflection", &mut self.grpc_reflection);
        visit.field("drain", &mut self.drain);
        visit.field("master_key", &mut self.master_key);
        visit.field("master_key_old", &mut self.master_key_old);
        visit.table("tls", &mut self.tls);
        visit.table("store", &mut self.store);
        visit.table("limits", &mut self.limits);
        visit.table("connections", &mut self.connections);
        visit.table("retention", &mut self.retention);
        visit.table("push", &mut self.push);
        visit.table("signing", &mut self.signing);
        visit.table("cors", &mut self.cors);
        visit.table("auth", &mut self.auth);
        visit.table("admin", &mut self.admin);
        visit.table("log", &mut self.log);
        visit.table("metrics", &mut self.metrics);
        visit.table("traces", &mut self.traces);
        visit.table("card", &mut self.card);
        visit.list("skill", &mut self.skills);
        visit.list("agent", &mut self.agents);
    }
}

impl Section for Store {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("url", &mut self.url);
        visit.field("readers", &mut self.readers);
        visit.field("batch", &mut self.batch);
    }

    fn short_for(&self) -> Option<&'static str> {
        Some("url")
    }
}

impl Section for Cors {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("origins", &mut self.origins);
    }
}

impl Section for Log {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("filter", &mut self.filter);
        visit.field("format", &mut self.format);
        visit.field("requests", &mut self.requests);
        visit.field("audit", &mut self.audit);
    }

    fn short_for(&self) -> Option<&'static str> {
        Some("filter")
    }
}

impl Section for Metrics {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("enabled", &mut self.enabled);
        visit.field("listen", &mut self.listen);
    }
}

impl Section for Traces {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("otlp", &mut self.otlp);
        visit.field("sample", &mut self.sample);
    }
}
