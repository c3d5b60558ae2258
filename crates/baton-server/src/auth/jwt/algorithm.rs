//! The signature algorithms that a token may have. Symmetric ones and `none` are not among them, so no configuration and
//! no token can choose them.

use std::fmt;

/// How a token is signed. All of these verify with a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA with the curve P-256 and SHA-256.
    Es256,
    /// ECDSA with the curve P-384 and SHA-384.
    Es384,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA PKCS #1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS #1 v1.5 with SHA-512.
    Rs512,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// RSA-PSS with SHA-384.
    Ps384,
    /// RSA-PSS with SHA-512.
    Ps512,
    /// Ed25519.
    EdDsa,
}

/// What a key must be, for an algorithm to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Algorithm {
    /// The default of [`JwtOptions`](super::JwtOptions).
    pub const DEFAULT: [Algorithm; 5] =
        [Algorithm::Es256, Algorithm::Es384, Algorithm::Rs256, Algorithm::Ps256, Algorithm::EdDsa];

    const ALL: [Algorithm; 9] = [
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
        Algorithm::Ps256,
        Algorithm::Ps384,
        Algorithm::Ps512,
        Algorithm::EdDsa,
    ];

    /// By the name in a token's header, such as `ES256`; the case matters. `Ed25519` (RFC 9864) is another name of `EdDSA`,
    /// which this server accepts for Ed25519 keys only.
    pub fn parse(name: &str) -> Option<Self> {
        let name = if name == "Ed25519" { "EdDSA" } else { name };
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The name in a token's header.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::Ps384 => "PS384",
            Algorithm::Ps512 => "PS512",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    pub(super) fn family(self) -> Family {
        match self {
            Algorithm::Es256 => Family::P256,
            Algorithm::Es384 => Family::P384,
            Algorithm::EdDsa => Family::Ed25519,
            Algorithm::Rs256
            | Algorithm::Rs384
            | Algorithm::Rs512
            | Algorithm::Ps256
            | Algorithm::Ps384
            | Algorithm::Ps512 => Family::Rsa,
        }
    }

    pub(super) fn in_crate(self) -> jsonwebtoken::Algorithm {
        match self {
            Algorithm::Es256 => jsonwebtoken::Algorithm::ES256,
            Algorithm::Es384 => jsonwebtoken::Algorithm::ES384,
            Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
            Algorithm::Rs384 => jsonwebtoken::Algorithm::RS384,
            Algorithm::Rs512 => jsonwebtoken::Algorithm::RS512,
            Algorithm::Ps256 => jsonwebtoken::Algorithm::PS256,
            Algorithm::Ps384 => jsonwebtoken::Algorithm::PS384,
            Algorithm::Ps512 => jsonwebtoken::Algorithm::PS512,
            Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
