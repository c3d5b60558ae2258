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

#[test]
fn p09_cli_auth_001_credentials_go_where_the_card_says() {
    let user = User::new();
    for (scheme, flag, name, expected) in [
        (bearer(), "--bearer", "authorization", Some("Bearer s3cret")),
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
}

#[test]
fn p09_cli_auth_003_insecure_warns_loudly_about_credentials() {
    let user = User::new();
    let agent = agent(bearer());
    let said = user.run(&["send", &agent.url, "hi", "--async", "--bearer", "s3cret", "--insecure"]).ok();
    assert!(said.err.contains("Warning: --insecure: CREDENTIALS ARE SENT"), "{said:?}");
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

#[test]
fn p09_cli_auth_011_a_task_that_waits_for_an_authorization_says_how_to_go_on() {
    let (served, user) = (crate::served::Served::start(), User::new());
    let said = user.run(&["send", &served.url, "ask me to sign in"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_AUTH_REQUIRED");
    assert!(said.field("Resume").contains("task get") && said.out.contains("Status message:"), "{said:?}");
}
