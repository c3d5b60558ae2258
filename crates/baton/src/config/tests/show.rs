//! What `config show` prints.

use super::load;
use crate::config::{Config, show_json, show_toml};

const FILE: &str = r#"listen = "127.0.0.1:8080"
store = "memory:"

[limits]
max_body = 1048576

[traces]
otlp = "http://me:canary-1@collector:4318"

[auth]
require = ["bearer(read)"]
[[auth.bearer.token]]
id = "ci"
secret = "canary-token-0123456789"
scopes = ["read"]
[[auth.bearer.token]]
id = "env"
secret = "env:TOKEN"

[card]
name = "Weather"
description = "Tells the \"weather\""

[[skill]]
id = "forecast"
builtin = "echo"
examples = ["Rain?", "Sun?"]

[[agent]]
id = "traffic"
[agent.limits]
max_running = 4
[[agent.skill]]
id = "jams"
builtin = "demo"
replies = "message"
[[agent.skill]]
id = "roads"
exec = ["sh", "-c", "cat"]
environment = { API_KEY = "canary-3", LANG = "canary-4" }

[agent.card]
name = "Traffic"
description = "d"
"#;

fn loaded() -> Config {
    let variables = [("BATON_RETENTION_ENDED", "7d"), ("TOKEN", "canary-token-9876543210")];
    let flags = [("--public-url", "public_url", "https://a.example")];
    load(FILE, &variables, &flags).unwrap().config
}

#[test]
fn values_are_shown_with_their_sources() {
    let shown = show_toml(&mut loaded(), false);
    super::write_golden("show.golden.toml", &shown);
    let expected = include_str!("show.golden.toml");
    assert_eq!(shown, expected, "\n{shown}");
}

/// What is printed is a file with the same values.
#[test]
fn what_is_shown_can_be_read_again() {
    let mut config = loaded();
    let shown = show_toml(&mut config, true);
    // All but the secrets, which are not in there.
    let shown = shown.replace("secret = \"***\"", "secret = \"sixteen-and-more\"");
    let again = load(&shown, &[("TOKEN", "sixteen-and-more-2")], &[]).unwrap().config;
    let changes = crate::config::changes(&config, &again);
    let secrets = ["agent[traffic].skill[roads].environment", "traces.otlp"].map(str::to_owned).to_vec();
    assert_eq!((changes.live, changes.restart), (Vec::new(), secrets));
    assert_eq!(changes.auth, ["auth.bearer.token[ci].secret"]);
}

#[test]
fn all_shows_what_has_no_value() {
    let (some, all) = (show_toml(&mut loaded(), false), show_toml(&mut loaded(), true));
    assert!(!some.contains("icon_url") && all.contains("#icon_url ="), "{all}");
    assert!(all.lines().filter(|line| line.ends_with("# not set")).count() > 10);
}

#[test]
fn json_has_values_and_sources() {
    let json = show_json(&mut loaded(), false);
    assert_eq!(json["listen"]["value"], "127.0.0.1:8080");
    assert_eq!(json["listen"]["source"], "baton.toml line 1");
    assert_eq!(json["limits"]["max_body"]["value"], "1MiB");
    assert_eq!(json["retention"]["ended"]["source"], "BATON_RETENTION_ENDED");
    assert_eq!(json["public_url"]["source"], "--public-url");
    assert_eq!(json["agent"][0]["limits"]["max_running"]["value"], 4);
    assert_eq!(json["agent"][0]["skill"][0]["id"]["value"], "jams");
    assert!(json["card"].get("version").is_none());
    assert!(show_json(&mut loaded(), true)["card"]["version"]["value"].is_null());
}

/// A secret in every place where one may be, and a look everywhere where one might come out.
#[test]
fn secrets_are_hidden_wherever_they_are_said() {
    let token = ("TOKEN", "canary-token-9876543210");
    let variables = [("BATON_TRACES_OTLP", "https://u:canary-2@h/x"), token];
    for (text, variables) in [(FILE, &[token][..]), (FILE, &variables)] {
        let loaded = load(text, variables, &[]).unwrap();
        let mut config = loaded.config.clone();
        for seen in [
            show_toml(&mut config, true),
            show_json(&mut config, true).to_string(),
            format!("{loaded:?}"),
            format!("{config:#?}"),
        ] {
            assert!(!seen.contains("canary"), "{seen}");
        }
        let shown = show_toml(&mut config, false);
        assert!(shown.contains("{ API_KEY = \"***\", LANG = \"***\" }"), "{shown}");
    }
    // What is refused is not repeated either.
    for (key, value) in [
        ("store", "postgres://u:canary@h/db"),
        ("store", "canary"),
        ("traces.otlp", "ftp://u:canary@h"),
        ("public_url", "https://u:canary@h"),
    ] {
        let problems = load(&format!("{key} = \"{value}\""), &[], &[]).unwrap_err().to_string();
        assert!(!problems.contains("canary"), "{problems}");
    }
}
