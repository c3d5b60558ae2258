//! A signature of a card as JWS has it: its protected header, and the bytes that are signed (RFC 7515, and section 8.4 of the
//! A2A specification). [`card`](super::card) says which payload that is.
//!
//! No cryptography in here: whoever has keys makes and checks [`CardSignature`]s with them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::domain::{CardSignature, JsonObject, JsonText};

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

#[derive(Serialize)]
struct NewHeader<'a> {
    alg: &'static str,
    kid: &'a str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    jku: Option<&'a str>,
}

/// The protected header of a new signature, encoded. `key_url` is where the public key is published.
pub fn protected_header(algorithm: Algorithm, key_id: &str, key_url: Option<&str>) -> String {
    let header = NewHeader { alg: algorithm.name(), kid: key_id, typ: "JOSE", jku: key_url };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&header).expect("strings into memory cannot fail"))
}

/// The signature for a card, of its header and the bytes that the key made.
pub fn card_signature(protected: String, signature: &[u8]) -> CardSignature {
    CardSignature { protected, signature: URL_SAFE_NO_PAD.encode(signature), header: None }
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
    /// RFC 7515, section 5.2 and 4.1.11.
    #[error("its unprotected header has {0:?}, which is in the protected one or belongs there")]
    Unprotected(String),
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

/// Reads the header of a signature. Only the protected one counts: anybody may change the other, which must not have a member
/// of the same name.
pub fn read_signature(signature: &CardSignature) -> Result<ReadSignature, BadSignature> {
    let header = URL_SAFE_NO_PAD.decode(&signature.protected).map_err(|_| BadSignature::Header)?;
    // Duplicate members are refused: readers disagree about which of them counts.
    let text = std::str::from_utf8(&header).ok().and_then(|text| JsonText::parse(text).ok());
    let text = text.ok_or(BadSignature::Header)?;
    let text = JsonObject::try_from(text).map_err(|_| BadSignature::Header)?;
    let header: HeaderTwin = serde_json::from_str(text.as_str()).map_err(|_| BadSignature::Header)?;
    let unprotected = signature.header.iter().flat_map(JsonObject::members);
    for (name, _) in unprotected {
        if name == "crit" || text.members().any(|(protected, _)| protected == name) {
            return Err(BadSignature::Unprotected(name.chars().take(32).collect()));
        }
    }
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
        // RFC 7515: what is protected is not also unprotected, and `crit` never is.
        for (header, refused) in [
            (r#"{"kid":"k"}"#, Some("kid")),
            (r#"{"x":1,"alg":"none"}"#, Some("alg")),
            (r#"{"\u006bid":"k"}"#, Some("kid")),
            (r#"{"typ":"JOSE"}"#, Some("typ")),
            (r#"{"crit":["x"],"x":1}"#, Some("crit")),
            (r#"{"x":{"kid":"other"},"jku":"https://a/keys"}"#, None),
        ] {
            let mut two = signature(r#"{"alg":"ES256","kid":"k","typ":"JOSE"}"#);
            two.header = Some(JsonObject::parse(header).unwrap());
            let expected = refused.map(|name| BadSignature::Unprotected(name.to_owned()));
            assert_eq!(read_signature(&two).err(), expected, "{header}");
        }
        let mut padded = signature(r#"{"alg":"ES256","kid":"k"}"#);
        padded.signature = "cw==".to_owned();
        assert_eq!(read_signature(&padded), Err(BadSignature::Encoding));
    }

    #[test]
    fn p09_a_new_header_can_be_read() {
        for key_url in [None, Some("https://a.example/keys")] {
            let protected = protected_header(Algorithm::EdDsa, "k \"1\"", key_url);
            let read = read_signature(&card_signature(protected, b"s")).unwrap();
            assert_eq!((read.algorithm, read.key_id.as_str()), (Algorithm::EdDsa, "k \"1\""));
            assert_eq!((read.key_url.as_deref(), &read.signature[..]), (key_url, &b"s"[..]));
        }
        let header = protected_header(Algorithm::Es256, "k", None);
        assert_eq!(URL_SAFE_NO_PAD.decode(header).unwrap(), br#"{"alg":"ES256","kid":"k","typ":"JOSE"}"#);
    }
}
