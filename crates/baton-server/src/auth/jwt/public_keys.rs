//! The public keys of an issuer (JWKS, RFC 7517), and the check of a signature with one of them.

use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::crypto::aws_lc;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::algorithm::{Algorithm, Family};
use super::token::MAX_KID_BYTES;
use crate::auth::CredentialRecord;

/// How many keys are tried for one token. Usually one fits; a few do while an issuer that names no keys replaces one.
const MAX_CANDIDATES: usize = 4;

/// Members that only a private or symmetric key has. Whoever publishes these has no secret left to sign with.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// All keys of an issuer that can verify signatures.
pub(super) struct PublicKeys {
    keys: Vec<Key>,
    by_kid: HashMap<Box<str>, Vec<usize>>,
    /// SHA-256 of the document.
    digest: [u8; 32],
    /// Counts the sets of this issuer that differ from the one before.
    pub(super) version: u64,
}

impl fmt::Debug for PublicKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| (&key.kid, key.family))).finish()
    }
}

/// One public key.
struct Key {
    kid: Option<Box<str>>,
    family: Family,
    /// The only algorithm that the issuer uses it for, if it says so.
    algorithm: Option<Algorithm>,
    decoding: DecodingKey,
    /// Hash of all that matters of the key.
    digest: [u8; 32],
    /// What was verified with the key is valid until this ends: when the issuer has the key no longer.
    record: CredentialRecord,
}

impl PublicKeys {
    /// Keys of other kinds, for other uses or with faults are left out: one of them must not make the others useless.
    pub(super) fn parse(body: &[u8], max_keys: usize) -> Result<Self, &'static str> {
        let document: Value = serde_json::from_slice(body).map_err(|_| "the key set is not JSON")?;
        let keys = document.get("keys").and_then(Value::as_array).ok_or("the key set has no `keys`")?;
        if keys.len() > max_keys {
            return Err("the key set has too many keys");
        }
        let keys: Vec<_> = keys.iter().filter_map(Value::as_object).filter_map(Key::parse).collect();
        let mut by_kid: HashMap<Box<str>, Vec<usize>> = HashMap::new();
        for (at, key) in keys.iter().enumerate() {
            if let Some(kid) = &key.kid {
                by_kid.entry(kid.clone()).or_default().push(at);
            }
        }
        Ok(PublicKeys { keys, by_kid, digest: Sha256::digest(body).into(), version: 0 })
    }

    pub(super) fn same_as(&self, other: &PublicKeys) -> bool {
        self.digest == other.digest
    }

    /// Takes over the records of keys that both have.
    pub(super) fn follow(&mut self, before: &PublicKeys) {
        for key in &mut self.keys {
            if let Some(same) = before.keys.iter().find(|same| same.digest == key.digest) {
                key.record = same.record.clone();
            }
        }
    }

    /// Ends what was verified with keys that are not in `now`.
    pub(super) fn end_unless_in(&self, now: &PublicKeys) {
        let stays = |key: &Key| now.keys.iter().any(|stays| stays.record.is_same(&key.record));
        for key in self.keys.iter().filter(|key| !stays(key)) {
            key.record.end();
        }
    }

    /// Whether any key fits a token with this header.
    pub(super) fn knows(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        self.candidates(kid, algorithm).next().is_some()
    }

    /// The record of the key that has made this signature of `message`. Without a `kid` every key of the right kind fits.
    pub(super) fn verify(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> Result<&CredentialRecord, &'static str> {
        let candidates: Vec<_> = self.candidates(kid, algorithm).take(MAX_CANDIDATES + 1).collect();
        if candidates.len() > MAX_CANDIDATES {
            return Err("the token does not say which key it was signed with");
        }
        let signed = candidates.into_iter().find(|key| key.verify(algorithm, message, signature));
        signed.map(|key| &key.record).ok_or("wrong signature")
    }

    fn candidates<'a>(&'a self, kid: Option<&str>, algorithm: Algorithm) -> impl Iterator<Item = &'a Key> {
        let named = kid.map(|kid| self.by_kid.get(kid).map(Vec::as_slice).unwrap_or_default());
        let unnamed = if named.is_none() { &self.keys[..] } else { &[] };
        let named = named.unwrap_or_default().iter().map(|at| &self.keys[*at]);
        named.chain(unnamed).filter(move |key| key.fits(algorithm))
    }
}

impl Key {
    fn parse(jwk: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let is_public = PRIVATE.iter().all(|name| !jwk.contains_key(*name));
        let is_for_signatures = match jwk.get("use") {
            None => true,
            Some(usage) => usage == "sig",
        };
        let may_verify = match jwk.get("key_ops") {
            None => true,
            Some(operations) => {
                operations.as_array().is_some_and(|list| list.iter().any(|name| name == "verify"))
            }
        };
        if !(is_public && is_for_signatures && may_verify) {
            return None;
        }
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => Some(Algorithm::parse(name.as_str()?)?),
        };
        let kid = match jwk.get("kid") {
            None => None,
            Some(kid) => Some(kid.as_str().filter(|kid| kid.len() <= MAX_KID_BYTES)?.into()),
        };
        let (family, decoding) = match (text("kty")?, text("crv")) {
            ("RSA", _) => {
                let (modulus, exponent) = (decoded(text("n")?)?, decoded(text("e")?)?);
                (Family::Rsa, DecodingKey::from_rsa_raw_components(&modulus, &exponent))
            }
            ("EC", Some("P-256")) => (Family::P256, DecodingKey::from_ec_der(&point(jwk, 32)?)),
            ("EC", Some("P-384")) => (Family::P384, DecodingKey::from_ec_der(&point(jwk, 48)?)),
            ("OKP", Some("Ed25519")) => {
                let x = decoded(text("x")?).filter(|x| x.len() == 32)?;
                (Family::Ed25519, DecodingKey::from_ed_der(&x))
            }
            _ => return None,
        };
        if algorithm.is_some_and(|algorithm| algorithm.family() != family) {
            return None;
        }
        let (digest, record) = (digest(jwk), CredentialRecord::new());
        Some(Key { kid, family, algorithm, decoding, digest, record })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.family == algorithm.family() && self.algorithm.is_none_or(|only| only == algorithm)
    }

    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &Vec<u8>) -> bool {
        // Named here instead of the crate's default, which is chosen for the whole process and panics if another library
        // in the program switches on a second one.
        let verifier = (aws_lc::DEFAULT_PROVIDER.verifier_factory)(&algorithm.in_crate(), &self.decoding);
        verifier.is_ok_and(|verifier| verifier.verify(message, signature).is_ok())
    }
}

/// Hash of the members that say which key it is and what it is for.
fn digest(jwk: &Map<String, Value>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for name in ["kid", "kty", "crv", "alg", "n", "e", "x", "y"] {
        let text = jwk.get(name).and_then(Value::as_str).unwrap_or_default();
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

/// An uncompressed point; both coordinates have the full length.
fn point(jwk: &Map<String, Value>, bytes: usize) -> Option<Vec<u8>> {
    let coordinate = |name: &str| {
        jwk.get(name).and_then(Value::as_str).and_then(decoded).filter(|decoded| decoded.len() == bytes)
    };
    Some([&[4][..], &coordinate("x")?, &coordinate("y")?].concat())
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}
