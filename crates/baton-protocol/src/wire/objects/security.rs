//! Reads and writes the security schemes and requirements of a card: the ProtoJSON forms, which 0.3 and 1.0 share, and
//! the OpenAPI form of 0.3, selected by a [`SchemeStyle`].

use serde::Deserialize;
use serde::de::Deserializer;

use crate::domain::security::{
    ApiKeyLocation, OAuthFlow, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme,
};
use crate::wire::read::{FromWire, Pairs, Twin, from_str, one, optional, or_default, text, twin};
use crate::wire::write::{Object, string};

/// How a generation writes schemes, and what its OAuth flows support.
pub(crate) struct SchemeStyle {
    /// Distinguished by `type`, as in OpenAPI, instead of by the name of a wrapping member.
    pub(crate) typed: bool,
    /// If false, the flows are alternatives of a oneof, and strict readers refuse two: only the first in the
    /// specification's order is written.
    pub(crate) several_flows: bool,
    pub(crate) device_code: bool,
    pub(crate) pkce: bool,
}

pub(crate) fn write_schemes(out: &mut Vec<u8>, schemes: &[(String, SecurityScheme)], style: &SchemeStyle) {
    let mut object = Object::begin(out);
    for (name, scheme) in schemes {
        write_scheme(object.entry(name), scheme, style);
    }
    object.end();
}

fn write_scheme(out: &mut Vec<u8>, scheme: &SecurityScheme, style: &SchemeStyle) {
    let (type_name, member) = match &scheme.kind {
        SchemeKind::ApiKey { .. } => ("apiKey", "apiKeySecurityScheme"),
        SchemeKind::Http { .. } => ("http", "httpAuthSecurityScheme"),
        SchemeKind::OAuth2 { .. } => ("oauth2", "oauth2SecurityScheme"),
        SchemeKind::OpenIdConnect { .. } => ("openIdConnect", "openIdConnectSecurityScheme"),
        SchemeKind::MutualTls => ("mutualTLS", "mtlsSecurityScheme"),
    };
    let mut object = Object::begin(out);
    if style.typed {
        object.string("type", type_name);
        write_scheme_members(&mut object, scheme, style);
    } else {
        let mut inner = Object::begin(object.member(member));
        write_scheme_members(&mut inner, scheme, style);
        inner.end();
    }
    object.end();
}

fn write_scheme_members(object: &mut Object<'_>, scheme: &SecurityScheme, style: &SchemeStyle) {
    object.optional("description", scheme.description.as_deref());
    match &scheme.kind {
        SchemeKind::ApiKey { location, name } => {
            object.string(if style.typed { "in" } else { "location" }, location_name(*location));
            object.string("name", name);
        }
        SchemeKind::Http { scheme, bearer_format } => {
            object.string("scheme", scheme);
            object.optional("bearerFormat", bearer_format.as_deref());
        }
        SchemeKind::OAuth2 { flows, metadata_url } => {
            write_flows(object.member("flows"), flows, style);
            object.optional("oauth2MetadataUrl", metadata_url.as_deref());
        }
        SchemeKind::OpenIdConnect { url } => object.string("openIdConnectUrl", url),
        SchemeKind::MutualTls => {}
    }
}

pub(crate) fn location_name(location: ApiKeyLocation) -> &'static str {
    match location {
        ApiKeyLocation::Query => "query",
        ApiKeyLocation::Header => "header",
        ApiKeyLocation::Cookie => "cookie",
    }
}

fn write_flows(out: &mut Vec<u8>, flows: &OAuthFlows, style: &SchemeStyle) {
    const AUTHORIZATION: &str = "authorizationUrl";
    const DEVICE: &str = "deviceAuthorizationUrl";
    const TOKEN: &str = "tokenUrl";
    // In the specification's order, each with its URLs.
    let known: [(&str, &Option<OAuthFlow>, &[&str]); 5] = [
        ("authorizationCode", &flows.authorization_code, &[AUTHORIZATION, TOKEN]),
        ("clientCredentials", &flows.client_credentials, &[TOKEN]),
        ("deviceCode", if style.device_code { &flows.device_code } else { &None }, &[DEVICE, TOKEN]),
        ("implicit", &flows.implicit, &[AUTHORIZATION]),
        ("password", &flows.password, &[TOKEN]),
    ];
    let told =
        known.into_iter().filter_map(|(name, flow, urls)| flow.as_ref().map(|flow| (name, flow, urls)));
    let mut outer = Object::begin(out);
    for (name, flow, urls) in told.take(if style.several_flows { known.len() } else { 1 }) {
        let mut object = Object::begin(outer.member(name));
        for url in urls {
            let value = match *url {
                AUTHORIZATION => &flow.authorization_url,
                DEVICE => &flow.device_authorization_url,
                _ => &flow.token_url,
            };
            object.string(url, value.as_deref().unwrap_or_default());
        }
        object.optional("refreshUrl", flow.refresh_url.as_deref());
        let mut scopes = Object::begin(object.member("scopes"));
        for (name, description) in &flow.scopes {
            string(scopes.entry(name), description);
        }
        scopes.end();
        object.flag_if_set("pkceRequired", style.pkce && name == "authorizationCode" && flow.pkce_required);
        object.end();
    }
    outer.end();
}

/// A requirement in its ProtoJSON form: a message that holds a map of messages that hold a list.
pub(crate) fn write_named_requirement(out: &mut Vec<u8>, requirement: &SecurityRequirement) {
    let mut outer = Object::begin(out);
    // A requirement without schemes is valid: it requires nothing.
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

/// A scheme in its ProtoJSON form: exactly one member is set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrappedScheme {
    #[serde(default, alias = "api_key_security_scheme", deserialize_with = "optional::<(), _, _>")]
    pub(crate) api_key_security_scheme: Option<Twin<ApiKeyTwin>>,
    #[serde(default, alias = "http_auth_security_scheme", deserialize_with = "optional::<(), _, _>")]
    pub(crate) http_auth_security_scheme: Option<Twin<HttpTwin>>,
    #[serde(default, alias = "oauth2_security_scheme", deserialize_with = "optional::<(), _, _>")]
    pub(crate) oauth2_security_scheme: Option<Twin<OAuth2Twin>>,
    #[serde(default, alias = "open_id_connect_security_scheme", deserialize_with = "optional::<(), _, _>")]
    pub(crate) open_id_connect_security_scheme: Option<Twin<OpenIdConnectTwin>>,
    #[serde(default, alias = "mtls_security_scheme", deserialize_with = "optional::<(), _, _>")]
    pub(crate) mtls_security_scheme: Option<Twin<MutualTlsTwin>>,
}

/// The members of a scheme in its ProtoJSON form.
pub(crate) const SCHEMES: &str = "apiKeySecurityScheme, httpAuthSecurityScheme, oauth2SecurityScheme, \
                                  openIdConnectSecurityScheme and mtlsSecurityScheme";

impl WrappedScheme {
    pub(crate) fn into_scheme<E: serde::de::Error>(self) -> Result<SecurityScheme, E> {
        let (description, kind) = match (
            self.api_key_security_scheme,
            self.http_auth_security_scheme,
            self.oauth2_security_scheme,
            self.open_id_connect_security_scheme,
            self.mtls_security_scheme,
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
            _ => return Err(E::custom(format!("must hold exactly one of {SCHEMES}"))),
        };
        Ok(SecurityScheme { description, kind })
    }
}

#[derive(Deserialize)]
pub(crate) struct ApiKeyTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(deserialize_with = "one::<(), _, _>")]
    location: ApiKeyLocation,
    #[serde(deserialize_with = "one::<(), _, _>")]
    name: String,
}

pub(crate) const LOCATIONS: &str = "query, header or cookie";

pub(crate) fn parse_location(name: &str) -> Option<ApiKeyLocation> {
    let known = [ApiKeyLocation::Query, ApiKeyLocation::Header, ApiKeyLocation::Cookie];
    known.into_iter().find(|location| location_name(*location) == name)
}

impl<G> FromWire<G> for ApiKeyLocation {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_str(deserializer, LOCATIONS, |text| {
            parse_location(text).ok_or_else(|| format!("must be {LOCATIONS}"))
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HttpTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(deserialize_with = "one::<(), _, _>")]
    scheme: String,
    #[serde(default, alias = "bearer_format", deserialize_with = "text")]
    bearer_format: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OAuth2Twin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(deserialize_with = "one::<(), _, _>")]
    flows: OAuthFlows,
    #[serde(default, alias = "oauth2_metadata_url", deserialize_with = "text")]
    oauth2_metadata_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenIdConnectTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
    #[serde(alias = "open_id_connect_url", deserialize_with = "one::<(), _, _>")]
    open_id_connect_url: String,
}

#[derive(Deserialize)]
pub(crate) struct MutualTlsTwin {
    #[serde(default, deserialize_with = "text")]
    description: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FlowsTwin {
    #[serde(default, alias = "authorization_code", deserialize_with = "optional::<(), _, _>")]
    authorization_code: Option<OAuthFlow>,
    #[serde(default, alias = "client_credentials", deserialize_with = "optional::<(), _, _>")]
    client_credentials: Option<OAuthFlow>,
    #[serde(default, alias = "device_code", deserialize_with = "optional::<(), _, _>")]
    device_code: Option<OAuthFlow>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    implicit: Option<OAuthFlow>,
    #[serde(default, deserialize_with = "optional::<(), _, _>")]
    password: Option<OAuthFlow>,
}

impl<G> FromWire<G> for OAuthFlows {
    fn from_wire<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FlowsTwin { authorization_code, client_credentials, device_code, implicit, password } =
            twin(deserializer)?;
        Ok(OAuthFlows { authorization_code, client_credentials, device_code, implicit, password })
    }
}

/// The members of all flows; which URLs a flow requires is not checked here.
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
    #[serde(default, deserialize_with = "or_default::<(), _, _>")]
    scopes: Pairs<String>,
    #[serde(default, alias = "pkce_required", deserialize_with = "or_default::<(), _, _>")]
    pkce_required: bool,
}

impl<G> FromWire<G> for OAuthFlow {
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

/// The scopes of one scheme in a requirement's ProtoJSON form.
#[derive(Deserialize)]
pub(crate) struct Scopes {
    #[serde(default, deserialize_with = "or_default::<(), _, _>")]
    list: Vec<String>,
}

/// The schemes of a requirement's ProtoJSON form.
pub(crate) type NamedSchemes = Pairs<Twin<Scopes>>;

impl From<NamedSchemes> for SecurityRequirement {
    fn from(schemes: NamedSchemes) -> Self {
        let scopes = |(name, Twin(scopes)): (String, Twin<Scopes>)| (name, scopes.list);
        SecurityRequirement { schemes: schemes.0.into_iter().map(scopes).collect() }
    }
}
