//! Compares the security section of a card with the schemes that are enforced, and writes it if there is none.

use baton_protocol::domain::security::{ApiKeyLocation, SchemeKind, SecurityRequirement, SecurityScheme};
use baton_protocol::domain::{AgentCard, AgentSkill};

use crate::auth::Authenticator;

/// What the server's authenticator enforces.
#[derive(Debug, Clone)]
pub(crate) enum Enforced {
    /// Nobody is authenticated.
    Nothing,
    /// What the card's author declares: the authenticator is the author's own.
    AsDeclared,
    /// These schemes, by name.
    Schemes(Vec<(String, SecurityScheme)>),
}

impl Enforced {
    pub(crate) fn by(authenticator: &dyn Authenticator) -> Self {
        match authenticator.schemes() {
            _ if !authenticator.enforces() => Enforced::Nothing,
            None => Enforced::AsDeclared,
            Some(schemes) => Enforced::Schemes(schemes),
        }
    }

    /// Completes the card's security section. `Err` has one line per problem, which begins with the member's name.
    pub(super) fn declare(&self, card: &mut AgentCard) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        match self {
            Enforced::Nothing => {
                if !card.security_requirements.is_empty() || !card.security_schemes.is_empty() {
                    wrong.push("securitySchemes: declared, but this server authenticates nobody".to_owned());
                }
                for skill in card.skills.iter().filter(|skill| !skill.security_requirements.is_empty()) {
                    wrong.push(format!(
                        "skills: `{}` has security requirements, but this server authenticates nobody",
                        skill.id
                    ));
                }
            }
            Enforced::AsDeclared => {}
            Enforced::Schemes(schemes) => {
                wrong.extend(unlike(card, schemes));
                if card.security_schemes.is_empty() {
                    card.security_schemes.clone_from(schemes);
                }
                if card.security_requirements.is_empty() {
                    // Any one of the schemes is enough.
                    let alone = |(name, _): &(String, _)| SecurityRequirement {
                        schemes: vec![(name.clone(), vec![])],
                    };
                    card.security_requirements = card.security_schemes.iter().map(alone).collect();
                }
                wrong.extend(undeclared(card));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// A scheme that no card declares: nobody could use it.
    pub(crate) fn without_card<'a>(&self, cards: impl Iterator<Item = &'a AgentCard>) -> Vec<String> {
        let Enforced::Schemes(schemes) = self else { return Vec::new() };
        let declared: Vec<_> = cards.flat_map(|card| &card.security_schemes).map(|(name, _)| name).collect();
        let unused = schemes.iter().filter(|(name, _)| !declared.contains(&name));
        let line = |(name, _): &(String, _)| {
            format!(
                "securitySchemes: `{name}` is configured, but no card declares it, so that nobody could use it"
            )
        };
        unused.map(line).collect()
    }
}

/// Schemes that the card declares and that are not enforced, or not as declared.
fn unlike(card: &AgentCard, schemes: &[(String, SecurityScheme)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, declared) in &card.security_schemes {
        let Some((_, enforced)) = schemes.iter().find(|(enforced, _)| enforced == name) else {
            let names = schemes.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            wrong.push(format!(
                "securitySchemes: `{name}` is declared, but nothing enforces it; this server enforces {names}"
            ));
            continue;
        };
        if !is_same(&declared.kind, &enforced.kind) {
            wrong.push(format!(
                "securitySchemes: `{name}` is declared in another way than it is enforced; leave the security section \
                 out of the card to have it written"
            ));
        }
    }
    wrong
}

/// Whether a client that follows the declaration sends what is enforced. The flows of OAuth 2.0 and the addresses of its
/// servers are for clients alone, so that an author may describe them.
fn is_same(declared: &SchemeKind, enforced: &SchemeKind) -> bool {
    match (declared, enforced) {
        (SchemeKind::Http { scheme: one, .. }, SchemeKind::Http { scheme: other, .. }) => {
            one.eq_ignore_ascii_case(other)
        }
        (
            SchemeKind::ApiKey { location: one, name },
            SchemeKind::ApiKey { location: other, name: enforced },
        ) => {
            one == other
                && (name == enforced || name.eq_ignore_ascii_case(enforced) && *one == ApiKeyLocation::Header)
        }
        (SchemeKind::OAuth2 { .. }, SchemeKind::OAuth2 { .. })
        | (SchemeKind::OpenIdConnect { .. }, SchemeKind::OpenIdConnect { .. })
        | (SchemeKind::MutualTls, SchemeKind::MutualTls) => true,
        _ => false,
    }
}

/// Requirements of the card or of its skills with a scheme that the card does not declare.
fn undeclared(card: &AgentCard) -> Vec<String> {
    let of_skill = |skill: &AgentSkill| {
        let member = format!("skills: `{}` requires", skill.id);
        skill.security_requirements.iter().map(move |it| (member.clone(), it.clone())).collect::<Vec<_>>()
    };
    let of_card =
        card.security_requirements.iter().map(|it| ("securityRequirements: requires".to_owned(), it.clone()));
    let mut wrong = Vec::new();
    for (member, requirement) in of_card.chain(card.skills.iter().flat_map(of_skill)) {
        for (scheme, _) in &requirement.schemes {
            if !card.security_schemes.iter().any(|(declared, _)| declared == scheme) {
                wrong.push(format!("{member} `{scheme}`, which is not among securitySchemes"));
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    wrong
}
