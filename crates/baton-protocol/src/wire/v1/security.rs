//! Security schemes and requirements of a card, both ways.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::V1;
use crate::domain::security::{
    ApiKeyLocation, OAuthFlow, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme,
};
use crate::wire::read::{FromWire, Pairs, from_str, one, optional, or_default, text, twin};
use crate::wire::write::{Object, string};

pub(super) fn write_schemes(out: &mut Vec<u8>, schemes: &[(String, SecurityScheme)]) {
    let mut object = Object::begin(out);
    for (name, scheme) in schemes {
        write_scheme(object.entry(name), scheme);
    }
    object.end();
}

fn write_scheme(out: &mut Vec<u8>, scheme: &SecurityScheme) {
    let member = match &scheme.kind {
        SchemeKind::ApiKey { .. } => "apiKeySecurityScheme",
        SchemeKind::Http { .. } => "httpAuthSecurityScheme",
        SchemeKind::OAuth2 { .. } => "oauth2SecurityScheme",
        SchemeKind::OpenIdConnect { .. } => "openIdConnectSecurityScheme",
        SchemeKind::MutualTls => "mtlsSecurityScheme",
    };
    let mut outer = Object::begin(out);
    let mut object = Object::begin(outer.member(member));
    object.optional("description", scheme.description.as_deref());
    match &scheme.kind {
        SchemeKind::ApiKey { location, name } => {
            object.string("location", location_name(*location));
            object.string("name", name);
        }
        SchemeKind::Http { scheme, bearer_format } => {
            object.string("scheme", scheme);
            object.optional("bearerFormat", bearer_format.as_deref());
        }
        SchemeKind::OAuth2 { flows, metadata_url } => {
            write_flows(object.member("flows"), flows);
            object.optional("oauth2MetadataUrl", metadata_url.as_deref());
        }
        SchemeKind::OpenIdConnect { url } => object.string("openIdConnectUrl", url),
        SchemeKind::MutualTls => {}
    }
    object.end();
    outer.end();
}

fn location_name(location: ApiKeyLocation) -> &'static str {
    match location {
        ApiKeyLocation::Query => "query",
        ApiKeyLocation::Header => "header",
        ApiKeyLocation::Cookie => "cookie",
    }
}

/// One flow only: in 1.0 the flows are alternatives of a oneof, and a strict reader refuses two. Of several the
/// first in the specification's order is told.
fn write_flows(out: &mut Vec<u8>, flows: &OAuthFlows) {
    let mut outer = Object::begin(out);
    if let Some(flow) = &flows.authorization_code {
        let mut object = Object::begin(outer.member("authorizationCode"));
        object.string("authorizationUrl", flow.authorization_url.as_deref().unwrap_or_default());
        object.string("tokenUrl", flow.token_url.as_deref().unwrap_or_default());
        write_refresh_and_scopes(&mut object, flow);
        object.flag_if_set("pkceRequired", flow.pkce_required);
        object.end();
    } else if let Some(flow) = &flows.client_credentials {
        let mut object = Object::begin(outer.member("clientCredentials"));
        object.string("tokenUrl", flow.token_url.as_deref().unwrap_or_default());
        write_refresh_and_scopes(&mut object, flow);
        object.end();
    } else if let Some(flow) = &flows.device_code {
        let mut object = Object::begin(outer.member("deviceCode"));
        object.string("deviceAuthorizationUrl", flow.device_authorization_url.as_deref().unwrap_or_default());
        object.string("tokenUrl", flow.token_url.as_deref().unwrap_or_default());
        write_refresh_and_scopes(&mut object, flow);
        object.end();
    } else if let Some(flow) = &flows.implicit {
        let mut object = Object::begin(outer.member("implicit"));
        object.optional("authorizationUrl", flow.authorization_url.as_deref());
        write_refresh_and_scopes(&mut object, flow);
        object.end();
    } else if let Some(flow) = &flows.password {
        let mut object = Object::begin(outer.member("password"));
        object.optional("tokenUrl", flow.token_url.as_deref());
        write_refresh_and_scopes(&mut object, flow);
        object.end();
    }
    outer.end();
}

fn write_refresh_and_scopes(object: &mut Object<'_>, flow: &OAuthFlow) {
    object.optional("refreshUrl", flow.refresh_url.as_deref());
    let mut scopes = Object::begin(object.member("scopes"));
    for (name, description) in &flow.scopes {
        string(scopes.entry(name), description);
    }
    scopes.end();
}

pub(super) fn write_requirement(out: &mut Vec<u8>, requirement: &SecurityRequirement) {
    let mut outer = Object::begin(out);
    // No schemes at all is a requirement, too: none.
    if !requirement.schemes.is_empty() {
        let mut schemes = Object::begin(outer.member("schemes"));
        for (name, scopes) in &requirement.schemes {
            let mut object = Object::begin(schemes.entry(name));
            object.strings_unless_empty("list", scopes);
            object.end();
        }
        schemes.end();
    }
    outer.end();
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SchemeTwin {
    #[serde(default, alias = "api_key_security_scheme", deserialize_with = "optional::<V1, _, _>")]
    api_key_security_scheme: Option<Twin<ApiKeyTwin>>,
    #[serde(default, alias = "http_auth_security_scheme", deserialize_with = "optional::<V1, _, _>")]
    http_auth_security_scheme: Option<Twin<HttpTwin>>,
    #[serde(default, alias = "oauth2_security_scheme", deserialize_with = "optional::<V1, _, _>")]
    oauth2_security_scheme: Option<Twin<OAuth2Twin>>,
    #[serde(default, alias = "open_id_connect_security_scheme", deserialize_with = "optional::<V1, _, _>")]
    open_id_connect_security_scheme: Option<Twin<OpenIdConnectTwin>>,
    #[serde(default, alias = "mtls_security_scheme", deserialize_with = "optional::<V1, _, _>")]
    mtls_security_scheme: Option<Twin<MutualTlsTwin>>,
}

/// Any twin of this file, read as an object.
struct Twin<T>(T);

impl<T: serde::de::DeserializeOwned> FromWire<V1> for Twin<T> {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        twin(deserializer).map(Twin)
    }
}

impl FromWire<V1> for SecurityScheme {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all: SchemeTwin = twin(deserializer)?;
        let (description, kind) = match (
            all.api_key_security_scheme,
            all.http_auth_security_scheme,
            all.oauth2_security_scheme,
            all.open_id_connect_security_scheme,
            all.mtls_security_scheme,
        ) {
            (Some(Twin(key)), None, None, None, None) => {
                (key.description, SchemeKind::ApiKey { location: key.location, name: key.name })
            }
            (None, Some(Twin(http)), None, None, None) => (
                http.description,
                SchemeKind::Http { scheme: http.scheme, bearer_format: http.bearer_format },
            ),
            (None, None, Some(Twin(oauth2)), None, None) => {
                let metadata_url = oauth2.oauth2_metadata_url;
                (oauth2.description, SchemeKind::OAuth2 { flows: Box::new(oauth2.flows), metadata_url })
            }
            (None, None, None, Some(Twin(open_id)), None) => {
                (open_id.description, SchemeKind::OpenIdConnect { url: open_id.open_id_connect_url })
            }
            (None, None, None, None, Some(Twin(mtls))) => (mtls.description, SchemeKind::MutualTls),
            _ => {
                return Err(D::Error::custom(
                    "must hold exactly one of apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, \
                     openIdConnectSecurityScheme and mtlsSecurityScheme",
                ));
            }
        };
        Ok(SecurityScheme { description, kind })
    }
}

#[derive(Deserialize)]
struct ApiKeyTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    location: ApiKeyLocation,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    name: String,
}

impl FromWire<V1> for ApiKeyLocation {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, "query, header or cookie", |text| match text {
            "query" => Ok(ApiKeyLocation::Query),
            "header" => Ok(ApiKeyLocation::Header),
            "cookie" => Ok(ApiKeyLocation::Cookie),
            _ => Err("must be query, header or cookie".to_owned()),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HttpTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    scheme: String,
    #[serde(default, alias = "bearer_format", deserialize_with = "text")]
    bearer_format: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OAuth2Twin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(deserialize_with = "one::<V1, _, _>")]
    flows: OAuthFlows,
    #[serde(default, alias = "oauth2_metadata_url", deserialize_with = "text")]
    oauth2_metadata_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenIdConnectTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(alias = "open_id_connect_url", deserialize_with = "one::<V1, _, _>")]
    open_id_connect_url: String,
}

#[derive(Deserialize)]
struct MutualTlsTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FlowsTwin {
    #[serde(default, alias = "authorization_code", deserialize_with = "optional::<V1, _, _>")]
    authorization_code: Option<OAuthFlow>,
    #[serde(default, alias = "client_credentials", deserialize_with = "optional::<V1, _, _>")]
    client_credentials: Option<OAuthFlow>,
    #[serde(default, alias = "device_code", deserialize_with = "optional::<V1, _, _>")]
    device_code: Option<OAuthFlow>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    implicit: Option<OAuthFlow>,
    #[serde(default, deserialize_with = "optional::<V1, _, _>")]
    password: Option<OAuthFlow>,
}

impl FromWire<V1> for OAuthFlows {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FlowsTwin { authorization_code, client_credentials, device_code, implicit, password } =
            twin(deserializer)?;
        Ok(OAuthFlows { authorization_code, client_credentials, device_code, implicit, password })
    }
}

/// All flows at once: which URLs a flow needs is for whoever uses it to say.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FlowTwin {
    #[serde(default, alias = "authorization_url", deserialize_with = "text")]
    authorization_url: Option<String>,
    #[serde(default, alias = "device_authorization_url", deserialize_with = "text")]
    device_authorization_url: Option<String>,
    #[serde(default, alias = "token_url", deserialize_with = "text")]
    token_url: Option<String>,
    #[serde(default, alias = "refresh_url", deserialize_with = "text")]
    refresh_url: Option<String>,
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    scopes: Pairs<String>,
    #[serde(default, alias = "pkce_required", deserialize_with = "or_default::<V1, _, _>")]
    pkce_required: bool,
}

impl FromWire<V1> for OAuthFlow {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let flow: FlowTwin = twin(deserializer)?;
        Ok(OAuthFlow {
            authorization_url: flow.authorization_url,
            device_authorization_url: flow.device_authorization_url,
            token_url: flow.token_url,
            refresh_url: flow.refresh_url,
            scopes: flow.scopes.0,
            pkce_required: flow.pkce_required,
        })
    }
}

#[derive(Deserialize)]
struct RequirementTwin {
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    schemes: Pairs<Twin<StringListTwin>>,
}

#[derive(Deserialize)]
struct StringListTwin {
    #[serde(default, deserialize_with = "or_default::<V1, _, _>")]
    list: Vec<String>,
}

impl FromWire<V1> for SecurityRequirement {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RequirementTwin { schemes } = twin(deserializer)?;
        Ok(SecurityRequirement {
            schemes: schemes.0.into_iter().map(|(name, Twin(scopes))| (name, scopes.list)).collect(),
        })
    }
}
