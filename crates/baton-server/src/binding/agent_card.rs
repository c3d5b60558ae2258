//! The public card: for everybody, from anywhere.

use axum::body::Body;
use axum::extract::State;
use baton_protocol::wire::v1;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_TYPE,
    HOST,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::service::Service;

pub(super) async fn get(State(service): State<Service>, headers: HeaderMap) -> Response<Body> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let mut json = Vec::with_capacity(2048);
    v1::write_card(&mut json, &service.card().complete(host));
    let mut response = Response::new(Body::from(json));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

pub(super) async fn options() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, OPTIONS"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    response
}
