//! The guard of webhook targets. It decides twice: by the URL when a configuration is created, and by the addresses of the
//! host at every attempt. A connection is made to an address that was judged for this attempt, never to the host's name: a
//! name server may answer differently the next time.

pub(crate) mod address;
pub(crate) mod allow;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub(crate) mod hint;
pub(crate) mod host;
pub(crate) mod port;
pub(crate) mod resolver;
#[cfg(test)]
mod spellings;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod url;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use address::AddressKind;
use allow::AllowedTarget;
use host::Host;
use resolver::Resolve;
pub(crate) use url::{BadTarget, Target};

/// Most addresses of one host that are looked at. A host with more is refused, since all of them have to be judged.
const MAX_ADDRESSES: usize = 64;

/// What operators decide about webhook targets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TargetRules {
    /// For development: allows this machine (loopback), and `http` to it and to what `allow` names. Off by default.
    pub(crate) development: bool,
    /// Receivers in the operator's own network. They still need `https`.
    pub(crate) allow: Vec<AllowedTarget>,
}

/// Checks URLs and resolves hosts. A cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    rules: Arc<TargetRules>,
    resolver: Arc<dyn Resolve>,
}

/// Why a host cannot be called now. For the log: callers must not learn from it what the server's network looks like.
#[derive(Debug)]
pub(crate) enum NoAddress {
    /// The name server did not answer, or knows no such name.
    Lookup(std::io::Error),
    /// The name has no address, or too many of them.
    Count(usize),
    /// One of the addresses may not be called.
    Refused(IpAddr),
}

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lookup(error) => write!(f, "the host's name was not resolved: {error}"),
            Self::Count(count) => write!(f, "the host's name has {count} addresses"),
            Self::Refused(address) => {
                write!(f, "the host has the address {address}, which webhooks may not call")
            }
        }
    }
}

impl Guard {
    pub(crate) fn new(rules: TargetRules, resolver: Arc<dyn Resolve>) -> Self {
        Guard { rules: Arc::new(rules), resolver }
    }

    /// Checks a URL, when a configuration is created and again before each attempt: the rules may have changed since.
    pub(crate) fn check(&self, url: &str) -> Result<Target, BadTarget> {
        Target::parse(url, &self.rules)
    }

    /// The addresses that may be called now: all of the host's, or an error if any of them is refused. One that may be
    /// called beside one that may not is how a rebinding name server passes checks that look at the first only.
    pub(crate) async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, NoAddress> {
        let found = match target.host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.resolver.addresses(name).await.map_err(NoAddress::Lookup)?,
        };
        if found.is_empty() || found.len() > MAX_ADDRESSES {
            return Err(NoAddress::Count(found.len()));
        }
        let host_allowed = self.rules.allows_host(target.host());
        let is_allowed = |address: IpAddr| {
            self.rules.allows_address(address, host_allowed)
                && (target.is_https() || self.rules.allows_http_to(address, host_allowed))
        };
        match found.iter().find(|address| !is_allowed(**address)) {
            Some(refused) => Err(NoAddress::Refused(*refused)),
            None => {
                Ok(found.into_iter().map(|address| (address.to_canonical(), target.port()).into()).collect())
            }
        }
    }
}

impl TargetRules {
    /// True if the operator named this host.
    fn allows_host(&self, host: &Host) -> bool {
        self.allow.iter().any(|allowed| allowed.is_host(host))
    }

    fn allows_http_to(&self, address: IpAddr, host_allowed: bool) -> bool {
        self.development
            && (address::kind(address) == AddressKind::Loopback
                || host_allowed
                || self.allow.iter().any(|allowed| allowed.has_address(address)))
    }

    fn allows_address(&self, address: IpAddr, host_allowed: bool) -> bool {
        let named = || self.allow.iter().any(|allowed| allowed.has_address(address));
        match address::kind(address) {
            AddressKind::Global => true,
            AddressKind::Loopback => self.development || named(),
            AddressKind::Private => host_allowed || named(),
            AddressKind::Special => named(),
            AddressKind::NoHost => false,
        }
    }
}
