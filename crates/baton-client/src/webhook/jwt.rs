//! The JWT of a call (RFC 7519): signed with a key of the agent, for one event, one body and one receiver.
//!
//! Its header is written by whoever makes the call. It may choose among the agent's keys, and nothing else.

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_protocol::domain::JsonObject;
use baton_protocol::signature::jws::Algorithm;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::error::BadJwt;
use super::one;
use crate::signature::Key;

/// How far the clocks of agent and receiver may be apart.
pub(super) const LEEWAY: Duration = Duration::from_secs(60);

/// Longest JWT that is looked at, in bytes.
const MAX_BYTES: usize = 8192;

/// Members of the header with which a JWT brings its key along, or says where it is.
const OWN_KEY: [&str; 4] = ["jku", "jwk", "x5u", "x5c"];

/// What a JWT has to be for.
#[derive(Debug)]
pub(super) struct SignedCall<'a> {
    /// `webhook-id`.
    pub(super) id: Option<&'a str>,
    pub(super) body: &'a [u8],
    /// Names of the receiver; if there are none, any will do.
    pub(super) audiences: &'a [String],
}

/// A JWT whose signature was not checked yet.
#[derive(Debug)]
pub(super) struct Jwt<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: String,
    claims: Map<String, Value>,
    /// What is signed.
    message: &'a [u8],
    signature: Vec<u8>,
}

impl<'a> Jwt<'a> {
    /// Reads the JWT of a call.
    pub(super) fn read(headers: &'a HeaderMap) -> Result<Self, BadJwt> {
        let value = one(headers, AUTHORIZATION.as_str()).ok_or(BadJwt::Missing)?;
        let (scheme, token) = value.split_once(' ').ok_or(BadJwt::Missing)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(BadJwt::Missing);
        }
        Self::parse(token)
    }

    fn parse(token: &'a str) -> Result<Self, BadJwt> {
        let mut parts = token.split('.');
        let (Some(header), Some(claims), Some(signature), None, true) =
            (parts.next(), parts.next(), parts.next(), parts.next(), token.len() <= MAX_BYTES)
        else {
            return Err(BadJwt::Malformed);
        };
        let message = &token.as_bytes()[..header.len() + 1 + claims.len()];
        let header = object(header)?;
        let algorithm = match header.get("alg").and_then(Value::as_str) {
            Some("ES256") => Algorithm::Es256,
            Some("EdDSA") => Algorithm::EdDsa,
            _ => return Err(BadJwt::Algorithm),
        };
        if OWN_KEY.iter().any(|name| header.contains_key(*name)) {
            return Err(BadJwt::OwnKey);
        }
        // Extensions listed in `crit` must be understood, and none is (RFC 7515, section 4.1.11). `b64` changes what is signed.
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err(BadJwt::Critical);
        }
        if !header.get("typ").is_none_or(is_jwt) {
            return Err(BadJwt::Type);
        }
        let key_id = header.get("kid").and_then(Value::as_str).ok_or(BadJwt::UnknownKey)?.to_owned();
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| BadJwt::Malformed)?;
        Ok(Jwt { algorithm, key_id, claims: object(claims)?, message, signature })
    }

    /// When it was made, in seconds since 1970, as `now` is.
    pub(super) fn verify(
        &self,
        keys: &[Key],
        call: &SignedCall<'_>,
        now: u64,
        tolerance: Duration,
    ) -> Result<u64, BadJwt> {
        let mut named = keys.iter().filter(|key| key.is(&self.key_id, self.algorithm)).peekable();
        named.peek().ok_or(BadJwt::UnknownKey)?;
        if !named.any(|key| key.verifies(self.message, &self.signature)) {
            return Err(BadJwt::Signature);
        }
        let made = self.check_times(now, tolerance)?;
        let event = self.text("jti")?;
        if call.id != Some(event) {
            return Err(BadJwt::Event);
        }
        let digest: String = Sha256::digest(call.body).iter().map(|byte| format!("{byte:02x}")).collect();
        let signed = self.text("request_body_sha256")?.to_ascii_lowercase();
        verify_slices_are_equal(signed.as_bytes(), digest.as_bytes()).map_err(|_| BadJwt::Body)?;
        if !call.audiences.is_empty() && !self.is_for(call.audiences) {
            return Err(BadJwt::Audience);
        }
        Ok(made)
    }

    /// How long an event is remembered depends on `iat`: the agent chooses `exp`, which may be in a hundred years.
    fn check_times(&self, now: u64, tolerance: Duration) -> Result<u64, BadJwt> {
        let (made, expires) = (self.seconds("iat")?, self.seconds("exp")?);
        let begins = if self.claims.contains_key("nbf") { self.seconds("nbf")? } else { made };
        if made.max(begins) > now.saturating_add(LEEWAY.as_secs()) {
            return Err(BadJwt::TooNew);
        }
        let oldest = made.saturating_add(tolerance.as_secs());
        if expires.min(oldest).saturating_add(LEEWAY.as_secs()) < now {
            return Err(BadJwt::Expired);
        }
        Ok(made)
    }

    /// `aud` is a text or a list of them.
    fn is_for(&self, audiences: &[String]) -> bool {
        let is_one =
            |value: &Value| value.as_str().is_some_and(|name| audiences.iter().any(|one| one == name));
        match self.claims.get("aud") {
            Some(Value::Array(names)) => names.iter().any(is_one),
            Some(name) => is_one(name),
            None => false,
        }
    }

    fn text(&self, claim: &str) -> Result<&str, BadJwt> {
        self.claims.get(claim).and_then(Value::as_str).ok_or(BadJwt::Claims)
    }

    /// A time may have a fraction (RFC 7519, section 2), which does not matter here.
    fn seconds(&self, claim: &str) -> Result<u64, BadJwt> {
        let value = self.claims.get(claim).ok_or(BadJwt::Claims)?;
        let whole = value
            .as_u64()
            .or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64));
        whole.ok_or(BadJwt::Claims)
    }
}

/// JWTs for other purposes must not pass for this one (RFC 8725, section 3.11).
fn is_jwt(typ: &Value) -> bool {
    let typ = typ.as_str().unwrap_or_default().to_ascii_lowercase();
    typ.strip_prefix("application/").unwrap_or(&typ) == "jwt"
}

/// A JSON object in base64url. One that has a member twice is refused: readers disagree about which of them counts.
fn object(part: &str) -> Result<Map<String, Value>, BadJwt> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| BadJwt::Malformed)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| BadJwt::Malformed)?;
    let object = JsonObject::parse(text).map_err(|_| BadJwt::Malformed)?;
    serde_json::from_str(object.as_str()).map_err(|_| BadJwt::Malformed)
}

#[cfg(test)]
mod tests;
