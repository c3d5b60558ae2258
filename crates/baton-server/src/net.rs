//! The connection to `baton-net`, the crate for sockets: its settings for this application, and its events counted in
//! the metrics.

use baton_protocol::domain::security::{ApiKeyLocation, SchemeKind, SecurityScheme};
use baton_protocol::wire::http_json::{HEALTH_PATH, READY_PATH};
use http::{HeaderValue, StatusCode};

pub(crate) use baton_net::{
    Application, Asker, BadSetting, ClientCertificates, Connections, Cors, Customer, IpRange, Network,
    NoRoom, Observer, SMALL, Settings, Share, TooManyRequests, forwarded_base, forwarded_for, is_forwarded,
    one_customer,
};

#[cfg(feature = "tls")]
pub(crate) use baton_net::Tls;

use crate::telemetry::Telemetry;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const HEADERS: &str = "Content-Type, Authorization, A2A-Version, A2A-Extensions, X-A2A-Extensions, Last-Event-ID, X-API-Key, \
     X-Request-Id, traceparent, tracestate";
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "A2A-Idempotent-Replay, A2A-Extensions, X-A2A-Extensions, Retry-After, WWW-Authenticate, X-Request-Id",
);

/// Settings for every listener of a server.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.cors_answers.methods = METHODS;
    settings.cors_answers.headers = HeaderValue::from_static(HEADERS);
    settings.cors_answers.exposed = EXPOSED;
    // `Host` and `Origin` are not checked for the card, which is public, and for health probes, which use any host name.
    // A tenant could be named `.well-known` and take messages, so below that path only `.json` documents are open.
    settings.open_paths.health = vec![HEALTH_PATH.to_owned(), READY_PATH.to_owned()];
    settings.open_paths.documents = Some(".well-known".to_owned());
    settings
}

/// What a page may send: also the headers in which these schemes expect a key.
pub(crate) fn headers_for(schemes: &[(String, SecurityScheme)]) -> HeaderValue {
    let mut headers = HEADERS.to_owned();
    for (_, scheme) in schemes {
        if let SchemeKind::ApiKey { location: ApiKeyLocation::Header, name } = &scheme.kind
            && !headers.split(", ").any(|header| header.eq_ignore_ascii_case(name))
        {
            headers = format!("{headers}, {name}");
        }
    }
    // The name on a card can be any text; a header's name always fits.
    HeaderValue::from_str(&headers).unwrap_or(HeaderValue::from_static(HEADERS))
}

impl Observer for Telemetry {
    fn opened(&self) {
        self.connection_opened();
    }

    fn closed(&self) {
        self.connection_closed();
    }

    fn refused(&self, status: StatusCode) {
        Telemetry::refused(self, status.as_u16());
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    #[test]
    fn p05_pages_may_send_the_header_of_every_key() {
        let scheme = |location, name: &str| {
            let kind = SchemeKind::ApiKey { location, name: name.to_owned() };
            (name.to_owned(), SecurityScheme { description: None, kind })
        };
        let schemes = [
            scheme(ApiKeyLocation::Header, "X-Team-Key"),
            scheme(ApiKeyLocation::Header, "x-api-key"),
            scheme(ApiKeyLocation::Query, "in_query"),
        ];
        assert_eq!(headers_for(&schemes), format!("{HEADERS}, X-Team-Key"));
        assert_eq!(headers_for(&[]), HEADERS);
        assert_eq!(headers_for(&[scheme(ApiKeyLocation::Header, "line\nbreak")]), HEADERS);
    }

    #[test]
    fn what_is_public_is_not_checked_when_it_is_read() {
        let mut paths = settings().open_paths;
        paths.base = "/base".to_owned();
        for (method, path, open) in [
            (Method::GET, "/.well-known/agent-card.json", true),
            (Method::GET, "/agents/a/.well-known/agent-card.json", true),
            (Method::HEAD, "/.well-known/agent.json/", true),
            (Method::GET, "/healthz", true),
            (Method::GET, "/readyz/", true),
            (Method::GET, "/base/readyz", true),
            (Method::GET, "/other/readyz", false),
            (Method::POST, "/.well-known/agent-card.json", true),
            (Method::POST, "/.well-known/message:send", false),
            (Method::GET, "/.well-known/tasks/1", false),
            (Method::GET, "/healthz/x", false),
            (Method::GET, "/", false),
            (Method::GET, "/tasks", false),
        ] {
            assert_eq!(paths.is_for_everybody(&method, path), open, "{method} {path}");
        }
    }
}
