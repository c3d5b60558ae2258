//! Redirects TCP connections to a proxy, while the agent's address and `Host` stay the same.
//!
//! If the agent were called at the proxy's address instead, the `Host` header, the card's addresses and the evidence
//! would change, and so would the test.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use reqwest::Url;

/// The actual target of connections, by host.
#[derive(Debug, Clone, Default)]
pub struct Detour {
    ways: BTreeMap<String, SocketAddr>,
    tunnels: BTreeMap<String, SocketAddr>,
}

impl Detour {
    pub fn new(ways: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        Detour { ways: ways.into_iter().collect(), tunnels: BTreeMap::new() }
    }

    /// With HTTP tunnels (`CONNECT`) to the same targets: a TLS handshake contains the host's name, so the address of a
    /// request over TLS cannot be changed.
    #[must_use]
    pub fn through(self, tunnels: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        Detour { tunnels: tunnels.into_iter().collect(), ..self }
    }

    /// The actual target of a connection to `host:port`.
    pub fn to(&self, authority: &str) -> Option<SocketAddr> {
        self.ways.get(authority).copied()
    }

    /// The tunnel that a request over TLS takes.
    pub(super) fn tunnel(&self, url: &Url) -> Option<String> {
        let at = self.tunnels.get(&any_authority(url)?).filter(|_| url.scheme() == "https")?;
        Some(format!("http://{at}"))
    }

    /// The address to call instead, and the `Host` header to send.
    pub(super) fn around(&self, url: &str) -> Option<(String, String)> {
        let mut parsed = Url::parse(url).ok()?;
        let to = self.to(&authority(&parsed)?)?;
        let host = parsed.host_str()?.to_owned();
        let host = parsed.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        parsed.set_ip_host(to.ip()).ok()?;
        parsed.set_port(Some(to.port())).ok()?;
        Some((parsed.into(), host))
    }
}

/// `host:port` of a plain HTTP address; `None` for TLS, whose handshake contains the host name.
pub fn authority_of(url: &str) -> Option<String> {
    authority(&Url::parse(url).ok()?)
}

/// `host:port` of any HTTP address, and whether it is TLS.
pub fn place_of(url: &str) -> Option<(String, bool)> {
    let url = Url::parse(url).ok()?;
    let tls = match url.scheme() {
        "http" => false,
        "https" => true,
        _ => return None,
    };
    Some((any_authority(&url)?, tls))
}

fn any_authority(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

fn authority(url: &Url) -> Option<String> {
    if url.scheme() != "http" {
        return None;
    }
    any_authority(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_way_changes() {
        let to: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let detour = Detour::new([("agent.example:80".to_owned(), to), ("[::1]:3000".to_owned(), to)]);
        let around = |url: &str| detour.around(url);
        let taken = |url: &str, host: &str| Some((url.to_owned(), host.to_owned()));
        assert_eq!(around("http://agent.example/a?b=1"), taken("http://127.0.0.1:9/a?b=1", "agent.example"));
        assert_eq!(around("http://u:p@agent.example:80/"), taken("http://u:p@127.0.0.1:9/", "agent.example"));
        assert_eq!(around("http://[::1]:3000/x"), taken("http://127.0.0.1:9/x", "[::1]:3000"));
        assert_eq!(around("http://agent.example:8080/"), None);
        assert_eq!(around("https://agent.example:80/"), None);
        assert_eq!(authority_of("http://h"), Some("h:80".to_owned()));
        assert_eq!(authority_of("https://h"), None);
        assert_eq!(place_of("https://h/a"), Some(("h:443".to_owned(), true)));
        let detour = detour.through([("h:443".to_owned(), to)]);
        let tunnel = |url: &str| detour.tunnel(&Url::parse(url).unwrap());
        assert_eq!(tunnel("https://h/a").as_deref(), Some("http://127.0.0.1:9"));
        assert_eq!(tunnel("http://h:443/"), None);
        assert_eq!(tunnel("https://other/"), None);
    }
}
