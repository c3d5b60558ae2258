//! Compares what a card requires with what was verified.

use baton_protocol::domain::security::SecurityRequirement;

use super::scheme::Identity;

/// Whether a caller meets the requirements of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Met<'a> {
    Yes,
    /// The caller has the credentials for a requirement, and they lack these scopes.
    WithoutScopes(Vec<&'a str>),
    No,
}

/// One of the requirements must be met: all of its schemes verified, each with all of its scopes. `place` tells the place of
/// a scheme in the chain. An empty list is met by nobody: every card of a server with a chain has requirements.
pub(super) fn met<'a>(
    requirements: &'a [SecurityRequirement],
    verified: &[(usize, Identity)],
    place: impl Fn(&str) -> Option<usize>,
) -> Met<'a> {
    let identity = |scheme: &str| {
        let at = place(scheme)?;
        verified.iter().find(|(verified, _)| *verified == at).map(|(_, identity)| identity)
    };
    let mut closest: Option<Vec<&str>> = None;
    for requirement in requirements {
        let identities = requirement.schemes.iter().map(|(scheme, scopes)| Some((identity(scheme)?, scopes)));
        let Some(identities) = identities.collect::<Option<Vec<_>>>() else { continue };
        let missing = identities.iter().flat_map(|(identity, scopes)| {
            scopes.iter().filter(|scope| !identity.scopes.has(scope)).map(String::as_str)
        });
        let missing: Vec<_> = missing.collect();
        if missing.is_empty() {
            return Met::Yes;
        }
        if closest.as_ref().is_none_or(|closest| missing.len() < closest.len()) {
            closest = Some(missing);
        }
    }
    closest.map_or(Met::No, Met::WithoutScopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Scopes;

    fn requirement(schemes: &[(&str, &[&str])]) -> SecurityRequirement {
        let owned = |(scheme, scopes): &(&str, &[&str])| {
            ((*scheme).to_owned(), scopes.iter().map(|scope| (*scope).to_owned()).collect())
        };
        SecurityRequirement { schemes: schemes.iter().map(owned).collect() }
    }

    #[test]
    fn p05_requirements_are_an_or_of_ands_with_scopes() {
        let place = |scheme: &str| ["key", "token", "cert"].iter().position(|known| *known == scheme);
        let verified = |has: &[(usize, &str)]| -> Vec<_> {
            let identity = |scopes: &str| Identity::new("a", Scopes::of(scopes.split_whitespace()), "c");
            has.iter().map(|(at, scopes)| (*at, identity(scopes))).collect()
        };
        let key = || requirement(&[("key", &[])]);
        let both = || requirement(&[("token", &["read"]), ("cert", &[])]);
        let open = || requirement(&[]);
        for (requirements, has, expected) in [
            (vec![], &[(0, "")][..], Met::No),
            (vec![open()], &[], Met::Yes),
            (vec![key()], &[], Met::No),
            (vec![key()], &[(0, "")], Met::Yes),
            (vec![key()], &[(1, "")], Met::No),
            (vec![both()], &[(1, "read")], Met::No),
            (vec![both()], &[(2, "read")], Met::No),
            (vec![both()], &[(1, "read"), (2, "")], Met::Yes),
            (vec![both()], &[(1, "write"), (2, "read")], Met::WithoutScopes(vec!["read"])),
            (vec![both(), key()], &[(0, "")], Met::Yes),
            (vec![both(), key()], &[(0, ""), (1, ""), (2, "")], Met::Yes),
            (vec![requirement(&[("gone", &[])])], &[(0, ""), (1, ""), (2, "")], Met::No),
            (
                vec![requirement(&[("key", &["a", "b"])]), requirement(&[("key", &["c"])])],
                &[(0, "a")],
                Met::WithoutScopes(vec!["b"]),
            ),
        ] {
            assert_eq!(met(&requirements, &verified(has), place), expected, "{requirements:?} {has:?}");
        }
    }
}
