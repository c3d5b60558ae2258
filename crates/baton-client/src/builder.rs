//! Everything that can be set before a client connects.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock, RwLock};

use baton_protocol::Generation;
use http::{HeaderMap, HeaderName};

use crate::choose::{Binding, Preference, choose};
use crate::client::{Client, Shared};
use crate::credentials::oauth::Caller;
use crate::credentials::{Authorizer, Credential, Credentials};
use crate::discover::{CardCache, Discovered, Discovery, Reference};
use crate::error::Error;
use crate::http::{Http, header_value};
use crate::observe::{Observed, Observer};
use crate::options::{Reconnects, Retries, SizeLimits, Timeouts};
use crate::origin::Origin;
use crate::signature::{CardKeys, CardTrust};
use crate::tls::{Proxies, TlsOptions};
use crate::webhook::WebhookKeys;

/// Options of a [`Client`].
#[derive(Debug, Clone)]
pub struct Builder {
    preference: Preference,
    credentials: Credentials,
    trusted: Vec<Origin>,
    timeouts: Timeouts,
    limits: SizeLimits,
    retries: Retries,
    reconnects: Reconnects,
    tls: TlsOptions,
    proxies: Proxies,
    cache: CardCache,
    headers: Vec<(String, String)>,
    extensions: Vec<String>,
    user_agent: String,
    observer: Observer,
    /// Made at first use; clones share it, so that a card and the first call after it need one connection.
    http: Arc<OnceLock<Arc<Http>>>,
}

impl Default for Builder {
    fn default() -> Self {
        Builder {
            preference: Preference::default(),
            credentials: Credentials::default(),
            trusted: Vec::new(),
            timeouts: Timeouts::default(),
            limits: SizeLimits::default(),
            retries: Retries::default(),
            reconnects: Reconnects::default(),
            tls: TlsOptions::default(),
            proxies: Proxies::default(),
            cache: CardCache::default(),
            headers: Vec::new(),
            extensions: Vec::new(),
            user_agent: concat!("baton/", env!("CARGO_PKG_VERSION")).to_owned(),
            observer: Observer::default(),
            http: Arc::default(),
        }
    }
}

impl Builder {
    /// Which interface is chosen. Default: the first of the card that is understood.
    pub fn prefer(mut self, preference: Preference) -> Self {
        self.preference = preference;
        self
    }

    /// Only these bindings, the best first.
    pub fn bindings(mut self, bindings: impl IntoIterator<Item = Binding>) -> Self {
        self.preference.bindings = bindings.into_iter().collect();
        self
    }

    /// Only these versions of the protocol, the best first.
    pub fn versions(mut self, versions: impl IntoIterator<Item = Generation>) -> Self {
        self.preference.versions = versions.into_iter().collect();
        self
    }

    /// Speaks this version, whatever versions the card lists.
    pub fn assume_version(mut self, version: Generation) -> Self {
        self.preference.assume = Some(version);
        self
    }

    /// A bearer token, for any scheme that takes one.
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.credential(Credential::bearer(token))
    }

    /// A bearer token that changes: [`Credential::bearer_from`].
    pub fn bearer_from<F, E>(self, provide: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, E>> + Send + 'static,
        E: std::fmt::Display,
    {
        self.credential(Credential::bearer_from(provide))
    }

    /// An API key, sent where the card says; in `X-API-Key` if it does not.
    pub fn api_key(self, key: impl Into<String>) -> Self {
        self.credential(Credential::api_key(key))
    }

    /// User and password, for basic and digest authentication.
    pub fn password(self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credential(Credential::password(user, password))
    }

    /// A credential for any scheme of the card that it fits.
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credentials.any.push(credential);
        self
    }

    /// A credential for one scheme of the card.
    pub fn credential_for(mut self, scheme: impl Into<String>, credential: Credential) -> Self {
        self.credentials.named.push((scheme.into(), credential));
        self
    }

    /// Sends credentials and headers to this origin, too. By default they go to the origin of the address that
    /// [`connect`](Self::connect) is given, and a card cannot send them elsewhere, except from http to https on the same host.
    pub fn trust_origin(mut self, origin: Origin) -> Self {
        self.trusted.push(origin);
        self
    }

    /// Speaks gRPC without TLS to addresses that have no scheme, also to other machines: see
    /// [`Preference::grpc_plaintext`].
    pub fn grpc_plaintext(mut self) -> Self {
        self.preference.grpc_plaintext = true;
        self
    }

    /// A header for every call: what the specification calls a service parameter. Not for credentials.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// An extension of the protocol that this client supports.
    pub fn extension(mut self, uri: impl Into<String>) -> Self {
        self.extensions.push(uri.into());
        self
    }

    /// How long things may take.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self.on_new_connections()
    }

    /// How large things may be.
    pub fn size_limits(mut self, limits: SizeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What is sent again.
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// How lost streams are taken up again.
    pub fn reconnects(mut self, reconnects: Reconnects) -> Self {
        self.reconnects = reconnects;
        self
    }

    /// Whom to trust, and a client certificate.
    pub fn tls(mut self, tls: TlsOptions) -> Self {
        self.tls = tls;
        self.on_new_connections()
    }

    /// Proxies. By default there are none: the environment is not read.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self.on_new_connections()
    }

    /// A cache of cards that is shared with other clients.
    pub fn card_cache(mut self, cache: CardCache) -> Self {
        self.cache = cache;
        self
    }

    /// The `User-Agent` header. Default: `baton/VERSION`.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.user_agent = name.into();
        self.on_new_connections()
    }

    /// Is told everything that is exchanged, without credentials: for showing it to people who look for a mistake.
    pub fn observe(mut self, tell: impl Fn(&Observed<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(tell);
        self.on_new_connections()
    }

    /// Finds the agent's card, and nothing more.
    pub async fn discover(&self, agent: &str) -> Result<Discovered, Error> {
        self.discover_with(&self.http(), &agent.parse()?).await
    }

    /// The text at an address or in a file, such as a catalog of agents: found as a card would be, and bounded like one.
    pub async fn read(&self, reference: &str) -> Result<String, Error> {
        let Builder { cache, credentials, timeouts, limits, .. } = self;
        let http = self.http();
        Discovery { http: &http, cache, credentials, timeouts, limits }.text(&reference.parse()?).await
    }

    /// Checks the signatures of a card.
    pub async fn verify_card(&self, discovered: &Discovered, keys: &CardKeys) -> CardTrust {
        let Builder { timeouts, limits, .. } = self.clone();
        keys.check(discovered, &Caller { http: self.http(), timeouts, limits }).await
    }

    /// The keys with which an agent signs its calls to webhooks, published at this address: `/.well-known/jwks.json` for Baton.
    /// Nothing is fetched yet. Redirects are not followed.
    pub fn webhook_keys(&self, url: &str) -> Result<WebhookKeys, Error> {
        let Builder { timeouts, limits, .. } = self.clone();
        WebhookKeys::at(url, Caller { http: self.http(), timeouts, limits })
    }

    /// Finds the agent's card and chooses an interface. Nothing is sent to the interface yet. A card that cannot be fetched
    /// is not tried again: whoever names an agent wants to know at once that it is not there.
    pub async fn connect(&self, agent: &str) -> Result<Client, Error> {
        let reference: Reference = agent.parse()?;
        let http = self.http();
        let discovered = self.discover_with(&http, &reference).await?;
        self.client(http, discovered)
    }

    /// A client for a card that was found before. It uses the connections of [`discover`](Self::discover), if that was called
    /// on this builder or on one that this is a copy of.
    pub fn with_card(&self, discovered: Discovered) -> Result<Client, Error> {
        self.client(self.http(), discovered)
    }

    async fn discover_with(&self, http: &Http, reference: &Reference) -> Result<Discovered, Error> {
        let Builder { cache, credentials, timeouts, limits, .. } = self;
        Discovery { http, cache, credentials, timeouts, limits }.find(reference).await
    }

    fn http(&self) -> Arc<Http> {
        let made = self.http.get_or_init(|| {
            let Builder { tls, proxies, timeouts, user_agent, observer, .. } = self.clone();
            Arc::new(Http::new(tls, proxies, timeouts.connect, user_agent, observer))
        });
        Arc::clone(made)
    }

    /// After a change of how connections are made.
    fn on_new_connections(mut self) -> Self {
        self.http = Arc::default();
        self
    }

    fn client(&self, http: Arc<Http>, discovered: Discovered) -> Result<Client, Error> {
        let Discovered { card, generation, origin, .. } = &discovered;
        let interfaces = choose(card, *generation, origin.as_ref(), &self.preference)?;
        let mut trusted = self.trusted.clone();
        match origin {
            Some(origin) => trusted.push(origin.clone()),
            // The user's own file: what it says is what the user says.
            None => trusted.extend(interfaces.iter().filter_map(|it| Origin::of(&it.url))),
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let key = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| Error::Invalid(format!("{name:?} is not the name of a header")))?;
            let mut value = header_value(name, value)?;
            // It may be a secret, so that nothing shows it.
            value.set_sensitive(true);
            headers.append(key, value);
        }
        let has_certificate = self.tls.has_client_certificate();
        let authorizer = Authorizer::new(&self.credentials, card, trusted, has_certificate);
        Ok(Client(Arc::new(Shared {
            http,
            interfaces,
            current: AtomicUsize::new(0),
            has_answered: AtomicBool::new(false),
            bare_webhooks: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
            authorizer,
            timeouts: self.timeouts.clone(),
            limits: self.limits.clone(),
            retries: self.retries.clone(),
            reconnects: self.reconnects.clone(),
            headers,
            extensions: self.extensions.clone(),
            card: RwLock::new(Arc::new(discovered.card.clone())),
            discovered,
        })))
    }
}
