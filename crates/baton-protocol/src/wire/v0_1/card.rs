//! Reads and writes the agent card of 0.1.
//!
//! 0.1 names authentication schemes without describing them. The protocol guide puts the two facts that a client needs
//! (a token URL, a header's name) under `credentials`, and so does this card.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};

use super::V0_1;
use crate::domain::security::{
    ApiKeyLocation, OAuthFlow, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme,
};
use crate::domain::{AgentCapabilities, AgentCard, AgentInterface, AgentProvider, AgentSkill};
use crate::generation::{AskedVersion, Generation};
use crate::wire::read::{FromWire, one, optional, or_default, text, twin};
use crate::wire::write::Object;

/// What a 0.1 card contains that the domain's card does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LegacyCardFacts {
    /// The JSON-RPC address of the older generations. If `None`, it is taken from the card's interfaces.
    pub url: Option<String>,
}

pub(in crate::wire) const JSONRPC: &str = "JSONRPC";

/// The URL of a 0.1 card: that of a 0.1 interface, else of the most similar one.
pub(in crate::wire) fn legacy_url<'a>(card: &'a AgentCard, facts: &'a LegacyCardFacts) -> &'a str {
    let of = |generation| {
        let spoken = AskedVersion::Known(generation);
        card.interfaces.iter().find(|it| {
            it.protocol_binding == JSONRPC && AskedVersion::read(Some(&it.protocol_version), None) == spoken
        })
    };
    let any = || card.interfaces.iter().find(|it| it.protocol_binding == JSONRPC).or(card.interfaces.first());
    match &facts.url {
        Some(url) => url,
        None => {
            let nearest = of(Generation::V0_1).or_else(|| of(Generation::V0_3)).or_else(any);
            nearest.map_or("", |it| it.url.as_str())
        }
    }
}

pub fn write_card(out: &mut Vec<u8>, card: &AgentCard, facts: &LegacyCardFacts) {
    let mut object = Object::begin(out);
    object.string("name", &card.name);
    object.string("description", &card.description);
    object.string("url", legacy_url(card, facts));
    if let Some(AgentProvider { organization, url }) = &card.provider {
        let mut provider = Object::begin(object.member("provider"));
        provider.string("organization", organization);
        provider.optional("url", Some(url));
        provider.end();
    }
    object.string("version", &card.version);
    object.optional("documentationUrl", card.documentation_url.as_deref());
    let mut capabilities = Object::begin(object.member("capabilities"));
    capabilities.flag("streaming", card.capabilities.streaming == Some(true));
    capabilities.flag("pushNotifications", card.capabilities.push_notifications == Some(true));
    capabilities.flag("stateTransitionHistory", card.capabilities.state_transition_history == Some(true));
    capabilities.end();
    write_authentication(&mut object, card);
    object.strings("defaultInputModes", &card.default_input_modes);
    object.strings("defaultOutputModes", &card.default_output_modes);
    object.list("skills", &card.skills, |out, skill| {
        let mut object = Object::begin(out);
        write_skill(&mut object, card, skill);
        object.end();
    });
    object.end();
}

/// The members of a skill. Its modes are always written: 0.1 readers do not fall back to the card's modes.
fn write_skill(object: &mut Object<'_>, card: &AgentCard, skill: &AgentSkill) {
    fn own<'a>(modes: &'a [String], defaults: &'a [String]) -> &'a [String] {
        if modes.is_empty() { defaults } else { modes }
    }
    object.string("id", &skill.id);
    object.string("name", &skill.name);
    object.string("description", &skill.description);
    object.strings("tags", &skill.tags);
    object.strings_unless_empty("examples", &skill.examples);
    object.strings("inputModes", own(&skill.input_modes, &card.default_input_modes));
    object.strings("outputModes", own(&skill.output_modes, &card.default_output_modes));
}

/// The `authentication` member, if the card has any scheme.
fn write_authentication(object: &mut Object<'_>, card: &AgentCard) {
    if card.security_schemes.is_empty() {
        return;
    }
    let mut schemes: Vec<String> = Vec::new();
    for (_, scheme) in &card.security_schemes {
        let name = scheme_name(&scheme.kind);
        if !schemes.contains(&name) {
            schemes.push(name);
        }
    }
    let header = find(card, |kind| match kind {
        SchemeKind::ApiKey { name, .. } => Some(name.as_str()),
        _ => None,
    });
    let token_url = find(card, |kind| match kind {
        SchemeKind::OAuth2 { flows, .. } => token_url(flows),
        _ => None,
    });
    let mut inner = Object::begin(object.member("authentication"));
    inner.strings("schemes", &schemes);
    if header.is_some() || token_url.is_some() {
        let mut credentials = Object::begin(inner.member("credentials"));
        if let Some(name) = header {
            let mut key = Object::begin(credentials.member("apiKey"));
            key.string("headerName", name);
            key.end();
        }
        if let Some(url) = token_url {
            let mut oauth2 = Object::begin(credentials.member("oauth2"));
            oauth2.string("tokenUrl", url);
            oauth2.end();
        }
        credentials.end();
    }
    inner.end();
}

fn find<'a>(card: &'a AgentCard, pick: impl Fn(&'a SchemeKind) -> Option<&'a str>) -> Option<&'a str> {
    card.security_schemes.iter().find_map(|(_, scheme)| pick(&scheme.kind))
}

fn token_url(flows: &OAuthFlows) -> Option<&str> {
    [&flows.client_credentials, &flows.authorization_code, &flows.device_code, &flows.password]
        .into_iter()
        .flatten()
        .find_map(|flow| flow.token_url.as_deref())
}

fn scheme_name(kind: &SchemeKind) -> String {
    match kind {
        SchemeKind::ApiKey { .. } => "apiKey".to_owned(),
        SchemeKind::Http { scheme, .. } => scheme.clone(),
        SchemeKind::OAuth2 { .. } => "oauth2".to_owned(),
        SchemeKind::OpenIdConnect { .. } => "openIdConnect".to_owned(),
        SchemeKind::MutualTls => "mutualTLS".to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CardTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    name: String,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    description: String,
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    url: String,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    provider: Option<AgentProvider>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    version: String,
    #[serde(default, deserialize_with = "text")]
    documentation_url: Option<String>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    capabilities: AgentCapabilities,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    authentication: Authentication,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    default_input_modes: Option<Vec<String>>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    default_output_modes: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    skills: Vec<AgentSkill>,
}

impl FromWire<V0_1> for AgentCard {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let twin: CardTwin = twin(deserializer)?;
        let Authentication { schemes } = twin.authentication;
        let mut card = AgentCard::new(&twin.name, &twin.description, &twin.version);
        card.interfaces.push(AgentInterface {
            url: twin.url,
            protocol_binding: JSONRPC.to_owned(),
            protocol_version: Generation::V0_1.version().to_owned(),
            tenant: None,
        });
        card.provider = twin.provider;
        card.documentation_url = twin.documentation_url;
        card.capabilities = twin.capabilities;
        // A caller may use any one of the schemes.
        card.security_requirements = schemes
            .iter()
            .map(|(name, _)| SecurityRequirement { schemes: vec![(name.clone(), Vec::new())] })
            .collect();
        card.security_schemes = schemes;
        if let Some(modes) = twin.default_input_modes {
            card.default_input_modes = modes;
        }
        if let Some(modes) = twin.default_output_modes {
            card.default_output_modes = modes;
        }
        card.skills = twin.skills;
        Ok(card)
    }
}

#[derive(Deserialize)]
struct ProviderTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    organization: String,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    url: String,
}

impl FromWire<V0_1> for AgentProvider {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ProviderTwin { organization, url } = twin(deserializer)?;
        Ok(AgentProvider { organization, url })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CapabilitiesTwin {
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    streaming: Option<bool>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    push_notifications: Option<bool>,
    #[serde(default, deserialize_with = "optional::<V0_1, _, _>")]
    state_transition_history: Option<bool>,
}

impl FromWire<V0_1> for AgentCapabilities {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let CapabilitiesTwin { streaming, push_notifications, state_transition_history } =
            twin(deserializer)?;
        Ok(AgentCapabilities {
            streaming,
            push_notifications,
            state_transition_history,
            ..AgentCapabilities::default()
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SkillTwin {
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    id: String,
    #[serde(deserialize_with = "one::<V0_1, _, _>")]
    name: String,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    description: String,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    examples: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    input_modes: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    output_modes: Vec<String>,
}

impl FromWire<V0_1> for AgentSkill {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SkillTwin { id, name, description, tags, examples, input_modes, output_modes } =
            twin(deserializer)?;
        let security_requirements = Vec::new();
        Ok(AgentSkill {
            id,
            name,
            description,
            tags,
            examples,
            input_modes,
            output_modes,
            security_requirements,
        })
    }
}

/// The schemes of a card under their own names.
#[derive(Default)]
struct Authentication {
    schemes: Vec<(String, SecurityScheme)>,
}

#[derive(Deserialize)]
struct AuthenticationTwin {
    #[serde(default, deserialize_with = "or_default::<V0_1, _, _>")]
    schemes: Vec<String>,
    #[serde(default)]
    credentials: Option<CredentialsTwin>,
}

/// The specification has a string here, which says nothing about the schemes.
#[derive(Deserialize)]
#[serde(untagged)]
enum CredentialsTwin {
    Told(ToldTwin),
    Other(IgnoredAny),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToldTwin {
    #[serde(default)]
    api_key: Option<ApiKeyTwin>,
    #[serde(default)]
    oauth2: Option<OAuth2Twin>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiKeyTwin {
    #[serde(default, deserialize_with = "text")]
    header_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OAuth2Twin {
    #[serde(default, deserialize_with = "text")]
    token_url: Option<String>,
}

impl FromWire<V0_1> for Authentication {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AuthenticationTwin { schemes, credentials } = twin(deserializer)?;
        let ToldTwin { api_key, oauth2 } = match credentials {
            Some(CredentialsTwin::Told(told)) => told,
            Some(CredentialsTwin::Other(_)) | None => ToldTwin::default(),
        };
        let header = api_key.and_then(|key| key.header_name).unwrap_or_else(|| "X-API-Key".to_owned());
        let token_url = oauth2.and_then(|oauth2| oauth2.token_url);
        let mut named: Vec<(String, SecurityScheme)> = Vec::new();
        for name in schemes {
            let Some(kind) = scheme_kind(&name, &header, token_url.as_deref()) else { continue };
            if named.iter().all(|(other, _)| *other != name) {
                named.push((name, SecurityScheme { description: None, kind }));
            }
        }
        Ok(Authentication { schemes: named })
    }
}

/// 0.1 samples wrote `public` or `none` for an agent without authentication.
fn scheme_kind(name: &str, header: &str, token_url: Option<&str>) -> Option<SchemeKind> {
    Some(match name.to_ascii_lowercase().as_str() {
        "" | "none" | "public" => return None,
        "apikey" => SchemeKind::ApiKey { location: ApiKeyLocation::Header, name: header.to_owned() },
        "oauth2" => {
            let token_url = token_url.map(str::to_owned);
            let flow = OAuthFlow { token_url, ..OAuthFlow::default() };
            let flows = OAuthFlows { client_credentials: Some(flow), ..OAuthFlows::default() };
            SchemeKind::OAuth2 { flows: Box::new(flows), metadata_url: None }
        }
        "openidconnect" => SchemeKind::OpenIdConnect { url: String::new() },
        "mutualtls" => SchemeKind::MutualTls,
        _ => SchemeKind::Http { scheme: name.to_owned(), bearer_format: None },
    })
}
