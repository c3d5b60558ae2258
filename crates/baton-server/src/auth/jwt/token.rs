//! A token before its signature is checked: three parts, and a header that says how it is signed.
//!
//! The header is written by whoever sends the token. It may choose among the issuer's keys and the allowed algorithms, and
//! nothing else: `jku`, `x5u`, `jwk` and `x5c`, which bring a key along, are not read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::domain::JsonObject;
use serde_json::{Map, Value};

use super::algorithm::Algorithm;

/// The longest name of a key.
pub(super) const MAX_KID_BYTES: usize = 128;

/// The parts of a token, decoded and not verified.
pub(super) struct Token<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// What is signed.
    pub(super) message: &'a [u8],
    pub(super) signature: Vec<u8>,
}

impl<'a> Token<'a> {
    /// `algorithms` and `types` are the allowed ones.
    pub(super) fn parse(
        text: &'a str,
        algorithms: &[Algorithm],
        types: &[String],
    ) -> Result<Self, &'static str> {
        let mut parts = text.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("not a signed JWT");
        };
        let message = &text.as_bytes()[..header.len() + 1 + claims.len()];
        let header = object(header)?;
        let algorithm = header.get("alg").and_then(Value::as_str).and_then(Algorithm::parse);
        let algorithm = algorithm.filter(|algorithm| algorithms.contains(algorithm));
        let algorithm = algorithm.ok_or("the signature algorithm is not allowed")?;
        check_type(header.get("typ"), types)?;
        // RFC 7515, section 4.1.11: the members listed there must be understood, and none is. RFC 7797 adds `b64`, which
        // changes what is signed and must be listed; without the list it is refused too.
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err("the header has an extension that is not supported");
        }
        let kid = match header.get("kid") {
            None => None,
            Some(Value::String(kid)) if kid.len() <= MAX_KID_BYTES => Some(kid.clone()),
            Some(_) => return Err("the name of the key is not valid"),
        };
        let claims = object(claims)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "not a signed JWT")?;
        Ok(Token { algorithm, kid, claims, message, signature })
    }
}

/// Other kinds of tokens of the same issuer, such as `logout+jwt` and `dpop+jwt`, must not pass for access tokens (RFC
/// 8725, section 3.11). The prefix `application/` may be left out (RFC 7515, section 4.1.9).
fn check_type(typ: Option<&Value>, types: &[String]) -> Result<(), &'static str> {
    let Some(typ) = typ else { return Ok(()) };
    let typ = typ.as_str().unwrap_or_default().to_ascii_lowercase();
    let short = typ.strip_prefix("application/").unwrap_or(&typ);
    let is_allowed = types.iter().any(|allowed| allowed.eq_ignore_ascii_case(short));
    if is_allowed { Ok(()) } else { Err("not an access token by its type") }
}

/// A JSON object in base64url without padding. A member that is there twice is refused: two readers could take different
/// ones.
fn object(part: &str) -> Result<Map<String, Value>, &'static str> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| "not a signed JWT")?;
    let text = std::str::from_utf8(&bytes).map_err(|_| "not a signed JWT")?;
    let object = JsonObject::parse(text).map_err(|_| "a part is not an object with unique members")?;
    serde_json::from_str(object.as_str()).map_err(|_| "a part is not an object with unique members")
}
