//! Chooses where to call an agent: the first interface of its card that fits, in the card's order or the caller's.

use std::fmt;

use baton_protocol::Generation;
use baton_protocol::domain::{AgentCard, AgentInterface};
use baton_protocol::generation::AskedVersion;
use baton_protocol::wire::dialect::Dialect;
use reqwest::Url;

use crate::address::{self, without_secrets};
use crate::origin::Origin;
use crate::transport::NOT_BUILT_IN;
#[cfg(feature = "grpc")]
use crate::transport::grpc;

/// How calls travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// HTTP methods and paths, JSON bodies.
    HttpJson,
    /// gRPC, if the library is built with the feature `grpc`; otherwise it is never chosen.
    Grpc,
}

impl Binding {
    /// As on cards.
    pub fn name(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }

    /// By the name on a card, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::JsonRpc, Self::HttpJson, Self::Grpc]
            .into_iter()
            .find(|it| it.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the caller wants. Empty lists leave the choice to the card's order, as the specification asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preference {
    /// Only these bindings, the best first.
    pub bindings: Vec<Binding>,
    /// Only these versions, the best first.
    pub versions: Vec<Generation>,
    /// Speak this version, whatever versions the card lists. For agents whose card says less than they do: servers of 0.1
    /// have no way to say it, and some of 0.2 have cards that look like those of 0.1.
    pub assume: Option<Generation>,
    /// Call `http` addresses even if the card came by https.
    pub allow_downgrade: bool,
    /// Speak gRPC without TLS to addresses that have no scheme. Otherwise that is done only with this machine, and with the
    /// host and port that gave the card without TLS.
    pub grpc_plaintext: bool,
}

/// A place where the agent can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub(crate) url: Url,
    /// The address as on the card.
    pub(crate) listed: String,
    pub(crate) binding: Binding,
    pub(crate) generation: Generation,
    pub(crate) tenant: Option<String>,
}

impl Interface {
    /// Its address.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Its address as the card writes it: for gRPC, a host and a port.
    pub fn listed_url(&self) -> &str {
        &self.listed
    }

    /// The same for showing it to people: without its query, which may hold an API key.
    pub fn shown_url(&self) -> String {
        without_secrets(&self.url)
    }

    /// How calls travel.
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// The version of the protocol.
    pub fn version(&self) -> Generation {
        self.generation
    }

    /// Sent with each call.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// The encoding of its calls and answers.
    pub fn dialect(&self) -> Dialect {
        match self.binding {
            // The JSON of gRPC's messages is that of HTTP+JSON.
            Binding::HttpJson | Binding::Grpc => Dialect::in_http_json(self.generation),
            Binding::JsonRpc => Dialect::in_jsonrpc(self.generation),
        }
    }
}

/// No interface of the card fits: says what the card offers, and why each does not do.
#[derive(Debug, Clone)]
pub struct NoInterface {
    /// What was wanted, in words.
    pub wanted: String,
    /// Each interface of the card with the reason.
    pub offered: Vec<(AgentInterface, String)>,
}

impl fmt::Display for NoInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no interface of the card fits (wanted: {})", self.wanted)?;
        if self.offered.is_empty() {
            return f.write_str("; the card lists none");
        }
        for (at, (interface, why)) in self.offered.iter().enumerate() {
            let AgentInterface { url, protocol_binding, protocol_version, .. } = interface;
            let before = if at == 0 { "; offered:" } else { "," };
            write!(f, "{before} {protocol_binding} {protocol_version} at {} ({why})", address::typed(url))?;
        }
        Ok(())
    }
}

impl std::error::Error for NoInterface {}

/// All interfaces that fit, the best first; the others are there in case it cannot be reached. `origin` is where the card
/// came from, and `generation` the form it has.
pub fn choose(
    card: &AgentCard,
    generation: Generation,
    origin: Option<&Origin>,
    preference: &Preference,
) -> Result<Vec<Interface>, NoInterface> {
    let mut fitting = Vec::new();
    let mut offered = Vec::new();
    for interface in &card.interfaces {
        match fits(interface, generation, origin, preference) {
            Ok(found) => fitting.push(found),
            Err(why) => offered.push((interface.clone(), why)),
        }
    }
    if fitting.is_empty() {
        return Err(NoInterface { wanted: wanted(preference), offered });
    }
    let place = |interface: &Interface| {
        let binding = preference.bindings.iter().position(|it| *it == interface.binding);
        let version = preference.versions.iter().position(|it| *it == interface.generation);
        (binding, version)
    };
    // Stable: otherwise the card's order holds.
    fitting.sort_by_key(place);
    // The same address for several versions, and one version assumed.
    fitting.dedup();
    Ok(fitting)
}

fn fits(
    interface: &AgentInterface,
    generation: Generation,
    origin: Option<&Origin>,
    preference: &Preference,
) -> Result<Interface, String> {
    let AgentInterface { url, protocol_binding, protocol_version, tenant } = interface;
    let binding = Binding::parse(protocol_binding).ok_or("this binding is not known")?;
    if binding == Binding::Grpc && !cfg!(feature = "grpc") {
        return Err(NOT_BUILT_IN.to_owned());
    }
    let generation = match (preference.assume, AskedVersion::read(Some(protocol_version), None)) {
        (Some(assumed), _) => assumed,
        (None, AskedVersion::Known(known)) => known,
        (None, AskedVersion::Unsaid) => generation,
        (None, AskedVersion::Unknown(_)) => return Err("this version is not known".to_owned()),
    };
    if generation == Generation::V0_1 && binding != Binding::JsonRpc {
        return Err("protocol 0.1 has JSON-RPC only".to_owned());
    }
    if !preference.bindings.is_empty() && !preference.bindings.contains(&binding) {
        return Err("another binding is wanted".to_owned());
    }
    if !preference.versions.is_empty() && !preference.versions.contains(&generation) {
        return Err("another version is wanted".to_owned());
    }
    let listed = url.clone();
    let url = match binding {
        #[cfg(feature = "grpc")]
        Binding::Grpc => grpc::parse_address(url, origin, preference.grpc_plaintext)?,
        _ => Url::parse(url).map_err(|error| format!("its address cannot be read: {error}"))?,
    };
    let own = Origin::of(&url).ok_or("its address is not http or https")?;
    let is_plain_grpc = binding == Binding::Grpc && preference.grpc_plaintext && !listed.contains("://");
    let allows = preference.allow_downgrade || is_plain_grpc;
    if origin.is_some_and(Origin::is_secure) && !own.is_secure() && !allows {
        return Err("the card came by https, and this is http".to_owned());
    }
    let tenant = tenant.clone().filter(|tenant| !tenant.is_empty() && generation == Generation::V1);
    Ok(Interface { url, listed, binding, generation, tenant })
}

fn wanted(preference: &Preference) -> String {
    let join =
        |items: Vec<&str>, any: &str| if items.is_empty() { any.to_owned() } else { items.join(" or ") };
    let all = if cfg!(feature = "grpc") { "JSONRPC, HTTP+JSON or GRPC" } else { "JSONRPC or HTTP+JSON" };
    let bindings = join(preference.bindings.iter().map(|it| it.name()).collect(), all);
    let versions = join(preference.versions.iter().map(|it| it.version()).collect(), "1.0, 0.3 or 0.1");
    format!("{bindings}, protocol {versions}")
}

#[cfg(test)]
#[cfg(feature = "grpc")]
mod tests {
    use super::*;

    fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
        let mut card = AgentCard::new("a", "b", "1");
        card.interfaces = interfaces
            .iter()
            .map(|(url, binding, version)| AgentInterface {
                url: (*url).to_owned(),
                protocol_binding: (*binding).to_owned(),
                protocol_version: (*version).to_owned(),
                tenant: Some("acme".to_owned()),
            })
            .collect();
        card
    }

    fn chosen(card: &AgentCard, preference: &Preference) -> Vec<String> {
        let https = Origin::parse("https://h").unwrap();
        match choose(card, Generation::V1, Some(&https), preference) {
            Ok(all) => all
                .iter()
                .map(|it| format!("{} {} {:?}", it.binding, it.generation.version(), it.tenant()))
                .collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    #[test]
    fn p09_the_cards_order_decides_unless_the_caller_has_one() {
        let card = card(&[
            ("grpc.h:443", "GRPC", "1.0"),
            ("https://h/rest", "HTTP+JSON", "1.0"),
            ("https://h/rpc", "JSONRPC", "1.0.1"),
            ("https://h/rpc", "JSONRPC", "0.3.0"),
        ]);
        let all = [
            "GRPC 1.0 Some(\"acme\")",
            "HTTP+JSON 1.0 Some(\"acme\")",
            "JSONRPC 1.0 Some(\"acme\")",
            "JSONRPC 0.3 None",
        ];
        assert_eq!(chosen(&card, &Preference::default()), all);
        let rpc_first =
            Preference { bindings: vec![Binding::JsonRpc, Binding::HttpJson], ..Preference::default() };
        assert_eq!(chosen(&card, &rpc_first), [all[2], all[3], all[1]]);
        let old = Preference { versions: vec![Generation::V0_3], ..Preference::default() };
        assert_eq!(chosen(&card, &old), [all[3]]);
    }

    #[test]
    fn p09_what_does_not_fit_is_said() {
        let card = card(&[
            ("dns:///grpc.h", "GRPC", "1.0"),
            ("localhost:3000", "GRPC", "0.3"),
            ("http://h/rpc", "JSONRPC", "1.0"),
            ("https://h/rpc", "JSONRPC", "2.0"),
            ("https://h/x", "https://x.example/binding", "1.0"),
        ]);
        let said = chosen(&card, &Preference::default()).concat();
        for part in [
            "GRPC 1.0 at dns:///grpc.h (its address is none of host:port, http, https, grpc or grpcs)",
            "GRPC 0.3 at localhost:3000 (the card came by https, and this is http)",
            "http://h/rpc (the card came by https, and this is http)",
            "2.0 at https://h/rpc (this version is not known)",
            "(this binding is not known)",
        ] {
            assert!(said.contains(part), "{said}");
        }
        let downgrade = Preference { allow_downgrade: true, ..Preference::default() };
        assert_eq!(chosen(&card, &downgrade), ["GRPC 0.3 None", "JSONRPC 1.0 Some(\"acme\")"]);
        let plaintext = Preference { grpc_plaintext: true, ..Preference::default() };
        assert_eq!(chosen(&card, &plaintext), ["GRPC 0.3 None"]);
    }
}
