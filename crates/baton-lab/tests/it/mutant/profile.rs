//! The right agent in four forms: no single card can show everything an agent may or may not offer.

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
}

/// The token that the lab's user has.
pub(crate) const TOKEN: &str = "lab-user-one";
/// The token of somebody else.
pub(crate) const OTHER_TOKEN: &str = "lab-user-two";

pub(crate) const EXTENSION: &str = "https://example.com/extensions/plain";
pub(crate) const REQUIRED_EXTENSION: &str = "https://example.com/extensions/required";

impl Profile {
    pub(crate) const ALL: [Self; 4] = [Self::Open, Self::Guarded, Self::Bare, Self::Sealed];

    pub(crate) fn streams(self) -> bool {
        self != Self::Bare
    }

    pub(crate) fn pushes(self) -> bool {
        self != Self::Bare
    }

    pub(crate) fn is_guarded(self) -> bool {
        self == Self::Guarded
    }
}
