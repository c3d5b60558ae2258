//! How the server is reached.

use super::Builder;
use crate::net::{Connections, Cors, IpRange};
use crate::public_url::PublicUrl;
#[cfg(feature = "tls")]
use crate::tls::TlsOptions;

impl Builder {
    /// The address that the cards give to clients, when it differs from the one the server listens at. JSON-RPC is then
    /// called at exactly this address; everything else is below it.
    pub fn public_url(mut self, url: &str) -> Self {
        self.public_url = Some(PublicUrl::new(url));
        self
    }

    /// Proxies whose `Forwarded` and `X-Forwarded-*` headers are trusted to give the address that clients use.
    pub fn trusted_proxies(mut self, proxies: Vec<IpRange>) -> Self {
        self.net.trusted_proxies = proxies;
        self
    }

    /// Limits on connections, and on how long clients may take.
    pub fn connections(mut self, connections: Connections) -> Self {
        self.net.connections = connections;
        self
    }

    /// Values of `Host` that are accepted, such as `agent.example`, in addition to this machine's names and the public
    /// URL's host. On a loopback address all others are refused (421); on any other address `Host` is checked only if
    /// this list is not empty.
    pub fn allowed_hosts(mut self, hosts: Vec<String>) -> Self {
        self.net.allowed_hosts = hosts;
        self
    }

    /// Serves HTTPS, and nothing else, on the server's own listener ([`Server::serve`](crate::Server::serve) and the like).
    #[cfg(feature = "tls")]
    pub fn tls(mut self, options: TlsOptions) -> Self {
        self.tls = Some(options);
        self
    }

    /// Lets web pages of other origins call the server.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.net.cors = Some(cors);
        self
    }
}
