//! Agent cards: reads them from JSON, checks them against what is mounted, and fills in the server's addresses.

mod documents;
mod extended;
mod grpc_address;
mod mounted;
#[cfg(not(feature = "card-signing"))]
mod no_signing;
mod security;
#[cfg(feature = "card-signing")]
mod signing;

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, Guard};
use baton_protocol::domain::{AgentCard, AgentInterface, JsonObject, Timestamp};
use baton_protocol::generation::{AskedVersion, Generations};
use baton_protocol::wire::card::read_any;
use baton_protocol::{Error, Generation};
use http::HeaderMap;

pub(crate) use self::documents::Document;
use self::documents::SignedDocuments;
pub(crate) use self::extended::ExtendedCard;
pub use self::grpc_address::GrpcAddress;
pub(crate) use self::mounted::{Features, mounted};
#[cfg(not(feature = "card-signing"))]
pub(crate) use self::no_signing::{CardSigning, Signer};
pub(crate) use self::security::Enforced;
#[cfg(feature = "card-signing")]
pub(crate) use self::signing::Signer;
#[cfg(feature = "card-signing")]
pub use self::signing::{BadSigningKey, CardSigning, NotSigned, SigningKey};
use crate::mount::Place;
use crate::net::{IpRange, forwarded_base};
use crate::public_url::{PublicUrl, path_of};

/// Reads a card from JSON, in the spelling of any generation.
///
/// - A capability that the card does not declare is switched off: without `"capabilities": {"streaming": true}` the
///   agent does not stream.
/// - The versions that `supportedInterfaces` names are served; without that member all versions are. Its addresses are
///   ignored: the server fills in its own.
///
/// ```
/// let card = baton_server::card::read(
///     r#"{"name": "Dice", "description": "Rolls dice", "version": "1.0.0", "capabilities": {"streaming": true},
///         "skills": [{"id": "roll", "name": "Roll dice", "description": "Rolls one", "tags": ["dice"]}]}"#,
/// )?;
/// assert_eq!(card.skills[0].id, "roll");
/// # Ok::<(), baton_server::card::CardError>(())
/// ```
pub fn read(json: &str) -> Result<AgentCard, CardError> {
    let read = |text: &str| {
        read_any(text).map(|(generation, mut card)| {
            if generation != Generation::V1 {
                // The `url` of an older card is an address and does not choose which generations to serve. Interfaces
                // with a transport that this server does not have stay on the card, so that the check refuses them.
                card.interfaces.retain(|interface| !mounted::is_served(&interface.protocol_binding));
                for left in &mut card.interfaces {
                    left.protocol_version.clear();
                }
                // 1.0 has no such member, so only on an older card does leaving it out mean "no".
                card.capabilities.state_transition_history.get_or_insert(false);
            }
            card.capabilities.streaming.get_or_insert(false);
            card.capabilities.push_notifications.get_or_insert(false);
            card
        })
    };
    let object = JsonObject::parse(json).ok().filter(|object| !object.is_empty());
    let said = |member| object.as_ref().is_none_or(|object| object.get(member).is_some());
    let found = match &object {
        // A card without an address. The reader requires one, so add one: first in the form of a 1.0 card, then in that
        // of a 0.3 card, which spells its security schemes differently.
        Some(object) if !["url", "supportedInterfaces", "supported_interfaces"].into_iter().any(said) => {
            let rest = &object.as_str()[1..];
            let version = if said("protocolVersion") { "" } else { r#""protocolVersion":"0.3","# };
            let older = format!(r#"{{"url":"http://localhost/",{version}{rest}"#);
            read(&format!(r#"{{"supportedInterfaces":[],{rest}"#))
                .or_else(|error| read(&older).map_err(|_| error))
        }
        _ => read(json),
    };
    found.map_err(CardError)
}

/// Why a text is not a valid card. Names the member and the problem; the source is the reader's error.
#[derive(Debug, Clone, thiserror::Error)]
#[error("not a valid agent card: {}", .0.to_string().trim_start_matches("Invalid response: "))]
pub struct CardError(#[source] Error);

/// An interface on the card has a version that this server does not speak.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("supportedInterfaces: protocolVersion {:?} is none this server speaks ({})", .0, Generations::ALL.versions())]
pub struct UnknownVersion(String);

/// The generations that a card allows: the versions of its interfaces, or all if it names none.
pub fn generations(card: &AgentCard) -> Result<Generations, UnknownVersion> {
    let mut named = Vec::new();
    for interface in &card.interfaces {
        let version = &interface.protocol_version;
        match AskedVersion::read(Some(version), None) {
            AskedVersion::Known(generation) => named.push(generation),
            AskedVersion::Unsaid => {}
            AskedVersion::Unknown(_) => {
                return Err(UnknownVersion(version.chars().take(32).collect()));
            }
        }
    }
    Ok(if named.is_empty() { Generations::ALL } else { Generations::of(named) })
}

/// The card as it is served.
#[derive(Debug)]
pub(crate) struct ServedCard {
    /// The current card; replaced as a whole by [`ServedCard::replace`].
    edition: ArcSwap<Edition>,
    address: Address,
    /// `https://host:port` of the listener, once it is bound.
    listening: OnceLock<String>,
}

/// What is known about the agent's address before the listener is bound.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) public_url: Option<PublicUrl>,
    /// Proxies whose forwarding headers are trusted.
    pub(crate) trusted: Vec<IpRange>,
    pub(crate) place: Place,
    /// What the server's own listener speaks: `http` or `https`.
    pub(crate) scheme: &'static str,
    /// `None`: the server does not speak gRPC.
    pub(crate) grpc: Option<GrpcAddress>,
}

/// One version of the card.
#[derive(Debug)]
struct Edition {
    declared: Arc<AgentCard>,
    generations: Generations,
    /// The card with its addresses, once they are known to be the same for every request.
    complete: OnceLock<Arc<AgentCard>>,
    made_at: SystemTime,
    /// Its documents are signed. Only on a server with a public URL.
    signer: Option<Arc<Signer>>,
    signed: SignedDocuments,
}

/// A guard on the declared card. Hold it only briefly: it keeps this edition in memory.
pub(crate) struct Declared(Guard<Arc<Edition>>);

impl Declared {
    /// The card, to keep.
    pub(crate) fn shared(&self) -> &Arc<AgentCard> {
        &self.0.declared
    }
}

impl Deref for Declared {
    type Target = AgentCard;

    fn deref(&self) -> &AgentCard {
        &self.0.declared
    }
}

impl ServedCard {
    /// `made_at` is when the server began to serve this card.
    pub(crate) fn new(
        card: AgentCard,
        address: Address,
        made_at: Timestamp,
        signer: Option<Arc<Signer>>,
    ) -> Self {
        let edition = Edition::new(Arc::new(card), whole_seconds(made_at), signer);
        ServedCard { edition: ArcSwap::from_pointee(edition), address, listening: OnceLock::new() }
    }

    /// Serves another card from now on.
    pub(crate) fn replace(&self, card: AgentCard, now: Timestamp) {
        let signer = self.edition.load().signer.clone();
        self.put(Arc::new(card), signer, now);
    }

    /// Signs the card in this way from now on.
    #[cfg(feature = "card-signing")]
    pub(crate) fn sign_with(&self, signer: Option<Arc<Signer>>, now: Timestamp) {
        let card = Arc::clone(&self.edition.load().declared);
        self.put(card, signer, now);
    }

    fn put(&self, card: Arc<AgentCard>, signer: Option<Arc<Signer>>, now: Timestamp) {
        // `Last-Modified` has whole seconds. Two editions must not share one, or a cache would keep the earlier card.
        let made_at = whole_seconds(now).max(self.made_at() + Duration::from_secs(1));
        self.edition.store(Arc::new(Edition::new(card, made_at, signer)));
    }

    /// When this edition was first served, in whole seconds like HTTP dates.
    pub(crate) fn made_at(&self) -> SystemTime {
        self.edition.load().made_at
    }

    /// Sets the address of the listener, which clients are given unless a public URL is set.
    pub(crate) fn listening_at(&self, address: SocketAddr) {
        // A client cannot connect to the unspecified address.
        let host = match address {
            SocketAddr::V4(v4) if v4.ip().is_unspecified() => "127.0.0.1".to_owned(),
            SocketAddr::V4(v4) => v4.ip().to_string(),
            SocketAddr::V6(v6) if v6.ip().is_unspecified() => "[::1]".to_owned(),
            SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
        };
        let scheme = self.address.scheme;
        let _ = self.listening.set(format!("{scheme}://{host}:{}", address.port()));
    }

    /// Whether the server speaks gRPC.
    #[cfg(feature = "grpc")]
    pub(crate) fn has_grpc(&self) -> bool {
        self.address.grpc.is_some()
    }

    /// Whether clients of gRPC reach the agent.
    pub(crate) fn takes_grpc(&self) -> bool {
        self.address.takes_grpc()
    }

    /// Whether the card tells them so.
    pub(crate) fn tells_grpc(&self) -> bool {
        self.takes_grpc() && self.address.grpc != Some(GrpcAddress::Hidden)
    }

    /// The generations that clients may speak.
    pub(crate) fn generations(&self) -> Generations {
        self.edition.load().generations
    }

    /// What the card declares. Its interfaces name versions, not addresses.
    pub(crate) fn declared(&self) -> Declared {
        Declared(self.edition.load())
    }

    /// The card with its addresses. They come from, in this order: the public URL, the headers of a trusted proxy, the
    /// listener's address, and last the request's own `host` with the path below which the router was nested.
    pub(crate) fn complete(
        &self,
        peer: Option<IpAddr>,
        host: Option<&str>,
        nested_at: &str,
        headers: &HeaderMap,
    ) -> Arc<AgentCard> {
        self.complete_of(&self.edition.load(), peer, host, nested_at, headers)
    }

    /// A document with the complete card in it, signed if cards are.
    pub(crate) fn document(
        &self,
        document: Document,
        peer: Option<IpAddr>,
        host: Option<&str>,
        nested_at: &str,
        headers: &HeaderMap,
    ) -> Vec<u8> {
        let edition = self.edition.load();
        let card = self.complete_of(&edition, peer, host, nested_at, headers);
        match &edition.signer {
            // With a public URL, the card is the same for every request.
            Some(signer) => edition.signed.get(document, &card, signer),
            None => document.of(&card),
        }
    }

    /// A card made for one caller, signed if cards are: in the form of 1.0.
    pub(crate) fn signed_v1(&self, card: AgentCard) -> AgentCard {
        match &self.edition.load().signer {
            Some(signer) => signer.sign_v1(card),
            None => card,
        }
    }

    fn complete_of(
        &self,
        edition: &Edition,
        peer: Option<IpAddr>,
        host: Option<&str>,
        nested_at: &str,
        headers: &HeaderMap,
    ) -> Arc<AgentCard> {
        let address = &self.address;
        // Below a path that the server does not know of there is an application, which gets calls for another path. The path
        // that a proxy adds is its own business, as that of a public URL is.
        let below = address.public_url.is_none() && !nested_at.is_empty();
        if let Some(base) = address.forwarded_address(peer, headers) {
            return Arc::new(address.complete(edition, &base, true, below));
        }
        if let Some(card) = edition.complete.get() {
            return Arc::clone(card);
        }
        let at = |base: &str, slash| Arc::new(address.complete(edition, base, slash, below));
        match self.known_base() {
            Some(base) => {
                let slash = address.public_url.as_ref().is_some_and(PublicUrl::ends_with_slash);
                Arc::clone(edition.complete.get_or_init(|| at(base, slash)))
            }
            // Mounted in an application with its own listener: only the request tells its address. axum does not route
            // the path with a trailing slash to a nested router.
            None => at(&address.of_request(host, nested_at), false),
        }
    }

    /// Another card of this agent, the extended one, with the addresses of this card.
    pub(crate) fn with_addresses(
        &self,
        mut card: AgentCard,
        peer: Option<IpAddr>,
        host: Option<&str>,
        nested_at: &str,
        headers: &HeaderMap,
    ) -> AgentCard {
        card.interfaces.clone_from(&self.complete(peer, host, nested_at, headers).interfaces);
        card
    }

    /// The address without the agent's own path, by the same rules as [`complete`](Self::complete).
    pub(crate) fn base(
        &self,
        peer: Option<IpAddr>,
        host: Option<&str>,
        nested_at: &str,
        headers: &HeaderMap,
    ) -> String {
        let forwarded = self.address.forwarded_address(peer, headers);
        let known = || self.known_base().map(str::to_owned);
        forwarded.or_else(known).unwrap_or_else(|| self.address.of_request(host, nested_at))
    }

    /// The public address, or where the server listens; without a slash at the end.
    fn known_base(&self) -> Option<&str> {
        let public = self.address.public_url.as_ref().map(PublicUrl::base);
        public.or_else(|| self.listening.get().map(String::as_str))
    }
}

impl Edition {
    fn new(declared: Arc<AgentCard>, made_at: SystemTime, signer: Option<Arc<Signer>>) -> Self {
        // Checked when the card was mounted.
        let generations = generations(&declared).unwrap_or(Generations::ALL);
        let (complete, signed) = (OnceLock::new(), SignedDocuments::default());
        Edition { declared, generations, complete, made_at, signer, signed }
    }
}

fn whole_seconds(at: Timestamp) -> SystemTime {
    let seconds = u64::try_from(at.as_millis() / 1000).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

impl Address {
    fn of_request(&self, host: Option<&str>, nested_at: &str) -> String {
        format!("{}://{}{nested_at}", self.scheme, host.unwrap_or("localhost"))
    }

    /// The address that a trusted proxy's headers give. Not used if a public URL is set.
    fn forwarded_address(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<String> {
        let peer = peer.filter(|_| self.public_url.is_none())?;
        if self.trusted.iter().any(|range| range.contains(peer)) { forwarded_base(headers) } else { None }
    }

    /// The card with its interfaces, for a server reached at `base`. `slash`: JSON-RPC is called at `base` with a slash
    /// at the end. `below`: only a part of the paths at `base` leads here.
    fn complete(&self, edition: &Edition, base: &str, slash: bool, below: bool) -> AgentCard {
        let (mut card, served) = (AgentCard::clone(&edition.declared), edition.generations);
        let own = format!("{base}{}", self.place.prefix());
        let tenant = self.place.tenant().map(|tenant| tenant.to_string());
        // JSON-RPC first, and 1.0 before 0.3: clients use the first interface they support.
        let interface = |binding: &str, url: String, generation: Generation| AgentInterface {
            url,
            protocol_binding: binding.to_owned(),
            protocol_version: generation.version().to_owned(),
            tenant: tenant.clone().filter(|_| generation == Generation::V1),
        };
        // Clients that send the tenant call the root; clients of older generations, which cannot, call the agent's path.
        let first = if tenant.is_some() { base } else { &own };
        let bare = !slash && !path_of(base).is_empty();
        let jsonrpc_url = |at: &str| if bare && at == base { at.to_owned() } else { format!("{at}/") };
        let mut all = vec![
            (Generation::V1, "JSONRPC", jsonrpc_url(first)),
            (Generation::V0_3, "JSONRPC", jsonrpc_url(&own)),
            (Generation::V1, "HTTP+JSON", first.to_owned()),
            (Generation::V0_3, "HTTP+JSON", own.clone()),
        ];
        if !served.has(Generation::V0_3) {
            // 0.1 gets an interface of its own only here: with 0.3 on the card its clients use that interface.
            all.push((Generation::V0_1, "JSONRPC", jsonrpc_url(&own)));
        }
        if !below {
            all.extend(self.of_grpc(base));
        }
        let all = all.into_iter().filter(|(generation, ..)| served.has(*generation));
        card.interfaces = all.map(|(generation, binding, url)| interface(binding, url, generation)).collect();
        card
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p08_a_card_file_is_read_in_any_generations_spelling() {
        let own = r#""name": "n", "description": "d", "version": "1", "skills": [{"id": "s", "name": "s", "description": "s"}]"#;
        for (more, schemes) in [
            ("", 0),
            (r#", "supportedInterfaces": []"#, 0),
            (r#", "url": "http://a.example""#, 0),
            (r#", "url": "http://a.example", "protocolVersion": "0.3.0""#, 0),
            (
                r#", "securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header", "name": "k"}}}"#,
                1,
            ),
            (r#", "securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "k"}}"#, 1),
        ] {
            let card = read(&format!("{{{own}{more}}}")).unwrap_or_else(|error| panic!("{more}: {error}"));
            assert_eq!((card.name.as_str(), card.skills.len()), ("n", 1), "{more}");
            assert_eq!(card.security_schemes.len(), schemes, "{more}");
        }
        for (text, named) in [
            ("{}", "name is required"),
            (r#"{"name": "n"}"#, "description is required"),
            (r#"{"name": 1, "description": "d", "version": "1"}"#, "name must be"),
            ("[]", "must be an object"),
            ("{", "not valid JSON"),
        ] {
            let refused = read(text).unwrap_err().to_string();
            assert!(
                refused.starts_with("not a valid agent card: ") && refused.contains(named),
                "{text}: {refused}"
            );
        }
    }
}
