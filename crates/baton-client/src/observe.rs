//! Shows what is exchanged with agents and authorization servers. Credentials are not shown.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Url;

/// Something that was sent or received.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observed<'a> {
    /// A request is sent.
    Request {
        /// Such as `POST`.
        method: &'a str,
        /// Values of unknown query parameters are hidden: one of them may be an API key.
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
    /// A piece of an answer's body came. Bodies of authorization servers are hidden.
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

    /// Tells of a request, and returns who is told of its answer.
    pub(crate) fn request(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Pair {
        let Some(tell) = &self.0 else { return Pair { tell: None, is_private: false } };
        // Requests for tokens are forms; calls never are.
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let is_private = headers.get(header::CONTENT_TYPE) == Some(&form);
        let body = if is_private { body.map(|_| HIDDEN.as_bytes()) } else { body };
        tell(&Observed::Request {
            method: method.as_str(),
            url: hidden_query(url),
            headers: hidden(headers),
            body,
        });
        Pair { tell: Some(Arc::clone(tell)), is_private }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}

/// Is told of the answer to one request.
#[derive(Clone)]
pub(crate) struct Pair {
    tell: Option<Arc<Tell>>,
    is_private: bool,
}

impl Pair {
    pub(crate) fn response(&self, status: u16, headers: &HeaderMap) {
        if let Some(tell) = &self.tell {
            tell(&Observed::Response { status, headers: hidden(headers) });
        }
    }

    pub(crate) fn body(&self, bytes: &[u8]) {
        if let Some(tell) = &self.tell {
            tell(&Observed::Body(if self.is_private { HIDDEN.as_bytes() } else { bytes }));
        }
    }

    pub(crate) fn failed(&self, why: &dyn fmt::Display) {
        if let Some(tell) = &self.tell {
            tell(&Observed::Failed(&why.to_string()));
        }
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

fn hidden_query(url: &Url) -> String {
    let Some(query) = url.query() else { return url.to_string() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if !KNOWN.contains(&name.to_ascii_lowercase().as_str()) => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    });
    let shown: Vec<String> = shown.collect();
    let mut url = url.clone();
    url.set_query(None);
    format!("{url}?{}", shown.join("&"))
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
        assert_eq!(hidden_query(&url), "https://h/x?pageSize=2&key=[redacted]&s3cret");
    }
}
