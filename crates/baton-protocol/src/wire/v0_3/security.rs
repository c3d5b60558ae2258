//! Security schemes and requirements of a card: as in OpenAPI in the `kind` dialect, as in 1.0 in ProtoJSON. Cards for
//! several generations have both in one object; then `type` takes precedence.

use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor, value};

use super::Dialect;
use crate::domain::security::{ApiKeyLocation, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme};
use crate::wire::objects::{
    ApiKeyTwin, HttpTwin, MutualTlsTwin, NamedSchemes, OAuth2Twin, OpenIdConnectTwin, SchemeStyle,
    WrappedScheme, write_named_requirement,
};
use crate::wire::read::{FromWire, Pairs, Twin, optional, text, twin};
use crate::wire::write::{Object, list, string};

pub(super) const fn style<G: Dialect>() -> SchemeStyle {
    SchemeStyle { typed: !G::PROTO, several_flows: !G::PROTO, device_code: false, pkce: false }
}

pub(super) fn write_requirement<G: Dialect>(out: &mut Vec<u8>, requirement: &SecurityRequirement) {
    if G::PROTO {
        return write_named_requirement(out, requirement);
    }
    let mut object = Object::begin(out);
    for (name, scopes) in &requirement.schemes {
        list(object.entry(name), scopes, |out, scope| string(out, scope));
    }
    object.end();
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchemeTwin {
    #[serde(default, deserialize_with = "text")]
    r#type: Option<String>,
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(default, rename = "in", deserialize_with = "optional::<(), _, _>")]
    location: Option<ApiKeyLocation>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    name: Option<String>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    scheme: Option<String>,
    #[serde(default, deserialize_with = "text")]
    bearer_format: Option<String>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    flows: Option<OAuthFlows>,
    #[serde(default, deserialize_with = "text")]
    oauth2_metadata_url: Option<String>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    open_id_connect_url: Option<String>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    api_key_security_scheme: Option<Twin<ApiKeyTwin>>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    http_auth_security_scheme: Option<Twin<HttpTwin>>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    oauth2_security_scheme: Option<Twin<OAuth2Twin>>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    open_id_connect_security_scheme: Option<Twin<OpenIdConnectTwin>>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    mtls_security_scheme: Option<Twin<MutualTlsTwin>>,
}

impl<G: Dialect> FromWire<G> for SecurityScheme {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let twin: SchemeTwin = twin(deserializer)?;
        let missing = |name| move || D::Error::missing_field(name);
        let kind = match twin.r#type.as_deref() {
            Some("apiKey") => SchemeKind::ApiKey {
                location: twin.location.ok_or_else(missing("in"))?,
                name: twin.name.ok_or_else(missing("name"))?,
            },
            Some("http") => SchemeKind::Http {
                scheme: twin.scheme.ok_or_else(missing("scheme"))?,
                bearer_format: twin.bearer_format,
            },
            Some("oauth2") => SchemeKind::OAuth2 {
                flows: Box::new(twin.flows.ok_or_else(missing("flows"))?),
                metadata_url: twin.oauth2_metadata_url,
            },
            Some("openIdConnect") => SchemeKind::OpenIdConnect {
                url: twin.open_id_connect_url.ok_or_else(missing("openIdConnectUrl"))?,
            },
            Some("mutualTLS") => SchemeKind::MutualTls,
            Some(_) => {
                return Err(D::Error::custom(
                    "must have the type apiKey, http, oauth2, openIdConnect or mutualTLS",
                ));
            }
            None => {
                let wrapped = WrappedScheme {
                    api_key_security_scheme: twin.api_key_security_scheme,
                    http_auth_security_scheme: twin.http_auth_security_scheme,
                    oauth2_security_scheme: twin.oauth2_security_scheme,
                    open_id_connect_security_scheme: twin.open_id_connect_security_scheme,
                    mtls_security_scheme: twin.mtls_security_scheme,
                };
                return wrapped.into_scheme().map_err(|error: D::Error| {
                    if G::PROTO { error } else { D::Error::missing_field("type") }
                });
            }
        };
        Ok(SecurityScheme { description: twin.description, kind })
    }
}

/// The value of a member of a requirement: the scopes of the scheme of that name, or, for `schemes`, the whole
/// requirement in its ProtoJSON form.
enum Required {
    Scopes(Vec<String>),
    Schemes(NamedSchemes),
}

impl<G: Dialect> FromWire<G> for Required {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<G>(PhantomData<G>);
        impl<'de, G: Dialect> Visitor<'de> for Either<G> {
            type Value = Required;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array of scopes")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Required, A::Error> {
                FromWire::<G>::from_wire(value::SeqAccessDeserializer::new(items)).map(Required::Scopes)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Required, A::Error> {
                FromWire::<G>::from_wire(value::MapAccessDeserializer::new(map)).map(Required::Schemes)
            }
        }
        deserializer.deserialize_any(Either(PhantomData::<G>))
    }
}

impl<G: Dialect> FromWire<G> for SecurityRequirement {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let required = <Pairs<Required> as FromWire<G>>::from_wire(deserializer)?;
        let mut requirement = SecurityRequirement::default();
        for (name, required) in required.0 {
            match required {
                Required::Scopes(scopes) => requirement.schemes.push((name, scopes)),
                Required::Schemes(schemes) if name == "schemes" => {
                    requirement.schemes.extend(SecurityRequirement::from(schemes).schemes);
                }
                Required::Schemes(_) => {
                    return Err(D::Error::custom("must give each scheme an array of scopes"));
                }
            }
        }
        Ok(requirement)
    }
}
