//! `GET /metrics`, and who may read it.

use std::net::IpAddr;
use std::time::Duration;

use axum::body::Body;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response};

use super::incoming;
use crate::engine::Engine;
use crate::net;
use crate::telemetry::{CurrentValues, Format, MetricsAccess};

/// How long the store may take to count its tasks.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Whether this request may read the metrics. For all others the path does not exist.
pub(super) fn allows(
    access: MetricsAccess,
    method: &Method,
    peer: Option<IpAddr>,
    headers: &HeaderMap,
) -> bool {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    reads
        && match access {
            MetricsAccess::Off => false,
            MetricsAccess::Everyone => true,
            // A forwarded request comes from a proxy on this machine, whose client may be anywhere.
            MetricsAccess::Loopback => {
                peer.is_some_and(|peer| peer.to_canonical().is_loopback()) && !net::is_forwarded(headers)
            }
        }
}

pub(super) async fn answer(engine: &Engine, headers: &HeaderMap) -> Response<Body> {
    let format = Format::accepted(incoming::header(headers, &ACCEPT).as_deref());
    let mut response = Response::new(Body::from(text(engine, format).await));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The metrics as text. Does not wait long for the store: metrics matter most when something is wrong.
pub(crate) async fn text(engine: &Engine, format: Format) -> String {
    let counted = tokio::time::timeout(COUNT_TIMEOUT, engine.store().task_count()).await;
    let tasks_stored = counted.ok().and_then(Result::ok);
    let current = CurrentValues {
        load: engine.load(),
        store: engine.store().measures(),
        tasks_stored,
        webhooks_open: engine.webhooks().len(),
    };
    engine.telemetry().exposition(current, format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_machine_itself_may_read() {
        let direct: &[(&str, &str)] = &[];
        for (peer, headers, method, allowed) in [
            (Some("127.0.0.1"), direct, Method::GET, true),
            (Some("127.8.9.1"), direct, Method::HEAD, true),
            (Some("::1"), direct, Method::GET, true),
            (Some("::ffff:127.0.0.1"), direct, Method::GET, true),
            (Some("127.0.0.1"), direct, Method::POST, false),
            (Some("10.0.0.1"), direct, Method::GET, false),
            (Some("::ffff:10.0.0.1"), direct, Method::GET, false),
            (None, direct, Method::GET, false),
            (Some("127.0.0.1"), &[("forwarded", "for=127.0.0.1")], Method::GET, false),
            (Some("127.0.0.1"), &[("x-forwarded-for", "127.0.0.1")], Method::GET, false),
            (Some("127.0.0.1"), &[("x-forwarded-host", "a.example")], Method::GET, false),
            (Some("127.0.0.1"), &[("x-real-ip", "127.0.0.1")], Method::GET, false),
            (Some("127.0.0.1"), &[("via", "1.1 proxy")], Method::GET, false),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(http::HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let peer = peer.map(|peer| peer.parse::<IpAddr>().unwrap());
            let allows = |access| allows(access, &method, peer, &map);
            assert_eq!(allows(MetricsAccess::Loopback), allowed, "{peer:?} {headers:?} {method}");
            assert!(!allows(MetricsAccess::Off));
            assert_eq!(allows(MetricsAccess::Everyone), method != Method::POST);
        }
    }
}
