//! Security schemes and requirements of a card.

use serde::Deserialize;
use serde::de::Deserializer;

use super::V1;
use crate::domain::security::{SecurityRequirement, SecurityScheme};
use crate::wire::objects::{NamedSchemes, SchemeStyle, WrappedScheme};
use crate::wire::read::{FromWire, or_default, twin};

pub(in crate::wire) const STYLE: SchemeStyle =
    SchemeStyle { typed: false, several_flows: false, device_code: true, pkce: true };

impl FromWire<V1> for SecurityScheme {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        twin::<WrappedScheme, D>(deserializer)?.into_scheme()
    }
}

#[derive(Deserialize)]
struct RequirementTwin {
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    schemes: NamedSchemes,
}

impl FromWire<V1> for SecurityRequirement {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        twin(deserializer).map(|RequirementTwin { schemes }| schemes.into())
    }
}
