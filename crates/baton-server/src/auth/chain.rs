//! Several schemes together: verifies the credentials of a request, and compares them with what the cards require.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use baton_protocol::domain::security::{SecurityRequirement, SecurityScheme};
use baton_protocol::operation::Operation;
use baton_protocol::{Error, ErrorKind};
use http::HeaderValue;
use http::header::WWW_AUTHENTICATE;

use super::audit;
use super::authenticator::Authenticator;
use super::challenge::Challenge;
use super::principal::Principal;
use super::record::CredentialRecord;
use super::request::{Access, AuthRequest};
use super::requirement::{Met, met};
use super::scheme::{Identity, Refusal, Scheme, Verdict};
use super::throttle::{Throttle, ThrottleOptions};

/// Seconds after which a caller may come back if a credential cannot be verified now.
const RETRY_AFTER: u32 = 5;

/// Named schemes, in order. Each verifies its own credential. If a request has several valid credentials, they name the same
/// owner; where an agent requires schemes together, the first of them in this order says who the owner is.
///
/// What an agent requires is on its card: one of its requirements must be met, with all of its schemes and their scopes.
/// A card without requirements gets one for each scheme of the chain.
///
/// The schemes of the library can change their secrets and users while they serve ([`KeySet::set_chosen`](super::KeySet),
/// [`Basic::set_users`](super::Basic), …); what the others have open goes on. For other options the serving chain is replaced:
///
/// ```
/// # use std::sync::Arc;
/// # use baton_server::auth::{ApiKeys, Chain, KeySet, Scopes};
/// fn chain(secret: &str) -> Result<Chain, Box<dyn std::error::Error>> {
///     let keys = KeySet::new()?;
///     keys.add_chosen(secret, "key", "team", Scopes::default())?;
///     Ok(Chain::new().scheme("key", ApiKeys::header("X-API-Key", Arc::new(keys))?))
/// }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let serving = Arc::new(chain("the-first-of-two-secrets")?);
/// let builder = baton_server::Server::host().auth(Arc::clone(&serving));
/// // Later, while the server serves:
/// serving.replace(chain("the-second-of-two-secrets")?)?;
/// # drop(builder);
/// # Ok(())
/// # }
/// ```
pub struct Chain {
    current: ArcSwap<Schemes>,
}

/// The schemes of a chain at one time.
#[derive(Clone)]
struct Schemes {
    list: Vec<Member>,
    throttle: Arc<Throttle>,
    /// Made once, since many requests need it.
    anonymous: Principal,
}

/// A scheme of a chain.
#[derive(Clone)]
struct Member {
    name: String,
    scheme: Arc<dyn Scheme>,
    /// What the scheme has verified is valid until this ends: when another scheme takes its place.
    record: CredentialRecord,
}

impl Member {
    /// The same scheme, not only an equal one.
    fn is(&self, other: &Member) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.scheme), Arc::as_ptr(&other.scheme))
    }
}

/// A chain can only be replaced by one with the same names in the same order, each declared in the same way: cards name the
/// schemes, and callers that the first one has verified are known by the place of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the schemes differ in name, order or what cards say of them; such a change needs a new server")]
#[non_exhaustive]
pub struct OtherSchemes;

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.current.load().list.iter().map(|member| &member.name)).finish()
    }
}

impl Default for Chain {
    fn default() -> Self {
        let throttle = Arc::new(Throttle::new(&ThrottleOptions::default()));
        Self::of(Schemes { list: Vec::new(), throttle, anonymous: Principal::anonymous() })
    }
}

impl Chain {
    /// Without schemes, every caller is anonymous.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often a caller may fail before being told to wait.
    #[must_use]
    pub fn throttle(self, options: &ThrottleOptions) -> Self {
        let throttle = Arc::new(Throttle::new(options));
        Self::of(Schemes { throttle, ..self.into_schemes() })
    }

    /// Adds a scheme. Cards name it by `name`; a second one with the same name replaces the first.
    #[must_use]
    pub fn scheme(self, name: &str, scheme: impl Scheme) -> Self {
        self.shared_scheme(name, Arc::new(scheme))
    }

    /// Adds a scheme that is used elsewhere, too: two chains with the same scheme share what it has cached.
    #[must_use]
    pub fn shared_scheme(self, name: &str, scheme: Arc<dyn Scheme>) -> Self {
        let mut schemes = self.into_schemes();
        let member = Member { name: name.to_owned(), scheme, record: CredentialRecord::new() };
        match schemes.place(name) {
            Some(at) => schemes.list[at] = member,
            None => schemes.list.push(member),
        }
        Self::of(schemes)
    }

    /// Takes over the schemes and the throttle of `other`, from the next request on. What the earlier schemes have verified is
    /// no longer valid, and open streams and calls of their callers are ended, unless `other` shares the scheme.
    pub fn replace(&self, other: Chain) -> Result<(), OtherSchemes> {
        if self.schemes() != other.schemes() {
            return Err(OtherSchemes);
        }
        let other = other.into_schemes();
        let before = self.current.rcu(|current| {
            let mut new = other.clone();
            for member in &mut new.list {
                if let Some(same) = current.list.iter().find(|old| old.is(member)) {
                    member.record = same.record.clone();
                }
            }
            new
        });
        // Said here and not left to the last reference: a request that is still being verified holds the old schemes.
        for old in before.list.iter().filter(|old| !other.list.iter().any(|member| member.is(old))) {
            old.record.end();
        }
        Ok(())
    }

    fn of(schemes: Schemes) -> Self {
        Chain { current: ArcSwap::from_pointee(schemes) }
    }

    fn into_schemes(self) -> Schemes {
        Arc::unwrap_or_clone(self.current.into_inner())
    }
}

impl Schemes {
    fn place(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|member| member.name == name)
    }

    /// The challenge of RFC 6750 that names the scopes a token needs; other kinds of credentials have none.
    fn more_scopes(&self, principal: &Principal, scopes: &str) -> Option<HeaderValue> {
        let (at, _) = principal.identities().first()?;
        let own = self.list[*at].scheme.challenge(None)?;
        let own = own.to_str().ok().filter(|own| own.starts_with("Bearer"))?;
        let comma = if own.contains(' ') { ", " } else { " " };
        HeaderValue::from_str(&format!("{own}{comma}error=\"insufficient_scope\", scope=\"{scopes}\"")).ok()
    }

    /// Compares what was verified with the requirements of an agent or a skill. `what` is for the log.
    fn allow(
        &self,
        principal: &Principal,
        requirements: &[SecurityRequirement],
        agent: &str,
        what: &str,
    ) -> Result<(), Challenge> {
        match met(requirements, principal.identities(), |name| self.place(name)) {
            Met::Yes => Ok(()),
            Met::WithoutScopes(scopes) => {
                let scopes = scopes.join(" ");
                let credential = principal.identities().first().map(|(_, identity)| &*identity.credential);
                audit::lacks_scopes(credential.unwrap_or_default(), agent, what, &scopes);
                let message = format!("The credential lacks the scope {scopes}");
                let challenge = Challenge::new(Error::new(ErrorKind::Forbidden, message));
                Err(match self.more_scopes(principal, &scopes) {
                    Some(header) => challenge.with_header(WWW_AUTHENTICATE, header),
                    None => challenge,
                })
            }
            Met::No => Err(self.challenge(requirements.iter(), &[])),
        }
    }

    /// Notes each refused credential, also beside a valid one. `Some`: the caller has failed too often.
    fn count_failures(&self, request: &AuthRequest<'_>, refused: &[(usize, Refusal)]) -> Option<Duration> {
        let (mut wait, mut counted) = (None, Vec::new());
        for (at, refusal) in refused {
            audit::refused(&self.list[*at].name, refusal, request.client.or(request.peer));
            // One credential may be refused by several schemes, and is one failure.
            if refusal.is_failure && !counted.contains(&&refusal.credential) {
                counted.push(&refusal.credential);
                let credential = refusal.credential.as_deref();
                wait = wait.max(self.throttle.failed(request.client, credential, Instant::now()));
            }
        }
        wait
    }

    /// Whether the credentials name different owners, although no agent requires these schemes together. Whoever can add a
    /// parameter or a cookie to another's request must not move it into an account of their own.
    fn names_two_owners(&self, request: &AuthRequest<'_>, verified: &[(usize, Identity)]) -> bool {
        let [(_, first), rest @ ..] = verified else { return false };
        if rest.iter().all(|(_, identity)| identity.owner == first.owner) {
            return false;
        }
        let has = |requirement: &SecurityRequirement, at: usize| {
            requirement.schemes.iter().any(|(name, _)| *name == self.list[at].name)
        };
        let together =
            |requirement: &SecurityRequirement| verified.iter().all(|(at, _)| has(requirement, *at));
        !request.cards().any(|card| card.security_requirements.iter().any(together))
    }

    /// 401 with the challenges of all schemes that `requirements` name, or of all if they name none.
    fn challenge<'a>(
        &self,
        requirements: impl Iterator<Item = &'a SecurityRequirement>,
        refused: &[(usize, Refusal)],
    ) -> Challenge {
        let mut named: Vec<_> = requirements
            .flat_map(|requirement| &requirement.schemes)
            .filter_map(|(scheme, _)| self.place(scheme))
            .collect();
        named.extend(refused.iter().map(|(at, _)| *at));
        if named.is_empty() {
            named.extend(0..self.list.len());
        }
        named.sort_unstable();
        named.dedup();
        let error = match refused.first() {
            Some((_, refusal)) => Error::new(
                ErrorKind::Unauthenticated,
                format!("The credential was refused: {}", refusal.reason),
            ),
            None => Error::of(ErrorKind::Unauthenticated),
        };
        let mut challenge = Challenge::new(error);
        for at in named {
            let refusal = refused.iter().find(|(place, _)| *place == at).map(|(_, refusal)| refusal);
            if let Some(value) = self.list[at].scheme.challenge(refusal) {
                challenge = challenge.with_header(WWW_AUTHENTICATE, value);
            }
        }
        challenge
    }

    async fn authenticate(&self, request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        if self.list.is_empty() {
            return Ok(self.anonymous.clone());
        }
        let (mut verified, mut refused, mut unavailable) = (Vec::new(), Vec::new(), None);
        let mut token_is_verified = false;
        for (at, Member { name, scheme, record }) in self.list.iter().enumerate() {
            if token_is_verified && scheme.takes_bearer_tokens() {
                continue;
            }
            match scheme.verify(request).await {
                Verdict::Absent => {}
                Verdict::Verified(identity)
                    if scheme.is_sent_by_browsers() && is_of_foreign_page(request) =>
                {
                    let refusal = Refusal::new("a page of another origin must not use it").not_a_failure();
                    refused.push((at, refusal.of(&*identity.credential)));
                }
                Verdict::Verified(identity) => {
                    token_is_verified |= scheme.takes_bearer_tokens();
                    let identity = identity.verified_by(record);
                    // It may have been revoked while it was verified, which can take seconds.
                    match identity.is_still_valid() {
                        true => verified.push((at, identity)),
                        false => refused.push((at, over(&identity))),
                    }
                }
                Verdict::Refused(refusal) => refused.push((at, refusal)),
                Verdict::Unavailable(why) => unavailable = Some(format!("{name}: {why}")),
            }
        }
        let wait = self.count_failures(request, &refused);
        if !verified.is_empty() {
            if self.names_two_owners(request, &verified) {
                let message = "The request has credentials of two different owners; send one of them";
                return Err(Challenge::new(Error::new(ErrorKind::Unauthenticated, message)));
            }
            let principal = Principal::verified(verified)?;
            // Where the path says which agent is called, its requirements need not wait for the body.
            return match request.only_card() {
                Some(card) => {
                    self.allow(&principal, &card.security_requirements, &request.agents[0], "a request")?;
                    Ok(principal.has_met(card.shared()))
                }
                None => Ok(principal),
            };
        }
        if let Some(why) = unavailable {
            let message = "The credential cannot be verified right now; try again";
            let error = Error::new(ErrorKind::Unavailable, message).with_log(why);
            return Err(error.with_retry_after(RETRY_AFTER).into());
        }
        let is_open = |requirement: &SecurityRequirement| requirement.schemes.is_empty();
        if refused.is_empty() && request.cards().any(|card| card.security_requirements.iter().any(is_open)) {
            return Ok(self.anonymous.clone());
        }
        if let Some(wait) = wait {
            return Err(Throttle::too_many(wait).into());
        }
        Err(self.challenge(request.requirements().iter().flatten(), &refused))
    }
}

/// Why a credential is refused that was valid before.
fn over(identity: &Identity) -> Refusal {
    Refusal::new("no longer valid").of(&*identity.credential).not_a_failure()
}

/// Whether a web page of another origin caused the request. Browsers say so in `Sec-Fetch-Site`; older ones send `Origin` at
/// least with everything but GET and HEAD. Other clients send neither.
fn is_of_foreign_page(request: &AuthRequest<'_>) -> bool {
    let text = |name: &str| request.headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if let Some(site) = text("sec-fetch-site") {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text("origin") else { return false };
    let own = request.uri.authority().map(|authority| authority.as_str()).or_else(|| text("host"));
    let (_, host) = origin.split_once("://").unwrap_or_default();
    host.is_empty() || own.is_none_or(|own| !own.eq_ignore_ascii_case(host))
}

#[async_trait]
impl Authenticator for Chain {
    async fn authenticate(&self, request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        self.current.load_full().authenticate(request).await
    }

    fn authorize(&self, principal: &Principal, access: &Access<'_>) -> Result<(), Challenge> {
        let schemes = self.current.load();
        if schemes.list.is_empty() {
            return Ok(());
        }
        // An agent that is open to everybody still shows its extended card to authenticated callers only.
        if access.operation == Operation::GetExtendedCard && principal.is_anonymous() {
            return Err(schemes.challenge(access.requirements.iter(), &[]));
        }
        // Compared before the body was read, and the card is still the same one.
        if access.skill.is_none() && access.card.is_some_and(|card| principal.meets(card)) {
            return Ok(());
        }
        schemes.allow(principal, access.requirements, access.agent, access.operation.facts().v1)
    }

    fn no_longer_valid(&self, principal: &Principal) -> Challenge {
        let over = |(at, identity): &(usize, Identity)| (*at, over(identity));
        let refused: Vec<_> = principal.identities().iter().map(over).collect();
        self.current.load().challenge([].into_iter(), &refused)
    }

    fn schemes(&self) -> Option<Vec<(String, SecurityScheme)>> {
        let schemes = self.current.load();
        Some(schemes.list.iter().map(|member| (member.name.clone(), member.scheme.declared())).collect())
    }

    fn enforces(&self) -> bool {
        !self.current.load().list.is_empty()
    }
}
