//! The addresses of an authorization server: from the card, or from the server's own description.
//!
//! A card may name any address, so that a code which the user's own server issues could be made to go to somebody else. One
//! login therefore uses the endpoints of one flow, and they are of one server unless the user says that several belong
//! together.

use baton_protocol::domain::security::{OAuthFlow, OAuthFlows, SchemeKind, SecurityScheme};
use reqwest::Url;
use serde::Deserialize;

use super::{Caller, Flow};
use crate::address;
use crate::error::Error;
use crate::http::Request;
use crate::origin::Origin;

/// What the endpoints are wanted for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    LogIn(Flow),
    /// Renew a token that this server issued.
    Renew(&'a Origin),
}

/// Where a login begins and ends.
#[derive(Debug)]
pub(super) struct Endpoints {
    /// Where the user's part begins; a program's own login has none.
    start: Option<Url>,
    pub(super) token: Url,
    /// Who the server says it is.
    pub(super) issuer: Option<String>,
}

impl Endpoints {
    /// `named` are the origins that the user takes for authorization servers.
    pub(super) async fn find(
        scheme: &SecurityScheme,
        purpose: Purpose<'_>,
        named: &[Origin],
        caller: &Caller,
    ) -> Result<Self, Error> {
        let stated = match &scheme.kind {
            SchemeKind::OpenIdConnect { url } => described(url, named, caller).await?,
            SchemeKind::OAuth2 { flows, metadata_url } => {
                let stated = Stated::on_card(flows, purpose);
                match metadata_url {
                    // The description is asked only for what the card does not say.
                    Some(url) if !stated.is_enough(purpose) => described(url, named, caller).await?,
                    _ => stated,
                }
            }
            _ => return Err(Error::Credentials("this scheme has no authorization server".to_owned())),
        };
        stated.read(purpose, named)
    }

    pub(super) fn start(&self) -> Result<&Url, Error> {
        self.start.as_ref().ok_or_else(|| lacking("endpoint for users"))
    }
}

/// The endpoints as they were found, not yet looked at.
#[derive(Debug, Default)]
struct Stated {
    token: Option<String>,
    refresh: Option<String>,
    authorization: Option<String>,
    device: Option<String>,
    issuer: Option<String>,
    /// A server that the user named described itself: it knows where its endpoints are.
    is_vouched_for: bool,
}

impl Stated {
    /// The flow that is used for this purpose, and no other.
    fn on_card(flows: &OAuthFlows, purpose: Purpose<'_>) -> Self {
        let OAuthFlows { authorization_code, client_credentials, device_code, .. } = flows;
        let flow = match purpose {
            Purpose::LogIn(Flow::ClientCredentials) => client_credentials.as_ref(),
            Purpose::LogIn(Flow::DeviceCode) => device_code.as_ref(),
            Purpose::LogIn(Flow::AuthorizationCode) => authorization_code.as_ref(),
            // Whichever the token was obtained with is of the server that issued it.
            Purpose::Renew(issued_by) => {
                let all = || [authorization_code, device_code, client_credentials].into_iter().flatten();
                let is_of_issuer = |flow: &&OAuthFlow| {
                    let urls = [&flow.refresh_url, &flow.token_url];
                    urls.into_iter()
                        .flatten()
                        .any(|url| Origin::parse(url).is_ok_and(|origin| origin == *issued_by))
                };
                all().find(is_of_issuer).or_else(|| all().next())
            }
        };
        let Some(flow) = flow.cloned() else { return Stated::default() };
        Stated {
            token: flow.token_url,
            refresh: flow.refresh_url,
            authorization: flow.authorization_url,
            device: flow.device_authorization_url,
            ..Stated::default()
        }
    }

    fn start(&self, purpose: Purpose<'_>) -> Option<&str> {
        match purpose {
            Purpose::LogIn(Flow::AuthorizationCode) => self.authorization.as_deref(),
            Purpose::LogIn(Flow::DeviceCode) => self.device.as_deref(),
            Purpose::LogIn(Flow::ClientCredentials) | Purpose::Renew(_) => None,
        }
    }

    fn is_enough(&self, purpose: Purpose<'_>) -> bool {
        self.token.is_some() && (start_name(purpose).is_none() || self.start(purpose).is_some())
    }

    fn read(self, purpose: Purpose<'_>, named: &[Origin]) -> Result<Endpoints, Error> {
        let start = match (self.start(purpose), start_name(purpose)) {
            (Some(start), _) => Some(safe(start)?),
            (None, Some(name)) => return Err(lacking(name)),
            (None, None) => None,
        };
        let token = match purpose {
            Purpose::Renew(_) => self.refresh.as_deref().or(self.token.as_deref()),
            Purpose::LogIn(_) => self.token.as_deref(),
        };
        let token = safe(token.ok_or_else(|| lacking("token endpoint"))?)?;
        if let (Some(start), false) = (&start, self.is_vouched_for) {
            belong_together(start, &token, named)?;
        }
        Ok(Endpoints { start, token, issuer: self.issuer })
    }
}

/// What a login of users begins with.
fn start_name(purpose: Purpose<'_>) -> Option<&'static str> {
    match purpose {
        Purpose::LogIn(Flow::AuthorizationCode) => Some("authorization endpoint"),
        Purpose::LogIn(Flow::DeviceCode) => Some("device authorization endpoint"),
        Purpose::LogIn(Flow::ClientCredentials) | Purpose::Renew(_) => None,
    }
}

/// The code that one endpoint issues goes to the other.
fn belong_together(start: &Url, token: &Url, named: &[Origin]) -> Result<(), Error> {
    let both = [Origin::of(start), Origin::of(token)];
    if both[0] == both[1] || both.iter().flatten().all(|origin| named.contains(origin)) {
        return Ok(());
    }
    let both: Vec<String> = both.iter().flatten().map(Origin::to_string).collect();
    Err(Error::Credentials(format!(
        "the login would begin at one server and end at another ({}): trust both origins if both are of your \
         authorization server",
        both.join(", ")
    )))
}

fn lacking(what: &str) -> Error {
    Error::Credentials(format!("neither the card nor the authorization server names a {what} for this login"))
}

/// Encrypted, or on this machine.
fn safe(url: &str) -> Result<Url, Error> {
    let shown = address::typed(url);
    let bad =
        |problem: &str| Error::Credentials(format!("the authorization server's address {shown:?} {problem}"));
    let parsed = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
    let origin = Origin::of(&parsed).ok_or_else(|| bad("is not http or https"))?;
    if !origin.is_secure() && !origin.is_loopback() {
        return Err(bad("is not encrypted"));
    }
    Ok(parsed)
}

/// RFC 8414 and OpenID Connect Discovery have the same members.
#[derive(Deserialize)]
struct Metadata {
    issuer: Option<String>,
    token_endpoint: Option<String>,
    authorization_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
}

async fn described(url: &str, named: &[Origin], caller: &Caller) -> Result<Stated, Error> {
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
    let origin = Origin::of(&url);
    if issuer.as_ref().and_then(Origin::of) != origin {
        let message = "the authorization server's description is of another server";
        return Err(Error::Credentials(message.to_owned()));
    }
    Ok(Stated {
        token: metadata.token_endpoint,
        refresh: None,
        authorization: metadata.authorization_endpoint,
        device: metadata.device_authorization_endpoint,
        issuer: metadata.issuer,
        is_vouched_for: origin.is_some_and(|origin| named.contains(&origin)),
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

    fn flow(start: &str, token: &str, refresh: Option<&str>) -> OAuthFlow {
        OAuthFlow {
            authorization_url: Some(start.to_owned()),
            device_authorization_url: Some(start.to_owned()),
            token_url: Some(token.to_owned()),
            refresh_url: refresh.map(str::to_owned),
            ..OAuthFlow::default()
        }
    }

    /// Cards of 0.3 have several flows in one scheme.
    #[test]
    fn p09_a_login_uses_the_endpoints_of_its_own_flow() {
        let flows = OAuthFlows {
            authorization_code: Some(flow("https://a.example/go", "https://a.example/token", None)),
            device_code: Some(flow("https://b.example/go", "https://b.example/token", None)),
            client_credentials: Some(flow(
                "https://c.example",
                "https://c.example/token",
                Some("https://c.example/again"),
            )),
            ..OAuthFlows::default()
        };
        let issuer = |name: &str| Origin::parse(&format!("https://{name}.example")).unwrap();
        let (b, c) = (issuer("b"), issuer("c"));
        for (purpose, expected) in [
            (Purpose::LogIn(Flow::AuthorizationCode), "https://a.example/token"),
            (Purpose::LogIn(Flow::DeviceCode), "https://b.example/token"),
            (Purpose::LogIn(Flow::ClientCredentials), "https://c.example/token"),
            (Purpose::Renew(&b), "https://b.example/token"),
            (Purpose::Renew(&c), "https://c.example/again"),
        ] {
            let found = Stated::on_card(&flows, purpose).read(purpose, &[]).unwrap();
            assert_eq!(found.token.as_str(), expected, "{purpose:?}");
        }
    }

    #[test]
    fn p09_the_endpoints_of_a_login_are_of_one_server_or_named() {
        let origin = |url: &str| Origin::parse(url).unwrap();
        let both = [origin("https://a.example"), origin("https://b.example")];
        let mixed = || Stated {
            token: Some("https://b.example/token".to_owned()),
            device: Some("https://a.example/device".to_owned()),
            ..Stated::default()
        };
        let purpose = Purpose::LogIn(Flow::DeviceCode);
        for (named, allowed) in
            [(&both[..0], false), (&both[..1], false), (&both[1..], false), (&both[..], true)]
        {
            assert_eq!(mixed().read(purpose, named).is_ok(), allowed, "{named:?}");
        }
        assert!(Stated { is_vouched_for: true, ..mixed() }.read(purpose, &[]).is_ok());
    }
}
