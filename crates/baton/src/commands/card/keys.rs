//! The keys with which the signatures of a card are verified.

use std::path::{Path, PathBuf};

use baton_client::{CardKeys, CardTrust, Origin};
use baton_protocol::signature::card::CardForm;

use crate::client::error::CallError;

/// Members that are named, of those that a signature does not cover.
const MOST_NAMED: usize = 8;

/// Adds the key sets in these files.
pub(super) fn with_sets(mut keys: CardKeys, flag: &str, files: &[PathBuf]) -> Result<CardKeys, CallError> {
    for path in files {
        let set = keys.add_key_set(&text_of(flag, path)?);
        keys = set.map_err(|error| wrong(flag, path, &error))?;
    }
    Ok(keys)
}

/// Adds the single keys in these files.
pub(super) fn with_keys(mut keys: CardKeys, flag: &str, files: &[PathBuf]) -> Result<CardKeys, CallError> {
    for path in files {
        let key = keys.add_key(&text_of(flag, path)?);
        keys = key.map_err(|error| wrong(flag, path, &error))?;
    }
    Ok(keys)
}

/// Trusts the key sets of these servers.
pub(super) fn with_servers(mut keys: CardKeys, servers: &[String]) -> Result<CardKeys, CallError> {
    for server in servers {
        let origin =
            Origin::parse(server).map_err(|error| CallError::usage(format!("--key-server {error}")))?;
        keys = keys.trust_key_server(origin);
    }
    Ok(keys)
}

fn text_of(flag: &str, path: &Path) -> Result<String, CallError> {
    std::fs::read_to_string(path).map_err(|error| wrong(flag, path, &error))
}

fn wrong(flag: &str, path: &Path, error: &dyn std::fmt::Display) -> CallError {
    CallError::usage(format!("{flag} {}: {error}", path.display()))
}

/// Exactly one of verified, unverifiable and absent.
pub(super) fn signature_words(trust: &CardTrust) -> String {
    match trust {
        CardTrust::Absent => "absent".to_owned(),
        CardTrust::Verified { key_id, algorithm, form, uncovered } => {
            let empty = (*form == CardForm::WithoutEmpty).then_some("empty members");
            let named = empty.into_iter().chain(uncovered.iter().take(MOST_NAMED).map(String::as_str));
            let mut named: Vec<_> = named.map(str::to_owned).collect();
            if let Some(more) = uncovered.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
                named.push(format!("{more} more"));
            }
            let but = match &named[..] {
                [] => String::new(),
                [one] if empty.is_none() => format!(" ({one} is not covered)"),
                several => format!(" ({} are not covered)", several.join(", ")),
            };
            format!("verified kid={key_id} alg={algorithm}{but}")
        }
        CardTrust::Unverifiable { reasons } => format!("unverifiable ({})", reasons.join("; ")),
    }
}
