//! The certificate that the client of a TLS connection has shown.

use std::sync::Arc;

use bytes::Bytes;

/// The certificate chain of a client as DER, its own certificate first. It was verified at the handshake, and is in the
/// extensions of each request of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificates(Arc<[Bytes]>);

impl ClientCertificates {
    /// The chain.
    pub fn chain(&self) -> &[Bytes] {
        &self.0
    }
}

impl FromIterator<Bytes> for ClientCertificates {
    fn from_iter<I: IntoIterator<Item = Bytes>>(chain: I) -> Self {
        ClientCertificates(chain.into_iter().collect())
    }
}
