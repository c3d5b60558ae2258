//! Checks the signatures of a card with keys that the user trusts.
//!
//! A signature proves something only if its key is trusted for another reason than the card itself: the user gives keys, or
//! names servers whose key sets may be fetched. A card's own word for where its key is (`jku`) is followed to these servers
//! and to no other.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::domain::CardSignature;
use baton_protocol::signature::card::{CardDocument, CardForm, Payload};
use baton_protocol::signature::jws::{Algorithm, ReadSignature, read_signature, signing_input};
use baton_protocol::signature::pem;
use reqwest::Url;
use serde::Deserialize;

use crate::credentials::oauth::Caller;
use crate::discover::Discovered;
use crate::error::Error;
use crate::http::Request;
use crate::origin::Origin;

/// What the signatures of a card are worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CardTrust {
    /// The card has none.
    Absent,
    /// One of them is good.
    Verified {
        /// The key's id.
        key_id: String,
        /// `ES256`, `EdDSA` or `RS256`.
        algorithm: &'static str,
        /// What the signature covers.
        form: CardForm,
        /// Members of the document that it does not cover beside that, such as `url`: those of 0.3, and others that 1.0 does not
        /// know. Whoever uses one takes it from anybody's hands. This crate never uses them of a card that it verifies in this
        /// form.
        uncovered: Vec<String>,
    },
    /// None of them could be verified.
    Unverifiable {
        /// Why, one for each signature.
        reasons: Vec<String>,
    },
}

/// Keys that the user trusts to sign cards.
#[derive(Debug, Clone, Default)]
pub struct CardKeys {
    keys: Vec<Key>,
    servers: Vec<Origin>,
    every_member: bool,
}

/// A public key of a key set.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    id: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
}

#[derive(Deserialize)]
struct KeySetTwin {
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct KeyTwin {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

/// More signatures than these on a card are not looked at.
const MOST_SIGNATURES: usize = 16;

/// Members that a reason names.
const MOST_NAMED: usize = 8;

/// A signature that is good.
struct Good {
    read: ReadSignature,
    form: CardForm,
    by: Material,
}

/// One that is not.
struct Bad {
    reason: String,
    /// The keys with which it is wrong.
    by: Vec<Material>,
}

impl From<String> for Bad {
    fn from(reason: String) -> Self {
        Bad { reason, by: Vec::new() }
    }
}

impl CardKeys {
    /// Adds one key: a public key in PEM (P-256 or Ed25519), or a JSON Web Key (RFC 7517). If it has no id, it verifies
    /// signatures whatever key they name.
    pub fn add_key(mut self, text: &str) -> Result<Self, Error> {
        let key = match text.trim_start().starts_with('{') {
            true => serde_json::from_str(text).ok().and_then(Key::read),
            false => Key::read_pem(text),
        };
        let wanted = "expected a public key in PEM or a JSON Web Key, of P-256 (ES256), Ed25519 (EdDSA) or RSA (RS256, not in PEM)";
        self.keys.push(key.ok_or_else(|| Error::Invalid(wanted.to_owned()))?);
        Ok(self)
    }

    /// Adds the keys of a JSON Web Key Set (RFC 7517). Keys for other purposes and of other kinds are left out.
    pub fn add_key_set(mut self, json: &str) -> Result<Self, Error> {
        self.keys.extend(read_key_set(json).map_err(Error::Invalid)?);
        Ok(self)
    }

    /// Key sets may be fetched from this origin, if a signature names an address there.
    pub fn trust_key_server(mut self, origin: Origin) -> Self {
        self.servers.push(origin);
        self
    }

    /// A signature has to cover every member of the document, also empty ones and those of 0.3: one over
    /// [`CardForm::WithoutEmpty`] does not count, and one over [`CardForm::V1`] only if the document says nothing beside it.
    /// Whoever changes a card could add or take away what a signature leaves out, such as a requirement without scopes.
    pub fn require_every_member(mut self) -> Self {
        self.every_member = true;
        self
    }

    pub(crate) async fn check(&self, discovered: &Discovered, caller: &Caller) -> CardTrust {
        let signatures = &discovered.card.signatures;
        if signatures.is_empty() {
            return CardTrust::Absent;
        }
        let unverifiable = |reason: String| CardTrust::Unverifiable { reasons: vec![reason] };
        let document = match CardDocument::read(&discovered.json) {
            Ok(document) => document,
            Err(error) => return unverifiable(error.to_string()),
        };
        // The text is what is verified, so the card has to be what it says.
        if document.card != discovered.card {
            return unverifiable("the card was changed after it was read".to_owned());
        }
        let payloads = document.payloads();
        let (mut reasons, mut lesser, mut wrong_by) = (Vec::new(), Vec::new(), Vec::new());
        for signature in signatures.iter().take(MOST_SIGNATURES) {
            let good = match self.check_one(signature, &payloads, caller).await {
                Ok(good) => good,
                Err(Bad { reason, by }) => {
                    reasons.push(reason);
                    wrong_by.extend(by);
                    continue;
                }
            };
            let uncovered = document.uncovered_by(good.form);
            if good.form != CardForm::WithoutEmpty && uncovered.is_empty() {
                return good.trust(uncovered);
            }
            // Another one may cover more.
            lesser.push((good, uncovered));
        }
        if let Some(more) = signatures.len().checked_sub(MOST_SIGNATURES).filter(|more| *more > 0) {
            reasons
                .push(format!("{more} more signatures were not looked at, only the first {MOST_SIGNATURES}"));
        }
        lesser.sort_by_key(|(good, _)| good.form == CardForm::WithoutEmpty);
        for (good, uncovered) in lesser {
            let left_out = good.left_out(&uncovered);
            // Its owner signs all forms at once: what the other one covers was changed.
            if wrong_by.contains(&good.by) {
                reasons.push(format!("{left_out}, and another with the same key is wrong"));
            } else if self.every_member {
                reasons.push(left_out);
            } else {
                return good.trust(uncovered);
            }
        }
        CardTrust::Unverifiable { reasons }
    }

    async fn check_one(
        &self,
        signature: &CardSignature,
        payloads: &[Payload],
        caller: &Caller,
    ) -> Result<Good, Bad> {
        let read = read_signature(signature).map_err(|error| error.to_string())?;
        let mut keys: Vec<&Key> = self.keys.iter().filter(|key| key.fits(&read)).collect();
        let fetched = match &read.key_url {
            Some(url) if keys.is_empty() => self.fetch(url, caller).await?,
            _ => Vec::new(),
        };
        keys.extend(fetched.iter().filter(|key| key.fits(&read)));
        if keys.is_empty() {
            return Err(Bad::from(format!(
                "no trusted key has the id {:?} and fits {}",
                read.key_id,
                read.algorithm.name()
            )));
        }
        for Payload { form, bytes } in payloads {
            let input = signing_input(&signature.protected, bytes);
            if let Some(key) = keys.iter().find(|key| key.verifies(&input, &read.signature)) {
                return Ok(Good { by: key.material.clone(), read, form: *form });
            }
        }
        let reason = format!("the signature with key {:?} is wrong", read.key_id);
        Err(Bad { reason, by: keys.into_iter().map(|key| key.material.clone()).collect() })
    }

    async fn fetch(&self, url: &str, caller: &Caller) -> Result<Vec<Key>, String> {
        let parsed = Url::parse(url).map_err(|error| format!("its key address cannot be read: {error}"))?;
        let origin = Origin::of(&parsed).ok_or("its key address is not http or https")?;
        if !self.servers.contains(&origin) {
            return Err(format!("its key is at {origin}, which is not a trusted key server"));
        }
        if !origin.is_secure() && !origin.is_loopback() {
            return Err("its key address is not encrypted".to_owned());
        }
        let request = Request::get(parsed, caller.timeouts.call, caller.timeouts.idle);
        let mut answer = caller.http.send(request).await.map_err(|error| error.to_string())?;
        if answer.status() != 200 {
            return Err(format!("its key address answered {}", answer.status()));
        }
        let text = answer.text(caller.limits.token).await.map_err(|error| error.to_string())?;
        read_key_set(&text)
    }
}

impl Good {
    fn trust(self, uncovered: Vec<String>) -> CardTrust {
        let Good { read, form, .. } = self;
        CardTrust::Verified { key_id: read.key_id, algorithm: read.algorithm.name(), form, uncovered }
    }

    fn left_out(&self, uncovered: &[String]) -> String {
        let empty =
            if self.form == CardForm::WithoutEmpty { &["what is empty on the card"][..] } else { &[] };
        let all: Vec<_> =
            empty.iter().copied().chain(uncovered.iter().map(String::as_str)).take(MOST_NAMED).collect();
        format!("the signature with key {:?} does not cover {}", self.read.key_id, all.join(", "))
    }
}

/// Keys for other purposes and of other kinds are left out.
pub(crate) fn read_key_set(json: &str) -> Result<Vec<Key>, String> {
    let set: KeySetTwin =
        serde_json::from_str(json).map_err(|error| format!("the key set cannot be read: {error}"))?;
    Ok(set.keys.into_iter().filter_map(|key| Key::read(serde_json::from_value(key).ok()?)).collect())
}

impl Key {
    fn read(twin: KeyTwin) -> Option<Self> {
        let is_for_verifying = |operations: Vec<String>| operations.iter().any(|it| it == "verify");
        if twin.usage.is_some_and(|usage| usage != "sig") || !twin.key_ops.is_none_or(is_for_verifying) {
            return None;
        }
        let bytes = |text: Option<String>| URL_SAFE_NO_PAD.decode(text?).ok();
        let material = match (twin.kty.as_str(), twin.crv.as_deref()) {
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(twin.x)?, bytes(twin.y)?);
                // An uncompressed point.
                Material::P256([&[4][..], &x, &y].concat())
            }
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes(twin.x)?),
            ("RSA", _) => Material::Rsa { n: bytes(twin.n)?, e: bytes(twin.e)? },
            _ => return None,
        };
        let key = Key { id: twin.kid, material };
        twin.alg.is_none_or(|alg| alg == key.algorithm().name()).then_some(key)
    }

    /// The key decides the algorithm; a header that says otherwise does not fit.
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self.material {
            Material::P256(_) => Algorithm::Es256,
            Material::Ed25519(_) => Algorithm::EdDsa,
            Material::Rsa { .. } => Algorithm::Rs256,
        }
    }

    /// The `SubjectPublicKeyInfo` of a key: its algorithm, which is always the same bytes, and the key itself.
    fn read_pem(text: &str) -> Option<Self> {
        const P256: &[u8] = &[
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
            0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ];
        const ED25519: &[u8] = &[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        let (kind, der) = pem::first_block(text)?;
        if kind != "PUBLIC KEY" {
            return None;
        }
        let material = match (der.strip_prefix(P256), der.strip_prefix(ED25519)) {
            (Some(point), _) if point.len() == 65 => Material::P256(point.to_vec()),
            (_, Some(key)) if key.len() == 32 => Material::Ed25519(key.to_vec()),
            _ => return None,
        };
        Some(Key { id: None, material })
    }

    /// A key without an id is a key that the user gave for this card.
    fn fits(&self, signature: &ReadSignature) -> bool {
        self.algorithm() == signature.algorithm && self.id.as_ref().is_none_or(|id| *id == signature.key_id)
    }

    /// Whether it has this name and is for this algorithm.
    pub(crate) fn is(&self, id: &str, algorithm: Algorithm) -> bool {
        self.id.as_deref() == Some(id) && self.algorithm() == algorithm
    }

    pub(crate) fn verifies(&self, input: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(input, signature).is_ok()
            }
            Material::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(input, signature).is_ok(),
            Material::Rsa { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, input, signature).is_ok()
            }
        }
    }
}
