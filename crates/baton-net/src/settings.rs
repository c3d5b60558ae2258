//! The settings of a listener, and their checks.

use std::sync::Arc;

use http::{HeaderValue, Method};

use super::cors::Origins;
use super::hosts::AllowedHost;
use super::network::{Checked, Network};
use super::options::{Connections, Cors};
use super::proxy::IpRange;
#[cfg(feature = "tls")]
use super::tls::Tls;

/// Everything that can be set.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Settings {
    /// Limits on connections, and on how long clients may take.
    pub connections: Connections,
    /// Host names that the server answers to, in addition to those of this machine and of the public URL.
    pub allowed_hosts: Vec<String>,
    /// Which web pages may call the server; `None`: no page of another origin.
    pub cors: Option<Cors>,
    /// What browsers are told about these pages' requests.
    pub cors_answers: CorsAnswers,
    /// The address that clients use, if that is known.
    pub public_url: Option<String>,
    /// Connections from these are not limited by `max_per_address`.
    pub trusted_proxies: Vec<IpRange>,
    /// Paths with rules of their own.
    pub open_paths: OpenPaths,
    /// Serves HTTPS, and nothing else. `None`: plain HTTP.
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
}

/// Values of CORS headers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CorsAnswers {
    /// `Access-Control-Allow-Methods`.
    pub methods: HeaderValue,
    /// `Access-Control-Allow-Headers`: what a page may send.
    pub headers: HeaderValue,
    /// `Access-Control-Expose-Headers`: what a page may read.
    pub exposed: HeaderValue,
}

impl Default for CorsAnswers {
    fn default() -> Self {
        CorsAnswers {
            methods: HeaderValue::from_static("GET, POST, OPTIONS"),
            headers: HeaderValue::from_static("Content-Type, Authorization"),
            exposed: HeaderValue::from_static("Retry-After"),
        }
    }
}

/// Paths that are served for every `Host` and `Origin`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenPaths {
    /// The path of the public URL, without a slash at the end: health paths may stand below it, too.
    pub base: String,
    /// Health checks, such as `/healthz`; answered also while the server stops.
    pub health: Vec<String>,
    /// Name of folders with public documents, such as `.well-known`, at any depth. What is directly in one may be read by
    /// all; names that end with `.json` are open to every method.
    pub documents: Option<String>,
}

impl OpenPaths {
    /// True for a health check or a public document. Other paths may contain a folder of that name, so only reads and
    /// `.json` are open.
    pub fn is_for_everybody(&self, method: &Method, path: &str) -> bool {
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let (folder, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or_default();
        match &self.documents {
            Some(documents) if folder.rsplit_once('/').is_some_and(|(_, last)| last == documents) => {
                reads || name.ends_with(".json")
            }
            _ => reads && self.is_health(path),
        }
    }

    /// True for the path of a health check.
    pub fn is_health(&self, path: &str) -> bool {
        let inner = path.strip_prefix(self.base.as_str()).unwrap_or(path).trim_end_matches('/');
        self.health.iter().any(|health| health == inner)
    }
}

/// A setting that cannot be used. The text names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSetting(pub(super) String);

impl Settings {
    /// Parses hosts and origins.
    pub fn check(self) -> Result<Network, BadSetting> {
        let allowed: Result<_, _> = self.allowed_hosts.iter().map(|host| AllowedHost::parse(host)).collect();
        let cors = self.cors.as_ref().map(|cors| Origins::parse(cors, self.cors_answers));
        Ok(Network(Arc::new(Checked {
            connections: Arc::new(self.connections),
            allowed: allowed?,
            public: self.public_url.as_deref().and_then(AllowedHost::of_url),
            origins: cors.transpose()?,
            trusted: self.trusted_proxies,
            paths: self.open_paths,
            #[cfg(feature = "tls")]
            tls: self.tls,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_paths_are_health_and_what_is_read_of_documents() {
        let paths = OpenPaths {
            base: "/base".to_owned(),
            health: vec!["/healthz".to_owned()],
            documents: Some(".well-known".to_owned()),
        };
        for (method, path, open) in [
            (Method::GET, "/healthz", true),
            (Method::HEAD, "/healthz/", true),
            (Method::GET, "/base/healthz", true),
            (Method::GET, "/other/healthz", false),
            (Method::POST, "/healthz", false),
            (Method::GET, "/healthz/x", false),
            (Method::GET, "/.well-known/a", true),
            (Method::OPTIONS, "/x/.well-known/a.json/", true),
            (Method::POST, "/.well-known/a.json", true),
            (Method::POST, "/.well-known/a", false),
            (Method::GET, "/.well-known/a/b", false),
            (Method::GET, "/.well-known", false),
            (Method::GET, "/", false),
            (Method::OPTIONS, "*", false),
        ] {
            assert_eq!(paths.is_for_everybody(&method, path), open, "{method} {path}");
            assert!(!OpenPaths::default().is_for_everybody(&method, path), "{method} {path}");
        }
    }
}
