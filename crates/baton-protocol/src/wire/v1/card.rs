//! Reads and writes the agent card. REQUIRED strings must be present; REQUIRED lists may be missing, since ProtoJSON
//! writers leave out empty ones. The exception is `supportedInterfaces`: a card without it is of another generation,
//! and must not be read as an agent without interfaces.

use serde::Deserialize;
use serde::de::Deserializer;

use super::V1;
use super::security::STYLE;
use crate::domain::security::{SecurityRequirement, SecurityScheme};
use crate::domain::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, CardSignature,
};
use crate::wire::objects::{
    write_extension, write_named_requirement, write_provider, write_schemes, write_signature, write_skill,
};
use crate::wire::read::{FromWire, Pairs, one, optional, or_default, text, twin};
use crate::wire::write::Object;

pub fn write_card(out: &mut Vec<u8>, card: &AgentCard) {
    let mut object = Object::begin(out);
    object.string("name", &card.name);
    object.string("description", &card.description);
    object.list("supportedInterfaces", &card.interfaces, write_interface);
    write_provider(&mut object, card.provider.as_ref());
    object.string("version", &card.version);
    // These two have presence: an empty string is part of a signed card.
    if let Some(url) = &card.documentation_url {
        object.string("documentationUrl", url);
    }
    write_capabilities(object.member("capabilities"), &card.capabilities);
    if !card.security_schemes.is_empty() {
        write_schemes(object.member("securitySchemes"), &card.security_schemes, &STYLE);
    }
    write_requirements(&mut object, &card.security_requirements);
    object.strings("defaultInputModes", &card.default_input_modes);
    object.strings("defaultOutputModes", &card.default_output_modes);
    object.list("skills", &card.skills, |out, skill| {
        write_skill(out, skill, |object| write_requirements(object, &skill.security_requirements));
    });
    object.list_unless_empty("signatures", &card.signatures, write_signature);
    if let Some(url) = &card.icon_url {
        object.string("iconUrl", url);
    }
    object.end();
}

fn write_interface(out: &mut Vec<u8>, interface: &AgentInterface) {
    let mut object = Object::begin(out);
    object.string("url", &interface.url);
    object.string("protocolBinding", &interface.protocol_binding);
    object.optional("tenant", interface.tenant.as_deref());
    object.string("protocolVersion", &interface.protocol_version);
    object.end();
}

fn write_requirements(object: &mut Object<'_>, requirements: &[SecurityRequirement]) {
    object.list_unless_empty("securityRequirements", requirements, write_named_requirement);
}

fn write_capabilities(out: &mut Vec<u8>, capabilities: &AgentCapabilities) {
    let mut object = Object::begin(out);
    if let Some(streaming) = capabilities.streaming {
        object.flag("streaming", streaming);
    }
    if let Some(push) = capabilities.push_notifications {
        object.flag("pushNotifications", push);
    }
    object.list_unless_empty("extensions", &capabilities.extensions, write_extension);
    if let Some(extended) = capabilities.extended_agent_card {
        object.flag("extendedAgentCard", extended);
    }
    object.end();
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CardTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    name: String,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    description: String,
    #[serde(alias = "supported_interfaces", deserialize_with = "one::<V1, _, _>")]
    supported_interfaces: Vec<AgentInterface>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    provider: Option<AgentProvider>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    version: String,
    #[serde(default, alias = "documentation_url", deserialize_with = "optional::<V1, _, _>")]
    documentation_url: Option<String>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    capabilities: AgentCapabilities,
    #[serde(default, alias = "security_schemes", deserialize_with = "or_default::<V1, _, _>")]
    security_schemes: Pairs<SecurityScheme>,
    #[serde(default, alias = "security_requirements", deserialize_with = "or_default::<V1, _, _>")]
    security_requirements: Vec<SecurityRequirement>,
    #[serde(default, alias = "default_input_modes", deserialize_with = "or_default::<V1, _, _>")]
    default_input_modes: Vec<String>,
    #[serde(default, alias = "default_output_modes", deserialize_with = "or_default::<V1, _, _>")]
    default_output_modes: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    skills: Vec<AgentSkill>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    signatures: Vec<CardSignature>,
    #[serde(default, alias = "icon_url", deserialize_with = "optional::<V1, _, _>")]
    icon_url: Option<String>,
}

impl FromWire<V1> for AgentCard {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let card: CardTwin = twin(deserializer)?;
        Ok(AgentCard {
            name: card.name,
            description: card.description,
            version: card.version,
            interfaces: card.supported_interfaces,
            provider: card.provider,
            documentation_url: card.documentation_url,
            icon_url: card.icon_url,
            capabilities: card.capabilities,
            security_schemes: card.security_schemes.0,
            security_requirements: card.security_requirements,
            default_input_modes: card.default_input_modes,
            default_output_modes: card.default_output_modes,
            skills: card.skills,
            signatures: card.signatures,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InterfaceTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    url: String,
    #[serde(alias = "protocol_binding", deserialize_with = "one::<V1, _, _>")]
    protocol_binding: String,
    #[serde(default, deserialize_with = "text")]
    tenant: Option<String>,
    #[serde(alias = "protocol_version", deserialize_with = "one::<V1, _, _>")]
    protocol_version: String,
}

impl FromWire<V1> for AgentInterface {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let InterfaceTwin { url, protocol_binding, tenant, protocol_version } = twin(deserializer)?;
        Ok(AgentInterface { url, protocol_binding, protocol_version, tenant })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CapabilitiesTwin {
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    streaming: Option<bool>,
    #[serde(default, alias = "push_notifications", deserialize_with = "optional::<V1, _, _>")]
    push_notifications: Option<bool>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    extensions: Vec<AgentExtension>,
    #[serde(default, alias = "extended_agent_card", deserialize_with = "optional::<V1, _, _>")]
    extended_agent_card: Option<bool>,
}

impl FromWire<V1> for AgentCapabilities {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let CapabilitiesTwin { streaming, push_notifications, extensions, extended_agent_card } =
            twin(deserializer)?;
        Ok(AgentCapabilities {
            streaming,
            push_notifications,
            extended_agent_card,
            state_transition_history: None,
            extensions,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SkillTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    id: String,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    name: String,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    description: String,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    tags: Vec<String>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    examples: Vec<String>,
    #[serde(default, alias = "input_modes", deserialize_with = "or_default::<V1, _, _>")]
    input_modes: Vec<String>,
    #[serde(default, alias = "output_modes", deserialize_with = "or_default::<V1, _, _>")]
    output_modes: Vec<String>,
    #[serde(default, alias = "security_requirements", deserialize_with = "or_default::<V1, _, _>")]
    security_requirements: Vec<SecurityRequirement>,
}

impl FromWire<V1> for AgentSkill {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let skill: SkillTwin = twin(deserializer)?;
        Ok(AgentSkill {
            id: skill.id,
            name: skill.name,
            description: skill.description,
            tags: skill.tags,
            examples: skill.examples,
            input_modes: skill.input_modes,
            output_modes: skill.output_modes,
            security_requirements: skill.security_requirements,
        })
    }
}
