//! Reads and writes the agent card. `url` is required: a card without it is of another generation.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::Deserializer;

use super::Dialect;
use super::security::{style, write_requirement};
use crate::domain::security::{SecurityRequirement, SecurityScheme};
use crate::domain::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, CardSignature,
};
use crate::generation::{AskedVersion, Generation};
use crate::wire::objects::{write_extension, write_provider, write_schemes, write_signature, write_skill};
use crate::wire::read::{FromWire, Pairs, Twin, one, optional, or_default, text, twin};
use crate::wire::write::Object;

pub(in crate::wire) const PROTOCOL_VERSION: &str = "0.3.0";

/// The default of `preferredTransport`.
const DEFAULT_TRANSPORT: &str = "JSONRPC";

pub(super) fn write_card<G: Dialect>(out: &mut Vec<u8>, card: &AgentCard) {
    let interfaces: Vec<_> = card.interfaces.iter().filter(|interface| is_ours(interface)).collect();
    let mut object = Object::begin(out);
    object.string("protocolVersion", PROTOCOL_VERSION);
    object.string("name", &card.name);
    object.string("description", &card.description);
    if let Some(preferred) = interfaces.first() {
        object.string("url", &preferred.url);
        object.string("preferredTransport", &preferred.protocol_binding);
        // The list should repeat the preferred interface, so it has all of them.
        object.list("additionalInterfaces", &interfaces, |out, interface| write_interface(out, interface));
    }
    if let Some(url) = &card.icon_url {
        object.string("iconUrl", url);
    }
    write_provider(&mut object, card.provider.as_ref());
    object.string("version", &card.version);
    if let Some(url) = &card.documentation_url {
        object.string("documentationUrl", url);
    }
    write_capabilities::<G>(object.member("capabilities"), &card.capabilities);
    if !card.security_schemes.is_empty() {
        write_schemes(object.member("securitySchemes"), &card.security_schemes, &style::<G>());
    }
    write_security::<G>(&mut object, &card.security_requirements);
    object.strings("defaultInputModes", &card.default_input_modes);
    object.strings("defaultOutputModes", &card.default_output_modes);
    object.list("skills", &card.skills, |out, skill| {
        write_skill(out, skill, |object| write_security::<G>(object, &skill.security_requirements));
    });
    if let Some(extended) = card.capabilities.extended_agent_card {
        object.flag("supportsAuthenticatedExtendedCard", extended);
    }
    object.list_unless_empty("signatures", &card.signatures, write_signature);
    object.end();
}

pub(in crate::wire) fn is_ours(interface: &AgentInterface) -> bool {
    AskedVersion::read(Some(&interface.protocol_version), None) == AskedVersion::Known(Generation::V0_3)
}

fn write_interface(out: &mut Vec<u8>, interface: &AgentInterface) {
    let mut object = Object::begin(out);
    object.string("url", &interface.url);
    object.string("transport", &interface.protocol_binding);
    object.end();
}

fn write_security<G: Dialect>(object: &mut Object<'_>, requirements: &[SecurityRequirement]) {
    object.list_unless_empty("security", requirements, write_requirement::<G>);
}

fn write_capabilities<G: Dialect>(out: &mut Vec<u8>, capabilities: &AgentCapabilities) {
    let mut object = Object::begin(out);
    if let Some(streaming) = capabilities.streaming {
        object.flag("streaming", streaming);
    }
    if let Some(push) = capabilities.push_notifications {
        object.flag("pushNotifications", push);
    }
    if let Some(history) = capabilities.state_transition_history.filter(|_| !G::PROTO) {
        object.flag("stateTransitionHistory", history);
    }
    object.list_unless_empty("extensions", &capabilities.extensions, write_extension);
    object.end();
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Dialect"))]
struct CardTwin<G> {
    #[serde(default, alias = "protocol_version", deserialize_with = "text")]
    protocol_version: Option<String>,
    #[serde(deserialize_with = "one::<G, _, _>")]
    name: String,
    #[serde(deserialize_with = "one::<G, _, _>")]
    description: String,
    #[serde(deserialize_with = "one::<G, _, _>")]
    url: String,
    #[serde(default, alias = "preferred_transport", deserialize_with = "text")]
    preferred_transport: Option<String>,
    #[serde(default, alias = "additional_interfaces", deserialize_with = "or_default::<G, _, _>")]
    additional_interfaces: Vec<Twin<InterfaceTwin>>,
    #[serde(default, alias = "icon_url", deserialize_with = "optional::<G, _, _>")]
    icon_url: Option<String>,
    #[serde(default, deserialize_with = "optional::<G, _, _>")]
    provider: Option<AgentProvider>,
    #[serde(deserialize_with = "one::<G, _, _>")]
    version: String,
    #[serde(default, alias = "documentation_url", deserialize_with = "optional::<G, _, _>")]
    documentation_url: Option<String>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    capabilities: AgentCapabilities,
    #[serde(default, alias = "security_schemes", deserialize_with = "or_default::<G, _, _>")]
    security_schemes: Pairs<SecurityScheme>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    security: Vec<SecurityRequirement>,
    #[serde(default, alias = "default_input_modes", deserialize_with = "or_default::<G, _, _>")]
    default_input_modes: Vec<String>,
    #[serde(default, alias = "default_output_modes", deserialize_with = "or_default::<G, _, _>")]
    default_output_modes: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    skills: Vec<AgentSkill>,
    #[serde(
        default,
        alias = "supports_authenticated_extended_card",
        deserialize_with = "optional::<G, _, _>"
    )]
    supports_authenticated_extended_card: Option<bool>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    signatures: Vec<CardSignature>,
    #[serde(skip)]
    dialect: PhantomData<G>,
}

#[derive(Deserialize)]
struct InterfaceTwin {
    #[serde(deserialize_with = "one::<(), _, _>")]
    url: String,
    #[serde(deserialize_with = "one::<(), _, _>")]
    transport: String,
}

impl<G: Dialect> FromWire<G> for AgentCard {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let card: CardTwin<G> = twin(deserializer)?;
        let additional = card.additional_interfaces.into_iter();
        let additional = additional.map(|Twin(InterfaceTwin { url, transport })| (url, transport)).collect();
        let interfaces =
            all_interfaces(card.protocol_version, card.url, card.preferred_transport, additional);
        let mut capabilities = card.capabilities;
        capabilities.extended_agent_card =
            card.supports_authenticated_extended_card.or(capabilities.extended_agent_card);
        Ok(AgentCard {
            name: card.name,
            description: card.description,
            version: card.version,
            interfaces,
            provider: card.provider,
            documentation_url: card.documentation_url,
            icon_url: card.icon_url,
            capabilities,
            security_schemes: card.security_schemes.0,
            security_requirements: card.security,
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: card.skills,
            signatures: card.signatures,
        })
    }
}

/// Versions in the domain have no patch number.
fn major_minor(version: &str) -> String {
    let mut numbers = version.splitn(3, '.');
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => version.to_owned(),
    }
}

/// The preferred interface, then the others, as URL and transport. The list usually repeats the preferred one, at any
/// position.
pub(in crate::wire) fn all_interfaces(
    version: Option<String>,
    url: String,
    transport: Option<String>,
    mut additional: Vec<(String, String)>,
) -> Vec<AgentInterface> {
    let version = major_minor(version.as_deref().unwrap_or(PROTOCOL_VERSION));
    let preferred = (url, transport.unwrap_or_else(|| DEFAULT_TRANSPORT.to_owned()));
    if let Some(repeated) = additional.iter().position(|interface| *interface == preferred) {
        additional.remove(repeated);
    }
    additional.insert(0, preferred);
    let interface = |(url, transport)| AgentInterface {
        url,
        protocol_binding: transport,
        protocol_version: version.clone(),
        tenant: None,
    };
    additional.into_iter().map(interface).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CapabilitiesTwin {
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    streaming: Option<bool>,
    #[serde(default, alias = "push_notifications", deserialize_with = "optional::<(), _, _>")]
    push_notifications: Option<bool>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    state_transition_history: Option<bool>,
    /// Where 1.0 and the protocol guide have it.
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    extended_agent_card: Option<bool>,
    #[serde(default, deserialize_with = "or_default::<(), _, _>")]
    extensions: Vec<AgentExtension>,
}

impl<G: Dialect> FromWire<G> for AgentCapabilities {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let twin: CapabilitiesTwin = twin(deserializer)?;
        Ok(AgentCapabilities {
            streaming: twin.streaming,
            push_notifications: twin.push_notifications,
            extended_agent_card: twin.extended_agent_card,
            state_transition_history: twin.state_transition_history,
            extensions: twin.extensions,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "G: Dialect"))]
struct SkillTwin<G> {
    #[serde(deserialize_with = "one::<G, _, _>")]
    id: String,
    #[serde(deserialize_with = "one::<G, _, _>")]
    name: String,
    #[serde(deserialize_with = "one::<G, _, _>")]
    description: String,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    examples: Vec<String>,
    #[serde(default, alias = "input_modes", deserialize_with = "or_default::<G, _, _>")]
    input_modes: Vec<String>,
    #[serde(default, alias = "output_modes", deserialize_with = "or_default::<G, _, _>")]
    output_modes: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<G, _, _>")]
    security: Vec<SecurityRequirement>,
    #[serde(skip)]
    dialect: PhantomData<G>,
}

impl<G: Dialect> FromWire<G> for AgentSkill {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let skill: SkillTwin<G> = twin(deserializer)?;
        Ok(AgentSkill {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: skill.input_modes,
            output_modes: skill.output_modes,
            security_requirements: skill.security,
        })
    }
}
