//! Shows what is exchanged with agents and authorization servers. Credentials are not shown.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use crate::http::Request;

/// Something that was sent or received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed<'a> {
    /// A request is sent.
    Request {
        /// Such as `POST`.
        method: &'a str,
        /// Values of query parameters are hidden, except for those that the protocol defines and no credential uses.
        url: String,
        /// Credentials, and headers that the user added, are hidden.
        headers: Vec<(String, String)>,
        /// Hidden if it goes to an authorization server.
        body: Option<&'a [u8]>,
    },
    /// The head of an answer came.
    Response {
        /// The HTTP status.
        status: u16,
        /// Cookies are hidden.
        headers: Vec<(String, String)>,
    },
    /// An answer's body came, or an event of a stream: whole, so that no credential in it is cut in two. Those that the request
    /// carried are hidden, and so are bodies of authorization servers.
    Body(&'a [u8]),
    /// No answer came, or it broke off.
    Failed(&'a str),
}

/// Shown instead of a credential.
const HIDDEN: &str = "[redacted]";

/// Query parameters that the protocol defines.
const KNOWN: &[&str] = &[
    "a2a-version",
    "contextid",
    "historylength",
    "includeartifacts",
    "pagesize",
    "pagetoken",
    "status",
    "statustimestampafter",
    "tenant",
];

/// Is told what is exchanged.
#[derive(Clone, Default)]
pub(crate) struct Observer(Option<Arc<Tell>>);

type Tell = dyn Fn(&Observed<'_>) + Send + Sync;

impl Observer {
    pub(crate) fn new(tell: impl Fn(&Observed<'_>) + Send + Sync + 'static) -> Self {
        Observer(Some(Arc::new(tell)))
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Tells of a request, and returns who is told of its answer.
    pub(crate) fn request(&self, request: &Request) -> Pair {
        let Some(tell) = &self.0 else { return Pair::default() };
        let Request { method, url, headers, body, shown, secret_query, .. } = request;
        let body = shown.as_ref().or(body.as_ref());
        // Requests for tokens are forms; calls never are.
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let is_private = headers.get(header::CONTENT_TYPE) == Some(&form);
        let body = body.map(|body| if is_private { HIDDEN.as_bytes() } else { &body[..] });
        tell(&Observed::Request {
            method: method.as_str(),
            url: hidden_query(url, secret_query),
            headers: hidden(headers),
            body,
        });
        Pair {
            tell: Some(Arc::clone(tell)),
            is_private,
            secrets: secrets(request),
            is_stream: false,
            is_binary: false,
            pending: Vec::new(),
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}

/// Is told of the answer to one request.
#[derive(Default)]
pub(crate) struct Pair {
    tell: Option<Arc<Tell>>,
    is_private: bool,
    /// Credentials that the request carried: some servers repeat what they refuse.
    secrets: Vec<SecretString>,
    is_stream: bool,
    /// The body is not for people: `show` tells what it says.
    is_binary: bool,
    /// The body so far; of a stream, what came behind the last whole event.
    pending: Vec<u8>,
}

impl Pair {
    pub(crate) fn response(&mut self, status: u16, headers: &HeaderMap) {
        let media_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let media_type = media_type.to_ascii_lowercase();
        self.is_stream = media_type.starts_with(b"text/event-stream");
        self.is_binary = media_type.starts_with(b"application/grpc");
        if let Some(tell) = &self.tell {
            let mut headers = hidden(headers);
            for (_, value) in &mut headers {
                *value = String::from_utf8_lossy(&without(value.as_bytes(), &self.secrets)).into_owned();
            }
            tell(&Observed::Response { status, headers });
        }
    }

    pub(crate) fn body(&mut self, bytes: &[u8]) {
        if self.tell.is_none() || self.is_binary {
            return;
        }
        // An end may be cut in two, like anything else.
        let from = self.pending.len().saturating_sub(3);
        self.pending.extend_from_slice(bytes);
        if self.is_stream
            && let Some(end) = last_event_end(&self.pending[from..]).map(|end| from + end)
        {
            let rest = self.pending.split_off(end);
            self.end();
            self.pending = rest;
        }
    }

    /// What a body says that people cannot read.
    #[cfg(feature = "grpc")]
    pub(crate) fn show(&self, text: impl FnOnce() -> Vec<u8>) {
        if let Some(tell) = &self.tell {
            tell(&Observed::Body(&without(&text(), &self.secrets)));
        }
    }

    /// Nothing more comes, or what came is whole.
    pub(crate) fn end(&mut self) {
        let body = std::mem::take(&mut self.pending);
        if let Some(tell) = self.tell.as_ref().filter(|_| !body.is_empty()) {
            match self.is_private {
                true => tell(&Observed::Body(HIDDEN.as_bytes())),
                false => tell(&Observed::Body(&without(&body, &self.secrets))),
            }
        }
    }

    pub(crate) fn failed(&mut self, why: &dyn fmt::Display) {
        self.end();
        if let Some(tell) = &self.tell {
            tell(&Observed::Failed(&why.to_string()));
        }
    }
}

/// The rest of a body that nobody read to its end.
impl Drop for Pair {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("is_private", &self.is_private).finish_non_exhaustive()
    }
}

fn hidden(headers: &HeaderMap) -> Vec<(String, String)> {
    let secret = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE, header::SET_COOKIE];
    let shown = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers
        .iter()
        .map(|(name, value)| match value.is_sensitive() || secret.contains(name) {
            true => (name.to_string(), HIDDEN.to_owned()),
            false => (name.to_string(), shown(value)),
        })
        .collect()
}

fn hidden_query(url: &Url, secret: &[String]) -> String {
    let Some(query) = url.query() else { return url.to_string() };
    let is_known = |name: &str| KNOWN.contains(&name.to_ascii_lowercase().as_str());
    // A card may give its API key the name of a parameter of the protocol.
    let names: Vec<bool> = url
        .query_pairs()
        .map(|(name, _)| is_known(&name) && !secret.iter().any(|secret| *secret == name))
        .collect();
    let shown =
        query.split('&').filter(|pair| !pair.is_empty()).zip(names).map(|(pair, is_shown)| {
            match pair.split_once('=') {
                Some((name, _)) if !is_shown => format!("{name}={HIDDEN}"),
                _ => pair.to_owned(),
            }
        });
    let shown: Vec<String> = shown.collect();
    let mut url = url.clone();
    url.set_query(None);
    format!("{url}?{}", shown.join("&"))
}

/// A credential that is shorter would hide half of what is shown, and hides nothing that cannot be guessed.
const SHORTEST_SECRET: usize = 4;

/// The credentials of a request.
fn secrets(request: &Request) -> Vec<SecretString> {
    let headers = request.headers.iter().filter(|(_, value)| value.is_sensitive());
    let headers = headers.filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some(match *name {
            // `Bearer TOKEN`, `NAME=KEY`
            header::AUTHORIZATION => value.split_once(' ').map_or(value, |(_, token)| token).to_owned(),
            header::COOKIE => value.split_once('=').map_or(value, |(_, key)| key).to_owned(),
            _ => value.to_owned(),
        })
    });
    let pairs =
        request.url.query_pairs().filter(|(name, _)| request.secret_query.iter().any(|it| it == name));
    let all = headers.chain(pairs.map(|(_, value)| value.into_owned()));
    all.filter(|secret| secret.len() >= SHORTEST_SECRET).map(SecretString::from).collect()
}

/// The text with each secret replaced.
fn without<'a>(text: &'a [u8], secrets: &[SecretString]) -> Cow<'a, [u8]> {
    let mut text = Cow::Borrowed(text);
    for secret in secrets {
        let secret = secret.expose_secret().as_bytes();
        let mut shown = Vec::new();
        let mut from = 0;
        while let Some(at) = text[from..].windows(secret.len()).position(|window| window == secret) {
            shown.extend_from_slice(&text[from..from + at]);
            shown.extend_from_slice(HIDDEN.as_bytes());
            from += at + secret.len();
        }
        if from > 0 {
            shown.extend_from_slice(&text[from..]);
            text = Cow::Owned(shown);
        }
    }
    text
}

/// Behind the last empty line, which ends an event.
fn last_event_end(text: &[u8]) -> Option<usize> {
    (1..=text.len()).rev().find(|end| {
        let before = &text[..*end];
        before.ends_with(b"\n\n") || before.ends_with(b"\n\r\n") || before.ends_with(b"\r\r")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_credentials_are_hidden_in_headers_and_queries() {
        let mut own = HeaderValue::from_static("s3cret");
        own.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"));
        headers.insert("x-own", own);
        headers.insert("a2a-version", HeaderValue::from_static("1.0"));
        let shown = hidden(&headers);
        assert!(shown.contains(&("a2a-version".to_owned(), "1.0".to_owned())));
        assert!(!format!("{shown:?}").contains("s3cret"), "{shown:?}");
        let url = Url::parse("https://h/x?pageSize=2&key=s3cret&s3cret").unwrap();
        assert_eq!(hidden_query(&url, &[]), "https://h/x?pageSize=2&key=[redacted]&s3cret");
        let url = Url::parse("https://h/x?&pageSize=2&tenant=s3cret&a%20b=s3cret").unwrap();
        assert_eq!(
            hidden_query(&url, &["tenant".to_owned(), "a b".to_owned()]),
            "https://h/x?pageSize=2&tenant=[redacted]&a%20b=[redacted]"
        );
    }
}
