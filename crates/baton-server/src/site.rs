//! The agents of one server, and how a request finds its own.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use baton_protocol::{Error, ErrorKind};

use crate::auth::Authenticator;
use crate::engine::Engine;
use crate::service::Service;

/// All agents of a server.
#[derive(Debug)]
pub(crate) struct Site {
    engine: Engine,
    authenticator: Arc<dyn Authenticator>,
    /// Path of the public URL, without a slash at the end.
    base_path: String,
    /// Longest prefix first, so that the first that fits is the nearest.
    agents: Vec<Service>,
    by_tenant: HashMap<Arc<str>, usize>,
}

/// Where a path leads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    /// `None` at the root of a server whose agents are all elsewhere.
    pub(crate) service: Option<&'a Service>,
    /// What is left of the path, from its slash on.
    pub(crate) rest: &'a str,
}

impl Site {
    /// `Err` names two agents that would stand in the same place.
    pub(crate) fn new(
        engine: Engine,
        authenticator: Arc<dyn Authenticator>,
        base_path: String,
        mut agents: Vec<Service>,
    ) -> Result<Self, String> {
        agents.sort_by_key(|service| std::cmp::Reverse(service.prefix().len()));
        for (at, service) in agents.iter().enumerate() {
            if let Some(other) = agents[..at].iter().find(|other| other.prefix() == service.prefix()) {
                let (one, two, place) = (other.id(), service.id(), service.prefix());
                return Err(format!("agents `{one}` and `{two}` are both at `{place}/`"));
            }
        }
        let tenant = |(at, service): (usize, &Service)| Some((Arc::clone(service.tenant()?), at));
        let by_tenant = agents.iter().enumerate().filter_map(tenant).collect();
        Ok(Site { engine, authenticator, base_path, agents, by_tenant })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn authenticator(&self) -> &dyn Authenticator {
        &*self.authenticator
    }

    pub(crate) fn agents(&self) -> &[Service] {
        &self.agents
    }

    pub(crate) fn agent(&self, id: &str) -> Option<&Service> {
        self.agents.iter().find(|service| service.id() == id)
    }

    /// The agent at the root, else the one with the shortest path.
    pub(crate) fn nearest(&self) -> &Service {
        // A server without agents is not built.
        &self.agents[self.agents.len() - 1]
    }

    pub(crate) fn listening_at(&self, address: SocketAddr) {
        for service in &self.agents {
            service.card().listening_at(address);
        }
    }

    /// Below the path of the public URL everything is there once more: not every proxy strips what it matched.
    pub(crate) fn below_base<'a>(&self, path: &'a str) -> &'a str {
        below(&self.base_path, path).unwrap_or(path)
    }

    /// The agent a path is for.
    pub(crate) fn find<'a>(&'a self, path: &'a str) -> Found<'a> {
        let path = self.below_base(path);
        for service in &self.agents {
            if let Some(rest) = below(service.prefix(), path) {
                return Found { service: Some(service), rest };
            }
        }
        Found { service: None, rest: path }
    }

    /// The agent a request speaks to once its tenant is known: another one than its path leads to, if that
    /// one's tenant is named.
    pub(crate) fn of_tenant<'a>(
        &'a self,
        found: Option<&'a Service>,
        tenant: Option<&str>,
    ) -> Result<&'a Service, Error> {
        let named = tenant.filter(|tenant| !tenant.is_empty());
        if let Some(named) = named
            && found.is_none_or(|service| service.prefix().is_empty())
        {
            if let Some(at) = self.by_tenant.get(named) {
                return Ok(&self.agents[*at]);
            }
            if !self.by_tenant.is_empty() {
                return Err(Error::invalid(
                    "tenant",
                    "must be one that an agent here has; its card names it",
                ));
            }
        }
        found.ok_or_else(|| Error::new(ErrorKind::InvalidParams, NO_AGENT))
    }

    /// The bounds on a request before its tenant is known: whoever is behind the door, or, where nobody is,
    /// the widest.
    pub(crate) fn body_limit(&self, found: Option<&Service>) -> usize {
        let limit = |service: &Service| service.limits().max_body_bytes;
        let widest = || self.agents.iter().map(limit).max();
        found.map(limit).or_else(widest).unwrap_or_default()
    }
}

const NO_AGENT: &str = "No agent is at this address; each has its own path or tenant, as its card tells";

/// What follows the prefix, from its slash on.
fn below<'a>(prefix: &str, path: &'a str) -> Option<&'a str> {
    match path.strip_prefix(prefix)? {
        "" => Some("/"),
        rest if rest.starts_with('/') => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn a_prefix_ends_at_a_slash() {
        for (prefix, path, rest) in [
            ("", "/x", Some("/x")),
            ("", "", Some("/")),
            ("/a", "/a", Some("/")),
            ("/a", "/a/", Some("/")),
            ("/a", "/a/b", Some("/b")),
            ("/a", "/ab", None),
            ("/a", "/", None),
        ] {
            assert_eq!(below(prefix, path), rest, "{prefix} {path}");
        }
    }
}
