//! Which credential is sent for which scheme of a card.

use std::sync::Arc;

use baton_protocol::domain::AgentCard;
use baton_protocol::domain::security::{ApiKeyLocation, SchemeKind, SecurityRequirement, SecurityScheme};
use http::HeaderName;
use secrecy::SecretString;

use super::oauth::{self, TokenSource};
use super::{Credential, Credentials, DEFAULT_KEY_HEADER, TokenProvider};
use crate::origin::Origin;

/// What is done to each request.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Schemes of the card's first requirement that nothing was given for.
    pub(super) missing: Vec<String>,
}

/// One credential in its place.
#[derive(Clone)]
pub(super) enum Step {
    Header(HeaderName, SecretString),
    Query(String, SecretString),
    Cookie(String, SecretString),
    Bearer(SecretString),
    BearerFrom(TokenProvider),
    Basic { user: String, password: SecretString },
    Digest { user: String, password: SecretString },
    OAuth(Arc<TokenSource>),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Header(..) => "Header",
            Self::Query(..) => "Query",
            Self::Cookie(..) => "Cookie",
            Self::Bearer(_) => "Bearer",
            Self::BearerFrom(_) => "BearerFrom",
            Self::Basic { .. } => "Basic",
            Self::Digest { .. } => "Digest",
            Self::OAuth(_) => "OAuth",
        })
    }
}

impl Plan {
    /// The first requirement of the card that can be met is met. Without such a one each credential is sent for the first
    /// scheme it fits, or as is usual: the agent may accept it although its card does not say so.
    pub(super) fn make(
        credentials: &Credentials,
        card: &AgentCard,
        has_certificate: bool,
        trusted: &[Origin],
    ) -> Self {
        let meet = |requirement: &SecurityRequirement| -> Result<Vec<Step>, Vec<String>> {
            let (mut steps, mut missing) = (Vec::new(), Vec::new());
            for (name, scopes) in &requirement.schemes {
                let scheme =
                    card.security_schemes.iter().find(|(it, _)| it == name).map(|(_, scheme)| scheme);
                let asked = Asked { scopes, trusted };
                match scheme.and_then(|scheme| credentials.step_for(name, scheme, has_certificate, asked)) {
                    Some(step) => steps.extend(step),
                    None => missing.push(name.clone()),
                }
            }
            if missing.is_empty() { Ok(steps) } else { Err(missing) }
        };
        let requirements = &card.security_requirements;
        let met = requirements.iter().filter(|it| !it.schemes.is_empty()).find_map(|it| meet(it).ok());
        if let Some(steps) = met {
            return Plan { steps, missing: Vec::new() };
        }
        let anonymous = requirements.iter().any(|it| it.schemes.is_empty());
        let missing = requirements.first().and_then(|it| meet(it).err()).filter(|_| !anonymous);
        Plan { steps: credentials.by_guess(card, trusted), missing: missing.unwrap_or_default() }
    }
}

/// What a token source needs to know beside its scheme.
#[derive(Clone, Copy)]
struct Asked<'a> {
    scopes: &'a [String],
    trusted: &'a [Origin],
}

impl Credentials {
    /// `Some(None)`: met by the connection itself.
    fn step_for(
        &self,
        name: &str,
        scheme: &SecurityScheme,
        has_certificate: bool,
        asked: Asked<'_>,
    ) -> Option<Option<Step>> {
        if scheme.kind == SchemeKind::MutualTls {
            return has_certificate.then_some(None);
        }
        let named = self.named.iter().filter(|(it, _)| it == name).map(|(_, credential)| credential);
        named.chain(&self.any).find_map(|credential| step(credential, scheme, asked)).map(Some)
    }

    fn by_guess(&self, card: &AgentCard, trusted: &[Origin]) -> Vec<Step> {
        let asked = Asked { scopes: &[], trusted };
        let declared = |credential: &Credential| {
            card.security_schemes.iter().find_map(|(_, scheme)| step(credential, scheme, asked))
        };
        let named = self.named.iter().filter_map(|(name, credential)| {
            let scheme = card.security_schemes.iter().find(|(it, _)| it == name)?;
            step(credential, &scheme.1, asked)
        });
        let any = self.any.iter().filter_map(|credential| declared(credential).or_else(|| usual(credential)));
        named.chain(any).collect()
    }
}

/// How a credential is sent for a scheme, if it fits.
fn step(credential: &Credential, scheme: &SecurityScheme, asked: Asked<'_>) -> Option<Step> {
    match (credential, &scheme.kind) {
        (Credential::OAuth(client), kind) if oauth::is_for(kind) => {
            let source = TokenSource::new(client, scheme, asked.scopes, asked.trusted);
            Some(Step::OAuth(Arc::new(source)))
        }
        (Credential::ApiKey(key), SchemeKind::ApiKey { location, name }) => Some(match location {
            ApiKeyLocation::Header => {
                Step::Header(HeaderName::from_bytes(name.as_bytes()).ok()?, key.clone())
            }
            ApiKeyLocation::Query => Step::Query(name.clone(), key.clone()),
            ApiKeyLocation::Cookie => Step::Cookie(name.clone(), key.clone()),
        }),
        (
            Credential::Bearer(_) | Credential::BearerFrom(_),
            SchemeKind::OAuth2 { .. } | SchemeKind::OpenIdConnect { .. },
        ) => usual(credential),
        (Credential::Bearer(_) | Credential::BearerFrom(_), SchemeKind::Http { scheme, .. }) => {
            usual(credential).filter(|_| scheme.eq_ignore_ascii_case("bearer"))
        }
        (Credential::Password { user, password }, SchemeKind::Http { scheme, .. }) => {
            let (user, password) = (user.clone(), password.clone());
            match scheme.to_ascii_lowercase().as_str() {
                "basic" => Some(Step::Basic { user, password }),
                "digest" => Some(Step::Digest { user, password }),
                _ => None,
            }
        }
        _ => None,
    }
}

/// How a credential is sent if no card says otherwise.
pub(super) fn usual(credential: &Credential) -> Option<Step> {
    Some(match credential.clone() {
        Credential::ApiKey(key) => Step::Header(DEFAULT_KEY_HEADER, key),
        Credential::Bearer(token) => Step::Bearer(token),
        Credential::BearerFrom(provider) => Step::BearerFrom(provider),
        Credential::Password { user, password } => Step::Basic { user, password },
        // Without a card nobody knows where tokens come from.
        Credential::OAuth(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(schemes: &[(&str, SchemeKind)], requirements: &[&[&str]]) -> AgentCard {
        let mut card = AgentCard::new("a", "b", "1");
        let scheme = |kind: &SchemeKind| SecurityScheme { description: None, kind: kind.clone() };
        card.security_schemes =
            schemes.iter().map(|(name, kind)| ((*name).to_owned(), scheme(kind))).collect();
        let names = |names: &&[&str]| SecurityRequirement {
            schemes: names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect(),
        };
        card.security_requirements = requirements.iter().map(names).collect();
        card
    }

    fn http(scheme: &str) -> SchemeKind {
        SchemeKind::Http { scheme: scheme.to_owned(), bearer_format: None }
    }

    #[test]
    fn p09_the_first_requirement_that_can_be_met_is_met() {
        let key = SchemeKind::ApiKey { location: ApiKeyLocation::Query, name: "k".to_owned() };
        let schemes = [
            ("key", key),
            ("token", http("Bearer")),
            ("user", http("basic")),
            ("mtls", SchemeKind::MutualTls),
        ];
        let both = Credentials {
            any: vec![Credential::bearer("t"), Credential::api_key("k")],
            ..Credentials::default()
        };
        let nothing = Credentials::default();
        for (credentials, certificate, requirements, steps, missing) in [
            (&both, false, &[&["user"][..], &["key", "token"]][..], "[Query, Bearer]", &[][..]),
            (&both, false, &[&["token"]], "[Bearer]", &[]),
            (&both, false, &[&["mtls", "key"], &["key"]], "[Query]", &[]),
            (&both, true, &[&["mtls", "key"], &["key"]], "[Query]", &[]),
            // Nothing can be met: what is there is sent, and what lacks is told.
            (&both, false, &[&["user"]], "[Bearer, Query]", &["user"]),
            (&nothing, false, &[&["key", "token"]], "[]", &["key", "token"]),
            (&nothing, false, &[&["key"], &[]], "[]", &[]),
            (&nothing, true, &[&["mtls"]], "[]", &[]),
            (&both, false, &[], "[Bearer, Query]", &[]),
        ] {
            let plan = Plan::make(credentials, &card(&schemes, requirements), certificate, &[]);
            assert_eq!(format!("{:?}", plan.steps), steps, "{requirements:?}");
            assert_eq!(plan.missing, missing, "{requirements:?}");
        }
    }

    #[test]
    fn p09_a_credential_for_a_named_scheme_goes_nowhere_else() {
        let credentials = Credentials {
            named: vec![("other".to_owned(), Credential::bearer("t"))],
            ..Credentials::default()
        };
        let plan = Plan::make(&credentials, &card(&[("token", http("bearer"))], &[&["token"]]), false, &[]);
        assert!(plan.steps.is_empty());
        assert_eq!(plan.missing, ["token"]);
    }
}
