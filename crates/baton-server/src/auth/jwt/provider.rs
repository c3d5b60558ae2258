//! What an issuer says about itself: OpenID Connect Discovery 1.0 and RFC 8414.

use baton_protocol::domain::security::{OAuthFlow, OAuthFlows, SchemeKind, SecurityScheme};
use reqwest::Url;
use serde::Deserialize;

use super::fetch::{Fetcher, checked_url, named_url};
use super::options::BadTokenOption;

/// The metadata of an issuer. Its URLs are `https`, or on loopback if the metadata is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// Where the metadata is.
    pub metadata_url: String,
    /// The issuer, as tokens have it in `iss`.
    pub issuer: String,
    /// The issuer's keys.
    pub jwks_uri: Option<String>,
    /// Where users agree.
    pub authorization_endpoint: Option<String>,
    /// Where tokens are issued.
    pub token_endpoint: Option<String>,
    /// Where device codes are issued.
    pub device_authorization_endpoint: Option<String>,
    /// Where tokens are verified.
    pub introspection_endpoint: Option<String>,
    /// Whether the issuer understands PKCE with SHA-256.
    pub pkce: bool,
}

/// How a client gets a token of an OAuth 2.0 server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Grant {
    /// A user agrees in a browser.
    AuthorizationCode,
    /// A program on its own behalf.
    ClientCredentials,
    /// A user agrees on another device.
    DeviceCode,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    jwks_uri: Option<String>,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    introspection_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
}

impl Provider {
    /// The OpenID configuration of an issuer.
    pub async fn discover(fetcher: &Fetcher, issuer: &str) -> Result<Self, String> {
        let url = openid_url(issuer).map_err(|bad| bad.to_string())?;
        Self::fetch_from(fetcher, &url, issuer).await
    }

    /// The metadata at any URL, such as `https://issuer/.well-known/oauth-authorization-server`.
    pub async fn fetch(fetcher: &Fetcher, metadata_url: &str, issuer: &str) -> Result<Self, String> {
        let url = checked_url("metadata_url", metadata_url).map_err(|bad| bad.to_string())?;
        Self::fetch_from(fetcher, &url, issuer).await
    }

    pub(super) async fn fetch_from(fetcher: &Fetcher, url: &Url, issuer: &str) -> Result<Self, String> {
        let fetched = fetcher.get(url).await?;
        Self::read(&fetched.body, url, issuer).map_err(|why| format!("{url}: {why}"))
    }

    fn read(body: &[u8], url: &Url, issuer: &str) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(body)
            .map_err(|error| format!("not the metadata of an issuer: {error}"))?;
        // Otherwise one issuer could name the keys of another (OpenID Connect Discovery 1.0, section 4.3).
        if document.issuer != issuer {
            return Err("the issuer in the metadata is another one".to_owned());
        }
        let named = |name: &str, text: Option<String>| match text {
            Some(text) => named_url(name, &text, url).map(|_| Some(text)),
            None => Ok(None),
        };
        Ok(Provider {
            metadata_url: url.to_string(),
            issuer: document.issuer,
            jwks_uri: named("jwks_uri", document.jwks_uri)?,
            authorization_endpoint: named("authorization_endpoint", document.authorization_endpoint)?,
            token_endpoint: named("token_endpoint", document.token_endpoint)?,
            device_authorization_endpoint: named(
                "device_authorization_endpoint",
                document.device_authorization_endpoint,
            )?,
            introspection_endpoint: named("introspection_endpoint", document.introspection_endpoint)?,
            pkce: document.code_challenge_methods_supported.iter().any(|method| method == "S256"),
        })
    }

    /// The card's entry for this server: how clients get tokens, and which scopes there are, each with a description. Cards
    /// of 1.0 have one flow per scheme.
    pub fn oauth2(
        &self,
        grants: &[Grant],
        scopes: &[(String, String)],
    ) -> Result<SecurityScheme, BadTokenOption> {
        let needed = |name: &'static str, url: &Option<String>| {
            let missing = || BadTokenOption::new(name, "is not in the metadata of the issuer");
            url.clone().map(Some).ok_or_else(missing)
        };
        let mut flows = OAuthFlows::default();
        for grant in grants {
            let mut flow = OAuthFlow {
                token_url: needed("token_endpoint", &self.token_endpoint)?,
                scopes: scopes.to_vec(),
                ..OAuthFlow::default()
            };
            match grant {
                Grant::AuthorizationCode => {
                    flow.authorization_url = needed("authorization_endpoint", &self.authorization_endpoint)?;
                    flow.pkce_required = self.pkce;
                    flows.authorization_code = Some(flow);
                }
                Grant::ClientCredentials => flows.client_credentials = Some(flow),
                Grant::DeviceCode => {
                    flow.device_authorization_url =
                        needed("device_authorization_endpoint", &self.device_authorization_endpoint)?;
                    flows.device_code = Some(flow);
                }
            }
        }
        let metadata_url = Some(self.metadata_url.clone());
        Ok(SecurityScheme {
            description: None,
            kind: SchemeKind::OAuth2 { flows: Box::new(flows), metadata_url },
        })
    }
}

/// OpenID Connect Discovery 1.0, section 4: the path is appended, without the issuer's last slash.
pub(super) fn openid_url(issuer: &str) -> Result<Url, BadTokenOption> {
    checked_url("issuer", issuer)?;
    let without_slash = issuer.strip_suffix('/').unwrap_or(issuer);
    checked_url("issuer", &format!("{without_slash}/.well-known/openid-configuration"))
}
