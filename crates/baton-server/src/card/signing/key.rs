//! A private key that signs cards.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::signature::jws::Algorithm;
use baton_protocol::signature::pem;
use serde::Deserialize;

use crate::jwk::PublicKey;

/// A private key for ES256 (P-256) or EdDSA (Ed25519). Only its public part is ever shown.
#[derive(Clone)]
pub struct SigningKey(Arc<Inner>);

struct Inner {
    pair: Pair,
    public: PublicKey,
}

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a text is no key for signing cards. It never repeats any of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadSigningKey {
    /// Neither PEM nor a JSON Web Key.
    #[error("expected a private key in PEM (PKCS #8 or SEC 1) or a JSON Web Key with its private member `d`")]
    Form,
    /// A kind of key that cards are not signed with, or one that is damaged.
    #[error(
        "this key cannot sign cards: make one of P-256 (`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`) or Ed25519 (`openssl genpkey -algorithm ed25519`)"
    )]
    Kind,
    /// The key needs a password.
    #[error("the key is encrypted: decrypt it with `openssl pkey`")]
    Encrypted,
    /// It is a public key.
    #[error("this is a public key: cards are signed with the private one")]
    Public,
    /// The id is empty.
    #[error("the id of the key is empty")]
    NoId,
    /// Not a set of public keys with ids.
    #[error("expected a JSON Web Key Set, {{\"keys\":[…]}}, of public keys that have a `kid`")]
    NoKeySet,
    /// Two different keys have one id.
    #[error(
        "two different keys have the same `kid`: a client could not tell which of them has signed a card"
    )]
    SameId,
}

#[derive(Deserialize)]
struct PrivateTwin {
    kty: String,
    crv: String,
    x: String,
    y: Option<String>,
    d: Option<String>,
    kid: Option<String>,
}

impl SigningKey {
    /// Reads a key in PEM or as a JSON Web Key. The id, by which clients find the public key, is the given one, else the
    /// key's own `kid`, else its thumbprint (RFC 7638).
    pub fn read(text: &str, id: Option<&str>) -> Result<Self, BadSigningKey> {
        let (pair, own_id) = if text.trim_start().starts_with('{') {
            let twin: PrivateTwin = serde_json::from_str(text).map_err(|_| BadSigningKey::Form)?;
            (Pair::of_jwk(&twin)?, twin.kid)
        } else {
            (Pair::of_pem(text)?, None)
        };
        let mut public = match &pair {
            Pair::P256(pair) => PublicKey::p256(pair),
            Pair::Ed25519(pair) => PublicKey::ed25519(pair),
        };
        if let Some(id) = id.map(str::to_owned).or(own_id) {
            public.kid = id;
        }
        if public.kid.is_empty() {
            return Err(BadSigningKey::NoId);
        }
        Ok(SigningKey(Arc::new(Inner { pair, public })))
    }

    /// The id that signatures name.
    pub fn id(&self) -> &str {
        &self.0.public.kid
    }

    /// `ES256` or `EdDSA`.
    pub fn algorithm(&self) -> Algorithm {
        match self.0.pair {
            Pair::P256(_) => Algorithm::Es256,
            Pair::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// The public key as a JSON Web Key.
    pub fn public_key(&self) -> String {
        self.0.public.to_json()
    }

    /// For ES256 `r` and `s`, of 32 bytes each, as JWS has it. `None` if the system gives no random numbers.
    pub(super) fn sign_bytes(&self, message: &[u8]) -> Option<Vec<u8>> {
        Some(match &self.0.pair {
            Pair::P256(pair) => pair.sign(&SystemRandom::new(), message).ok()?.as_ref().to_vec(),
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.0.public.kid).finish_non_exhaustive()
    }
}

impl Pair {
    fn of_pem(text: &str) -> Result<Self, BadSigningKey> {
        // `openssl ecparam -genkey` writes the parameters first.
        let parameters = "-----END EC PARAMETERS-----";
        let text = text.split_once(parameters).map_or(text, |(_, rest)| rest);
        let (kind, der) = pem::first_block(text).ok_or(BadSigningKey::Form)?;
        match kind {
            "PRIVATE KEY" => {
                let p256 = || EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der);
                let ed25519 = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map(Pair::ed25519);
                ed25519.or_else(|_| p256().map(Pair::p256)).map_err(|_| BadSigningKey::Kind)
            }
            "EC PRIVATE KEY" => {
                let read = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der);
                read.map(Pair::p256).map_err(|_| BadSigningKey::Kind)
            }
            "ENCRYPTED PRIVATE KEY" => Err(BadSigningKey::Encrypted),
            "PUBLIC KEY" => Err(BadSigningKey::Public),
            "RSA PRIVATE KEY" => Err(BadSigningKey::Kind),
            _ => Err(BadSigningKey::Form),
        }
    }

    fn of_jwk(twin: &PrivateTwin) -> Result<Self, BadSigningKey> {
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| BadSigningKey::Form);
        let d = bytes(twin.d.as_deref().ok_or(BadSigningKey::Public)?)?;
        let x = bytes(&twin.x)?;
        let read = match (twin.kty.as_str(), twin.crv.as_str(), &twin.y) {
            ("EC", "P-256", Some(y)) => {
                let point = [&[4][..], &x, &bytes(y)?].concat();
                let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
                EcdsaKeyPair::from_private_key_and_public_key(algorithm, &d, &point).map(Pair::p256)
            }
            ("OKP", "Ed25519", _) => Ed25519KeyPair::from_seed_and_public_key(&d, &x).map(Pair::ed25519),
            _ => return Err(BadSigningKey::Kind),
        };
        read.map_err(|_| BadSigningKey::Kind)
    }

    fn p256(pair: EcdsaKeyPair) -> Self {
        Pair::P256(pair)
    }

    fn ed25519(pair: Ed25519KeyPair) -> Self {
        Pair::Ed25519(pair)
    }
}
