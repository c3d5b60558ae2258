//! The claims of a token that is genuine: whether it is for this server, valid now, and whom it names. The same rules apply
//! to the answer of an introspection endpoint.

use std::time::Duration;

use baton_protocol::domain::Timestamp;
use serde_json::{Map, Value};

use crate::auth::{Identity, Scopes};

/// Longest owner, prefix included.
const MAX_OWNER_BYTES: usize = 255;

/// The end of the year 9999. A later time is a mistake, and would not fit into other clocks.
const LAST_SECOND: f64 = 253_402_300_799.0;

/// The token was valid once. Its holder only has to get another one.
pub(crate) const EXPIRED: &str = "expired";

/// Which claims name the owner and the scopes, and which must have certain values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClaimRules {
    /// The claim whose text names the owner. Default: `sub`. It must be unique at the issuer and never be given to somebody
    /// else; an e-mail address often is neither.
    pub owner: String,
    /// Stands before the owner, so that a name that the issuer gives is never the same as that of an operator's key or of
    /// another issuer. Default: the kind of the scheme, such as `oidc:`; a server with two issuers needs two prefixes.
    pub owner_prefix: String,
    /// The claims with scopes, each a text with spaces between or a list of texts; all that are there count. Default:
    /// `scope` and `scp`.
    pub scopes: Vec<String>,
    /// Most scopes of one token. Default: 256.
    pub max_scopes: usize,
    /// Claims that must be there with one of the values, such as `azp` or `client_id`. A list must contain one of them.
    pub required: Vec<(String, Vec<String>)>,
}

impl ClaimRules {
    pub(crate) fn with_prefix(prefix: &str) -> Self {
        ClaimRules {
            owner: "sub".to_owned(),
            owner_prefix: prefix.to_owned(),
            scopes: vec!["scope".to_owned(), "scp".to_owned()],
            max_scopes: 256,
            required: Vec::new(),
        }
    }

    /// Whom the claims name; `credential` is for the log.
    pub(crate) fn identity(
        &self,
        claims: &Map<String, Value>,
        credential: &str,
    ) -> Result<Identity, &'static str> {
        // The token is bound to a key or a certificate of its holder (RFC 7800), which is not checked here: a thief must not
        // be able to use it as a plain one.
        if claims.contains_key("cnf") {
            return Err("the token is bound to a key of its holder, which is not supported");
        }
        for (name, values) in &self.required {
            let claim = claims.get(name).ok_or("a required claim is missing")?;
            if !each(claim).iter().any(|found| values.iter().any(|value| is(found, value))) {
                return Err("a required claim has another value");
            }
        }
        let scopes = self.scopes(claims)?;
        Ok(Identity::new(self.owner(claims)?, scopes, credential))
    }

    fn owner(&self, claims: &Map<String, Value>) -> Result<String, &'static str> {
        let name = claims.get(&self.owner).and_then(Value::as_str).ok_or("the token names no owner")?;
        let fits = self.owner_prefix.len() + name.len() <= MAX_OWNER_BYTES;
        if name.is_empty() || !fits || name.chars().any(char::is_control) {
            return Err("the token names an owner that cannot be used");
        }
        Ok(format!("{}{name}", self.owner_prefix))
    }

    fn scopes(&self, claims: &Map<String, Value>) -> Result<Scopes, &'static str> {
        const NOT_SCOPES: &str = "the scopes of the token cannot be read";
        let mut names: Vec<&str> = Vec::new();
        for claim in self.scopes.iter().filter_map(|name| claims.get(name)) {
            match claim {
                Value::String(text) => names.extend(text.split(' ').filter(|name| !name.is_empty())),
                Value::Array(list) => {
                    for name in list {
                        names.push(name.as_str().ok_or(NOT_SCOPES)?);
                    }
                }
                _ => return Err(NOT_SCOPES),
            }
        }
        names.sort_unstable();
        names.dedup();
        if names.len() > self.max_scopes {
            return Err("the token has too many scopes");
        }
        Ok(Scopes::of(names))
    }
}

/// For whom and when a token is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity<'a> {
    pub(crate) issuer: Option<&'a str>,
    pub(crate) issuer_required: bool,
    /// One of them must be in `aud`; none: `aud` is not looked at.
    pub(crate) audiences: &'a [String],
    pub(crate) expiry_required: bool,
    pub(crate) leeway: Duration,
    /// Longest time since `iat`, which is then required.
    pub(crate) max_age: Option<Duration>,
}

impl Validity<'_> {
    /// How long the token is still valid, leeway included. `None`: it does not say.
    pub(crate) fn check(
        &self,
        claims: &Map<String, Value>,
        now: Timestamp,
    ) -> Result<Option<Duration>, &'static str> {
        match (claims.get("iss"), self.issuer) {
            (Some(found), Some(issuer)) if found == issuer => {}
            (None, _) if !self.issuer_required => {}
            (_, None) => {}
            _ => return Err("from another issuer"),
        }
        if !self.audiences.is_empty() {
            let found = claims.get("aud").map(each).unwrap_or_default();
            // A list with anything but texts is not an audience (RFC 7519, section 4.1.3).
            let is_text = found.iter().all(|value| value.is_string());
            let is_ours = |value: &&Value| self.audiences.iter().any(|audience| **value == audience.as_str());
            if !is_text || !found.iter().any(is_ours) {
                return Err("for another audience");
            }
        }
        let now = now.as_millis() as f64 / 1000.0;
        let leeway = self.leeway.as_secs_f64();
        let expires = seconds(claims, "exp")?;
        if seconds(claims, "nbf")?.is_some_and(|from| from > now + leeway) {
            return Err("not valid yet");
        }
        let issued = seconds(claims, "iat")?;
        if issued.is_some_and(|issued| issued > now + leeway) {
            return Err("issued in the future");
        }
        if let Some(max_age) = self.max_age {
            let issued = issued.ok_or("the token does not say when it was issued")?;
            if now - issued > max_age.as_secs_f64() + leeway {
                return Err("issued too long ago");
            }
        }
        match expires {
            Some(expires) => {
                let left = expires + leeway - now;
                if left <= 0.0 {
                    return Err(EXPIRED);
                }
                Ok(Some(Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX)))
            }
            None if self.expiry_required => Err("the token does not expire"),
            None => Ok(None),
        }
    }
}

/// A time in seconds since 1970, which may have a fraction (RFC 7519, section 2).
fn seconds(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, &'static str> {
    let Some(claim) = claims.get(name) else { return Ok(None) };
    let seconds = claim.as_f64().filter(|seconds| (0.0..=LAST_SECOND).contains(seconds));
    seconds.map(Some).ok_or("a time in the token is not valid")
}

/// The elements of a list, or the value itself.
fn each(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        value => vec![value],
    }
}

/// Whether a claim has a configured value, which is text: `true` and `7` are compared as they are written.
fn is(found: &Value, value: &str) -> bool {
    match found {
        Value::String(text) => text == value,
        Value::Bool(found) => value == if *found { "true" } else { "false" },
        Value::Number(found) => found.to_string() == value,
        _ => false,
    }
}
