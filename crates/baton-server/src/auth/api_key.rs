//! API keys in a header, in the query or in a cookie.
//!
//! A request that names the key twice is refused, because a proxy in front could have checked the other one.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::security::{ApiKeyLocation, SchemeKind, SecurityScheme};
use baton_protocol::wire::http_json::decode_form;
use http::header::{COOKIE, InvalidHeaderName};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::key_set::{KeySet, UNKNOWN};
use super::request::AuthRequest;
use super::scheme::{Identity, Refusal, Scheme, Verdict};

/// Accepts the secrets of a [`KeySet`].
#[derive(Debug, Clone)]
pub struct ApiKeys {
    place: Place,
    /// As the card has it: a header's name keeps its capitals.
    name: String,
    challenge: Option<HeaderValue>,
    keys: Arc<KeySet>,
    /// More secrets, if there are.
    more: Option<Arc<KeySet>>,
}

#[derive(Debug, Clone)]
enum Place {
    Header(HeaderName),
    Query,
    Cookie,
}

/// What a request has for the scheme.
#[derive(Debug, PartialEq, Eq)]
enum Found<'a> {
    Nothing,
    One(Cow<'a, [u8]>),
    /// It cannot be used; this says why and may be shown.
    Malformed(&'static str),
}

const TWICE: Found<'static> = Found::Malformed("the key is there more than once");

impl ApiKeys {
    /// Keys in this header, such as `X-API-Key`.
    pub fn header(name: &str, keys: Arc<KeySet>) -> Result<Self, InvalidHeaderName> {
        Ok(Self::at(Place::Header(HeaderName::from_bytes(name.as_bytes())?), name, keys))
    }

    /// Keys in this parameter of the query. URLs end up in the logs of proxies and in the history of browsers, so a header
    /// is better.
    pub fn query(name: &str, keys: Arc<KeySet>) -> Self {
        Self::at(Place::Query, name, keys)
    }

    /// Keys in this cookie. Browsers send cookies with requests that other sites cause, unless the cookie says
    /// `SameSite`.
    pub fn cookie(name: &str, keys: Arc<KeySet>) -> Self {
        Self::at(Place::Cookie, name, keys)
    }

    /// Accepts the secrets of this set, too.
    #[must_use]
    pub fn and(mut self, keys: Arc<KeySet>) -> Self {
        self.more = Some(keys);
        self
    }

    fn at(place: Place, name: &str, keys: Arc<KeySet>) -> Self {
        let is_quotable = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        let shown = if name.bytes().all(is_quotable) { name } else { "key" };
        let word = match place {
            Place::Header(_) => "header",
            Place::Query => "query",
            Place::Cookie => "cookie",
        };
        // There is no registered scheme for API keys; a 401 must have a challenge all the same.
        let challenge = HeaderValue::from_str(&format!("ApiKey in=\"{word}\", name=\"{shown}\"")).ok();
        ApiKeys { place, name: name.to_owned(), challenge, keys, more: None }
    }

    fn who(&self, key: &[u8]) -> Result<Identity, Refusal> {
        let first = self.keys.verify(key);
        match (&self.more, first) {
            (Some(more), Err(refusal)) => match more.verify(key) {
                // The set that knows the key says why it is refused.
                Err(other) if other.reason == UNKNOWN => Err(refusal),
                found => found,
            },
            (_, first) => first,
        }
    }

    fn find<'a>(&self, request: &AuthRequest<'a>) -> Found<'a> {
        match &self.place {
            Place::Header(name) => in_header(request.headers, name),
            Place::Query => in_query(request.uri.query().unwrap_or_default(), &self.name),
            Place::Cookie => in_cookies(request.headers, &self.name),
        }
    }
}

#[async_trait]
impl Scheme for ApiKeys {
    fn declared(&self) -> SecurityScheme {
        let location = match self.place {
            Place::Header(_) => ApiKeyLocation::Header,
            Place::Query => ApiKeyLocation::Query,
            Place::Cookie => ApiKeyLocation::Cookie,
        };
        SecurityScheme { description: None, kind: SchemeKind::ApiKey { location, name: self.name.clone() } }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        match self.find(request) {
            Found::Nothing => Verdict::Absent,
            Found::Malformed(reason) => Verdict::Refused(Refusal::new(reason)),
            Found::One(key) => match self.who(&key) {
                Ok(identity) => Verdict::Verified(identity),
                Err(refusal) => Verdict::Refused(refusal),
            },
        }
    }

    fn is_sent_by_browsers(&self) -> bool {
        matches!(self.place, Place::Cookie)
    }

    fn challenge(&self, _refused: Option<&Refusal>) -> Option<HeaderValue> {
        self.challenge.clone()
    }
}

fn in_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Found<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Found::Nothing,
        (Some(value), None) => Found::One(Cow::Borrowed(value.as_bytes())),
        (Some(_), Some(_)) => TWICE,
    }
}

/// Names are decoded before they are compared: otherwise `api%5Fkey` would be a second key that only a proxy sees.
fn in_query<'a>(query: &'a str, name: &str) -> Found<'a> {
    let mut found = Found::Nothing;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        // A parameter whose name cannot be decoded is not ours.
        if decode_form(key).is_none_or(|key| key != name) {
            continue;
        }
        if found != Found::Nothing {
            return TWICE;
        }
        found = match decode_form(value) {
            Some(Cow::Borrowed(key)) => Found::One(Cow::Borrowed(key.as_bytes())),
            Some(Cow::Owned(key)) => Found::One(Cow::Owned(key.into_bytes())),
            None => Found::Malformed("the key is not URL-encoded"),
        };
    }
    found
}

/// HTTP/2 allows several `Cookie` headers (RFC 9113, section 8.2.3), so all are read. Other cookies may have any form;
/// ours must have the form of RFC 6265, section 4.1.1, without quotes.
fn in_cookies<'a>(headers: &'a HeaderMap, name: &str) -> Found<'a> {
    let mut found = Found::Nothing;
    let pairs = headers.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    for pair in pairs {
        let pair = pair.trim_ascii();
        let equals = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (key, value) = pair.split_at(equals);
        if key.trim_ascii_end() != name.as_bytes() {
            continue;
        }
        if found != Found::Nothing {
            return TWICE;
        }
        let is_strict = key.len() == name.len();
        found = match value.split_first() {
            Some((_, value)) if is_strict && value.iter().all(is_cookie_octet) => {
                Found::One(Cow::Borrowed(value))
            }
            _ => Found::Malformed("the cookie is malformed"),
        };
    }
    found
}

fn is_cookie_octet(byte: &u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

#[cfg(test)]
mod tests {
    use http::{Method, Uri};

    use super::*;
    use crate::auth::Scopes;

    const SECRET: &str = "correct-horse+battery%staple";

    fn keys() -> Arc<KeySet> {
        let keys = KeySet::new().unwrap();
        keys.add_chosen(SECRET, "api-key", "default", Scopes::default()).unwrap();
        Arc::new(keys)
    }

    /// What the scheme says: the owner, `-` for absent, or the reason.
    async fn said(scheme: &ApiKeys, uri: &str, headers: &[(&'static str, &str)]) -> String {
        let uri: Uri = uri.parse().unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        match scheme.verify(&AuthRequest::new(&Method::POST, &uri, &map)).await {
            Verdict::Absent => "-".to_owned(),
            Verdict::Verified(identity) => identity.owner.to_string(),
            Verdict::Refused(refusal) => refusal.reason.to_owned(),
            Verdict::Unavailable(why) => panic!("{why}"),
        }
    }

    #[tokio::test]
    async fn p05_a_key_in_a_header() {
        let scheme = ApiKeys::header("X-API-Key", keys()).unwrap();
        assert_eq!(said(&scheme, "/", &[("x-api-key", SECRET)]).await, "default");
        assert_eq!(said(&scheme, "/", &[("x-api-key", "wrong")]).await, "unknown key");
        assert_eq!(said(&scheme, "/", &[("x-api-key", "")]).await, "unknown key");
        assert_eq!(said(&scheme, "/", &[]).await, "-");
        let elsewhere = [("authorization", "Bearer x"), ("cookie", "X-API-Key=x")];
        assert_eq!(said(&scheme, "/?X-API-Key=x", &elsewhere).await, "-");
        for second in [SECRET, "wrong"] {
            let twice = [("x-api-key", SECRET), ("x-api-key", second)];
            assert_eq!(said(&scheme, "/", &twice).await, "the key is there more than once");
        }
        let list = format!("{SECRET}, {SECRET}");
        assert_eq!(said(&scheme, "/", &[("x-api-key", &list)]).await, "unknown key");
        assert!(ApiKeys::header("no header", keys()).is_err());
    }

    #[tokio::test]
    async fn p05_a_key_in_the_query() {
        let scheme = ApiKeys::query("api_key", keys());
        let escaped = SECRET.replace('%', "%25").replace('+', "%2B");
        for (query, expected) in [
            (format!("api_key={escaped}"), "default"),
            (format!("a=b&api%5fkey={escaped}&&c"), "default"),
            (format!("api_key={}", escaped.replace('h', "%68")), "default"),
            (format!("API_KEY={escaped}"), "-"),
            (format!("my_api_key={escaped}&%zz=1"), "-"),
            (String::new(), "-"),
            (format!("api_key={escaped}&api_key={escaped}"), "the key is there more than once"),
            (format!("api_key={escaped}&api%5Fkey=x"), "the key is there more than once"),
            (format!("api_key={SECRET}"), "the key is not URL-encoded"),
            ("api_key=%".to_owned(), "the key is not URL-encoded"),
            ("api_key=%zz".to_owned(), "the key is not URL-encoded"),
            ("api_key=%ff".to_owned(), "the key is not URL-encoded"),
            ("api_key".to_owned(), "unknown key"),
            ("api_key=".to_owned(), "unknown key"),
            ("api_key=wrong".to_owned(), "unknown key"),
        ] {
            assert_eq!(said(&scheme, &format!("/tasks?{query}"), &[]).await, expected, "{query}");
        }
    }

    #[tokio::test]
    async fn p05_a_key_in_a_cookie() {
        let scheme = ApiKeys::cookie("api_key", keys());
        for (cookies, expected) in [
            (vec![format!("api_key={SECRET}")], "default"),
            (vec![format!("a=\"b\"; api_key={SECRET};c")], "default"),
            (vec!["a=b".to_owned(), format!("api_key={SECRET}")], "default"),
            (vec![format!("API_KEY={SECRET}; xapi_key={SECRET}")], "-"),
            (vec![], "-"),
            (vec![format!("api_key={SECRET}; api_key={SECRET}")], "the key is there more than once"),
            (vec![format!("api_key={SECRET}"), "api_key=x".to_owned()], "the key is there more than once"),
            (vec![format!("api_key=\"{SECRET}\"")], "the cookie is malformed"),
            (vec![format!("api_key ={SECRET}")], "the cookie is malformed"),
            (vec![format!("api_key= {SECRET}")], "the cookie is malformed"),
            (vec![format!("api_key={SECRET},x")], "the cookie is malformed"),
            (vec!["api_key".to_owned()], "the cookie is malformed"),
            (vec!["api_key=ä".to_owned()], "the cookie is malformed"),
            (vec!["api_key=wrong".to_owned()], "unknown key"),
        ] {
            let headers: Vec<_> = cookies.iter().map(|cookie| ("cookie", &**cookie)).collect();
            assert_eq!(said(&scheme, "/", &headers).await, expected, "{cookies:?}");
        }
    }

    #[tokio::test]
    async fn s16_a_key_of_either_set_is_accepted() {
        let other = KeySet::new().unwrap();
        other.add_chosen("another-horse-battery", "other", "other", Scopes::default()).unwrap();
        let scheme = ApiKeys::header("X-API-Key", keys()).unwrap().and(Arc::new(other));
        for (key, expected) in
            [(SECRET, "default"), ("another-horse-battery", "other"), ("wrong", "unknown key")]
        {
            assert_eq!(said(&scheme, "/", &[("x-api-key", key)]).await, expected);
        }
    }

    #[test]
    fn p05_the_card_and_the_challenge_say_where_the_key_goes() {
        let header = ApiKeys::header("X-API-Key", keys()).unwrap();
        for (scheme, expected, challenge) in [
            (header, ApiKeyLocation::Header, "ApiKey in=\"header\", name=\"X-API-Key\""),
            (
                ApiKeys::query("X-API-Key", keys()),
                ApiKeyLocation::Query,
                "ApiKey in=\"query\", name=\"X-API-Key\"",
            ),
            (
                ApiKeys::cookie("X-API-Key", keys()),
                ApiKeyLocation::Cookie,
                "ApiKey in=\"cookie\", name=\"X-API-Key\"",
            ),
        ] {
            let SchemeKind::ApiKey { location, name } = scheme.declared().kind else { panic!("{scheme:?}") };
            assert_eq!((location, &*name), (expected, "X-API-Key"));
            assert_eq!(scheme.challenge(None).unwrap(), challenge);
        }
    }
}
