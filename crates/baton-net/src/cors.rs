//! CORS headers: answers to preflights, and what is added to every answer.

use axum_core::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use super::options::Cors;
use super::settings::{BadSetting, CorsAnswers};

/// Seconds for which a browser may keep the answer to a preflight.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Chromium asks for this before a public page may call a private address.
const ASKS_FOR_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// The parsed origins of [`Cors`].
#[derive(Debug, Clone)]
pub(super) struct Origins {
    any: bool,
    named: Vec<String>,
    answers: CorsAnswers,
}

impl Origins {
    pub(super) fn parse(cors: &Cors, answers: CorsAnswers) -> Result<Self, BadSetting> {
        let mut origins = Origins { any: false, named: Vec::new(), answers };
        for text in &cors.origins {
            let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
            match rest {
                _ if text == "*" => origins.any = true,
                Some(host) if super::authority::Authority::parse(host).is_some() => {
                    origins.named.push(text.to_ascii_lowercase());
                }
                _ => {
                    let told = "is no origin; give scheme and host alone, such as https://app.example";
                    return Err(BadSetting(format!("cors: `{text}` {told}")));
                }
            }
        }
        Ok(origins)
    }

    pub(super) fn allows(&self, origin: &str) -> bool {
        self.any || self.named.iter().any(|named| named.eq_ignore_ascii_case(origin))
    }

    /// The answer, if the request is a preflight.
    pub(super) fn preflight<B>(&self, request: &Request<B>) -> Option<Response<Body>> {
        let asks = request.method() == Method::OPTIONS
            && request.headers().contains_key(ORIGIN)
            && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if !asks {
            return None;
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        if self.allows(origin(request.headers())?) {
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, self.answers.methods.clone());
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, self.answers.headers.clone());
            headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
            if request.headers().contains_key(ASKS_FOR_PRIVATE) {
                headers.insert(ALLOWS_PRIVATE, HeaderValue::from_static("true"));
            }
        }
        Some(response)
    }

    /// Adds the headers of an answer to a request with this `Origin`.
    pub(super) fn decorate(&self, origin: Option<&HeaderValue>, headers: &mut HeaderMap) {
        if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            // The application has set it for a public document.
            return;
        }
        if self.any {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        } else {
            // Also for origins that are not allowed: a cache must not give one origin's answer to another.
            headers.append(VARY, HeaderValue::from_static("Origin"));
            match origin {
                Some(origin) if origin.to_str().is_ok_and(|text| self.allows(text)) => {
                    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
                }
                _ => return,
            }
        }
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.answers.exposed.clone());
    }
}

fn origin(headers: &HeaderMap) -> Option<&str> {
    headers.get(ORIGIN)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_scheme_and_host_alone() {
        let good = Cors::of(["https://app.example", "http://localhost:5173", "*", "http://[::1]:80"]);
        Origins::parse(&good, CorsAnswers::default()).unwrap();
        for bad in ["app.example", "https://app.example/", "https://", "ftp://a", "null", "", "https://a b"] {
            let error = Origins::parse(&Cors::of([bad]), CorsAnswers::default()).unwrap_err().to_string();
            assert!(error.contains("cors") && error.contains("https://app.example"), "{error}");
        }
    }
}
