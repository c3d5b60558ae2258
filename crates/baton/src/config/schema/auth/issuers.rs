//! `[auth.jwt]`, `[auth.oidc]` and `[auth.introspection]`: tokens that another server issues.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::setting::{Section, Setting, Visit, Written};
use crate::config::value::{
    ClientSecret, GrantType, HttpUrl, Id, JwtAlgorithm, KeysAt, SecretText, Size, Word,
};

const DAY: Duration = Duration::from_secs(86_400);

/// An issuer of tokens: a table of `[[auth.jwt]]`, `[[auth.oidc]]` or `[[auth.introspection]]`. `own` has the keys that the
/// others do not have.
#[derive(Debug, Clone)]
pub(crate) struct Issuer<Own> {
    pub(crate) id: Setting<Option<Id>>,
    pub(crate) issuer: Setting<Option<Word>>,
    pub(crate) audience: Setting<Vec<Word>>,
    pub(crate) remember: Setting<Duration>,
    pub(crate) max_remembered: Setting<usize>,
    pub(crate) own: Own,
    pub(crate) rules: TokenRules,
    pub(crate) oauth2: OAuth2,
    pub(crate) written: Written,
}

/// An issuer of JWTs.
pub(crate) type Jwt = Issuer<JwtKeys>;

/// An issuer that is asked about each token.
pub(crate) type Introspection = Issuer<Endpoint>;

/// The keys are found by discovery for `[auth.oidc]`, and at `jwks` for `[auth.jwt]`.
#[derive(Debug, Clone)]
pub(crate) struct JwtKeys {
    pub(crate) jwks: Setting<Option<KeysAt>>,
    pub(crate) algorithms: Setting<Option<Vec<JwtAlgorithm>>>,
    pub(crate) types: Setting<Option<Vec<Word>>>,
    pub(crate) max_age: Setting<Option<Duration>>,
    pub(crate) keys_min_lifetime: Setting<Duration>,
    pub(crate) keys_max_lifetime: Setting<Duration>,
    pub(crate) keys_stale: Setting<Duration>,
}

/// Where tokens are introspected, and how.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: Setting<Option<HttpUrl>>,
    pub(crate) client_id: Setting<Option<Word>>,
    pub(crate) client_secret: Setting<Option<SecretText>>,
    pub(crate) client_auth: Setting<ClientSecret>,
    pub(crate) remember_refused: Setting<Duration>,
    pub(crate) max_requests: Setting<usize>,
    pub(crate) max_waiting: Setting<usize>,
}

/// What all tokens of other servers have.
#[derive(Debug, Clone)]
pub(crate) struct TokenRules {
    pub(crate) owner_claim: Setting<String>,
    /// The scheme's id and a colon by default.
    pub(crate) owner_prefix: Setting<Option<String>>,
    pub(crate) scopes_claims: Setting<Vec<Word>>,
    pub(crate) max_scopes: Setting<usize>,
    pub(crate) leeway: Setting<Duration>,
    pub(crate) max_token: Setting<Size>,
    pub(crate) realm: Setting<String>,
}

/// How clients get a token, for the card.
#[derive(Debug, Clone, Default)]
pub(crate) struct OAuth2 {
    pub(crate) grants: Setting<Vec<GrantType>>,
    pub(crate) token_url: Setting<Option<HttpUrl>>,
    pub(crate) authorization_url: Setting<Option<HttpUrl>>,
    pub(crate) device_url: Setting<Option<HttpUrl>>,
    pub(crate) metadata_url: Setting<Option<HttpUrl>>,
    pub(crate) pkce: Setting<bool>,
    pub(crate) scopes: Setting<Vec<Word>>,
}

/// How issuers are called.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) connect_timeout: Setting<Duration>,
    pub(crate) timeout: Setting<Duration>,
    pub(crate) max_body: Setting<Size>,
    pub(crate) ca: Setting<Option<PathBuf>>,
    pub(crate) proxy: Setting<Option<HttpUrl>>,
}

impl Default for TokenRules {
    fn default() -> Self {
        let claims = ["scope", "scp"].map(Word::of).to_vec();
        TokenRules {
            owner_claim: Setting::new("sub".to_owned()),
            owner_prefix: Setting::default(),
            scopes_claims: Setting::new(claims),
            max_scopes: Setting::new(256).at_least(1).at_most(10_000),
            leeway: Setting::new(Duration::from_secs(60)).at_most(Duration::from_secs(600)),
            max_token: Setting::new(Size(8 * 1024)).at_least(Size(256)).at_most(Size(64 * 1024)),
            realm: Setting::new("baton".to_owned()),
        }
    }
}

impl<Own: Default> Default for Issuer<Own> {
    fn default() -> Self {
        Issuer {
            id: Setting::default(),
            issuer: Setting::default(),
            audience: Setting::default(),
            remember: Setting::new(Duration::from_secs(60)).at_most(Duration::from_secs(3600)),
            max_remembered: Setting::new(10_000).at_most(10_000_000),
            own: Own::default(),
            rules: TokenRules::default(),
            oauth2: OAuth2::default(),
            written: Written::default(),
        }
    }
}

impl Default for JwtKeys {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        JwtKeys {
            jwks: Setting::default(),
            algorithms: Setting::default(),
            types: Setting::default(),
            max_age: Setting::default(),
            keys_min_lifetime: Setting::new(Duration::from_secs(300)).at_least(second).at_most(DAY),
            keys_max_lifetime: Setting::new(Duration::from_secs(3600)).at_least(second).at_most(DAY),
            keys_stale: Setting::new(DAY).at_most(30 * DAY),
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Endpoint {
            url: Setting::default(),
            client_id: Setting::default(),
            client_secret: Setting::default(),
            client_auth: Setting::new(ClientSecret::Basic),
            remember_refused: Setting::new(Duration::from_secs(10)).at_most(Duration::from_secs(3600)),
            max_requests: Setting::new(32).at_least(1).at_most(10_000),
            max_waiting: Setting::new(1024).at_least(1).at_most(1_000_000),
        }
    }
}

impl Default for Fetch {
    fn default() -> Self {
        let moment = Duration::from_millis(10);
        Fetch {
            connect_timeout: Setting::new(Duration::from_secs(3)).at_least(moment),
            timeout: Setting::new(Duration::from_secs(5)).at_least(moment),
            max_body: Setting::new(Size(256 * 1024)).at_least(Size(1024)).at_most(Size(64 << 20)),
            ca: Setting::default(),
            proxy: Setting::default(),
        }
    }
}

impl TokenRules {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("owner_claim", &mut self.owner_claim);
        visit.field("owner_prefix", &mut self.owner_prefix);
        visit.field("scopes_claims", &mut self.scopes_claims);
        visit.field("max_scopes", &mut self.max_scopes);
        visit.field("leeway", &mut self.leeway);
        visit.field("max_token", &mut self.max_token);
        visit.field("realm", &mut self.realm);
    }
}

impl<Own: Section> Section for Issuer<Own> {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("id", &mut self.id);
        visit.field("issuer", &mut self.issuer);
        visit.field("audience", &mut self.audience);
        self.own.visit(visit);
        visit.field("remember", &mut self.remember);
        visit.field("max_remembered", &mut self.max_remembered);
        self.rules.visit(visit);
        visit.table("oauth2", &mut self.oauth2);
    }

    fn label(&self) -> Option<String> {
        self.id.as_ref().map(|id| id.as_str().to_owned())
    }

    fn written(&mut self) -> Option<&mut Written> {
        Some(&mut self.written)
    }
}

impl Section for JwtKeys {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("jwks", &mut self.jwks);
        visit.field("algorithms", &mut self.algorithms);
        visit.field("types", &mut self.types);
        visit.field("max_age", &mut self.max_age);
        visit.field("keys_min_lifetime", &mut self.keys_min_lifetime);
        visit.field("keys_max_lifetime", &mut self.keys_max_lifetime);
        visit.field("keys_stale", &mut self.keys_stale);
    }
}

impl Section for Endpoint {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("url", &mut self.url);
        visit.field("client_id", &mut self.client_id);
        visit.field("client_secret", &mut self.client_secret);
        visit.field("client_auth", &mut self.client_auth);
        visit.field("remember_refused", &mut self.remember_refused);
        visit.field("max_requests", &mut self.max_requests);
        visit.field("max_waiting", &mut self.max_waiting);
    }
}

impl Section for OAuth2 {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("grants", &mut self.grants);
        visit.field("token_url", &mut self.token_url);
        visit.field("authorization_url", &mut self.authorization_url);
        visit.field("device_url", &mut self.device_url);
        visit.field("metadata_url", &mut self.metadata_url);
        visit.field("pkce", &mut self.pkce);
        visit.field("scopes", &mut self.scopes);
    }
}

impl Section for Fetch {
    fn visit(&mut self, visit: &mut dyn Visit) {
        visit.field("connect_timeout", &mut self.connect_timeout);
        visit.field("timeout", &mut self.timeout);
        visit.field("max_body", &mut self.max_body);
        visit.field("ca", &mut self.ca);
        visit.field("proxy", &mut self.proxy);
    }
}
