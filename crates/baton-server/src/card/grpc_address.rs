//! How a card tells the address of gRPC.

use baton_protocol::Generation;

use super::Address;
use crate::mount::Place;

/// How the card of an agent tells the address of gRPC, if the server speaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum GrpcAddress {
    /// `agent.example:443`, as the specification says, and as the official clients need it. Some clients refuse a card with an
    /// address that is no URL, though they do not speak gRPC.
    #[default]
    HostPort,
    /// `https://agent.example`: for those clients. The Python SDK cannot connect to it.
    Url,
    /// The card is silent about gRPC.
    Hidden,
}

impl GrpcAddress {
    /// Written for a server that is reached at this URL.
    fn spelled(self, base: &str) -> Option<String> {
        let (scheme, rest) = base.split_once("://")?;
        let authority = rest.split('/').next().unwrap_or_default();
        match self {
            Self::HostPort if has_port(authority) => Some(authority.to_owned()),
            Self::HostPort if scheme == "https" => Some(format!("{authority}:443")),
            Self::HostPort => Some(format!("{authority}:80")),
            Self::Url => Some(format!("{scheme}://{authority}")),
            Self::Hidden => None,
        }
    }
}

fn has_port(authority: &str) -> bool {
    // The colons of an IPv6 address are in brackets.
    authority.rsplit(']').next().is_some_and(|rest| rest.contains(':'))
}

impl Address {
    /// Whether clients that know the host alone reach the agent: a call names the method and no path.
    pub(super) fn takes_grpc(&self) -> bool {
        self.grpc.is_some() && !matches!(self.place, Place::Path(_))
    }

    /// The interfaces of gRPC, for a server that is reached at `base`.
    pub(super) fn of_grpc(&self, base: &str) -> Vec<(Generation, &'static str, String)> {
        let form = self.grpc.filter(|_| self.takes_grpc());
        let Some(url) = form.and_then(|form| form.spelled(base)) else { return Vec::new() };
        let mut all = vec![(Generation::V1, "GRPC", url.clone())];
        // Calls of 0.3 cannot name a tenant.
        if self.place.tenant().is_none() {
            all.push((Generation::V0_3, "GRPC", url));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p03_addresses_of_grpc() {
        for (base, host_port, url) in [
            ("http://127.0.0.1:3000", "127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://[::1]:3000", "[::1]:3000", "http://[::1]:3000"),
            ("http://[::1]", "[::1]:80", "http://[::1]"),
            ("https://agent.example", "agent.example:443", "https://agent.example"),
            ("https://agent.example:8443/a/b", "agent.example:8443", "https://agent.example:8443"),
        ] {
            assert_eq!(GrpcAddress::HostPort.spelled(base).as_deref(), Some(host_port));
            assert_eq!(GrpcAddress::Url.spelled(base).as_deref(), Some(url));
            assert_eq!(GrpcAddress::Hidden.spelled(base), None);
        }
    }
}
