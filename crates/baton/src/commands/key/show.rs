//! What `baton key` prints.

use baton_protocol::generation::Generations;
use baton_server::card;
use serde::Serialize;

use crate::admin::{Issued, Key};
use crate::commands::serve::first_call::curl_line;
use crate::config::Loaded;
use crate::exit::Failure;

pub(super) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(|error| Failure::failed(error.to_string()))? + "\n")
}

/// The new key, once, and a line to try it.
pub(super) fn issued(issued: &Issued, loaded: &Loaded) -> String {
    let Issued { key, secret, enforced, url, trusted, store, running } = issued;
    let Key { id, name, owner, .. } = key;
    let mut text = format!("Key {id} ({name}) for owner {owner}");
    if !key.scopes.is_empty() {
        text += &format!(", scopes {}", key.scopes.join(" "));
    }
    if let Some(expires) = &key.expires {
        text += &format!(", until {}", second(expires));
    }
    text += &format!("\n\n  {secret}\n\nIt is shown only now: keep it.");
    text += &match running {
        true => format!(" It is stored in {store}, and the server that runs on it has it."),
        false => format!(" It is stored in {store}; no server runs on it."),
    };
    text += match (running, enforced) {
        (false, true) => " The next one requires keys.\n",
        (true, true) => "\n",
        (_, false) => {
            " The server lets everybody in until it is restarted: then it requires keys, unless\n\
             auth.api_key.enabled is false.\n"
        }
    };
    if let Some(agent) = loaded.agents.first() {
        let url = format!("{url}{}", agent.path().trim_end_matches('/'));
        let served = card::generations(&agent.card).unwrap_or(Generations::ALL);
        let place = loaded.config.auth.api_key.place();
        let line = curl_line(&url, served, agent.example(), trusted.as_deref(), Some((&place, secret)));
        let when = if *running { "Try it" } else { "Try it, when the server runs" };
        text += &format!("\n{when}:\n\n  {line}\n");
    }
    text
}

pub(super) fn revoked(key: &Key) -> String {
    format!("Key {} ({}) of owner {} is revoked\n", key.id, key.name, key.owner)
}

/// One line for each key, in columns.
pub(super) fn table(keys: &[Key]) -> String {
    if keys.is_empty() {
        return "There are no keys; `baton key new NAME` makes one\n".to_owned();
    }
    let heading = ["ID", "NAME", "OWNER", "SCOPES", "CREATED", "EXPIRES", "STATE"].map(str::to_owned);
    let row = |key: &Key| {
        let scopes = if key.scopes.is_empty() { "-".to_owned() } else { key.scopes.join(" ") };
        let expires = key.expires.as_deref().map_or_else(|| "never".to_owned(), second);
        let created = day(&key.created).to_owned();
        [key.id.clone(), key.name.clone(), key.owner.clone(), scopes, created, expires, key.state.clone()]
    };
    let rows: Vec<[String; 7]> = std::iter::once(heading).chain(keys.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// A time in RFC 3339, to the second.
fn second(time: &str) -> String {
    time.get(..19).map_or_else(|| time.to_owned(), |time| format!("{} UTC", time.replace('T', " ")))
}

/// The day of a time in RFC 3339.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s16_keys_are_listed_in_columns() {
        let key = |name: &str, state: &str| Key {
            id: "4f9k2m7q".to_owned(),
            name: name.to_owned(),
            owner: "alice".to_owned(),
            scopes: vec!["a".to_owned(), "b".to_owned()],
            state: state.to_owned(),
            created: "2026-11-16T21:35:16.000Z".to_owned(),
            expires: None,
            revoked: None,
        };
        let table = table(&[key("ci", "active"), key("größer", "revoked")]);
        assert_eq!(
            table,
            "ID        NAME    OWNER  SCOPES  CREATED     EXPIRES  STATE\n\
             4f9k2m7q  ci      alice  a b     2026-11-16  never    active\n\
             4f9k2m7q  größer  alice  a b     2026-11-16  never    revoked\n"
        );
    }
}
