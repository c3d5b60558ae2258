//! What differs, and what of it has to wait for a restart.

use super::file;
use crate::config::change::{Changes, between};

const BASE: &str = "
[limits]
max_body = \"1MiB\"
[card]
name = \"A\"
description = \"a\"
[[skill]]
id = \"x\"
builtin = \"echo\"
[[agent]]
id = \"w\"
[agent.limits]
max_running = 4
[[agent.skill]]
id = \"y\"
builtin = \"echo\"
";

fn changed(new: &str) -> Changes {
    between(&file(BASE).config, &file(new).config)
}

fn check(from: &str, to: &str, live: &[&str], restart: &[&str]) {
    let new = BASE.replace(from, to);
    assert_ne!(new, BASE, "{from}");
    let changes = changed(&new);
    assert_eq!((changes.live, changes.restart), (strings(live), strings(restart)), "{from} -> {to}");
    assert_eq!(changes.auth, Vec::<String>::new(), "{from} -> {to}");
}

#[test]
fn p05_users_and_secrets_are_changes_of_their_own() {
    let token = |id: &str, secret: &str| {
        format!("[[auth.bearer.token]]\nid = \"{id}\"\nsecret = \"{secret}-0123456789-abcdef\"\n")
    };
    let with = |tokens: &str| file(&format!("{tokens}{BASE}")).config;
    let old = with(&(token("a", "one") + &token("b", "two")));
    for (new, auth) in [
        (token("a", "one") + &token("b", "two"), &[][..]),
        (token("a", "new") + &token("b", "two"), &["auth.bearer.token[a].secret"]),
        (token("a", "one"), &["auth.bearer.token[b]"]),
        (token("a", "one") + &token("c", "two"), &["auth.bearer.token[b]", "auth.bearer.token[c]"]),
        (token("a", "one") + &token("b", "two") + "[auth.throttle]\nburst = 1\n", &["auth.throttle.burst"]),
    ] {
        let changes = between(&old, &with(&new));
        assert_eq!((changes.auth, changes.live, changes.restart), (strings(auth), vec![], vec![]), "{new}");
    }
    // Requirements are on the card.
    let new =
        with(&("[auth]\nrequire = [\"bearer\"]\n".to_owned() + &token("a", "one") + &token("b", "two")));
    assert_eq!(between(&old, &new), Changes::default());
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn limits_and_retention_are_live_and_cards_are_compared_as_a_whole() {
    check("1MiB", "2MiB", &["limits.max_body"], &[]);
    check("[limits]", "[retention]\nended = \"1d\"\n[limits]", &["retention.ended"], &[]);
    check("\"A\"", "\"B\"", &[], &[]);
    check("max_running = 4", "max_running = 5", &["agent[w].limits.max_running"], &[]);
    check("id = \"x\"", "id = \"x\"\nexamples = [\"hi\"]", &[], &[]);
    check("id = \"y\"", "id = \"y\"\nname = \"Y\"", &[], &[]);
}

#[test]
fn anything_else_needs_a_restart() {
    check("[limits]", "store = \"memory:\"\n[limits]", &[], &["store.url"]);
    check("[limits]", "listen = \"127.0.0.1:1\"\n[limits]", &[], &["listen"]);
    check("id = \"x\"\nbuiltin = \"echo\"", "id = \"x\"\nbuiltin = \"demo\"", &[], &["skill[x].builtin"]);
    check("id = \"x\"", "id = \"z\"", &[], &["skill[x]", "skill[z]"]);
    // One change, however many keys the agent has.
    check("id = \"w\"", "id = \"v\"", &[], &["agent[v]", "agent[w]"]);
    check("id = \"w\"", "id = \"w\"\npath = \"/p\"", &[], &["agent[w].path"]);
}

#[test]
fn the_same_words_elsewhere_are_no_change() {
    assert_eq!(changed(&format!("\n\n# moved\n{BASE}")), Changes::default());
    assert_eq!(changed(&BASE.replace("1MiB", "1024KiB")), Changes::default());
}
