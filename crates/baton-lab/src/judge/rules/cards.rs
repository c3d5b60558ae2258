//! Finding the card, and choosing the interface.

use super::{Finding, INTEROP, Rule, Trial, each, ends_well, posts};
use crate::acts::document::Level;
use crate::case::{Category, Failure};
use crate::generation::Generation;
use crate::judge::card::{FUTURE, INTERFACE, PIGEON, SECOND};
use crate::judge::heard::Place;

const CARD: Rule = Rule { category: Category::AgentCard, ..INTEROP };

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "CARD-001",
        name: "Looks for the card where it is",
        level: Level::Should,
        requirement: "A client that discovers an agent looks at the well-known address of its generation.",
        remedy: "Fetch `/.well-known/agent-card.json` below the agent's address (0.1: `/.well-known/agent.json`).",
        sections: ["8.2", "5.3", "5.3"],
        check: well_known,
        ..CARD
    },
    Rule {
        id: "CARD-002",
        name: "Calls the address that the card gives",
        level: Level::Must,
        requirement: "A client calls the URL of the interface that it chose from the card.",
        remedy: "Take the URL from the card; the address the card was found at is not the agent's interface.",
        sections: ["8.3.2", "5.6.3", "5.5"],
        check: address,
        ..CARD
    },
    Rule {
        id: "CARD-003",
        name: "Takes the first interface that fits",
        level: Level::Must,
        requirement: "Of the interfaces that a client supports, it uses the first one in the card.",
        remedy: "Go through `supportedInterfaces` in order and use the first binding and version that you support.",
        sections: ["8.3.2", "", ""],
        scripts: &["interfaces"],
        check: first,
        ..CARD
    },
    Rule {
        id: "CARD-004",
        name: "Calls no interface that it does not support",
        level: Level::Must,
        requirement: "A client uses an interface only in the binding and version that the card declares for it.",
        remedy: "Skip interfaces whose binding or version you do not know; do not try them with another one.",
        sections: ["8.3.2", "5.6.3", ""],
        scripts: &["interfaces"],
        check: foreign_tongue,
        ..CARD
    },
    Rule {
        id: "CARD-005",
        name: "Finds the interface that fits",
        level: Level::Must,
        requirement: "Unknown interfaces in the card do not prevent a client from using one that it supports.",
        remedy: "Ignore unknown bindings and versions in the card instead of refusing the card.",
        sections: ["8.3.2", "5.6.3", ""],
        scripts: &["interfaces"],
        needs_command: true,
        check: ends_well,
        ..CARD
    },
    Rule {
        id: "CARD-006",
        name: "Falls back to another interface",
        level: Level::Should,
        requirement: "When an interface cannot be reached a client tries the next one that it supports.",
        remedy: "On a connection error go on with the next interface of the card that fits.",
        sections: ["5.2", "3.4.2", ""],
        scripts: &["interface-down"],
        check: falls_back,
        ..CARD
    },
    Rule {
        id: "CARD-007",
        name: "Reads a large card",
        level: Level::May,
        requirement: "A card with many skills (1 MB) is read like any other.",
        remedy: "Raise the limit on the size of cards, or say in the error message that there is one.",
        sections: ["8.1", "5.1", "5.1"],
        scripts: &["huge-card"],
        needs_command: true,
        check: ends_well,
        ..CARD
    },
];

fn well_known(trial: &Trial<'_>) -> Finding {
    let wanted = if trial.generation() == Generation::V0_1 { "agent.json" } else { "agent-card.json" };
    let mut fetched = Vec::new();
    for (at, heard) in trial.heard().iter().enumerate() {
        if let Place::Card(name) = &heard.place {
            fetched.push((at, name.clone()));
        }
    }
    match fetched.first() {
        None => Finding::not_seen("no card was fetched"),
        Some(_) if fetched.iter().any(|(_, name)| name == wanted) => Finding::Pass,
        Some((at, name)) => {
            Finding::fail(Failure::expected(format!("a look at {wanted}"), name.clone()), *at)
        }
    }
}

fn address(trial: &Trial<'_>) -> Finding {
    each(posts(trial), "no call", |heard| match &heard.place {
        Place::Elsewhere => {
            Err(Failure::expected(format!("a call to …/{INTERFACE}, which the card gives"), heard.line()))
        }
        _ => Ok(()),
    })
}

/// Calls by the interface they went to.
fn call_to(trial: &Trial<'_>, wanted: &[&str]) -> Option<usize> {
    let mut calls = trial.calls();
    let found = calls.find(
        |(_, heard)| matches!(&heard.place, Place::Door { name, .. } if wanted.contains(&name.as_str())),
    );
    found.map(|(at, _)| at)
}

fn first(trial: &Trial<'_>) -> Finding {
    if let Some(at) = call_to(trial, &[SECOND]) {
        let actual = format!("the last one: {}", trial.heard()[at].line());
        return Finding::fail(
            Failure::expected("the first interface of the known binding and version", actual),
            at,
        );
    }
    match call_to(trial, &[INTERFACE]) {
        Some(_) => Finding::Pass,
        None => Finding::not_seen("no call to an interface"),
    }
}

fn foreign_tongue(trial: &Trial<'_>) -> Finding {
    if let Some(at) = call_to(trial, &[PIGEON, FUTURE]) {
        let heard = &trial.heard()[at];
        let expected = "no call to an interface of an unknown binding (pigeon) or of version 9.9 (future)";
        return Finding::fail(Failure::expected(expected, heard.line()), at);
    }
    match call_to(trial, &[INTERFACE, SECOND]) {
        Some(_) => Finding::Pass,
        None => Finding::not_seen("no call to an interface"),
    }
}

fn falls_back(trial: &Trial<'_>) -> Finding {
    if call_to(trial, &[INTERFACE]).is_some() {
        return Finding::Pass;
    }
    if !trial.has_card() || !trial.basics.called {
        return Finding::not_seen("the client did not fetch this card");
    }
    Finding::fail_of_all(Failure::expected(
        "a call to the second interface",
        "none after the first could not be reached",
    ))
}
