//! Key pairs that sign tokens, with any header and any claims, right or wrong.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
    RsaPublicKeyComponents,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) struct Signer {
    pub(crate) kid: &'static str,
    pub(crate) alg: &'static str,
    pair: Pair,
}

enum Pair {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Signer {
    /// With a new key for this algorithm.
    pub(crate) fn new(kid: &'static str, alg: &'static str) -> Self {
        let pair = match alg {
            "ES256" => Pair::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()),
            "ES384" => Pair::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()),
            "RS256" | "RS384" | "PS256" => Pair::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
            "EdDSA" => Pair::Ed(Ed25519KeyPair::generate().unwrap()),
            _ => panic!("no signer for {alg}"),
        };
        Signer { kid, alg, pair }
    }

    /// The public key, with `kid` and without `alg`.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::P256(pair) => point("P-256", pair.public_key().as_ref()),
            Pair::P384(pair) => point("P-384", pair.public_key().as_ref()),
            Pair::Ed(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key())})
            }
            Pair::Rsa(pair) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "n": base64url(public.n), "e": base64url(public.e)})
            }
        };
        jwk["kid"] = json!(self.kid);
        jwk
    }

    /// The public key as DER, which attackers use as a shared secret.
    pub(crate) fn public_der(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
            Pair::P256(pair) | Pair::P384(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Ed(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// A signature by this algorithm, which must be one for this kind of key.
    pub(crate) fn sign(&self, alg: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::P256(pair) | Pair::P384(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let encoding: &'static dyn RsaEncoding = match alg {
                    "RS256" => &RSA_PKCS1_SHA256,
                    "RS384" => &RSA_PKCS1_SHA384,
                    "PS256" => &RSA_PSS_SHA256,
                    _ => panic!("RSA does not sign {alg}"),
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature).unwrap();
                signature
            }
        }
    }

    pub(crate) fn header(&self) -> Value {
        json!({"alg": self.alg, "kid": self.kid, "typ": "at+jwt"})
    }

    /// A token with the usual header.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(&self.header().to_string(), &claims.to_string())
    }

    /// A token with these texts, rightly signed.
    pub(crate) fn token_with(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", base64url(header), base64url(claims));
        let signature = self.sign(self.alg, message.as_bytes());
        format!("{message}.{}", base64url(signature))
    }
}

fn point(curve: &str, bytes: &[u8]) -> Value {
    let (x, y) = bytes[1..].split_at((bytes.len() - 1) / 2);
    json!({"kty": "EC", "crv": curve, "x": base64url(x), "y": base64url(y)})
}
