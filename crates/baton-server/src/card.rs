//! Agent cards: read from files, and made to say what is mounted and enforced, no more, no less.

mod mounted;

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, Guard};
use baton_protocol::Generation;
use baton_protocol::domain::{AgentCard, AgentInterface, JsonObject, Timestamp};
use baton_protocol::generation::{AskedVersion, Generations};
use baton_protocol::wire::card::read_any;
use http::HeaderMap;

pub(crate) use self::mounted::mounted;
use crate::mount::Place;
use crate::proxy::{IpRange, forwarded_base};

/// Reads a card from JSON, in the spelling of any generation.
///
/// - A capability that it does not declare is switched off: without `"capabilities": {"streaming": true}` the agent
///   does not stream.
/// - The versions that `supportedInterfaces` name are those that are served; without that member all are. Addresses need
///   not be right: the server fills them in.
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
                // The `url` of an older card says where its agent was, not which generations to serve. A transport that
                // cannot be served stays on it, to be refused.
                card.interfaces.retain(|interface| !mounted::is_served(&interface.protocol_binding));
                // 1.0 has no word for it, so only an older card can leave it out.
                card.capabilities.state_transition_history.get_or_insert(false);
            }
            card.capabilities.streaming.get_or_insert(false);
            card
        })
    };
    let object = JsonObject::parse(json).ok().filter(|object| !object.is_empty());
    let said = |member| object.as_ref().is_none_or(|object| object.get(member).is_some());
    let found = match &object {
        // A card from the network has to say where its agent listens. This one will be told: first as a card of 1.0
        // would be, then as one of 0.3, whose schemes are spelled otherwise.
        Some(object) if !["url", "supportedInterfaces", "supported_interfaces"].into_iter().any(said) => {
            let rest = &object.as_str()[1..];
            let version = if said("protocolVersion") { "" } else { r#""protocolVersion":"0.3","# };
            let older = format!(r#"{{"url":"http://localhost/",{version}{rest}"#);
            read(&format!(r#"{{"supportedInterfaces":[],{rest}"#))
                .or_else(|error| read(&older).map_err(|_| error))
        }
        _ => read(json),
    };
    found.map_err(|error| CardError(error.to_string().trim_start_matches("Invalid response: ").to_owned()))
}

/// Why a text is no card: which member, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no agent card: {0}")]
pub struct CardError(String);

/// The generations a card lets clients speak: the versions of its interfaces, or all when it names none. Where they
/// are is filled in by the server.
pub fn generations(card: &AgentCard) -> Result<Generations, String> {
    let mut named = Vec::new();
    for interface in &card.interfaces {
        let version = &interface.protocol_version;
        match AskedVersion::read(Some(version), None) {
            AskedVersion::Known(generation) => named.push(generation),
            AskedVersion::Unsaid => {}
            AskedVersion::Unknown(_) => {
                let version: String = version.chars().take(32).collect();
                let spoken = Generations::ALL.versions();
                return Err(format!(
                    "supportedInterfaces: protocolVersion {version:?} is none this server speaks ({spoken})"
                ));
            }
        }
    }
    Ok(if named.is_empty() { Generations::ALL } else { Generations::of(named) })
}

/// The card as it is served.
#[derive(Debug)]
pub(crate) struct ServedCard {
    /// Replaced as a whole when the card is.
    edition: ArcSwap<Edition>,
    address: Address,
    listening: OnceLock<String>,
}

/// What is known about the address before anybody listens.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// Without a slash at the end…
    pub(crate) public_url: Option<String>,
    /// …which was there, and is part of the address then: who passes on `/x` may not pass on `/x/`, nor the other way.
    pub(crate) ends_with_slash: bool,
    /// Proxies whose word on the public address counts.
    pub(crate) trusted: Vec<IpRange>,
    pub(crate) place: Place,
}

#[derive(Debug)]
struct Edition {
    declared: Arc<AgentCard>,
    generations: Generations,
    complete: OnceLock<Arc<AgentCard>>,
    made_at: SystemTime,
}

/// What a card declares, for as long as a question about it takes.
pub(crate) struct Declared(Guard<Arc<Edition>>);

impl Deref for Declared {
    type Target = AgentCard;

    fn deref(&self) -> &AgentCard {
        &self.0.declared
    }
}

impl ServedCard {
    /// `made_at` is when the server began to serve this card.
    pub(crate) fn new(card: AgentCard, address: Address, made_at: Timestamp) -> Self {
        let edition = Edition::new(card, whole_seconds(made_at));
        ServedCard { edition: ArcSwap::from_pointee(edition), address, listening: OnceLock::new() }
    }

    /// Serves another card from now on.
    pub(crate) fn replace(&self, card: AgentCard, now: Timestamp) {
        // Dates have whole seconds: two editions must not share one, or a cache would take the later for the earlier.
        let made_at = whole_seconds(now).max(self.made_at() + Duration::from_secs(1));
        self.edition.store(Arc::new(Edition::new(card, made_at)));
    }

    /// In whole seconds, as HTTP dates are.
    pub(crate) fn made_at(&self) -> SystemTime {
        self.edition.load().made_at
    }

    /// Told by the listener; the address clients are given unless a public one is set.
    pub(crate) fn listening_at(&self, address: SocketAddr) {
        // "Any address" is nowhere a client could go.
        let host = match address {
            SocketAddr::V4(v4) if v4.ip().is_unspecified() => "127.0.0.1".to_owned(),
            SocketAddr::V4(v4) => v4.ip().to_string(),
            SocketAddr::V6(v6) if v6.ip().is_unspecified() => "[::1]".to_owned(),
            SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
        };
        let _ = self.listening.set(format!("http://{host}:{}", address.port()));
    }

    /// What clients may speak.
    pub(crate) fn generations(&self) -> Generations {
        self.edition.load().generations
    }

    /// What the card declares. Its interfaces name versions, not addresses.
    pub(crate) fn declared(&self) -> Declared {
        Declared(self.edition.load())
    }

    /// The whole card. A trusted proxy tells where the asker found it, unless the address is set; the request's
    /// own `host`, and the path below which a router was nested, are used only when nothing better is known.
    pub(crate) fn complete(
        &self,
        peer: Option<IpAddr>,
        host: Option<&str>,
        nested_at: &str,
        headers: &HeaderMap,
    ) -> Arc<AgentCard> {
        let (edition, address) = (self.edition.load(), &self.address);
        if let Some(base) = address.told_by_proxy(peer, headers) {
            return Arc::new(address.complete(&edition, &base, true));
        }
        if let Some(card) = edition.complete.get() {
            return Arc::clone(card);
        }
        let at = |base: &str, slash| Arc::new(address.complete(&edition, base, slash));
        match address.public_url.as_ref().or(self.listening.get()) {
            Some(base) => Arc::clone(edition.complete.get_or_init(|| at(base, address.ends_with_slash))),
            // Mounted in somebody's own application: where that listens only the request tells. A nested router is
            // not asked for what is at the path with a slash.
            None => at(&base_of_request(host, nested_at), false),
        }
    }

    /// The address before the agent's own path, by the same rules.
    pub(crate) fn base(
        &self,
        peer: Option<IpAddr>,
        host: Option<&str>,
        nested_at: &str,
        headers: &HeaderMap,
    ) -> String {
        let known = || self.address.public_url.as_ref().or(self.listening.get()).cloned();
        let told = self.address.told_by_proxy(peer, headers);
        told.or_else(known).unwrap_or_else(|| base_of_request(host, nested_at))
    }
}

impl Edition {
    fn new(card: AgentCard, made_at: SystemTime) -> Self {
        // Checked when the card was mounted.
        let generations = generations(&card).unwrap_or(Generations::ALL);
        Edition { declared: Arc::new(card), generations, complete: OnceLock::new(), made_at }
    }
}

fn whole_seconds(at: Timestamp) -> SystemTime {
    let seconds = u64::try_from(at.as_millis() / 1000).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// The path of a public URL, without a slash at the end; empty when it has none.
pub(crate) fn base_path(public_url: Option<&str>) -> &str {
    let after_scheme = public_url.and_then(|url| url.split_once("://"));
    let path = after_scheme.and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
    path.unwrap_or_default().trim_end_matches('/')
}

fn base_of_request(host: Option<&str>, nested_at: &str) -> String {
    format!("http://{}{nested_at}", host.unwrap_or("localhost"))
}

impl Address {
    fn told_by_proxy(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<String> {
        let peer = peer.filter(|_| self.public_url.is_none())?;
        if self.trusted.iter().any(|range| range.contains(peer)) { forwarded_base(headers) } else { None }
    }

    /// The card with its interfaces, for a server reached at `base`, with a slash behind its path or without.
    fn complete(&self, edition: &Edition, base: &str, slash: bool) -> AgentCard {
        let (mut card, served) = (AgentCard::clone(&edition.declared), edition.generations);
        let own = format!("{base}{}", self.place.prefix());
        let tenant = self.place.tenant().map(|tenant| tenant.to_string());
        // JSON-RPC first, and 1.0 before 0.3: clients take the first they know.
        let interface = |binding: &str, url: String, generation: Generation| AgentInterface {
            url,
            protocol_binding: binding.to_owned(),
            protocol_version: generation.version().to_owned(),
            tenant: tenant.clone().filter(|_| generation == Generation::V1),
        };
        // Who sends the tenant along speaks to the root; who knows none needs a path of the agent's own.
        let first = if tenant.is_some() { base } else { &own };
        let bare = !slash && !base_path(Some(base)).is_empty();
        let door = |at: &str| if bare && at == base { at.to_owned() } else { format!("{at}/") };
        let mut all = vec![
            (Generation::V1, "JSONRPC", door(first)),
            (Generation::V0_3, "JSONRPC", door(&own)),
            (Generation::V1, "HTTP+JSON", first.to_owned()),
            (Generation::V0_3, "HTTP+JSON", own.clone()),
        ];
        if !served.has(Generation::V0_3) {
            // As a rule those of 0.1 go where those of 0.3 go.
            all.push((Generation::V0_1, "JSONRPC", door(&own)));
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
                refused.starts_with("this is no agent card: ") && refused.contains(named),
                "{text}: {refused}"
            );
        }
    }
}
