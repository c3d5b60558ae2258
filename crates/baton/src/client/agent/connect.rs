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
use crate::client::error::{CallError, Code, PROGRAM};
use crate::client::settings::Settings;
use crate::client::tokens::{self, Stored};
use crate::client::{Call, debug};
use crate::output;

/// The library with what does not depend on the card.
pub(super) fn builder(settings: &Settings) -> Result<Builder, CallError> {
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
    let reconnects = Reconnects { poll: settings.poll_interval, ..Reconnects::default() };
    let builder = Client::builder().tls(tls).proxies(proxies()).reconnects(reconnects);
    Ok(match settings.debug {
        true => builder.observe(debug::observer(settings)),
        false => builder,
    })
}

/// The usual variables, in either case; the lower case one wins, as in other tools.
fn proxies() -> Proxies {
    let variable = |name: &str| {
        let found = std::env::var(name.to_ascii_lowercase()).or_else(|_| std::env::var(name));
        found.ok().filter(|value| !value.is_empty())
    };
    Proxies {
        http: variable("HTTP_PROXY"),
        https: variable("HTTPS_PROXY"),
        all: variable("ALL_PROXY"),
        no_proxy: variable("NO_PROXY"),
    }
}

pub(super) fn with_credentials(mut builder: Builder, settings: &Settings) -> Builder {
    if let Some(token) = &settings.bearer {
        builder = builder.bearer(token.expose_secret());
    }
    if let Some(key) = &settings.api_key {
        builder = builder.api_key(key.expose_secret());
    }
    for (name, value) in &settings.service_parameters {
        builder = builder.header(name, value.expose_secret());
    }
    builder
}

/// The name under which a token of this agent is kept.
pub(crate) fn identity(call: &Call, found: &Discovered) -> String {
    match (&found.url, &call.settings.agent_card) {
        (Some(url), _) => url.clone(),
        (None, Some(file)) => format!("file:{file}"),
        (None, None) => String::new(),
    }
}

/// A client with one credential, for logging in.
pub(crate) fn plain_client(
    call: &Call,
    found: Discovered,
    scheme: &str,
    credential: Credential,
) -> Result<Client, CallError> {
    let builder = builder(&call.settings)?.credential_for(scheme, credential);
    builder.with_card(found).map_err(|error| failure(&error))
}

/// The token of an earlier login; a new one, if it has to be renewed, replaces it.
pub(super) fn with_token(builder: Builder, folder: &Path, stored: &Stored) -> Builder {
    let Some(token) = stored.token() else { return builder };
    let (folder, login) = (folder.to_owned(), stored.login());
    let scheme = login.scheme.clone();
    let mut registered = OAuthClient::new(&login.client_id).token(token);
    if let Some(secret) = login.client_secret_env.as_ref().and_then(|name| std::env::var(name).ok()) {
        registered = registered.secret(secret);
        for issuer in login.issuers.iter().filter_map(|issuer| Origin::parse(issuer).ok()) {
            registered = registered.trust(issuer);
        }
    }
    let registered = registered.on_token(move |token| {
        if let Err(error) = tokens::save(&folder, &Stored::of(&login, token)) {
            output::warn(&format!("the renewed token could not be kept: {error}"));
        }
    });
    builder.credential_for(scheme, Credential::OAuth(registered))
}

/// Credentials that the card has no place for.
pub(super) fn check_credentials(settings: &Settings, card: &AgentCard) -> Result<(), CallError> {
    let kinds = || card.security_schemes.iter().map(|(_, scheme)| &scheme.kind);
    let names = || {
        let names: Vec<&str> = card.security_schemes.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    if settings.api_key.is_some() && !kinds().any(|kind| matches!(kind, SchemeKind::ApiKey { .. })) {
        let message = format!("--api-key: the card has no scheme for an API key; its schemes: {}", names());
        return Err(CallError::usage(message).with_hint(format!("{PROGRAM} card get")));
    }
    let takes_tokens = |kind: &SchemeKind| match kind {
        SchemeKind::Http { scheme, .. } => scheme.eq_ignore_ascii_case("bearer"),
        SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. } => true,
        SchemeKind::ApiKey { .. } | SchemeKind::MutualTls => false,
    };
    if settings.bearer.is_some() && !kinds().any(takes_tokens) {
        output::warn(&format!(
            "the bearer token is sent although the card has no scheme for it; its schemes: {}",
            names()
        ));
    }
    Ok(())
}

pub(super) fn credentials_hint(card: &AgentCard) -> String {
    let wanted: Vec<&str> = card
        .security_schemes
        .iter()
        .map(|(_, scheme)| match &scheme.kind {
            SchemeKind::ApiKey { .. } => "A2ACLI_API_KEY",
            SchemeKind::MutualTls => "--client-cert and --client-key",
            SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. } => {
                "`baton auth login` or A2ACLI_BEARER"
            }
            SchemeKind::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer") => "A2ACLI_BEARER",
            SchemeKind::Http { .. } => "--svc-param \"Authorization:…\"",
        })
        .collect();
    match wanted.is_empty() {
        true => "set A2ACLI_BEARER or A2ACLI_API_KEY".to_owned(),
        false => format!("give {}", wanted.join(" or ")),
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
    if versions == [Generation::V0_1] {
        return Ok(Preference { bindings, assume: Some(Generation::V0_1), ..Preference::default() });
    }
    let spoken = card.interfaces.iter().any(|interface| {
        matches!(AskedVersion::read(Some(&interface.protocol_version), None),
                 AskedVersion::Known(generation) if versions.contains(&generation))
    });
    if !spoken {
        return Err(no_version(card, settings.version.as_deref()));
    }
    Ok(Preference { bindings, versions, ..Preference::default() })
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
