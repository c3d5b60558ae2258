//! Why a server does not start.

use std::fmt;

use crate::card::CardError;
use crate::mount::MountError;
use crate::net::BadSetting;
use crate::secrets::SecretsError;
use crate::store::StoreError;
#[cfg(feature = "tls")]
use crate::tls::BadTls;

/// Why a server could not start, or had to stop. A `main` that returns it prints its text.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The card declares something that the server does not have. One line per problem; it begins with the member of
    /// the card.
    #[error("the agent card declares something this server does not have: {}", .0.join("; "))]
    Card(Vec<String>),
    /// An agent cannot be mounted: its id, path, tenant or skills are not valid, or two agents conflict.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A card could not be read.
    #[error(transparent)]
    CardText(#[from] CardError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The secrets in the store cannot be used: the master key is missing or another one.
    #[error(transparent)]
    Secrets(SecretsError),
    /// The address cannot be bound.
    #[error("cannot listen: {0}")]
    Listen(#[source] std::io::Error),
    /// The listener failed while serving.
    #[error("the listener failed: {0}")]
    Serve(#[source] std::io::Error),
    /// While serving: the store can no longer make writes durable. The process has to be restarted.
    #[error(transparent)]
    Fatal(StoreError),
    /// Cards cannot be signed.
    #[error("{0}")]
    Signing(String),
    /// Webhooks cannot be called as the options say.
    #[error("webhooks: {0}")]
    Push(String),
    /// A setting is not valid; the text names it.
    #[error(transparent)]
    Setting(#[from] BadSetting),
    /// The certificate or its key cannot be used, or those of the authorities of client certificates.
    #[cfg(feature = "tls")]
    #[error("TLS: {0}")]
    Tls(#[from] BadTls),
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<SecretsError> for StartError {
    fn from(error: SecretsError) -> Self {
        match error {
            SecretsError::Store(error) => StartError::Store(error),
            other => StartError::Secrets(other),
        }
    }
}
