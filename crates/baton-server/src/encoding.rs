//! The encodings of answers and events.

use baton_protocol::wire::dialect::Dialect;
#[cfg(feature = "grpc")]
use baton_protocol::wire::pb::Package;

/// How a value is encoded for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Encoding {
    Json(Dialect),
    /// The messages of gRPC. `numbered`: events carry their numbers, for streams that can be resumed.
    #[cfg(feature = "grpc")]
    Protobuf {
        package: Package,
        numbered: bool,
    },
}

impl Encoding {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let all = Dialect::ALL.into_iter().map(Self::Json);
        #[cfg(feature = "grpc")]
        let all = all.chain(
            Package::ALL
                .into_iter()
                .flat_map(|package| [false, true].map(|numbered| Self::Protobuf { package, numbered })),
        );
        all
    }

    /// Whether stored bytes are this encoding, and need not be parsed.
    pub(crate) fn is_stored_form(self) -> bool {
        matches!(self, Self::Json(dialect) if dialect.is_stored_form())
    }
}
