//! Agent cards as text.

use baton_protocol::domain::card::AgentCard;
use baton_protocol::domain::security::{ApiKeyLocation, OAuthFlows, SchemeKind, SecurityRequirement};

use super::text::Section;

pub(crate) fn card(card: &AgentCard, signature: Option<&str>, verbose: bool) -> Section {
    let mut section = Section::default();
    section.field("Agent", &card.name);
    section.field("Description", &card.description);
    section.field("Version", &card.version);
    if let Some(provider) = &card.provider {
        section.field("Provider", format!("{} {}", provider.organization, provider.url));
    }
    section.optional("Documentation", card.documentation_url.as_deref());
    for (label, declared) in [
        ("Streaming", card.capabilities.streaming),
        ("Push notifications", card.capabilities.push_notifications),
        ("Extended card", card.capabilities.extended_agent_card),
    ] {
        section.field(label, declared.unwrap_or(false).to_string());
    }
    for extension in &card.capabilities.extensions {
        let required = if extension.required { " required" } else { "" };
        section.field("Extension", format!("{}{required}", extension.uri));
    }
    for interface in &card.interfaces {
        let mut line =
            format!("{} {} {}", interface.protocol_binding, interface.protocol_version, interface.url);
        if let Some(tenant) = &interface.tenant {
            line += &format!(" tenant={tenant}");
        }
        section.field("Interface", line);
    }
    for (name, scheme) in &card.security_schemes {
        section.field("Security scheme", format!("{name} {}", scheme_words(&scheme.kind)));
    }
    for requirement in &card.security_requirements {
        section.field("Security", requirement_words(requirement));
    }
    section.field("Input modes", card.default_input_modes.join(", "));
    section.field("Output modes", card.default_output_modes.join(", "));
    for skill in &card.skills {
        section.field("Skill", format!("{} {}", skill.id, skill.name));
        if verbose {
            let mut about = format!("{}: {}", skill.id, skill.description);
            for (label, items) in [
                ("tags", &skill.tags),
                ("examples", &skill.examples),
                ("input modes", &skill.input_modes),
                ("output modes", &skill.output_modes),
            ] {
                if !items.is_empty() {
                    about += &format!("\n{label}: {}", items.join(", "));
                }
            }
            section.block("Skill description", &about);
        }
    }
    section.optional("Signature", signature);
    section
}

fn scheme_words(kind: &SchemeKind) -> String {
    match kind {
        SchemeKind::ApiKey { location, name } => {
            let place = match location {
                ApiKeyLocation::Query => "query",
                ApiKeyLocation::Header => "header",
                ApiKeyLocation::Cookie => "cookie",
            };
            format!("apiKey {place} {name}")
        }
        SchemeKind::Http { scheme, .. } => format!("http {scheme}"),
        SchemeKind::OAuth2 { flows, .. } => format!("oauth2 {}", flow_names(flows).join(", ")),
        SchemeKind::OpenIdConnect { url } => format!("openIdConnect {url}"),
        SchemeKind::MutualTls => "mutualTLS".to_owned(),
    }
}

fn flow_names(flows: &OAuthFlows) -> Vec<&'static str> {
    let all = [
        ("authorizationCode", &flows.authorization_code),
        ("clientCredentials", &flows.client_credentials),
        ("deviceCode", &flows.device_code),
        ("implicit", &flows.implicit),
        ("password", &flows.password),
    ];
    all.into_iter().filter(|(_, flow)| flow.is_some()).map(|(name, _)| name).collect()
}

/// Schemes that are needed together, joined by `+`; none means that nothing is needed.
pub(crate) fn requirement_words(requirement: &SecurityRequirement) -> String {
    if requirement.schemes.is_empty() {
        return "none".to_owned();
    }
    let scheme = |(name, scopes): &(String, Vec<String>)| match &scopes[..] {
        [] => name.clone(),
        scopes => format!("{name}({})", scopes.join(" ")),
    };
    requirement.schemes.iter().map(scheme).collect::<Vec<_>>().join("+")
}
