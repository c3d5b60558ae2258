//! Requests to an authorization server: forms that are answered with JSON.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Caller, Token, TokenSource};
use crate::address::without_secrets;
use crate::error::Error;
use crate::http::Request;
use crate::origin::Origin;

/// What a token is given for.
pub(super) enum Grant<'a> {
    ClientCredentials,
    Refresh(&'a SecretString),
    DeviceCode(&'a str),
    Code { code: &'a str, redirect_uri: &'a str, verifier: &'a str },
}

#[derive(Deserialize)]
struct TokenTwin {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    refresh_token: Option<String>,
}

/// Why the server refused, by the names of RFC 6749 and RFC 8628.
#[derive(Debug, Deserialize)]
pub(super) struct Refusal {
    pub(super) error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl Refusal {
    /// The name of RFC 6749 for a server that has a problem of its own.
    pub(super) const SERVER_ERROR: &'static str = "server_error";
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let Refusal { error, error_description } = refusal;
        let why = error_description.map(|why| format!(": {why}")).unwrap_or_default();
        Error::Credentials(format!("the authorization server refused ({error}){why}"))
    }
}

impl TokenSource {
    pub(super) async fn request(&self, caller: &Caller, url: &Url, grant: Grant<'_>) -> Result<Token, Error> {
        self.try_request(caller, url, grant).await?.map_err(Error::from)
    }

    /// The inner error is a refusal, which some flows wait out.
    pub(super) async fn try_request(
        &self,
        caller: &Caller,
        url: &Url,
        grant: Grant<'_>,
    ) -> Result<Result<Token, Refusal>, Error> {
        let scopes = self.scopes.join(" ");
        let mut form: Vec<(&str, &str)> = Vec::new();
        match &grant {
            Grant::ClientCredentials => {
                form.push(("grant_type", "client_credentials"));
                if self.client.secret.is_none() {
                    return Err(Error::Credentials("client credentials need a client secret".to_owned()));
                }
                if !scopes.is_empty() {
                    form.push(("scope", &scopes));
                }
            }
            Grant::Refresh(token) => {
                form.extend([("grant_type", "refresh_token"), ("refresh_token", token.expose_secret())]);
            }
            Grant::DeviceCode(code) => {
                let grant = "urn:ietf:params:oauth:grant-type:device_code";
                form.extend([("grant_type", grant), ("device_code", code)]);
            }
            Grant::Code { code, redirect_uri, verifier } => form.extend([
                ("grant_type", "authorization_code"),
                ("code", code),
                ("redirect_uri", redirect_uri),
                ("code_verifier", verifier),
            ]),
        }
        let answer: Result<TokenTwin, Refusal> = self.post(caller, url, &form).await?;
        let twin = match answer {
            Ok(twin) => twin,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if !twin.token_type.eq_ignore_ascii_case("bearer") {
            return Err(Error::Credentials("the token is not a bearer token".to_owned()));
        }
        let lifetime = twin.expires_in.filter(|seconds| (0.0..=1e9).contains(seconds));
        let issued_by = Origin::of(url)
            .ok_or_else(|| Error::Credentials("the token endpoint has no origin".to_owned()))?;
        Ok(Ok(Token {
            access: twin.access_token.into(),
            refresh: twin.refresh_token.map(SecretString::from),
            expires_at: lifetime.map(|seconds| SystemTime::now() + Duration::from_secs_f64(seconds)),
            issued_by,
        }))
    }

    /// Posts a form as this client, and reads the answer.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        caller: &Caller,
        url: &Url,
        form: &[(&str, &str)],
    ) -> Result<Result<T, Refusal>, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let mut pairs = form.to_vec();
        match &self.client.secret {
            Some(secret) => {
                self.check_trust(url)?;
                let both = format!("{}:{}", encoded(&self.client.id), encoded(secret.expose_secret()));
                let value = format!("Basic {}", STANDARD.encode(both));
                headers.insert(header::AUTHORIZATION, super::super::secret(&value)?);
            }
            None => pairs.push(("client_id", &self.client.id)),
        }
        let request = Request {
            method: Method::POST,
            url: url.clone(),
            headers,
            http2: false,
            shown: None,
            body: Some(form_of(&pairs).into()),
            secret_query: Vec::new(),
            with_certificate: false,
            total: Some(caller.timeouts.call),
            idle: caller.timeouts.idle,
        };
        let mut answer = caller.http.send(request).await?;
        let text = answer.text(caller.limits.token).await?;
        if answer.status() == 200 {
            return serde_json::from_str(&text).map(Ok).map_err(|error| unreadable(url, &error.to_string()));
        }
        let answered = format!("it answered {}", answer.status());
        match serde_json::from_str(&text) {
            Ok(refusal) => Ok(Err(refusal)),
            // A page of a gateway, for example.
            Err(_) if answer.status() >= 500 => Ok(Err(Refusal {
                error: Refusal::SERVER_ERROR.to_owned(),
                error_description: Some(answered),
            })),
            Err(_) => Err(unreadable(url, &answered)),
        }
    }

    /// The address comes from a card, which might be made to collect secrets.
    fn check_trust(&self, url: &Url) -> Result<(), Error> {
        match Origin::of(url) {
            Some(origin) if self.trusted.contains(&origin) => Ok(()),
            _ => Err(Error::Credentials(format!(
                "the card names {} as authorization server; trust its origin to send it the client secret",
                without_secrets(url)
            ))),
        }
    }
}

fn unreadable(url: &Url, problem: &str) -> Error {
    Error::Credentials(format!("the answer of {} cannot be read: {problem}", without_secrets(url)))
}

/// `application/x-www-form-urlencoded`, by way of a query.
fn form_of(pairs: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://form").expect("it is an address");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// RFC 6749, section 2.3.1: id and secret are form-encoded before they are joined.
fn encoded(text: &str) -> String {
    form_of(&[("", text)]).split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_encoded() {
        assert_eq!(form_of(&[("a", "b c"), ("d", "&=é")]), "a=b+c&d=%26%3D%C3%A9");
        assert_eq!(encoded("a:b/c"), "a%3Ab%2Fc");
    }
}
