//! The encodings of answers and events.

use baton_protocol::wire::dialect::Dialect;
#[cfg(feature = "grpc")]
use baton_protocol::wire::pb::Package;

/// How a value is encoded for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Encoding {
    Json(Dialect),
    /// The messages of gRPC.
    #[cfg(feature = "grpc")]
    Protobuf(Package),
}

impl Encoding {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let all = Dialect::ALL.into_iter().map(Self::Json);
        #[cfg(feature = "grpc")]
        let all = all.chain(Package::ALL.into_iter().map(Self::Protobuf));
        all
    }

    /// Whether stored bytes are this encoding, and need not be parsed.
    pub(crate) fn is_stored_form(self) -> bool {
        matches!(self, Self::Json(dialect) if dialect.is_stored_form())
    }
}
