//! The agents of one server, and which of them a request is for.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use baton_protocol::generation::Generations;
use baton_protocol::operation::Operation;
use baton_protocol::{Error, ErrorKind, Generation};
use http::HeaderMap;

use crate::auth::Authenticator;
use crate::binding::RequestIds;
#[cfg(feature = "grpc")]
use crate::binding::grpc::GrpcServices;
use crate::card::Signer;
use crate::engine::Engine;
use crate::engine::caller::Caller;
use crate::mount::MountError;
use crate::net::{IpRange, forwarded_for};
use crate::public_url::PublicUrl;
use crate::push::{Jwt, Push};
use crate::service::Service;
use crate::service::rates::RateLimiter;
use crate::telemetry::labels::Limited;

/// Where the server publishes its keys, below its public URL. The samples of the protocol look for them there.
pub(crate) const PUBLIC_KEYS_PATH: &str = "/.well-known/jwks.json";

/// All agents of a server.
#[derive(Debug)]
pub(crate) struct Site {
    engine: Engine,
    authenticator: Arc<dyn Authenticator>,
    public_url: Option<PublicUrl>,
    /// Proxies whose forwarding headers are trusted.
    trusted: Vec<IpRange>,
    /// Sorted by prefix, longest first: the first whose prefix matches a path is the right one.
    agents: Vec<Service>,
    by_tenant: HashMap<Arc<str>, usize>,
    /// The agents that a request to the root may be for: the one that is there, and all that have a tenant.
    at_root: Vec<Arc<str>>,
    request_ids: RequestIds,
    rates: RateLimiter,
    /// If calls of webhooks carry JWTs.
    jwt: Option<Jwt>,
    /// If cards are signed.
    signer: ArcSwapOption<Signer>,
    #[cfg(feature = "grpc")]
    grpc_services: GrpcServices,
}

/// The agent that a path is for, and the rest of the path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    /// `None` if the path is below no agent's prefix: then no agent is at the root.
    pub(crate) service: Option<&'a Service>,
    /// The path without the agent's prefix; begins with a slash.
    pub(crate) rest: &'a str,
}

impl Site {
    /// `Err` names two agents with the same prefix.
    pub(crate) fn new(
        engine: Engine,
        authenticator: Arc<dyn Authenticator>,
        public_url: Option<PublicUrl>,
        trusted: Vec<IpRange>,
        mut agents: Vec<Service>,
        push: Option<Push>,
        signer: Option<Arc<Signer>>,
    ) -> Result<Self, MountError> {
        agents.sort_by_key(|service| std::cmp::Reverse(service.prefix().len()));
        for (at, service) in agents.iter().enumerate() {
            if let Some(other) = agents[..at].iter().find(|other| other.prefix() == service.prefix()) {
                let [one, other, prefix] = [other.id(), service.id(), service.prefix()].map(str::to_owned);
                return Err(MountError::SamePath { one, other, prefix });
            }
        }
        let tenant = |(at, service): (usize, &Service)| Some((Arc::clone(service.tenant()?), at));
        let by_tenant = agents.iter().enumerate().filter_map(tenant).collect();
        let is_at_root = |service: &&Service| service.prefix().is_empty() || service.tenant().is_some();
        let at_root =
            agents.iter().filter(is_at_root).map(|service| Arc::clone(service.shared_id())).collect();
        let request_ids = RequestIds::default();
        let rates = RateLimiter::new(engine.options().owners.max_counted);
        Ok(Site {
            engine,
            authenticator,
            public_url,
            trusted,
            agents,
            by_tenant,
            at_root,
            request_ids,
            rates,
            jwt: push.and_then(|push| push.jwt().cloned()),
            signer: ArcSwapOption::new(signer),
            #[cfg(feature = "grpc")]
            grpc_services: GrpcServices::default(),
        })
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn with_grpc_services(self, grpc_services: GrpcServices) -> Self {
        Site { grpc_services, ..self }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The address of the caller, for limits that count by address. A peer on this machine may be a proxy, so its
    /// forwarding headers count as well, and without them the caller is not counted: all such callers look alike.
    pub(crate) fn client(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let peer = peer?.to_canonical();
        let is_proxy = |address: IpAddr| {
            address.is_loopback() || self.trusted.iter().any(|range| range.contains(address))
        };
        if is_proxy(peer) { forwarded_for(headers, is_proxy) } else { Some(peer) }
    }

    /// Counts a call for its caller's rate, or refuses it.
    pub(crate) fn admit(&self, caller: &Caller, operation: Operation) -> Result<(), Error> {
        let admitted = self.rates.admit(&self.engine.options().owners, caller, operation);
        admitted.inspect_err(|_| self.engine.telemetry().limited(Limited::Rate))
    }

    pub(crate) fn request_ids(&self) -> &RequestIds {
        &self.request_ids
    }

    pub(crate) fn authenticator(&self) -> &Arc<dyn Authenticator> {
        &self.authenticator
    }

    /// Whether calls of webhooks or cards are signed.
    pub(crate) fn has_public_keys(&self) -> bool {
        self.jwt.is_some() || self.signer.load().is_some()
    }

    /// The keys with which those signatures are verified: a JSON Web Key Set.
    pub(crate) async fn key_set(&self) -> Vec<u8> {
        let mut keys = match &self.jwt {
            Some(jwt) => jwt.public_keys().await,
            None => Vec::new(),
        };
        let of_cards = self.signer.load().iter().flat_map(|signer| signer.public_keys()).collect::<Vec<_>>();
        // Earlier keys were saved from this very list, so those of webhooks are among them.
        let known: Vec<_> = keys.iter().map(|key| key_id(key)).collect();
        keys.extend(of_cards.into_iter().filter(|key| !known.contains(&key_id(key))));
        format!(r#"{{"keys":[{}]}}"#, keys.join(",")).into_bytes()
    }

    /// Signs the cards of all agents in this way from now on.
    #[cfg(feature = "card-signing")]
    pub(crate) fn sign_with(&self, signer: Option<Arc<Signer>>) {
        // First published, then used.
        self.signer.store(signer.clone());
        for service in &self.agents {
            service.card().sign_with(signer.clone(), self.engine.now());
        }
    }

    #[cfg(feature = "card-signing")]
    pub(crate) fn public_url(&self) -> Option<&PublicUrl> {
        self.public_url.as_ref()
    }

    pub(crate) fn agents(&self) -> &[Service] {
        &self.agents
    }

    pub(crate) fn agent(&self, id: &str) -> Option<&Service> {
        self.agents.iter().find(|service| service.id() == id)
    }

    /// The agent at the root, else the one with the shortest path.
    pub(crate) fn nearest(&self) -> &Service {
        // `Builder::build` refuses a server without agents.
        &self.agents[self.agents.len() - 1]
    }

    pub(crate) fn listening_at(&self, address: SocketAddr) {
        for service in &self.agents {
            service.card().listening_at(address);
        }
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn serves_grpc(&self) -> bool {
        self.nearest().card().has_grpc()
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn grpc_services(&self) -> &GrpcServices {
        &self.grpc_services
    }

    /// The public URL's path, without a slash at the end; empty when there is none.
    pub(crate) fn public_path(&self) -> &str {
        self.public_url.as_ref().map_or("", PublicUrl::path)
    }

    /// The path without the public URL's path. Some proxies strip that prefix and some do not, so both are accepted.
    pub(crate) fn below_base<'a>(&self, path: &'a str) -> &'a str {
        let public = self.public_url.as_ref();
        public.and_then(|url| below(url.path(), path)).unwrap_or(path)
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

    /// The agents that a request may be for, by what its path says: the agent at that path, and the tenant.
    pub(crate) fn candidates<'a>(
        &'a self,
        found: Option<&'a Service>,
        tenant: Option<&str>,
    ) -> &'a [Arc<str>] {
        match found {
            Some(service) if !service.prefix().is_empty() => std::slice::from_ref(service.shared_id()),
            _ => match tenant.and_then(|tenant| self.by_tenant.get(tenant)) {
                Some(at) => std::slice::from_ref(self.agents[*at].shared_id()),
                None => &self.at_root,
            },
        }
    }

    /// Whether a request on the path of `found` may be for another agent, whose tenant it names. Where an agent has a path of its
    /// own, it is for that one.
    fn may_name_tenant(&self, found: Option<&Service>) -> bool {
        !self.by_tenant.is_empty() && found.is_none_or(|service| service.prefix().is_empty())
    }

    fn with_tenants(&self) -> impl Iterator<Item = &Service> {
        self.by_tenant.values().map(|at| &self.agents[*at])
    }

    /// The agent that a decoded request is for: the one whose tenant it names, or else `found`, the one its path leads
    /// to.
    pub(crate) fn of_tenant<'a>(
        &'a self,
        found: Option<&'a Service>,
        tenant: Option<&str>,
    ) -> Result<&'a Service, Error> {
        let named = tenant.filter(|tenant| !tenant.is_empty());
        if let Some(named) = named
            && self.may_name_tenant(found)
        {
            let at = self.by_tenant.get(named).ok_or_else(|| {
                Error::invalid("tenant", "must be one that an agent here has; its card names it")
            })?;
            return Ok(&self.agents[*at]);
        }
        found.ok_or_else(|| Error::new(ErrorKind::InvalidParams, NO_AGENT))
    }

    /// The generations of requests before their tenant is known: those of the agent the path leads to, and 1.0 where an agent with
    /// a tenant has it, since only 1.0 names tenants.
    pub(crate) fn generations(&self, found: Option<&Service>) -> Generations {
        let Some(service) = found else { return Generations::ALL };
        let own = service.generations();
        let has_v1 = |service: &Service| service.generations().has(Generation::V1);
        if own.has(Generation::V1) || !self.may_name_tenant(found) || !self.with_tenants().any(has_v1) {
            return own;
        }
        let older = [Generation::V0_3, Generation::V0_1].into_iter().filter(|it| own.has(*it));
        Generations::of(older.chain([Generation::V1]))
    }

    /// The limit on a body before its tenant is known: the largest of all agents that the request may be for.
    pub(crate) fn body_limit(&self, found: Option<&Service>) -> usize {
        let limit = |service: &Service| service.limits().max_body_bytes;
        match found {
            Some(service) if self.may_name_tenant(found) => {
                self.with_tenants().map(limit).fold(limit(service), usize::max)
            }
            Some(service) => limit(service),
            None => self.agents.iter().map(limit).max().unwrap_or_default(),
        }
    }
}

fn key_id(key: &str) -> Option<String> {
    let key: serde_json::Value = serde_json::from_str(key).ok()?;
    Some(key["kid"].as_str()?.to_owned())
}

const NO_AGENT: &str = "No agent is at this address; each has its own path or tenant, as its card tells";

/// The path without the prefix; begins with a slash. `None` if the prefix does not match whole segments.
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
