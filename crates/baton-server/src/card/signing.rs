//! Signs cards: the specification's form of a document, and the other forms in which it is read (section 8.4).
//!
//! A signature says that the addresses on a card are its author's. So cards are signed only on a server whose address is
//! configured: it could also come from the headers of a request, and then whoever sends one would choose what is signed.

mod key;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use baton_protocol::domain::{AgentCard, CardSignature, JsonText};
use baton_protocol::signature::card::CardDocument;
use baton_protocol::signature::jws::{card_signature, protected_header, signing_input};
use baton_protocol::wire::v1;
use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::key::{BadSigningKey, SigningKey};
use crate::public_url::PublicUrl;
use crate::server::StartError;
use crate::site::PUBLIC_KEYS_PATH;

/// The random numbers that a signature needs could not be had.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the card could not be signed: the system gives no random numbers")]
pub struct NotSigned;

impl SigningKey {
    /// Signatures for a document, one for each form in which it can be read. `key_url` is where clients find the public key;
    /// they fetch it only from servers that they trust.
    pub fn sign(
        &self,
        document: &CardDocument,
        key_url: Option<&str>,
    ) -> Result<Vec<CardSignature>, NotSigned> {
        let protected = protected_header(self.algorithm(), self.id(), key_url);
        let one = |payload: &[u8]| {
            let signature = self.sign_bytes(&signing_input(&protected, payload)).ok_or(NotSigned)?;
            Ok(card_signature(protected.clone(), &signature))
        };
        document.payloads().iter().map(|payload| one(&payload.bytes)).collect()
    }
}

/// How a server signs its cards.
#[derive(Debug, Clone)]
#[must_use]
pub struct CardSigning {
    key: SigningKey,
    /// Other public keys, as JSON.
    published: Vec<String>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Map<String, Value>>,
}

/// The members that are published of a key; others may be private.
const PUBLIC_MEMBERS: &[&str] = &["kty", "crv", "x", "y", "n", "e", "kid", "alg", "use"];

impl CardSigning {
    /// Cards are signed with this key, and it is published at `/.well-known/jwks.json`.
    pub fn new(key: SigningKey) -> Self {
        CardSigning { key, published: Vec::new() }
    }

    /// Publishes these keys, too: a JSON Web Key Set. While a key takes the place of another, clients may have cards that the
    /// earlier one has signed.
    pub fn publish(mut self, key_set: &str) -> Result<Self, BadSigningKey> {
        // Refuses members that are there twice: readers disagree about which of them counts.
        let text = JsonText::parse(key_set).map_err(|_| BadSigningKey::NoKeySet)?;
        let set: KeySet = serde_json::from_str(text.as_str()).map_err(|_| BadSigningKey::NoKeySet)?;
        for mut key in set.keys {
            // A shared secret has no public part.
            let is_public = key.get("kty").and_then(Value::as_str).is_some_and(|kind| kind != "oct");
            let id = key.get("kid").and_then(Value::as_str).filter(|_| is_public);
            let id = id.ok_or(BadSigningKey::NoKeySet)?;
            match self.public_keys().find(|known| member(known, "kid").as_deref() == Some(id)) {
                Some(known) if is_same_key(&known, &key) => continue,
                Some(_) => return Err(BadSigningKey::SameId),
                None => {}
            }
            key.retain(|name, _| PUBLIC_MEMBERS.contains(&name.as_str()));
            // Some libraries refuse a key that does not say it.
            let algorithm = match key.get("crv").and_then(Value::as_str) {
                Some("P-256") => Some("ES256"),
                Some("Ed25519") => Some("EdDSA"),
                _ => None,
            };
            if let (Some(algorithm), false) = (algorithm, key.contains_key("alg")) {
                key.insert("alg".to_owned(), algorithm.into());
            }
            self.published.push(Value::Object(key).to_string());
        }
        Ok(self)
    }

    /// Whether both sign with the same key, and publish the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.public_keys().eq(other.public_keys())
    }

    fn public_keys(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.key.public_key()).chain(self.published.iter().cloned())
    }
}

/// A member of a key that is a text.
fn member(key: &str, name: &str) -> Option<String> {
    let key: Map<String, Value> = serde_json::from_str(key).ok()?;
    Some(key.get(name)?.as_str()?.to_owned())
}

fn is_same_key(known: &str, other: &Map<String, Value>) -> bool {
    let of_other = |name| other.get(name).and_then(Value::as_str).map(str::to_owned);
    ["kty", "crv", "x", "y", "n", "e"].iter().all(|name| member(known, name) == of_other(*name))
}

/// Signs the cards of a server.
pub(crate) struct Signer {
    signing: CardSigning,
    key_url: String,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("key", &self.signing.key).finish_non_exhaustive()
    }
}

impl Signer {
    /// `Err` without a public URL: whoever sends a request would choose the addresses that are signed.
    pub(crate) fn new(signing: CardSigning, public_url: Option<&PublicUrl>) -> Result<Arc<Self>, StartError> {
        let Some(public_url) = public_url else {
            let text = "signed cards need a public URL, since otherwise the addresses on them come from requests; set it \
                        to the address that clients use";
            return Err(StartError::Signing(text.to_owned()));
        };
        let key_url = format!("{}{PUBLIC_KEYS_PATH}", public_url.base());
        Ok(Arc::new(Signer { signing, key_url }))
    }

    pub(crate) fn public_keys(&self) -> impl Iterator<Item = String> {
        self.signing.public_keys()
    }

    /// A document with its signatures. If it cannot be signed, it is served without.
    pub(crate) fn sign(&self, document: Vec<u8>) -> Vec<u8> {
        match self.signed(&document) {
            Ok(signed) => signed.into_bytes(),
            Err(error) => {
                tracing::error!(error, "a card is served without signatures");
                document
            }
        }
    }

    fn signed(&self, document: &[u8]) -> Result<String, String> {
        let text = std::str::from_utf8(document).map_err(|error| error.to_string())?;
        let document = CardDocument::read(text).map_err(|error| error.to_string())?;
        let signatures = self.signing.key.sign(&document, Some(&self.key_url));
        Ok(document.with_signatures(&signatures.map_err(|error| error.to_string())?))
    }

    /// The card with signatures of its 1.0 form.
    pub(crate) fn sign_v1(&self, mut card: AgentCard) -> AgentCard {
        card.signatures.clear();
        let mut json = Vec::new();
        v1::write_card(&mut json, &card);
        let signed = std::str::from_utf8(&json).ok().and_then(|text| CardDocument::read(text).ok());
        match signed.and_then(|document| self.signing.key.sign(&document, Some(&self.key_url)).ok()) {
            Some(signatures) => card.signatures = signatures,
            None => tracing::error!("an extended card is served without signatures"),
        }
        card
    }
}
