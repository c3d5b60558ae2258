//! Rules for the service parameters of every request: version, tenant, extensions.

use super::{Finding, INTEROP, Rule, Trial, each, posts};
use crate::acts::document::Level;
use crate::case::Failure;
use crate::generation::Generation;
use crate::judge::card;
use crate::judge::heard::{Heard, Place};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "VER-001",
        name: "A2A-Version on every request",
        level: Level::Must,
        requirement: "A client sends the A2A-Version header with every request.",
        remedy: "Set `A2A-Version: 1.0` on every call; without it an agent takes the request for one of 0.3.",
        sections: ["3.6.1", "", ""],
        check: version,
        ..INTEROP
    },
    Rule {
        id: "VER-002",
        name: "The version of the interface",
        level: Level::Must,
        requirement: "The version that a request names is the one of the interface it goes to.",
        remedy: "Send the `protocolVersion` of the chosen interface, as Major.Minor.",
        sections: ["3.6.2", "3.6.2 of 1.0", ""],
        check: same_version,
        ..INTEROP
    },
    Rule {
        id: "VER-003",
        name: "No patch numbers",
        level: Level::Should,
        requirement: "Patch numbers are not part of A2A-Version.",
        remedy: "Send `1.0`, not `1.0.1`.",
        sections: ["3.6", "", ""],
        check: no_patch,
        ..INTEROP
    },
    Rule {
        id: "TENANT-001",
        name: "Sends the interface's tenant",
        level: Level::Must,
        requirement: "When the chosen interface has a tenant every request of the client's has exactly that one: as `tenant`, or in HTTP+JSON in front of the path.",
        remedy: "Keep the tenant with the interface, and put it into every request.",
        sections: ["8.3.2", "", ""],
        scripts: &["tenant"],
        check: tenant,
        ..INTEROP
    },
    Rule {
        id: "TENANT-002",
        name: "No tenant of its own",
        level: Level::Must,
        requirement: "When the chosen interface has no tenant the client sends none.",
        remedy: "Leave `tenant` out unless the interface declares one.",
        sections: ["8.3.2", "", ""],
        check: no_tenant,
        ..INTEROP
    },
    Rule {
        id: "EXT-001",
        name: "Names required extensions",
        level: Level::Should,
        requirement: "A client that calls an agent whose card requires an extension complies with it, and names it in A2A-Extensions (0.3: X-A2A-Extensions).",
        remedy: "Put the URIs of required extensions that you support into the header; do not call agents whose required extensions you do not know.",
        sections: ["4.6.1", "5.5.2.1", ""],
        scripts: &["required-extension"],
        check: extension,
        ..INTEROP
    },
];

fn named_version(heard: &Heard) -> Option<String> {
    let query = || heard.query().into_iter().find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"));
    let header = heard.header("a2a-version").map(str::to_owned);
    header.or_else(|| query().map(|(_, value)| value)).filter(|version| !version.trim().is_empty())
}

fn version(trial: &Trial<'_>) -> Finding {
    each(posts(trial), "no call", |heard| match named_version(heard) {
        Some(_) => Ok(()),
        None => Err(Failure::expected("A2A-Version: 1.0", "no such header, which means 0.3")),
    })
}

fn same_version(trial: &Trial<'_>) -> Finding {
    let versioned = posts(trial).filter(|(_, heard)| named_version(heard).is_some());
    let wanted = trial.generation().version();
    each(versioned, "no call that names a version", |heard| {
        let found = named_version(heard).unwrap_or_default();
        let minor = found.trim().split('.').take(2).collect::<Vec<_>>().join(".");
        if minor == wanted { Ok(()) } else { Err(Failure::expected(format!("A2A-Version: {wanted}"), found)) }
    })
}

fn no_patch(trial: &Trial<'_>) -> Finding {
    let versioned = posts(trial).filter(|(_, heard)| named_version(heard).is_some());
    each(versioned, "no call that names a version", |heard| {
        let found = named_version(heard).unwrap_or_default();
        if found.split('.').count() <= 2 { Ok(()) } else { Err(Failure::expected("Major.Minor", found)) }
    })
}

/// The tenant of a call, in the path, the query or the body.
fn tenant_of(heard: &Heard) -> Option<String> {
    let call = heard.call.as_ref()?;
    let member = call.params["tenant"].as_str().filter(|tenant| !tenant.is_empty()).map(str::to_owned);
    call.tenant.clone().or(member)
}

fn tenant(trial: &Trial<'_>) -> Finding {
    let Some(wanted) = card::tenant(trial.stage.script) else {
        return Finding::not_seen("no interface with a tenant");
    };
    let calls = trial.calls().filter(|(_, heard)| matches!(heard.place, Place::Door { .. }));
    each(calls, "no call", |heard| match tenant_of(heard) {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(Failure::expected(format!("the tenant {wanted:?}"), format!("{found:?}"))),
        None => Err(Failure::expected(format!("the tenant {wanted:?}"), format!("none: {}", heard.line()))),
    })
}

fn no_tenant(trial: &Trial<'_>) -> Finding {
    if card::tenant(trial.stage.script).is_some() {
        return Finding::not_seen("no interface without a tenant");
    }
    let calls = trial.calls().filter(|(_, heard)| heard.call.is_some());
    each(calls, "no call", |heard| match tenant_of(heard) {
        Some(tenant) => Err(Failure::expected("no tenant", format!("{tenant:?}"))),
        None => Ok(()),
    })
}

fn extension(trial: &Trial<'_>) -> Finding {
    let names: &[&str] = match trial.generation() {
        Generation::V1 => &["a2a-extensions"],
        // Both spellings are in use; SDKs of 1.0 send both to agents of 0.3.
        _ => &["x-a2a-extensions", "a2a-extensions"],
    };
    let mut sends = trial.sends().peekable();
    let Some((at, _)) = sends.peek().copied() else {
        let refused =
            trial.has_card() && trial.basics.called && trial.ran().is_some_and(|ran| ran.code != Some(0));
        return if refused { Finding::Pass } else { Finding::not_seen("no message") };
    };
    let named = |heard: &Heard| names.iter().any(|name| heard.listed(name).contains(&card::EXTENSION));
    if sends.any(|(_, heard)| named(heard)) {
        return Finding::Pass;
    }
    let expected = format!("{} with {}", names[0], card::EXTENSION);
    Finding::fail(Failure::expected(expected, "a message without"), at)
}
