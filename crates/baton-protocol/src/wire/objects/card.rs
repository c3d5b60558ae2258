//! Reads and writes the parts of an agent card that are the same in every generation.

use serde::Deserialize;
use serde::de::Deserializer;

use super::Spelling;
use crate::domain::{AgentExtension, AgentProvider, AgentSkill, CardSignature, JsonObject};
use crate::wire::read::{FromWire, one, optional, or_default, text, twin};
use crate::wire::write::Object;

pub(crate) fn write_provider(object: &mut Object<'_>, provider: Option<&AgentProvider>) {
    if let Some(AgentProvider { organization, url }) = provider {
        let mut inner = Object::begin(object.member("provider"));
        inner.string("url", url);
        inner.string("organization", organization);
        inner.end();
    }
}

pub(crate) fn write_extension(out: &mut Vec<u8>, extension: &AgentExtension) {
    let mut object = Object::begin(out);
    object.string("uri", &extension.uri);
    object.optional("description", extension.description.as_deref());
    object.flag_if_set("required", extension.required);
    object.optional_raw("params", extension.params.as_ref().map(JsonObject::as_str));
    object.end();
}

/// Writes a skill; `security` writes its security requirements.
pub(crate) fn write_skill(out: &mut Vec<u8>, skill: &AgentSkill, security: impl FnOnce(&mut Object<'_>)) {
    let mut object = Object::begin(out);
    object.string("id", &skill.id);
    object.string("name", &skill.name);
    object.string("description", &skill.description);
    object.strings("tags", &skill.tags);
    object.strings_unless_empty("examples", &skill.examples);
    object.strings_unless_empty("inputModes", &skill.input_modes);
    object.strings_unless_empty("outputModes", &skill.output_modes);
    security(&mut object);
    object.end();
}

pub(crate) fn write_signature(out: &mut Vec<u8>, signature: &CardSignature) {
    let mut object = Object::begin(out);
    object.string("protected", &signature.protected);
    object.string("signature", &signature.signature);
    object.optional_raw("header", signature.header.as_ref().map(JsonObject::as_str));
    object.end();
}

#[derive(Deserialize)]
struct ProviderTwin {
    #[serde(deserialize_with = "one::<(), _, _>")]
    url: String,
    #[serde(deserialize_with = "one::<(), _, _>")]
    organization: String,
}

impl<G: Spelling> FromWire<G> for AgentProvider {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ProviderTwin { url, organization } = twin(deserializer)?;
        Ok(AgentProvider { organization, url })
    }
}

#[derive(Deserialize)]
struct ExtensionTwin {
    #[serde(deserialize_with = "one::<(), _, _>")]
    uri: String,
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(default, deserialize_with = "or_default::<(), _, _>")]
    required: bool,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    params: Option<JsonObject>,
}

impl<G> FromWire<G> for AgentExtension {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ExtensionTwin { uri, description, required, params } = twin(deserializer)?;
        Ok(AgentExtension { uri, description, required, params })
    }
}

#[derive(Deserialize)]
struct SignatureTwin {
    #[serde(deserialize_with = "one::<(), _, _>")]
    protected: String,
    #[serde(deserialize_with = "one::<(), _, _>")]
    signature: String,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    header: Option<JsonObject>,
}

impl<G> FromWire<G> for CardSignature {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SignatureTwin { protected, signature, header } = twin(deserializer)?;
        Ok(CardSignature { protected, signature, header })
    }
}
