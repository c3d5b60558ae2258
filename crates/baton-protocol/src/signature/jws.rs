//! Signatures of agent cards: what is signed, and what a signature says about itself (section 8.4 of the specification).
//!
//! No cryptography in here: whoever has keys checks [`CardSignature`]s with them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::jcs::{Numbers, write_canonical};
use crate::domain::{AgentCard, CardSignature, JsonText};
use crate::wire::v1;

/// What the signatures of a card cover: the 1.0 card without them, in canonical form. Members that 1.0 does not know are
/// not part of it, so that a card that also serves older readers has the same payload.
pub fn card_payload(card: &AgentCard) -> Vec<u8> {
    let mut bare = card.clone();
    bare.signatures.clear();
    let mut json = Vec::new();
    v1::write_card(&mut json, &bare);
    let text = std::str::from_utf8(&json).ok().and_then(|text| JsonText::parse(text).ok());
    let mut out = Vec::with_capacity(json.len());
    write_canonical(&mut out, &text.expect("the codec writes JSON"), Numbers::Doubles);
    out
}

/// What is signed for one signature: its protected header and the payload, both encoded (RFC 7515, section 5.1).
pub fn signing_input(protected: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = protected.as_bytes().to_vec();
    out.push(b'.');
    out.extend_from_slice(URL_SAFE_NO_PAD.encode(payload).as_bytes());
    out
}

/// The algorithms that are accepted. `none` and those with a shared secret are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
}

impl Algorithm {
    pub fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Es256, Self::EdDsa, Self::Rs256].into_iter().find(|it| it.name() == name)
    }
}

/// A signature whose header could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSignature {
    pub algorithm: Algorithm,
    /// Names the key.
    pub key_id: String,
    /// Where the key is said to be. Whoever fetches it must have a list of servers that may be asked.
    pub key_url: Option<String>,
    pub signature: Vec<u8>,
}

/// Why a signature cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSignature {
    #[error("its protected header cannot be read")]
    Header,
    #[error("its algorithm {0:?} is not accepted")]
    Algorithm(String),
    #[error("it names no key")]
    NoKey,
    #[error("its header demands an extension of JWS")]
    Critical,
    #[error("it is not base64url")]
    Encoding,
}

#[derive(Deserialize)]
struct HeaderTwin {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    jku: Option<String>,
    #[serde(default)]
    crit: Option<serde::de::IgnoredAny>,
}

/// Reads the header of a signature. Only the protected one counts: anybody may change the other.
pub fn read_signature(signature: &CardSignature) -> Result<ReadSignature, BadSignature> {
    let header = URL_SAFE_NO_PAD.decode(&signature.protected).map_err(|_| BadSignature::Header)?;
    // Duplicate members are refused: readers disagree about which of them counts.
    let text = std::str::from_utf8(&header).ok().and_then(|text| JsonText::parse(text).ok());
    let text = text.ok_or(BadSignature::Header)?;
    let header: HeaderTwin = serde_json::from_str(text.as_str()).map_err(|_| BadSignature::Header)?;
    if header.crit.is_some() {
        return Err(BadSignature::Critical);
    }
    let algorithm = Algorithm::parse(&header.alg)
        .ok_or_else(|| BadSignature::Algorithm(header.alg.chars().take(32).collect()))?;
    Ok(ReadSignature {
        algorithm,
        key_id: header.kid.filter(|id| !id.is_empty()).ok_or(BadSignature::NoKey)?,
        key_url: header.jku,
        signature: URL_SAFE_NO_PAD.decode(&signature.signature).map_err(|_| BadSignature::Encoding)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(header: &str) -> CardSignature {
        CardSignature {
            protected: URL_SAFE_NO_PAD.encode(header),
            signature: URL_SAFE_NO_PAD.encode("s"),
            header: None,
        }
    }

    #[test]
    fn p09_headers_are_read_strictly() {
        let read = |header: &str| read_signature(&signature(header));
        let good = read(r#"{"alg":"ES256","kid":"k","typ":"JOSE","jku":"https://a/keys"}"#).unwrap();
        assert_eq!((good.algorithm, good.key_id.as_str()), (Algorithm::Es256, "k"));
        assert_eq!(good.key_url.as_deref(), Some("https://a/keys"));
        for (header, expected) in [
            (r#"{"alg":"none","kid":"k"}"#, BadSignature::Algorithm("none".to_owned())),
            (r#"{"alg":"HS256","kid":"k"}"#, BadSignature::Algorithm("HS256".to_owned())),
            (r#"{"alg":"es256","kid":"k"}"#, BadSignature::Algorithm("es256".to_owned())),
            (r#"{"alg":"ES256"}"#, BadSignature::NoKey),
            (r#"{"alg":"ES256","kid":""}"#, BadSignature::NoKey),
            (r#"{"kid":"k"}"#, BadSignature::Header),
            (r#"{"alg":"ES256","alg":"none","kid":"k"}"#, BadSignature::Header),
            (r#"{"alg":"ES256","kid":"k","b64":false,"crit":["b64"]}"#, BadSignature::Critical),
            ("hello", BadSignature::Header),
        ] {
            assert_eq!(read(header), Err(expected), "{header}");
        }
        let mut padded = signature(r#"{"alg":"ES256","kid":"k"}"#);
        padded.signature = "cw==".to_owned();
        assert_eq!(read_signature(&padded), Err(BadSignature::Encoding));
    }

    /// Members of other generations, order, white space and the signatures themselves make no difference; a false that was
    /// stated does.
    #[test]
    fn p09_the_payload_is_the_card_of_1_0() {
        let read = |text: &str| crate::wire::card::read_any(text).unwrap().1;
        let one = r#"{"name":"é","description":"","version":"1","supportedInterfaces":[],"capabilities":{"streaming":false},
            "defaultInputModes":[],"defaultOutputModes":[],"skills":[],"signatures":[{"protected":"p","signature":"s"}]}"#;
        let other = r#"{"skills":[], "version":"1","protocolVersion":"0.3","url":"http://h","description":"","name":"\u00e9",
            "capabilities":{"streaming":false},"supportedInterfaces":[],"defaultOutputModes":[],"defaultInputModes":[]}"#;
        let expected = r#"{"capabilities":{"streaming":false},"defaultInputModes":[],"defaultOutputModes":[],"description":"","name":"é","skills":[],"supportedInterfaces":[],"version":"1"}"#;
        for card in [one, other] {
            assert_eq!(String::from_utf8(card_payload(&read(card))).unwrap(), expected);
        }
        let absent = read(&one.replace(r#""streaming":false"#, ""));
        assert_ne!(card_payload(&absent), expected.as_bytes());
    }
}
