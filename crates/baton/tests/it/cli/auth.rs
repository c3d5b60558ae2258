//! Credentials: where they are sent, and where they never appear.

use serde_json::{Value, json};

use super::scripted::{Answer, Scripted, card, task};
use super::{Said, User};

fn agent(scheme: Value) -> Scripted {
    Scripted::start(
        |url| {
            let schemes = json!({"main": scheme});
            card(
                url,
                json!({"securitySchemes": schemes, "securityRequirements": [{"schemes": {"main": {"list": []}}}]}),
            )
        },
        |_, _| Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
    )
}

fn key(location: &str) -> Value {
    json!({"apiKeySecurityScheme": {"location": location, "name": "X-Key"}})
}

fn bearer() -> Value {
    json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}})
}

fn oauth() -> Value {
    let flow = json!({"clientCredentials": {"tokenUrl": "https://id.example/token", "scopes": {}}});
    json!({"oauth2SecurityScheme": {"flows": flow}})
}

fn openid() -> Value {
    json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example/.well-known/openid-configuration"}})
}

fn http(scheme: &str) -> Value {
    json!({"httpAuthSecurityScheme": {"scheme": scheme}})
}

#[test]
fn p09_cli_auth_001_credentials_go_where_the_card_says() {
    let user = User::new();
    for (scheme, flag, name, expected) in [
        (bearer(), "--bearer", "authorization", Some("Bearer s3cret")),
        (oauth(), "--bearer", "authorization", Some("Bearer s3cret")),
        (openid(), "--bearer", "authorization", Some("Bearer s3cret")),
        (key("header"), "--api-key", "x-key", Some("s3cret")),
        (key("cookie"), "--api-key", "cookie", Some("X-Key=s3cret")),
        (key("query"), "--api-key", "x-key", None),
    ] {
        let agent = agent(scheme);
        user.run(&["send", &agent.url, "hi", "--async", flag, "s3cret", "--svc-param", "X-Trace: a:b"]).ok();
        let call = &agent.calls()[0];
        assert_eq!(call.header(name), expected);
        assert_eq!(call.target, if expected.is_none() { "/rpc?X-Key=s3cret" } else { "/rpc" });
        assert_eq!(call.header("x-trace"), Some("a:b"));
    }
    let other = agent(bearer());
    let said = user.run(&["send", &other.url, "hi", "--api-key", "s3cret"]).failed(2);
    assert!(said.err.contains("main") && !said.err.contains("s3cret"), "{said:?}");
    let other = agent(key("header"));
    let said = user.run(&["send", &other.url, "hi", "--async", "--bearer", "s3cret"]).ok();
    assert!(said.err.contains("although the card has no scheme for it"), "{said:?}");
}

/// A password is sent as the scheme wants it: plainly, or as the answer to a challenge.
#[test]
fn p09_cli_auth_001_passwords_for_basic_and_digest() {
    let user = User::new();
    let basic = agent(http("basic"));
    user.run(&["send", &basic.url, "hi", "--async", "--user", "ann:s3cret"]).ok();
    assert_eq!(basic.calls()[0].header("authorization"), Some("Basic YW5uOnMzY3JldA=="));
    let said = user.run(&["send", &agent(bearer()).url, "hi", "--user", "ann:s3cret"]).failed(2);
    assert!(
        said.err.contains("--user: the card has no scheme for a password") && !said.err.contains("s3cret")
    );
    let server = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--config", "users.toml"];
    let hashed = user.run_with(&["hash-password"], "s3cret-s3cret\n").ok().out;
    for scheme in ["basic", "digest"] {
        let stored = match scheme {
            "basic" => hashed.clone(),
            _ => user.run_with(&["hash-password", "--digest", "ann"], "s3cret-s3cret\n").ok().out,
        };
        let text = format!("[[auth.{scheme}.user]]\nname = \"ann\"\npassword = '{}'\n", stored.trim());
        std::fs::write(user.folder().join("users.toml"), text).unwrap();
        let served = crate::served::Served::of(&mut user.command(&server));
        let mut command = user.command(&["send", &served.url, "hello", "--debug"]);
        let said = Said::of(command.env("A2ACLI_USER", "ann:s3cret-s3cret")).ok();
        assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
        assert!(!said.err.contains("s3cret-s3cret") && !said.err.contains("Basic YW5"), "{said:?}");
        user.run(&["send", &served.url, "hello", "--user", "ann:wrong"]).failed(4);
    }
}

#[test]
fn p09_cli_auth_002_every_credential_has_a_variable_and_the_flag_wins() {
    let user = User::new();
    let agent = agent(bearer());
    let mut command = user.command(&["send", &agent.url, "hi", "--async"]);
    Said::of(command.env("A2ACLI_BEARER", "of-env").env("A2ACLI_SVC_PARAM", "X-One:1\nX-Two:2")).ok();
    let mut command = user.command(&["send", &agent.url, "hi", "--async", "--bearer", "of-flag"]);
    Said::of(command.env("A2ACLI_BEARER", "of-env")).ok();
    let calls = agent.calls();
    assert_eq!(calls[0].header("authorization"), Some("Bearer of-env"));
    assert_eq!((calls[0].header("x-one"), calls[0].header("x-two")), (Some("1"), Some("2")));
    assert_eq!(calls[1].header("authorization"), Some("Bearer of-flag"));
    for (scheme, variable, value, header, expected) in [
        (key("header"), "A2ACLI_API_KEY", "of-env", "x-key", "of-env"),
        (http("Basic"), "A2ACLI_USER", "ann:pw", "authorization", "Basic YW5uOnB3"),
    ] {
        let agent = self::agent(scheme);
        Said::of(user.command(&["send", &agent.url, "hi", "--async"]).env(variable, value)).ok();
        assert_eq!(agent.calls()[0].header(header), Some(expected));
    }
}

#[test]
fn p09_cli_auth_003_insecure_warns_loudly_about_credentials() {
    let user = User::new();
    let agent = agent(bearer());
    let said = user.run(&["send", &agent.url, "hi", "--async", "--bearer", "s3cret", "--insecure"]).ok();
    assert!(said.err.contains("Warning: --insecure: CREDENTIALS ARE SENT"), "{said:?}");
    // However both were set, and also if a header of the user's own may be the credential.
    let mut command = user.command(&["send", &agent.url, "hi", "--async"]);
    let said = Said::of(command.env("A2ACLI_INSECURE", "1").env("A2ACLI_BEARER", "s3cret")).ok();
    assert!(said.err.contains("CREDENTIALS ARE SENT"), "{said:?}");
    let said = user.run(&["send", &agent.url, "hi", "--async", "--svc-param", "X-Key: k", "--insecure"]).ok();
    assert!(said.err.contains("CREDENTIALS ARE SENT"), "{said:?}");
    let said = user.run(&["send", &agent.url, "hi", "--async", "--insecure"]).ok();
    assert!(said.err.contains("certificate is not checked") && !said.err.contains("CREDENTIALS"), "{said:?}");
}

/// Headers may be credentials by another name, and the token of an earlier login is one.
#[test]
fn p09_cli_auth_003_insecure_warns_loudly_about_headers_and_stored_tokens() {
    let agent = agent(
        json!({"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": "http://127.0.0.1:1", "scopes": {}}}}}),
    );
    let user = User::new();
    let send = ["send", &agent.url, "hi", "--async", "--insecure"];
    let warned = |said: &Said| said.err.contains("CREDENTIALS ARE SENT");
    let said = user.run(&send).ok();
    assert!(!warned(&said) && said.err.contains("the agent's certificate is not checked"), "{said:?}");
    assert!(warned(&user.run(&[&send[..], &["--svc-param", "X-Api-Key: s3cret"]].concat()).ok()));
    let folder = user.home().join(".config/a2a-cli/tokens");
    std::fs::create_dir_all(&folder).unwrap();
    let card = format!("{}/.well-known/agent-card.json", agent.url);
    let token = json!({"version": 1, "agent": card, "scheme": "main", "client_id": "me", "issuers": [],
                       "access_token": "s3cret", "issued_by": "https://id.example"});
    let name = card.replace(':', "%3a").replace('/', "%2f");
    std::fs::write(folder.join(format!("{name}.json")), token.to_string()).unwrap();
    let said = user.run(&send).ok();
    assert_eq!(agent.calls().last().unwrap().header("authorization"), Some("Bearer s3cret"));
    assert!(warned(&said), "{said:?}");
}

/// The card is at one host and its interface at another, as behind many gateways.
#[test]
fn p09_cli_auth_001_credentials_go_to_an_origin_that_the_user_trusts() {
    let interface = agent(bearer());
    let at = interface.url.clone();
    let named = Scripted::start(
        |_| {
            card(
                &at,
                json!({"securitySchemes": {"main": bearer()}, "securityRequirements": [{"schemes": {"main": {"list": []}}}]}),
            )
        },
        |_, _| Answer::Plain(404, "text/plain", String::new()),
    );
    let user = User::new();
    let origin = interface.url.replace("127.0.0.1", "localhost");
    for given in [&["--bearer", "s3cret"][..], &["--svc-param", "X-Mine: s3cret"]] {
        let send = [&["send", &named.url, "hi", "--async"], given].concat();
        let carried = || {
            let call = interface.calls().pop().unwrap();
            format!("{:?}", call.headers).contains("s3cret")
        };
        let said = user.run(&send).ok();
        assert!(said.err.contains(&format!("--trust-origin {origin} allows it")), "{said:?}");
        assert!(!carried());
        let said = user.run(&[&send[..], &["--trust-origin", &interface.url]].concat()).ok();
        assert!(said.err.is_empty() && carried(), "{said:?}");
        Said::of(user.command(&send).env("A2ACLI_TRUST_ORIGIN", format!("https://a.example,{origin}"))).ok();
        assert!(carried());
    }
    user.run(&["send", &named.url, "hi", "--trust-origin", "a.example"]).failed(2);
}

/// No flag makes a secret appear.
#[test]
fn p09_cli_auth_004_secrets_are_never_shown() {
    let user = User::new();
    let secret = ["--svc-param", "X-Mine: s3cret", "--debug", "--verbose"];
    for (scheme, flag) in [(bearer(), "--bearer"), (key("query"), "--api-key"), (key("cookie"), "--api-key")]
    {
        let agent = agent(scheme);
        for args in [
            &["send", &agent.url, "hi"][..],
            &["send", &agent.url, "hi", "-o", "json"],
            &["task", "get", &agent.url, "t-1"],
            &["config", "show"],
            &["config", "show", "-o", "json"],
            &["send", "http://127.0.0.1:1", "hi"],
        ] {
            let said = user.run(&[args, &[flag, "s3cret"], &secret].concat());
            assert!(!said.out.contains("s3cret") && !said.err.contains("s3cret"), "{args:?} {said:?}");
        }
    }
}

/// An agent repeats what it was sent, in pieces that cut it; and its key has the name of a parameter of the protocol.
#[test]
fn p09_cli_auth_004_debug_hides_credentials_that_are_cut_in_two() {
    let user = User::new();
    let agent = Scripted::start(
        |url| {
            let key = json!({"apiKeySecurityScheme": {"location": "query", "name": "tenant"}});
            card(
                url,
                json!({"securitySchemes": {"main": key}, "securityRequirements": [{"schemes": {"main": {"list": []}}}]}),
            )
        },
        |_, _| {
            Answer::Pieces(vec![
                "{\"refused\": \"s3c",
                "ret\", \"token\":",
                "\n \"to",
                "p-s3cr3t\", \"m\": \"m1",
                "ne\"}",
            ])
        },
    );
    let said = user.run(&[
        "send",
        &agent.url,
        "hi",
        "--async",
        "--debug",
        "--api-key",
        "s3cret",
        "--svc-param",
        "X-Mine: m1ne",
    ]);
    assert!(said.err.contains("> POST ") && said.err.contains("?tenant=[redacted]"), "{said:?}");
    for secret in ["s3cret", "s3cr3t", "m1ne", "\"to"] {
        assert!(!said.err.replace("\"token\"", "").contains(secret), "{secret}: {said:?}");
    }
}

/// Addresses in messages have no password and no query, in text and in JSON.
#[test]
fn p09_cli_auth_004_errors_show_no_secrets_of_addresses() {
    let user = User::new();
    let agent = Scripted::start(
        |url| {
            card(
                &format!("{url}/?own=s3cret&path="),
                json!({"securitySchemes": {"main": key("query")}, "securityRequirements": [{"schemes": {"main": {"list": []}}}]}),
            )
        },
        |heard, _| Answer::Moved(format!("/moved{}", heard.target)),
    );
    let key = ["--api-key", "s3cret"];
    let send = ["send", agent.url.as_str(), "hi", "--async"];
    for args in [
        &[&send[..], &key[..]].concat()[..],
        &[&send[..], &key[..], &["-o", "json"]].concat()[..],
        &[&send[..], &key[..], &["--debug"]].concat()[..],
        &["send", "-a", "https://user:s3cret@host.example", "hi"],
        &["send", "-a", "user:s3cret@host.example", "hi", "-o", "json"],
        &["send", "-a", "ftp://host.example?key=s3cret", "hi"],
        &["card", "get", &agent.url, "--key-server", "ftp://s3cret@host.example"],
    ] {
        let said = user.run(args);
        assert_ne!(said.code, Some(0), "{args:?}");
        assert!(!said.out.contains("s3cret") && !said.err.contains("s3cret"), "{args:?} {said:?}");
    }
}

/// An agent that repeats a credential in its error, in a header or in its own log of the call.
#[test]
fn p09_cli_auth_004_a_credential_that_the_agent_repeats_is_hidden() {
    let user = User::new();
    let agent = Scripted::start(
        |url| card(url, json!({"securitySchemes": {"main": bearer()}})),
        |_, _| Answer::Error(-32603, "the token s3cr3t+/= is odd"),
    );
    for form in [&[][..], &["-o", "json"], &["--debug"]] {
        let said = user
            .run(&[&["task", "get", &agent.url, "t-1", "--bearer", "s3cr3t+/="], form].concat())
            .failed(1);
        assert!(!format!("{}{}", said.out, said.err).contains("s3cr3t"), "{said:?}");
        assert!(format!("{}{}", said.out, said.err).contains("the token [redacted] is odd"), "{said:?}");
    }
    // In an address its characters are escaped.
    let agent = self::agent(key("query"));
    let said = user.run(&["send", &agent.url, "hi", "--async", "--debug", "--api-key", "s3cr3t+/="]).ok();
    assert!(agent.calls()[0].target.contains("s3cr3t%2B"), "{:?}", agent.calls()[0]);
    assert!(!said.err.contains("s3cr3t"), "{said:?}");
}

#[test]
fn p09_cli_auth_008_the_card_is_read_without_credentials() {
    let user = User::new();
    let agent = agent(bearer());
    let args = ["send", &agent.url, "hi", "--async", "--bearer", "s3cret", "--svc-param", "X-Mine: s3cret"];
    user.run(&args).ok();
    for heard in agent.heard() {
        let carries = format!("{:?} {}", heard.headers, heard.target).contains("s3cret");
        assert_eq!(carries, heard.method != "GET", "{heard:?}");
    }
    // Not even if the card is refused without them.
    let closed = Scripted::start(|_| json!({}), |_, _| Answer::Plain(401, "text/plain", String::new()));
    user.run(&["card", "get", &format!("{}/private.json", closed.url), "--bearer", "s3cret"]).failed(4);
    assert!(closed.heard().iter().all(|heard| !format!("{:?}", heard.headers).contains("s3cret")));
}

/// The card for authenticated callers is asked for by a scheme that the public card has, or not at all.
#[test]
fn p09_cli_auth_008_the_extended_card_gets_no_credential_without_a_scheme() {
    let user = User::new();
    let agent = Scripted::start(
        |url| card(url, json!({"capabilities": {"extendedAgentCard": true}})),
        |_, _| Answer::Result(card("http://h.example", json!({}))),
    );
    let said = user.run(&["card", "get", &agent.url, "--extended", "--bearer", "s3cret"]).failed(2);
    assert!(said.err.contains("no scheme of the card takes a token"), "{said:?}");
    assert!(agent.calls().is_empty(), "{:?}", agent.calls());
}
