//! Who may call: the schemes that are enforced, and what callers need.

mod bearer;
mod issuers;
mod mtls;
mod passwords;
mod proxy;

pub(crate) use bearer::Bearer;
pub(crate) use issuers::{Fetch, Introspection, Jwt, OAuth2, TokenRules};
pub(crate) use mtls::Mtls;
pub(crate) use passwords::{Basic, Digest, User};
pub(crate) use proxy::Proxy;

use std::time::Duration;

use baton_server::auth::ThrottleOptions;

use super::api_key::ApiKey;
use crate::config::setting::{Field, OneOrMore, Section, Sections, Setting, Source, Visit};
use crate::config::value::Requirement;

/// A scheme is enforced if its table is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Auth {
    /// What callers of each agent need, unless the agent or its card says otherwise.
    pub(crate) require: Setting<Vec<Requirement>>,
    pub(crate) throttle: Throttle,
    pub(crate) api_key: ApiKey,
    pub(crate) bearer: Bearer,
    pub(crate) basic: Basic,
    pub(crate) digest: Digest,
    pub(crate) mtls: Mtls,
    pub(crate) proxy: Proxy,
    pub(crate) fetch: Fetch,
    pub(crate) jwt: OneOrMore<Jwt>,
    pub(crate) oidc: OneOrMore<Jwt>,
    pub(crate) introspection: OneOrMore<Introspection>,
}

/// Failed attempts.
#[derive(Debug, Clone)]
pub(crate) struct Throttle {
    pub(crate) burst: Setting<u32>,
    pub(crate) every: Setting<Duration>,
    pub(crate) per_address: Setting<u32>,
    pub(crate) max_entries: Setting<usize>,
}

impl Default for Throttle {
    fn default() -> Self {
        let throttle = ThrottleOptions::default();
        Throttle {
            burst: Setting::new(throttle.burst).at_most(1_000_000),
            every: Setting::new(throttle.every).at_least(Duration::from_millis(1)),
            per_address: Setting::new(throttle.per_address).at_least(1).at_most(10_000),
            max_entries: Setting::new(throttle.max_entries).at_least(1).at_most(10_000_000),
        }
    }
}

impl Section for Auth {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("require", &mut self.require);
        visit.table("throttle", &mut self.throttle);
        visit.table("api_key", &mut self.api_key);
        visit.table("bearer", &mut self.bearer);
        visit.table("basic", &mut self.basic);
        visit.table("digest", &mut self.digest);
        visit.table("mtls", &mut self.mtls);
        visit.table("proxy", &mut self.proxy);
        visit.table("fetch", &mut self.fetch);
        visit.list("jwt", &mut self.jwt);
        visit.list("oidc", &mut self.oidc);
        visit.list("introspection", &mut self.introspection);
    }
}

impl Section for Throttle {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("burst", &mut self.burst);
        visit.field("every", &mut self.every);
        visit.field("per_address", &mut self.per_address);
        visit.field("max_entries", &mut self.max_entries);
    }
}

/// Where a scheme's table begins, or the first of its keys that is set elsewhere. `None`: the scheme is not configured.
pub(crate) fn begins(section: &mut dyn Section) -> Option<Source> {
    let place = section.written().and_then(|written| written.place.clone());
    let mut first = FirstSet(place.map(Source::File));
    section.visit(&mut first);
    first.0
}

struct FirstSet(Option<Source>);

impl Visit for FirstSet {
    fn field(&mut self, _name: &'static str, field: &mut dyn Field) {
        if self.0.is_none() && *field.source() != Source::Default {
            self.0 = Some(field.source().clone());
        }
    }

    fn table(&mut self, _name: &'static str, section: &mut dyn Section) {
        section.visit(self);
    }

    fn list(&mut self, _name: &'static str, sections: &mut dyn Sections) {
        sections.each(&mut |_, section| section.visit(self));
    }
}
