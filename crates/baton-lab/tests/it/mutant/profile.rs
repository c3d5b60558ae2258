//! The right agent in six forms: no single card can show everything an agent may or may not offer.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Profile {
    /// Streams, webhooks, an extension; for everybody.
    Open,
    /// The same for two users with tokens, with an extended card, a signature and a required extension.
    Guarded,
    /// Neither streams nor webhooks.
    Bare,
    /// The open one over TLS.
    Sealed,
    /// The open one over JSON-RPC and gRPC.
    Grpc,
    /// The guarded one over JSON-RPC and gRPC.
    GuardedGrpc,
}

/// The token that the lab's user has.
pub(crate) const TOKEN: &str = "lab-user-one";
/// The token of somebody else.
pub(crate) const OTHER_TOKEN: &str = "lab-user-two";

pub(crate) const EXTENSION: &str = "https://example.com/extensions/plain";
pub(crate) const REQUIRED_EXTENSION: &str = "https://example.com/extensions/required";

impl Profile {
    pub(crate) const ALL: [Self; 6] =
        [Self::Open, Self::Guarded, Self::Bare, Self::Sealed, Self::Grpc, Self::GuardedGrpc];

    pub(crate) fn streams(self) -> bool {
        self != Self::Bare
    }

    pub(crate) fn pushes(self) -> bool {
        self != Self::Bare
    }

    pub(crate) fn is_guarded(self) -> bool {
        matches!(self, Self::Guarded | Self::GuardedGrpc)
    }

    pub(crate) fn speaks_grpc(self) -> bool {
        matches!(self, Self::Grpc | Self::GuardedGrpc)
    }
}
