//! What becomes of a running scheme at a reload: it stays, it is replaced, or it lets nobody in.

use std::path::Path;

use super::file;
use crate::config::{Inputs, Problems};

/// What happens to the first scheme, and what is said about it.
#[derive(Debug, PartialEq, Eq)]
enum Becomes {
    /// It is the same one, perhaps with other records.
    Stays,
    Replaced,
    Withdrawn,
}

use Becomes::{Replaced, Stays, Withdrawn};

#[track_caller]
fn check(from: &str, to: &str, expected: Becomes, declared_as_before: bool, waits: &[&str]) {
    let mut running = file(from).auth;
    let before = format!("{:?}", running.places());
    let inputs = Inputs::default();
    let path = Path::new("baton.toml");
    let (loaded, problems) = inputs.apply_layers(Some((path, to)), Some(&running), Problems::default());
    assert_eq!(problems.count(), 0, "{problems}\n{to}");
    let changed = crate::config::changes(&file(from).config, &loaded.config).auth;
    let followed = running.follow(&loaded.auth);
    let becomes = match (followed.withdrawn.is_empty(), format!("{:?}", running.places()) == before) {
        (false, _) => Withdrawn,
        (true, true) => Stays,
        (true, false) => Replaced,
    };
    assert_eq!(becomes, expected, "{from}\n{to}");
    assert_eq!(!followed.declared_as_before.is_empty(), declared_as_before, "{from}\n{to}");
    let waiting: Vec<_> = changed.iter().filter(|key| followed.waits(key)).collect();
    assert_eq!(waiting, waits, "{from}\n{to}");
    // The same configuration once more changes nothing.
    let (again, _) = inputs.apply_layers(Some((path, to)), Some(&running), Problems::default());
    let after = format!("{:?}", running.places());
    let followed = running.follow(&again.auth);
    assert!(followed.withdrawn.is_empty(), "{from}\n{to}");
    assert_eq!(format!("{:?}", running.places()), after, "{from}\n{to}");
}

#[test]
fn s16_a_reload_replaces_a_scheme_only_if_its_options_change() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str, kid: &str| {
        let path = folder.path().join(name);
        let key = format!(r#"{{"kty": "OKP", "crv": "Ed25519", "kid": "{kid}", "x": "{}"}}"#, "A".repeat(43));
        std::fs::write(&path, format!(r#"{{"keys": [{key}]}}"#)).unwrap();
        path.display().to_string()
    };
    let (one, two) = (key("one", "1"), key("two", "2"));
    let token =
        |id: &str| format!("[[auth.bearer.token]]\nid = \"{id}\"\nsecret = \"{id}-0123456789abcdef\"\n");
    let jwt = |keys: &str, audience: &str| {
        format!(
            "[auth.jwt]\nissuer = \"https://a.example\"\naudience = [\"{audience}\"]\njwks = \"@{keys}\"\n"
        )
    };
    let oidc = |issuer: &str| format!("[auth.oidc]\nissuer = \"https://{issuer}\"\naudience = [\"x\"]\n");
    let grant =
        "[auth.oidc.oauth2]\ngrants = [\"client_credentials\"]\ntoken_url = \"https://a.example/token\"\n";
    let proxy = |header: &str, declare: &str| {
        format!(
            "trusted_proxies = [\"10.0.0.1\"]\n[auth.proxy]\nheader = \"{header}\"\ndeclare = \"{declare}\"\n"
        )
    };
    let mtls = |options: &str, owner: &str| {
        format!(
            "[tls]\nself_signed = true\nclient_certs = \"optional\"\nclient_ca = \"ca.pem\"\n[auth.mtls]\n{options}\
             [[auth.mtls.client]]\nname = \"a\"\nowner = \"{owner}\"\n"
        )
    };
    check(&token("a"), &token("b"), Stays, false, &[]);
    check(&token("a"), "", Withdrawn, false, &[]);
    check(&token("a"), "[auth.bearer]\n", Withdrawn, false, &[]);
    check(&token("a"), &format!("[auth.bearer]\nid = \"t\"\n{}", token("a")), Stays, true, &[]);
    check(&token("a"), &oidc("a.example"), Withdrawn, false, &["auth.oidc[0]"]);
    check(&token("a"), &(token("b") + &oidc("a.example")), Stays, false, &["auth.oidc[0]"]);
    check(&jwt(&one, "x"), &jwt(&two, "x"), Stays, false, &[]);
    check(&jwt(&one, "x"), &jwt(&one, "y"), Replaced, false, &[]);
    check(&oidc("a.example"), &oidc("b.example"), Replaced, true, &[]);
    check(&oidc("a.example"), &(oidc("a.example") + grant), Replaced, true, &[]);
    check(
        &oidc("a.example"),
        &oidc("a.example").replace("[auth.oidc]\n", "[auth.oidc]\nid = \"staff\"\n"),
        Withdrawn,
        false,
        &["auth.oidc[0]", "auth.oidc[staff]"],
    );
    check(&proxy("X-A", "bearer"), &proxy("X-B", "bearer"), Replaced, false, &[]);
    check(&proxy("X-A", "bearer"), &proxy("X-A", "basic"), Replaced, true, &[]);
    check(&mtls("", "a"), &mtls("", "b"), Stays, false, &[]);
    check(&mtls("", "a"), &mtls("only_listed = true\n", "a"), Replaced, false, &[]);
    let key = |secret: &str, name: &str| {
        format!("[auth.api_key]\nsecret = \"{secret}-0123456789\"\nname = \"{name}\"\n")
    };
    check(&key("first", "X-A"), &key("second", "X-A"), Stays, false, &[]);
    check(&key("first", "X-A"), &key("second", "X-B"), Stays, false, &["auth.api_key.name"]);
}
