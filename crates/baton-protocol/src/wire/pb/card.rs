//! The parts of an agent card whose messages are the same in both packages.
//!
//! Maps have no order in protobuf: schemes and scopes come out sorted by name.

use std::collections::BTreeMap;

use super::fault::{Fault, Read, Within, list, maybe_object, named, present, text};
use super::json;
use super::v1::messages::o_auth_flows::Flow;
use super::v1::messages::security_scheme::Scheme;
use super::v1::messages::{self as pb};
use crate::domain::security::{OAuthFlow, OAuthFlows, SchemeKind, SecurityRequirement, SecurityScheme};
use crate::domain::{AgentExtension, AgentProvider, AgentSkill, CardSignature};
use crate::wire::objects::SchemeStyle;
use crate::wire::objects::security::{LOCATIONS, SCHEMES, location_name, parse_location};

type Scopes = BTreeMap<String, String>;

pub(super) fn write_provider(AgentProvider { organization, url }: &AgentProvider) -> pb::AgentProvider {
    pb::AgentProvider { url: url.clone(), organization: organization.clone() }
}

pub(super) fn read_provider(provider: pb::AgentProvider) -> AgentProvider {
    AgentProvider { organization: provider.organization, url: provider.url }
}

pub(super) fn write_extension(extension: &AgentExtension) -> pb::AgentExtension {
    pb::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone().unwrap_or_default(),
        required: extension.required,
        params: extension.params.as_ref().map(json::object),
    }
}

pub(super) fn read_extension(extension: pb::AgentExtension) -> Read<AgentExtension> {
    Ok(AgentExtension {
        uri: extension.uri,
        description: text(extension.description),
        required: extension.required,
        params: maybe_object(extension.params).within("params")?,
    })
}

pub(super) fn write_skill(skill: &AgentSkill) -> pb::AgentSkill {
    pb::AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security_requirements: skill.security_requirements.iter().map(write_requirement).collect(),
    }
}

pub(super) fn read_skill(skill: pb::AgentSkill) -> AgentSkill {
    AgentSkill {
        id: skill.id,
        name: skill.name,
        description: skill.description,
        tags: skill.tags,
        examples: skill.examples,
        input_modes: skill.input_modes,
        output_modes: skill.output_modes,
        security_requirements: skill.security_requirements.into_iter().map(read_requirement).collect(),
    }
}

pub(super) fn write_signature(signature: &CardSignature) -> pb::AgentCardSignature {
    pb::AgentCardSignature {
        protected: signature.protected.clone(),
        signature: signature.signature.clone(),
        header: signature.header.as_ref().map(json::object),
    }
}

pub(super) fn read_signatures(signatures: Vec<pb::AgentCardSignature>) -> Read<Vec<CardSignature>> {
    list(signatures, |signature| {
        let header = maybe_object(signature.header).within("header")?;
        Ok(CardSignature { protected: signature.protected, signature: signature.signature, header })
    })
}

pub(super) fn write_requirement(requirement: &SecurityRequirement) -> pb::SecurityRequirement {
    let schemes = requirement.schemes.iter();
    let schemes = schemes.map(|(name, scopes)| (name.clone(), pb::StringList { list: scopes.clone() }));
    pb::SecurityRequirement { schemes: schemes.collect() }
}

pub(super) fn read_requirement(requirement: pb::SecurityRequirement) -> SecurityRequirement {
    let schemes = requirement.schemes.into_iter();
    SecurityRequirement { schemes: schemes.map(|(name, scopes)| (name, scopes.list)).collect() }
}

pub(super) fn write_schemes(
    schemes: &[(String, SecurityScheme)],
    style: &SchemeStyle,
) -> BTreeMap<String, pb::SecurityScheme> {
    schemes.iter().map(|(name, scheme)| (name.clone(), write_scheme(scheme, style))).collect()
}

fn write_scheme(scheme: &SecurityScheme, style: &SchemeStyle) -> pb::SecurityScheme {
    let description = scheme.description.clone().unwrap_or_default();
    let scheme = match &scheme.kind {
        SchemeKind::ApiKey { location, name } => Scheme::ApiKeySecurityScheme(pb::ApiKeySecurityScheme {
            description,
            location: location_name(*location).to_owned(),
            name: name.clone(),
        }),
        SchemeKind::Http { scheme, bearer_format } => {
            Scheme::HttpAuthSecurityScheme(pb::HttpAuthSecurityScheme {
                description,
                scheme: scheme.clone(),
                bearer_format: bearer_format.clone().unwrap_or_default(),
            })
        }
        SchemeKind::OAuth2 { flows, metadata_url } => {
            Scheme::Oauth2SecurityScheme(pb::OAuth2SecurityScheme {
                description,
                flows: Some(pb::OAuthFlows { flow: write_flow(flows, style) }),
                oauth2_metadata_url: metadata_url.clone().unwrap_or_default(),
            })
        }
        SchemeKind::OpenIdConnect { url } => {
            let open_id_connect_url = url.clone();
            Scheme::OpenIdConnectSecurityScheme(pb::OpenIdConnectSecurityScheme {
                description,
                open_id_connect_url,
            })
        }
        SchemeKind::MutualTls => Scheme::MtlsSecurityScheme(pb::MutualTlsSecurityScheme { description }),
    };
    pb::SecurityScheme { scheme: Some(scheme) }
}

/// A scheme has one flow: the first in the specification's order.
fn write_flow(flows: &OAuthFlows, style: &SchemeStyle) -> Option<Flow> {
    let url = |url: &Option<String>| url.clone().unwrap_or_default();
    let scopes = |flow: &OAuthFlow| flow.scopes.iter().cloned().collect::<Scopes>();
    if let Some(flow) = &flows.authorization_code {
        Some(Flow::AuthorizationCode(pb::AuthorizationCodeOAuthFlow {
            authorization_url: url(&flow.authorization_url),
            token_url: url(&flow.token_url),
            refresh_url: url(&flow.refresh_url),
            scopes: scopes(flow),
            pkce_required: style.pkce && flow.pkce_required,
        }))
    } else if let Some(flow) = &flows.client_credentials {
        Some(Flow::ClientCredentials(pb::ClientCredentialsOAuthFlow {
            token_url: url(&flow.token_url),
            refresh_url: url(&flow.refresh_url),
            scopes: scopes(flow),
        }))
    } else if let Some(flow) = flows.device_code.as_ref().filter(|_| style.device_code) {
        Some(Flow::DeviceCode(pb::DeviceCodeOAuthFlow {
            device_authorization_url: url(&flow.device_authorization_url),
            token_url: url(&flow.token_url),
            refresh_url: url(&flow.refresh_url),
            scopes: scopes(flow),
        }))
    } else if let Some(flow) = &flows.implicit {
        Some(Flow::Implicit(pb::ImplicitOAuthFlow {
            authorization_url: url(&flow.authorization_url),
            refresh_url: url(&flow.refresh_url),
            scopes: scopes(flow),
        }))
    } else {
        let flow = flows.password.as_ref()?;
        Some(Flow::Password(pb::PasswordOAuthFlow {
            token_url: url(&flow.token_url),
            refresh_url: url(&flow.refresh_url),
            scopes: scopes(flow),
        }))
    }
}

pub(super) fn read_schemes(
    schemes: BTreeMap<String, pb::SecurityScheme>,
) -> Read<Vec<(String, SecurityScheme)>> {
    named(schemes, read_scheme)
}

fn read_scheme(scheme: pb::SecurityScheme) -> Read<SecurityScheme> {
    let (description, kind) = match scheme.scheme {
        Some(Scheme::ApiKeySecurityScheme(key)) => {
            let location = parse_location(&key.location);
            let location = location.ok_or_else(|| Fault::new(format!("must be {LOCATIONS}")));
            let location = location.within("location").within("apiKeySecurityScheme")?;
            (key.description, SchemeKind::ApiKey { location, name: key.name })
        }
        Some(Scheme::HttpAuthSecurityScheme(http)) => {
            let bearer_format = text(http.bearer_format);
            (http.description, SchemeKind::Http { scheme: http.scheme, bearer_format })
        }
        Some(Scheme::Oauth2SecurityScheme(oauth2)) => {
            let flows = present(oauth2.flows).within("flows").within("oauth2SecurityScheme")?;
            let flows = Box::new(flows.flow.map(read_flow).unwrap_or_default());
            let metadata_url = text(oauth2.oauth2_metadata_url);
            (oauth2.description, SchemeKind::OAuth2 { flows, metadata_url })
        }
        Some(Scheme::OpenIdConnectSecurityScheme(open_id)) => {
            (open_id.description, SchemeKind::OpenIdConnect { url: open_id.open_id_connect_url })
        }
        Some(Scheme::MtlsSecurityScheme(mtls)) => (mtls.description, SchemeKind::MutualTls),
        None => return Err(Fault::new(format!("must hold exactly one of {SCHEMES}"))),
    };
    Ok(SecurityScheme { description: text(description), kind })
}

fn read_flow(flow: Flow) -> OAuthFlows {
    let mut flows = OAuthFlows::default();
    let read = |refresh_url: String, scopes: Scopes| OAuthFlow {
        refresh_url: text(refresh_url),
        scopes: scopes.into_iter().collect(),
        ..OAuthFlow::default()
    };
    match flow {
        Flow::AuthorizationCode(flow) => {
            flows.authorization_code = Some(OAuthFlow {
                authorization_url: text(flow.authorization_url),
                token_url: text(flow.token_url),
                pkce_required: flow.pkce_required,
                ..read(flow.refresh_url, flow.scopes)
            });
        }
        Flow::ClientCredentials(flow) => {
            let token_url = text(flow.token_url);
            flows.client_credentials = Some(OAuthFlow { token_url, ..read(flow.refresh_url, flow.scopes) });
        }
        Flow::DeviceCode(flow) => {
            flows.device_code = Some(OAuthFlow {
                device_authorization_url: text(flow.device_authorization_url),
                token_url: text(flow.token_url),
                ..read(flow.refresh_url, flow.scopes)
            });
        }
        Flow::Implicit(flow) => {
            let authorization_url = text(flow.authorization_url);
            flows.implicit = Some(OAuthFlow { authorization_url, ..read(flow.refresh_url, flow.scopes) });
        }
        Flow::Password(flow) => {
            let token_url = text(flow.token_url);
            flows.password = Some(OAuthFlow { token_url, ..read(flow.refresh_url, flow.scopes) });
        }
    }
    flows
}
