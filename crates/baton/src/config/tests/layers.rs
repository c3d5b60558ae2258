//! Which layer wins, and how each is told.

use super::{complaints, file, load};
use crate::config::setting::Source;
use crate::config::value::Value as _;

#[test]
fn later_layers_win() {
    let file = "listen = \"127.0.0.1:1\"";
    let variable: &[(&str, &str)] = &[("BATON_LISTEN", "127.0.0.1:2")];
    let flag: &[(&'static str, &'static str, &str)] = &[("--listen", "listen", "127.0.0.1:3")];
    for (text, variables, flags, listen, source) in [
        ("", &[][..], &[][..], "127.0.0.1:3000", "default"),
        (file, &[], &[], "127.0.0.1:1", "baton.toml line 1"),
        ("", variable, &[], "127.0.0.1:2", "BATON_LISTEN"),
        (file, variable, &[], "127.0.0.1:2", "BATON_LISTEN"),
        ("", &[], flag, "127.0.0.1:3", "--listen"),
        (file, &[], flag, "127.0.0.1:3", "--listen"),
        (file, variable, flag, "127.0.0.1:3", "--listen"),
        // An empty variable is none.
        (file, &[("BATON_LISTEN", "")], &[], "127.0.0.1:1", "baton.toml line 1"),
    ] {
        let config = load(text, variables, flags).unwrap().config;
        assert_eq!((config.listen.as_str(), config.listen.source().to_string().as_str()), (listen, source));
    }
}

#[test]
fn every_kind_of_value_can_be_a_variable() {
    let variables = [
        ("BATON_STORE", "memory:"),
        ("BATON_LOG", "debug,hyper=warn"),
        ("BATON_LOG_FORMAT", "json"),
        ("BATON_LIMITS_MAX_BODY", "1MiB"),
        ("BATON_LIMITS_MAX_QUEUED", "1_000"),
        ("BATON_RETENTION_ENDED", "7d"),
        ("BATON_TRUSTED_PROXIES", "10.0.0.0/8, ::1"),
        ("BATON_ALLOW_PUBLIC", "1"),
        ("BATON_PUBLIC_URL", "https://a.example"),
        ("BATON_TRACES_SAMPLE", "0.5"),
        ("BATON_METRICS_ENABLED", "false"),
        ("BATON_CORS_ORIGINS", "https://a.example,https://b.example"),
    ];
    let loaded = load("", &variables, &[]).unwrap();
    let config = loaded.config;
    assert_eq!(config.store.url.to_string(), "memory:");
    assert_eq!(config.log.filter.as_str(), "debug,hyper=warn");
    assert_eq!(config.log.format.show().toml(), "\"json\"");
    assert_eq!(config.limits.max_body.bytes(), 1 << 20);
    assert_eq!(*config.limits.max_queued, 1000);
    assert_eq!(config.retention.ended.as_secs(), 7 * 24 * 60 * 60);
    assert_eq!(config.trusted_proxies.show().toml(), "[\"10.0.0.0/8\", \"::1\"]");
    assert!(*config.allow_public && !*config.metrics.enabled);
    assert_eq!(config.public_url.show().toml(), "\"https://a.example\"");
    assert_eq!(*config.traces.sample, 0.5);
    assert_eq!(config.cors.origins.len(), 2);
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn the_short_name_and_the_rule_name_are_the_same_key() {
    for name in ["BATON_STORE", "BATON_STORE_URL"] {
        assert_eq!(load("", &[(name, "memory:")], &[]).unwrap().config.store.url.to_string(), "memory:");
    }
    let both = [("BATON_STORE", "memory:"), ("BATON_STORE_URL", "sqlite:a.db")];
    let config = load("", &both, &[]).unwrap().config;
    assert_eq!(*config.store.url.source(), Source::Variable("BATON_STORE".to_owned()));
}

#[test]
fn a_table_can_be_said_in_short() {
    let config = file("store = \"memory:\"\nlog = \"warn\"\n").config;
    assert_eq!((config.store.url.to_string().as_str(), config.log.filter.as_str()), ("memory:", "warn"));
    assert_eq!(*config.store.readers, 2, "the others keep their defaults");
}

/// The platform says which port, and nothing about who may reach it.
#[test]
fn port_sets_the_port_alone() {
    for (text, variables, listen, source) in [
        ("", &[("PORT", "8080")][..], "127.0.0.1:8080", "PORT"),
        ("listen = \"[::1]:3000\"", &[("PORT", "8080")], "[::1]:8080", "PORT"),
        ("", &[("PORT", "8080"), ("BATON_LISTEN", "127.0.0.1:9")], "127.0.0.1:9", "BATON_LISTEN"),
        ("", &[("PORT", "")], "127.0.0.1:3000", "default"),
    ] {
        let config = load(text, variables, &[]).unwrap().config;
        assert_eq!((config.listen.as_str(), config.listen.source().to_string().as_str()), (listen, source));
    }
    assert_eq!(
        complaints(load("", &[("PORT", "eighty")], &[])),
        "PORT: expected a port, a number up to 65535, not \"eighty\""
    );
}

#[test]
fn unknown_variables_are_warned_of() {
    let variables = [
        ("BATON_LISTNE", "x"),
        ("BATON_LIMITS_MAX_BDY", "x"),
        ("BATON_QUITE_ANOTHER_THING", "x"),
        ("BATON_MASTER_KEYS", "x"),
        // Known, though no keys.
        ("BATON_CONFIG", ""),
        ("BATON_TASK_ID", "x"),
        ("BATON_KILLS", "x"),
        // What Kubernetes makes of a service called baton.
        ("BATON_PORT", "tcp://10.0.0.1:3000"),
        ("BATON_PORT_3000_TCP_ADDR", "10.0.0.1"),
        ("BATON_SERVICE_HOST", "10.0.0.1"),
        // Nobody's business.
        ("BATONS", "x"),
        ("HOME", "x"),
    ];
    let expected = [
        "BATON_LIMITS_MAX_BDY: unknown variable, not used; did you mean `BATON_LIMITS_MAX_BODY`?",
        "BATON_LISTNE: unknown variable, not used; did you mean `BATON_LISTEN`?",
        "BATON_MASTER_KEYS: unknown variable, not used; did you mean `BATON_MASTER_KEY`?",
        "BATON_QUITE_ANOTHER_THING: unknown variable, not used; `baton serve config default` lists the keys",
    ];
    assert_eq!(load("", &variables, &[]).unwrap().warnings, expected);
}

#[test]
fn s16_a_master_key_comes_from_a_variable_or_a_file_and_is_checked_before_anything_starts() {
    const KEY: &str = "eKNJQC5x+hjYPoJk6mcGzslYX0hBg3R0F5xtbQzZ/0I=";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("key"), format!("{KEY}\n")).unwrap();
    std::fs::write(path("weak"), "canary\n").unwrap();
    let keys = |text: &str, variables: &[(&str, &str)]| {
        format!("{:?}", load(text, variables, &[]).unwrap().master_keys)
    };
    let one = keys("", &[("BATON_MASTER_KEY", KEY)]);
    assert!(one.contains("MasterKey(") && !one.contains(KEY), "{one}");
    assert_eq!(keys("", &[("BATON_MASTER_KEY_FILE", &path("key"))]), one);
    assert_eq!(keys(&format!("master_key = \"@{}\"", path("key")), &[]), one);
    assert_eq!(keys("", &[]), "None");
    let other = "9d41c07e5ab2f8136e0f7123489abcde5f1e07c2a9b84d36c8d1e6f0a7b3925c";
    let both = keys("", &[("BATON_MASTER_KEY", other), ("BATON_MASTER_KEY_OLD_FILE", &path("key"))]);
    assert_eq!(both.matches("MasterKey(").count(), 2, "{both}");

    let weak = "a master key is 32 random bytes in base64 or hexadecimal, and this is neither; `openssl rand -base64 32` makes one";
    let missing = "No such file or directory (os error 2)";
    for (variables, said) in [
        (&[("BATON_MASTER_KEY", "my-canary-phrase")][..], format!("BATON_MASTER_KEY: {weak}")),
        (&[("BATON_MASTER_KEY", "")], "BATON_MASTER_KEY: the secret is empty".to_owned()),
        (&[("BATON_MASTER_KEY_FILE", "")], "BATON_MASTER_KEY_FILE: the path is empty".to_owned()),
        (
            &[("BATON_MASTER_KEY_FILE", &path("weak"))],
            format!("BATON_MASTER_KEY_FILE: the file `{}`: {weak}", path("weak")),
        ),
        (
            &[("BATON_MASTER_KEY_FILE", KEY)],
            format!(
                "BATON_MASTER_KEY_FILE: the file (its name is not shown, since it may be the secret itself): {missing}; \
                 the key itself belongs into BATON_MASTER_KEY"
            ),
        ),
        (
            &[("BATON_MASTER_KEY", KEY), ("BATON_MASTER_KEY_FILE", &path("key"))],
            "BATON_MASTER_KEY_FILE: BATON_MASTER_KEY is set, too; set one of them".to_owned(),
        ),
        (
            &[("BATON_MASTER_KEY_OLD", KEY)],
            "BATON_MASTER_KEY_OLD: there is no new master key: set `master_key` (BATON_MASTER_KEY), too"
                .to_owned(),
        ),
    ] {
        assert_eq!(complaints(load("", variables, &[])), said);
    }
}

#[test]
fn wrong_variables_and_flags_are_told_by_their_names() {
    let variables = [("BATON_LIMITS_MAX_BODY", "huge"), ("BATON_TRUSTED_PROXIES", "10.0.0.0/8,home")];
    let flags = [("--store", "store.url", "mongo://me:canary@h")];
    let expected = "baton.toml, line 1: drain: expected a duration such as \"30s\", \"5m\" or \"1h30m\" (ms, s, m, h, d), not 30\n\
        BATON_TRUSTED_PROXIES: expected an address or a range such as \"10.0.0.0/8\", not \"home\"\n\
        BATON_LIMITS_MAX_BODY: expected a size such as \"4MiB\", \"64KiB\" or a number of bytes, not \"huge\"\n\
        --store: unknown store `mongo`; expected `memory:` or `sqlite:PATH`";
    assert_eq!(complaints(load("drain = 30", &variables, &flags)), expected);
}

#[test]
fn paths_of_a_file_start_at_its_folder() {
    use std::path::Path;
    let text = "store = \"sqlite:data/a.db\"\n";
    let inputs = super::Inputs::default();
    let at =
        |path: &str| inputs.apply_layers(Some((Path::new(path), text)), None, Default::default()).0.config;
    assert_eq!(at("baton.toml").store.url.to_string(), "sqlite:data/a.db");
    assert_eq!(at("conf/baton.toml").store.url.to_string(), "sqlite:conf/data/a.db");
    assert_eq!(at("/etc/baton.toml").store.url.to_string(), "sqlite:/etc/data/a.db");
    // The default and what variables say is of the working folder.
    let config =
        inputs.apply_layers(Some((Path::new("conf/baton.toml"), "")), None, Default::default()).0.config;
    assert_eq!(config.store.url.to_string(), "sqlite:./baton-data/demo.db");
}
