//! Public keys that the server publishes, as JSON Web Keys (RFC 7517).

#[cfg(feature = "card-signing")]
use aws_lc_rs::signature::Ed25519KeyPair;
use aws_lc_rs::signature::{EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// The first members, in this order, are those of its thumbprint (RFC 7638).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct PublicKey {
    crv: &'static str,
    kty: &'static str,
    x: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    pub(crate) kid: String,
    alg: &'static str,
    #[serde(rename = "use")]
    usage: &'static str,
}

impl PublicKey {
    /// A key for ES256. Its id is its thumbprint.
    pub(crate) fn p256(pair: &EcdsaKeyPair) -> Self {
        // An uncompressed point: a byte that says so, and two coordinates of 32 bytes.
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        let kid = thumbprint(&format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#));
        PublicKey { crv: "P-256", kty: "EC", x, y: Some(y), kid, alg: "ES256", usage: "sig" }
    }

    /// A key for EdDSA. Its id is its thumbprint.
    #[cfg(feature = "card-signing")]
    pub(crate) fn ed25519(pair: &Ed25519KeyPair) -> Self {
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let kid = thumbprint(&format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#));
        PublicKey { crv: "Ed25519", kty: "OKP", x, y: None, kid, alg: "EdDSA", usage: "sig" }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings into memory cannot fail")
    }
}

fn thumbprint(members: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(members))
}
