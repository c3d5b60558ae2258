//! The addresses of an authorization server: from the card, or from the server's own description.

use baton_protocol::domain::security::{OAuthFlow, SchemeKind, SecurityScheme};
use reqwest::Url;
use serde::Deserialize;

use super::Caller;
use crate::error::Error;
use crate::http::Request;
use crate::origin::Origin;

/// Where the steps of a login are. Each is checked when it is used.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    token: Option<String>,
    refresh: Option<String>,
    authorization: Option<String>,
    device: Option<String>,
    /// Who the server says it is.
    pub(super) issuer: Option<String>,
    parsed: Parsed,
}

#[derive(Debug, Default)]
struct Parsed {
    token: Option<Url>,
    refresh: Option<Url>,
}

/// RFC 8414 and OpenID Connect Discovery have the same members.
#[derive(Deserialize)]
struct Metadata {
    issuer: Option<String>,
    token_endpoint: Option<String>,
    authorization_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
}

impl Endpoints {
    pub(super) async fn find(scheme: &SecurityScheme, caller: Caller<'_>) -> Result<Self, Error> {
        let mut found = match &scheme.kind {
            SchemeKind::OpenIdConnect { url } => described(url, caller).await?,
            SchemeKind::OAuth2 { flows, metadata_url } => {
                let flows = [&flows.authorization_code, &flows.device_code, &flows.client_credentials];
                let mut found = Endpoints::default();
                flows.into_iter().flatten().for_each(|flow| found.add(flow));
                match metadata_url {
                    // The card already has the addresses; the description is asked only for what lacks.
                    Some(url) if found.token.is_none() => described(url, caller).await?,
                    _ => found,
                }
            }
            _ => return Err(Error::Credentials("this scheme has no authorization server".to_owned())),
        };
        found.parsed.token = found.token.as_deref().map(safe).transpose()?;
        found.parsed.refresh = found.refresh.as_deref().map(safe).transpose()?;
        Ok(found)
    }

    fn add(&mut self, flow: &OAuthFlow) {
        let fill = |place: &mut Option<String>, value: &Option<String>| {
            if place.is_none() {
                place.clone_from(value);
            }
        };
        fill(&mut self.token, &flow.token_url);
        fill(&mut self.refresh, &flow.refresh_url);
        fill(&mut self.authorization, &flow.authorization_url);
        fill(&mut self.device, &flow.device_authorization_url);
    }

    pub(super) fn token(&self) -> Result<&Url, Error> {
        self.parsed.token.as_ref().ok_or_else(|| lacking("token endpoint"))
    }

    pub(super) fn refresh(&self) -> Result<&Url, Error> {
        self.parsed.refresh.as_ref().map_or_else(|| self.token(), Ok)
    }

    pub(super) fn authorization(&self) -> Result<Url, Error> {
        safe(self.authorization.as_deref().ok_or_else(|| lacking("authorization endpoint"))?)
    }

    pub(super) fn device(&self) -> Result<Url, Error> {
        safe(self.device.as_deref().ok_or_else(|| lacking("device authorization endpoint"))?)
    }
}

fn lacking(what: &str) -> Error {
    Error::Credentials(format!("neither the card nor the authorization server names a {what}"))
}

/// Encrypted, or on this machine.
fn safe(url: &str) -> Result<Url, Error> {
    let bad =
        |problem: &str| Error::Credentials(format!("the authorization server's address {url:?} {problem}"));
    let parsed = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
    let origin = Origin::of(&parsed).ok_or_else(|| bad("is not http or https"))?;
    if !origin.is_secure() && !origin.is_loopback() {
        return Err(bad("is not encrypted"));
    }
    Ok(parsed)
}

async fn described(url: &str, caller: Caller<'_>) -> Result<Endpoints, Error> {
    let url = safe(url)?;
    let request = Request::get(url.clone(), caller.timeouts.call, caller.timeouts.idle);
    let mut answer = caller.http.send(request).await?;
    let text = answer.text(caller.limits.token).await?;
    if answer.status() != 200 {
        let message = format!("the authorization server's description answered {}", answer.status());
        return Err(Error::Credentials(message));
    }
    let metadata: Metadata = serde_json::from_str(&text).map_err(|error| {
        Error::Credentials(format!("the authorization server's description cannot be read: {error}"))
    })?;
    // A description may speak only for its own server.
    let issuer = metadata.issuer.as_deref().and_then(|issuer| Url::parse(issuer).ok());
    if issuer.as_ref().and_then(Origin::of) != Origin::of(&url) {
        let message = "the authorization server's description is of another server";
        return Err(Error::Credentials(message.to_owned()));
    }
    Ok(Endpoints {
        token: metadata.token_endpoint,
        refresh: None,
        authorization: metadata.authorization_endpoint,
        device: metadata.device_authorization_endpoint,
        issuer: metadata.issuer,
        parsed: Parsed::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_authorization_servers_are_encrypted_or_here() {
        for (url, expected) in [
            ("https://id.example/token", true),
            ("http://127.0.0.1:8080/token", true),
            ("http://localhost/token", true),
            ("http://id.example/token", false),
            ("file:///token", false),
            ("token", false),
        ] {
            assert_eq!(safe(url).is_ok(), expected, "{url}");
        }
    }
}
