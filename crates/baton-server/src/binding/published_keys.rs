//! The public keys with which receivers of webhooks verify that a call is this server's, and clients that a card is. Everybody
//! may read them.

use axum::body::Body;
use baton_protocol::ErrorKind;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW,
    CACHE_CONTROL,
};
use http::{HeaderValue, Method, Response, StatusCode};

use super::request_log::{RequestLog, Route};
use super::respond;
use crate::site::{PUBLIC_KEYS_PATH, Site};
use crate::telemetry::labels::Binding;

pub(super) async fn handle(site: &Site, method: &Method, log: &mut RequestLog<'_>) -> Response<Body> {
    log.set_route(Binding::HttpJson, Route::Fixed(PUBLIC_KEYS_PATH));
    let mut response = match *method {
        Method::GET | Method::HEAD => {
            let mut response = respond::json(StatusCode::OK, respond::JSON, site.key_set().await);
            // Half of the time for which a new key is published before it signs.
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
            response
        }
        Method::OPTIONS => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, OPTIONS"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
            response
        }
        _ => {
            log.refused(ErrorKind::MethodNotAllowed);
            let mut response = respond::plain(StatusCode::METHOD_NOT_ALLOWED, "The keys are read with GET\n");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
            response
        }
    };
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}
