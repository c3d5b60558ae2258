//! Credentials: a client sends them where it must, and nowhere else.

use super::{Finding, INTEROP, Rule, Trial};
use crate::case::{Category, Failure};
use crate::judge::card::KEY_HEADER;
use crate::judge::heard::Heard;
use crate::judge::script::Credential;

const AUTH: Rule = Rule {
    category: Category::ErrorHandling,
    scripts: &["bearer", "api-key", "extended-card", "redirect-away", "redirect-away-key"],
    ..INTEROP
};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "AUTH-001",
        name: "Sends the credential it was given",
        requirement: "A client authenticates as the card asks, in the header of its requests.",
        remedy: "Send `Authorization: Bearer …`, or the header of the card's API key scheme, with every call.",
        sections: ["7.3", "4.3", "4.3"],
        check: shows,
        ..AUTH
    },
    Rule {
        id: "AUTH-002",
        name: "Credentials are not part of the payload",
        requirement: "Credentials go into headers, never into messages or addresses.",
        remedy: "Keep credentials out of JSON bodies and query strings: both end up in logs.",
        sections: ["7.3", "4.3", "4.3"],
        check: in_headers,
        ..AUTH
    },
    Rule {
        id: "AUTH-003",
        name: "No credentials to other origins",
        requirement: "A credential for one origin is not sent to another one, not after a redirect either.",
        remedy: "Drop Authorization, Cookie and API key headers when a redirect leads to another host or port, or do not follow it.",
        sections: ["13.4", "4.3", "4.3"],
        scripts: &["redirect-away", "redirect-away-key"],
        check: keeps,
        ..AUTH
    },
];

fn holds(heard: &Heard, secret: &str) -> bool {
    heard.headers.iter().any(|(_, value)| value.contains(secret))
}

fn shows(trial: &Trial<'_>) -> Finding {
    let (secret, header) = match trial.stage.script.credential() {
        Some(Credential::ApiKey) => (trial.stage.secret(), KEY_HEADER),
        _ => (trial.stage.secret(), "Authorization"),
    };
    let mut last = None;
    for (at, heard) in trial.calls() {
        // A first request without credentials, to get the challenge, is allowed.
        if heard.header(header).is_some_and(|value| value.contains(&secret)) {
            return Finding::Pass;
        }
        last = Some((at, heard));
    }
    match last {
        None => Finding::not_seen("no call"),
        Some((at, heard)) => {
            let actual = if heard.header(header).is_some() { "another value" } else { "no such header" };
            Finding::fail(
                Failure::expected(format!("{header} with the credential that was given"), actual),
                at,
            )
        }
    }
}

fn in_headers(trial: &Trial<'_>) -> Finding {
    let secret = trial.stage.secret();
    let mut seen = false;
    for (at, heard) in trial.heard().iter().enumerate() {
        seen |= heard.is_call();
        if heard.target.contains(&secret) || heard.text().contains(&secret) {
            return Finding::fail(Failure::expected("no credential in address or body", heard.line()), at);
        }
    }
    if seen { Finding::Pass } else { Finding::not_seen("no call") }
}

fn keeps(trial: &Trial<'_>) -> Finding {
    let secret = trial.stage.secret();
    let away = trial.heard().iter().enumerate().filter(|(_, heard)| heard.foreign);
    let mut shown = trial.calls().filter(|(_, heard)| holds(heard, &secret));
    for (at, heard) in away {
        if holds(heard, &secret) || heard.text().contains(&secret) {
            let actual = "the request after the redirect, with the credential";
            return Finding::fail(Failure::expected("no credential at another origin", actual), at);
        }
    }
    // A client that never sent its credential to the right origin cannot be judged.
    if shown.next().is_some() { Finding::Pass } else { Finding::not_seen("no call with the credential") }
}
