//! Tokens that another server issues.

use baton_protocol::domain::security::{OAuthFlow, OAuthFlows, SchemeKind, SecurityScheme};
use baton_server::auth::introspection::{ClientAuth, Introspection, IntrospectionOptions};
use baton_server::auth::jwt::{ClaimRules, FetchOptions, Fetcher, Jwt, JwtOptions, KeysFrom};

use std::sync::Arc;

use super::{Calls, Planner, Records};
use crate::config::change::Values;
use crate::config::file;
use crate::config::schema;
use crate::config::setting::{Setting, Source};
use crate::config::value::{ClientSecret, GrantType, HttpUrl, Id, KeysAt};

const JWT: &str = "auth.jwt";
const OIDC: &str = "auth.oidc";
const INTROSPECTION: &str = "auth.introspection";

/// The tables of issuers.
pub(super) const TABLES: [&str; 3] = [JWT, OIDC, INTROSPECTION];
/// How they are called.
pub(super) const FETCH: &str = "auth.fetch";

impl Planner<'_> {
    /// All issuers share one HTTP client.
    pub(super) fn issuers(&mut self, auth: &schema::Auth) {
        if auth.jwt.is_empty() && auth.oidc.is_empty() && auth.introspection.is_empty() {
            return;
        }
        let Some(fetcher) = self.fetcher(&auth.fetch) else { return };
        for issuer in auth.jwt.iter().filter(|issuer| !issuer.written.is_broken) {
            self.jwt(JWT, issuer, &fetcher);
        }
        for issuer in auth.oidc.iter().filter(|issuer| !issuer.written.is_broken) {
            self.jwt(OIDC, issuer, &fetcher);
        }
        for issuer in auth.introspection.iter().filter(|issuer| !issuer.written.is_broken) {
            self.introspection(issuer, &fetcher);
        }
        self.calls = None;
    }

    fn fetcher(&mut self, section: &schema::Fetch) -> Option<Fetcher> {
        let mut options = FetchOptions::default();
        let mut authorities = None;
        options.connect_timeout = *section.connect_timeout;
        options.timeout = *section.timeout;
        options.max_body_bytes = section.max_body.bytes();
        options.proxy = section.proxy.as_ref().map(|url| url.reveal().to_owned());
        if let Some(path) = section.ca.as_ref() {
            match file::text_of(path) {
                Ok(pem) => {
                    options.extra_roots.push(pem.clone().into_bytes());
                    authorities = Some(pem);
                }
                Err(reason) => {
                    let text = format!("{}: {reason}", path.display());
                    self.refuse(section.ca.source(), "auth.fetch.ca", text);
                    return None;
                }
            }
        }
        self.calls = Some(Arc::new(Calls { values: Values::of_section(&mut section.clone()), authorities }));
        let source =
            [section.ca.source(), section.proxy.source()].into_iter().find(|it| **it != Source::Default);
        let source = source.cloned().unwrap_or(Source::Default);
        Fetcher::new(&options).map_err(|error| self.refuse(&source, "auth.fetch", error.to_string())).ok()
    }

    fn jwt(&mut self, table: &'static str, section: &schema::Jwt, fetcher: &Fetcher) {
        let place = section.written.source();
        let Some(issuer) = section.issuer.as_deref() else {
            return self.refuse(&place, &format!("{table}.issuer"), "missing; tokens have it in `iss`");
        };
        let Some(audience) = section.audience.first() else {
            let text =
                "missing; it names this server in `aud`, so that tokens for other services are refused";
            return self.refuse(&place, &format!("{table}.audience"), text);
        };
        let mut options = JwtOptions::oidc(issuer, &**audience);
        let mut keys = None;
        match (section.own.jwks.as_ref(), table) {
            (None, OIDC) => {}
            (Some(_), OIDC) => {
                let text = "found by discovery; with keys at a URL or in a file, write [auth.jwt]";
                return self.refuse(section.own.jwks.source(), "auth.oidc.jwks", text);
            }
            (None, _) => {
                let text = "missing; it is the URL of the issuer's keys, or \"@FILE\". For discovery write [auth.oidc]";
                return self.refuse(&place, "auth.jwt.jwks", text);
            }
            (Some(KeysAt::Url(url)), _) => options.keys = KeysFrom::Url(url.reveal().to_owned()),
            (Some(KeysAt::File(path)), _) => match file::text_of(path) {
                Ok(set) => {
                    self.secrets.push(crate::config::value::Secret::new(set.as_str()));
                    keys = Some(set.clone());
                    options.keys = KeysFrom::Set(set);
                }
                Err(reason) => {
                    let text = format!("{}: {reason}", path.display());
                    return self.refuse(section.own.jwks.source(), "auth.jwt.jwks", text);
                }
            },
        }
        options.audiences = section.audience.iter().map(|word| word.to_string()).collect();
        if let Some(algorithms) = section.own.algorithms.as_ref() {
            options.algorithms = algorithms.iter().map(|algorithm| algorithm.0).collect();
        }
        if let Some(types) = section.own.types.as_ref() {
            options.types = types.iter().map(|word| word.to_string()).collect();
        }
        options.leeway = *section.rules.leeway;
        options.max_age = *section.own.max_age;
        options.max_token_bytes = section.rules.max_token.bytes();
        options.verified.entries = *section.max_remembered;
        options.verified.lifetime = *section.remember;
        options.key_cache.min_lifetime = *section.own.keys_min_lifetime;
        options.key_cache.max_lifetime = *section.own.keys_max_lifetime;
        options.key_cache.stale_for = *section.own.keys_stale;
        options.challenge.realm.clone_from(&section.rules.realm);
        claims(&mut options.claims, &section.rules, &section.id, table);
        let Some(declared) = self.oauth2(table, &section.oauth2) else { return };
        options.declared = declared;
        match Jwt::new(options, fetcher.clone()) {
            Ok(jwt) => {
                let jwt = Arc::new(jwt);
                let scheme = Arc::clone(&jwt);
                let records = keys.map_or(Records::None, |keys| Records::SigningKeys(jwt, keys));
                self.add(table, &section.id, &mut section.clone(), &place, (scheme, records));
            }
            Err(error) => self.refuse(&place, table, error.to_string()),
        }
    }

    fn introspection(&mut self, section: &schema::Introspection, fetcher: &Fetcher) {
        let place = section.written.source();
        let (Some(url), Some(id)) = (section.own.url.as_ref(), section.own.client_id.as_deref()) else {
            let text = "expected `url`, the issuer's endpoint, `client_id` and `client_secret`";
            return self.refuse(&place, INTROSPECTION, text);
        };
        let key = "auth.introspection.client_secret";
        if section.own.client_secret.is_none() {
            return self.refuse(&place, key, "missing; the endpoint answers only clients that it knows");
        }
        let Some(secret) = self.secret(&section.own.client_secret, key) else { return };
        let (id, secret) = (id.to_owned(), secret.reveal().to_owned().into());
        let client = match *section.own.client_auth {
            ClientSecret::Basic => ClientAuth::Basic { id, secret },
            ClientSecret::Post => ClientAuth::Post { id, secret },
        };
        let mut options = IntrospectionOptions::new(url.reveal(), client);
        options.issuer = section.issuer.as_deref().map(str::to_owned);
        options.audiences = section.audience.iter().map(|word| word.to_string()).collect();
        options.leeway = *section.rules.leeway;
        options.max_token_bytes = section.rules.max_token.bytes();
        options.active.entries = *section.max_remembered;
        options.active.lifetime = *section.remember;
        options.inactive.entries = *section.max_remembered;
        options.inactive.lifetime = *section.own.remember_refused;
        options.max_requests = *section.own.max_requests;
        options.max_waiting = *section.own.max_waiting;
        options.challenge.realm.clone_from(&section.rules.realm);
        claims(&mut options.claims, &section.rules, &section.id, INTROSPECTION);
        let Some(declared) = self.oauth2(INTROSPECTION, &section.oauth2) else { return };
        options.declared = declared;
        match Introspection::new(options, fetcher.clone()) {
            Ok(scheme) => {
                let scheme = (Arc::new(scheme) as Arc<_>, Records::None);
                self.add(INTROSPECTION, &section.id, &mut section.clone(), &place, scheme);
            }
            Err(error) => self.refuse(&place, INTROSPECTION, error.to_string()),
        }
    }

    /// The entry for the card; `Some(None)`: the scheme's own. `None`: there is a mistake.
    fn oauth2(&mut self, table: &str, section: &schema::OAuth2) -> Option<Option<SecurityScheme>> {
        if section.grants.is_empty() {
            return Some(None);
        }
        let mut flows = OAuthFlows::default();
        let text = |url: &Setting<Option<HttpUrl>>| url.as_ref().map(|url| url.reveal().to_owned());
        for grant in section.grants.iter() {
            let needed = match grant {
                GrantType::ClientCredentials => None,
                GrantType::AuthorizationCode => Some((&section.authorization_url, "authorization_url")),
                GrantType::DeviceCode => Some((&section.device_url, "device_url")),
            };
            for (url, name) in needed.into_iter().chain([(&section.token_url, "token_url")]) {
                if url.is_none() {
                    let key = format!("{table}.oauth2.{name}");
                    self.refuse(section.grants.source(), &key, "missing; clients need it for this grant");
                    return None;
                }
            }
            let scopes = section.scopes.iter().map(|scope| (scope.to_string(), String::new())).collect();
            let flow = OAuthFlow { token_url: text(&section.token_url), scopes, ..OAuthFlow::default() };
            match grant {
                GrantType::ClientCredentials => flows.client_credentials = Some(flow),
                GrantType::AuthorizationCode => {
                    let authorization_url = text(&section.authorization_url);
                    let pkce_required = *section.pkce;
                    flows.authorization_code = Some(OAuthFlow { authorization_url, pkce_required, ..flow });
                }
                GrantType::DeviceCode => {
                    let device_authorization_url = text(&section.device_url);
                    flows.device_code = Some(OAuthFlow { device_authorization_url, ..flow });
                }
            }
        }
        let (flows, metadata_url) = (Box::new(flows), text(&section.metadata_url));
        Some(Some(SecurityScheme { description: None, kind: SchemeKind::OAuth2 { flows, metadata_url } }))
    }
}

fn claims(claims: &mut ClaimRules, rules: &schema::TokenRules, id: &Setting<Option<Id>>, table: &str) {
    claims.owner.clone_from(&rules.owner_claim);
    let name = id.as_ref().map_or_else(|| table.rsplit('.').next().unwrap_or(table), |id| id.as_str());
    claims.owner_prefix = rules.owner_prefix.as_ref().cloned().unwrap_or_else(|| format!("{name}:"));
    claims.scopes = rules.scopes_claims.iter().map(|word| word.to_string()).collect();
    claims.max_scopes = *rules.max_scopes;
}
