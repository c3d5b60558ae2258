//! Another way to an agent: its address and `Host` stay as they are, only the TCP connection goes elsewhere.
//!
//! The card's addresses, the `Host` header and the evidence would all change if the agent were simply called at a proxy's
//! address, and with them what is tested.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use reqwest::Url;

/// Where connections to some hosts really go.
#[derive(Debug, Clone, Default)]
pub struct Detour(BTreeMap<String, SocketAddr>);

impl Detour {
    pub fn new(ways: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        Detour(ways.into_iter().collect())
    }

    /// Where a connection to `host:port` really goes.
    pub fn to(&self, authority: &str) -> Option<SocketAddr> {
        self.0.get(authority).copied()
    }

    /// The address to call instead, and the `Host` to name there.
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

/// `host:port` of a plain HTTP address; nothing where bytes cannot be led around: TLS names its host in them.
pub fn authority_of(url: &str) -> Option<String> {
    authority(&Url::parse(url).ok()?)
}

fn authority(url: &Url) -> Option<String> {
    if url.scheme() != "http" {
        return None;
    }
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
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
    }
}
