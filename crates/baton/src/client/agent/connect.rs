//! Setting up the client library: TLS, proxies, credentials, and which interface is preferred.

use std::path::Path;

use baton_client::{
    Binding, Builder, Client, Credential, Discovered, OAuthClient, Origin, Preference, Proxies, Reconnects,
    TlsOptions,
};
use baton_protocol::Generation;
use baton_protocol::domain::AgentCard;
use baton_protocol::domain::security::SchemeKind;
use baton_protocol::generation::AskedVersion;
use secrecy::ExposeSecret as _;

use super::failure;
use crate::client::error::{CallError, Code, Hint};
use crate::client::secrets::Secrets;
use crate::client::settings::Settings;
use crate::client::tokens::{Kept, Stored};
use crate::client::{Call, debug};
use crate::output;

/// The library with what does not depend on the card.
pub(super) fn builder(settings: &Settings, secrets: &Secrets) -> Result<Builder, CallError> {
    let file = |path: &Path| {
        std::fs::read_to_string(path)
            .map_err(|error| CallError::usage(format!("{}: {error}", path.display())))
    };
    let mut tls = TlsOptions::default();
    if let Some(path) = &settings.ca {
        tls = tls.trust_only(file(path)?);
    }
    if let (Some(certificate), Some(key)) = (&settings.client_cert, &settings.client_key) {
        tls = tls.client_certificate(&file(certificate)?, &file(key)?);
    }
    if settings.insecure {
        tls = tls.danger_accept_any_certificate();
    }
    let mut reconnects = Reconnects::default();
    reconnects.poll = settings.poll_interval;
    let mut builder = Client::builder().tls(tls).proxies(proxies()).reconnects(reconnects);
    for origin in &settings.trusted_origins {
        builder = builder.trust_origin(origin.clone());
    }
    Ok(match settings.debug {
        true => builder.observe(debug::observer(secrets.clone())),
        false => builder,
    })
}

/// The usual variables, in either case; the lower case one wins, as in other tools.
pub(crate) fn proxies() -> Proxies {
    let variable = |name: &str| {
        let found = std::env::var(name.to_ascii_lowercase()).or_else(|_| std::env::var(name));
        found.ok().filter(|value| !value.is_empty())
    };
    let mut proxies = Proxies::default();
    proxies.http = variable("HTTP_PROXY");
    proxies.https = variable("HTTPS_PROXY");
    proxies.all = variable("ALL_PROXY");
    proxies.no_proxy = variable("NO_PROXY");
    proxies
}

pub(super) fn with_credentials(mut builder: Builder, settings: &Settings) -> Builder {
    if let Some(token) = &settings.bearer {
        builder = builder.bearer(token.expose_secret());
    }
    if let Some(key) = &settings.api_key {
        builder = builder.api_key(key.expose_secret());
    }
    if let Some((name, password)) = &settings.user {
        builder = builder.password(name, password.expose_secret());
    }
    for (name, value) in &settings.service_parameters {
        builder = builder.header(name, value.expose_secret());
    }
    builder
}

/// The name under which a token of this agent is kept: the address of its card, or its file by the path that does not depend
/// on the folder one is in.
pub(crate) fn identity(found: &Discovered) -> Option<String> {
    match (&found.url, &found.file) {
        (Some(url), _) => Some(url.clone()),
        (None, Some(file)) => Some(format!("{FILE}{}", file.display())),
        (None, None) => None,
    }
}

/// Before the path of a card file.
const FILE: &str = "file:";

/// Why the agent does not get what was given, and what to do.
pub(super) fn withheld(client: &Client) -> String {
    let (found, interface) = (client.discovered(), client.interface());
    let to = interface.shown_url();
    let Some(named) = found.url.as_ref().and_then(|url| Origin::parse(url).ok()) else {
        return format!("the token of the login is not sent: the card file now leads to {to}; log in again");
    };
    let trust = Origin::parse(interface.url()).map(|origin| format!("; --trust-origin {origin} allows it"));
    format!(
        "credentials and --svc-param headers are not sent: the card leads to {to}, and the agent was named at {named}{}",
        trust.unwrap_or_default()
    )
}

/// A client with one credential, for logging in.
pub(crate) fn plain_client(
    call: &Call,
    found: Discovered,
    scheme: &str,
    credential: Credential,
) -> Result<Client, CallError> {
    let builder = builder(&call.settings, &call.secrets)?.credential_for(scheme, credential);
    builder.with_card(found).map_err(|error| failure(&error))
}

/// The token of an earlier login; a new one, if it has to be renewed, replaces it.
pub(super) fn with_token(builder: Builder, call: &Call, folder: &Path, stored: &Stored) -> Builder {
    let Call { settings, secrets, .. } = call;
    let Some(token) = stored.token() else { return builder };
    secrets.add(token.access.clone());
    let login = stored.login();
    let scheme = login.scheme.clone();
    let mut registered = OAuthClient::new(&login.client_id).token(token);
    // A card file can be changed, and a copied one may lead anywhere: the token is for whom it was obtained.
    if login.agent.starts_with(FILE) {
        let origins = login.origins.iter().filter_map(|origin| Origin::parse(origin).ok());
        registered = registered.only_to(origins.chain(settings.trusted_origins.iter().cloned()));
    }
    if let Some(secret) = login.client_secret_env.as_ref().and_then(|name| std::env::var(name).ok()) {
        registered = registered.secret(secret);
    }
    if let Some(scopes) = &login.scopes {
        registered = registered.scopes(scopes.iter().cloned());
    }
    for issuer in login.issuers.iter().filter_map(|issuer| Origin::parse(issuer).ok()) {
        registered = registered.trust(issuer);
    }
    let kept = Kept { folder: folder.to_owned(), login, secrets: secrets.clone() };
    let registered = registered.token_store(kept);
    builder.credential_for(scheme, Credential::OAuth(registered))
}

/// Credentials that the card has no place for.
pub(super) fn check_credentials(settings: &Settings, card: &AgentCard) -> Result<(), CallError> {
    let kinds = || card.security_schemes.iter().map(|(_, scheme)| &scheme.kind);
    let names = || {
        let names: Vec<&str> = card.security_schemes.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let no_place = |flag: &str, what: &str| {
        let message = format!("{flag}: the card has no scheme for {what}; its schemes: {}", names());
        CallError::usage(message).with_command("card get", "")
    };
    if settings.api_key.is_some() && !kinds().any(|kind| matches!(kind, SchemeKind::ApiKey { .. })) {
        return Err(no_place("--api-key", "an API key"));
    }
    let takes_passwords = |kind: &SchemeKind| {
        matches!(kind, SchemeKind::Http { scheme, .. }
                 if ["basic", "digest"].iter().any(|name| scheme.eq_ignore_ascii_case(name)))
    };
    if settings.user.is_some() && !kinds().any(takes_passwords) {
        return Err(no_place("--user", "a password"));
    }
    if settings.bearer.is_some() && !kinds().any(takes_tokens) {
        output::warn(&format!(
            "the bearer token is sent although the card has no scheme for it; its schemes: {}",
            names()
        ));
    }
    Ok(())
}

fn takes_tokens(kind: &SchemeKind) -> bool {
    match kind {
        SchemeKind::Http { scheme, .. } => scheme.eq_ignore_ascii_case("bearer"),
        SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. } => true,
        SchemeKind::ApiKey { .. } | SchemeKind::MutualTls => false,
    }
}

/// For the extended card: calls may carry a token that no scheme of the card takes, requests for a card never do.
pub(super) fn check_for_card(settings: &Settings, card: &AgentCard) -> Result<(), CallError> {
    let is_taken = || card.security_schemes.iter().any(|(_, scheme)| takes_tokens(&scheme.kind));
    if settings.bearer.is_none() || is_taken() {
        return Ok(());
    }
    let message = "--bearer: no scheme of the card takes a token, so none is sent with a request for a card";
    Err(CallError::usage(message).with_command("card get", ""))
}

/// How credentials for the schemes of the card are given.
pub(super) fn credentials_hint(card: &AgentCard) -> Hint {
    let mut wanted: Vec<&str> = Vec::new();
    let mut logs_in = false;
    for (_, scheme) in &card.security_schemes {
        let way = match &scheme.kind {
            SchemeKind::ApiKey { .. } => "A2ACLI_API_KEY",
            SchemeKind::MutualTls => "--client-cert and --client-key",
            SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. } => {
                logs_in = true;
                "A2ACLI_BEARER"
            }
            SchemeKind::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer") => "A2ACLI_BEARER",
            SchemeKind::Http { .. } => "A2ACLI_USER",
        };
        if !wanted.contains(&way) {
            wanted.push(way);
        }
    }
    if wanted.is_empty() {
        wanted.extend(["A2ACLI_BEARER", "A2ACLI_API_KEY"]);
    }
    let words = format!("set {}", wanted.join(" or "));
    match logs_in {
        true => Hint::Either(words, "auth login", "--client-id ID".to_owned()),
        false => Hint::Words(words),
    }
}

/// The bindings that the user prefers and the card offers, and the versions that may be spoken.
pub(super) fn preference(settings: &Settings, card: &AgentCard) -> Result<Preference, CallError> {
    let offered = |name: &&&str| {
        card.interfaces.iter().any(|interface| interface.protocol_binding.eq_ignore_ascii_case(name))
    };
    let wanted = settings.transports.iter().filter(offered).filter_map(|name| Binding::parse(name));
    // The others follow in the card's order.
    let others = card.interfaces.iter().filter_map(|interface| Binding::parse(&interface.protocol_binding));
    let mut bindings: Vec<Binding> = Vec::new();
    if !settings.transports.is_empty() {
        for binding in wanted.chain(others) {
            if !bindings.contains(&binding) {
                bindings.push(binding);
            }
        }
    }
    let versions = match &settings.version {
        None => vec![Generation::V1],
        Some(asked) => match AskedVersion::read(Some(asked), None) {
            AskedVersion::Known(generation) => vec![generation],
            AskedVersion::Unsaid | AskedVersion::Unknown(_) => return Err(no_version(card, Some(asked))),
        },
    };
    // No card can list 0.1 beside newer versions, so the user's word is enough.
    let mut preference = Preference::default();
    preference.bindings = bindings;
    preference.grpc_plaintext = settings.grpc_plaintext;
    if versions == [Generation::V0_1] {
        preference.assume = Some(Generation::V0_1);
        return Ok(preference);
    }
    let spoken = card.interfaces.iter().any(|interface| {
        matches!(AskedVersion::read(Some(&interface.protocol_version), None),
                 AskedVersion::Known(generation) if versions.contains(&generation))
    });
    if !spoken {
        return Err(no_version(card, settings.version.as_deref()));
    }
    preference.versions = versions;
    Ok(preference)
}

fn no_version(card: &AgentCard, asked: Option<&str>) -> CallError {
    let mut offered: Vec<&str> =
        card.interfaces.iter().map(|interface| interface.protocol_version.as_str()).collect();
    offered.sort_unstable();
    offered.dedup();
    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
    let wanted = asked.unwrap_or("1.0 or later");
    let name = Code::Protocol("VersionNotSupportedError".to_owned());
    CallError::new(name, format!("no interface of the agent speaks protocol {wanted}"))
        .with_hint(format!("the card offers {offered}; choose one with --a2a-version"))
}
