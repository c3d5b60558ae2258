//! The agent card, both ways. REQUIRED strings must be there when read; REQUIRED lists may be left out, since
//! ProtoJSON writers drop empty ones. `supportedInterfaces` is the exception: a card without it is of another
//! generation, and reading it as an agent that listens nowhere would hide that.

use serde::Deserialize;
use serde::de::Deserializer;

use super::V1;
use super::security::{write_requirement, write_schemes};
use crate::domain::security::{SecurityRequirement, SecurityScheme};
use crate::domain::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, CardSignature,
    JsonObject,
};
use crate::wire::read::{FromWire, Pairs, one, optional, or_default, text, twin};
use crate::wire::write::Object;

pub fn write_card(out: &mut Vec<u8>, card: &AgentCard) {
    let mut object = Object::begin(out);
    object.string("name", &card.name);
    object.string("description", &card.description);
    object.list("supportedInterfaces", &card.interfaces, write_interface);
    if let Some(AgentProvider { organization, url }) = &card.provider {
        let mut provider = Object::begin(object.member("provider"));
        provider.string("url", url);
        provider.string("organization", organization);
        provider.end();
    }
    object.string("version", &card.version);
    // These two have presence: a card that says `""` is signed with it.
    if let Some(url) = &card.documentation_url {
        object.string("documentationUrl", url);
    }
    write_capabilities(object.member("capabilities"), &card.capabilities);
    if !card.security_schemes.is_empty() {
        write_schemes(object.member("securitySchemes"), &card.security_schemes);
    }
    object.list_unless_empty("securityRequirements", &card.security_requirements, write_requirement);
    object.strings("defaultInputModes", &card.default_input_modes);
    object.strings("defaultOutputModes", &card.default_output_modes);
    object.list("skills", &card.skills, write_skill);
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

fn write_extension(out: &mut Vec<u8>, extension: &AgentExtension) {
    let mut object = Object::begin(out);
    object.string("uri", &extension.uri);
    object.optional("description", extension.description.as_deref());
    object.flag_if_set("required", extension.required);
    object.optional_raw("params", extension.params.as_ref().map(JsonObject::as_str));
    object.end();
}

fn write_skill(out: &mut Vec<u8>, skill: &AgentSkill) {
    let mut object = Object::begin(out);
    object.string("id", &skill.id);
    object.string("name", &skill.name);
    object.string("description", &skill.description);
    object.strings("tags", &skill.tags);
    object.strings_unless_empty("examples", &skill.examples);
    object.strings_unless_empty("inputModes", &skill.input_modes);
    object.strings_unless_empty("outputModes", &skill.output_modes);
    object.list_unless_empty("securityRequirements", &skill.security_requirements, write_requirement);
    object.end();
}

fn write_signature(out: &mut Vec<u8>, signature: &CardSignature) {
    let mut object = Object::begin(out);
    object.string("protected", &signature.protected);
    object.string("signature", &signature.signature);
    object.optional_raw("header", signature.header.as_ref().map(JsonObject::as_str));
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
struct ProviderTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    url: String,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    organization: String,
}

impl FromWire<V1> for AgentProvider {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ProviderTwin { url, organization } = twin(deserializer)?;
        Ok(AgentProvider { organization, url })
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
struct ExtensionTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    uri: String,
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    required: bool,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    params: Option<JsonObject>,
}

impl FromWire<V1> for AgentExtension {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ExtensionTwin { uri, description, required, params } = twin(deserializer)?;
        Ok(AgentExtension { uri, description, required, params })
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

#[derive(Deserialize)]
struct SignatureTwin {
    #[serde(deserialize_with = "one::<V1, _, _>")]
    protected: String,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    signature: String,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    header: Option<JsonObject>,
}

impl FromWire<V1> for CardSignature {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SignatureTwin { protected, signature, header } = twin(deserializer)?;
        Ok(CardSignature { protected, signature, header })
    }
}
