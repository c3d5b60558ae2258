//! The six defaults of the specification: what holds if nothing is said, and the flag that changes it. The tests are named
//! after the keys of the compliance report.

use serde_json::json;

use super::scripted::{Answer, Scripted, always, both_bindings, card, task};
use super::{Said, User};
use crate::served::Served;

/// What `config show` says of a setting.
#[track_caller]
fn shown(user: &User, name: &str) -> String {
    let said = user.run(&["config", "show"]).ok();
    let line = said.out.lines().find(|line| line.starts_with(&format!("Setting: {name}="))).unwrap();
    line.strip_suffix(" source=built-in").unwrap().to_owned()
}

#[test]
fn p09_cli_default_001_transport_server_preference_order() {
    let agent = Scripted::start(
        |url| card(url, json!({"supportedInterfaces": both_bindings(url)})),
        |_, _| Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
    );
    let user = User::new();
    assert_eq!(shown(&user, "transport"), "Setting: transport=the card's order");
    user.run(&["send", &agent.url, "hi", "--async"]).ok();
    user.run(&["send", &agent.url, "hi", "--async", "--transport", "rest"]).ok();
    let targets: Vec<String> = agent.calls().into_iter().map(|call| call.target).collect();
    assert_eq!(targets, ["/rpc", "/rest/message:send"]);
}

#[test]
fn p09_cli_default_001_task_completion_wait_by_default() {
    let (served, user) = (Served::start(), User::new());
    assert_eq!(shown(&user, "async"), "Setting: async=false");
    assert_eq!(shown(&user, "wait"), "Setting: wait=true for send, false for task get");
    let said = user.run(&["send", &served.url, "work step by step"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
    let said = user.run(&["send", &served.url, "work step by step", "--async"]).ok();
    assert_ne!(said.field("State"), "TASK_STATE_COMPLETED");
}

#[test]
fn p09_cli_default_001_output_human_readable_text() {
    let (served, user) = (Served::start(), User::new());
    assert_eq!(shown(&user, "output"), "Setting: output=text");
    assert!(user.run(&["send", &served.url, "hello"]).ok().out.starts_with("Task: "));
    assert!(user.run(&["send", &served.url, "hello", "-o", "json"]).ok().json()["task"].is_object());
    assert!(user.run(&["send", &served.url, "hello", "--stream"]).ok().out.starts_with("Event: task\n"));
    // A flag goes before what is configured.
    let mut command = user.command(&["send", &served.url, "hello", "-o", "text"]);
    assert!(Said::of(command.env("A2ACLI_OUTPUT", "json")).ok().out.starts_with("Task: "));
}

#[test]
fn p09_cli_default_001_detail_level_concise() {
    let (served, user) = (Served::start(), User::new());
    assert_eq!(shown(&user, "verbose"), "Setting: verbose=false");
    let [short, long, off] = [&[][..], &["--verbose"], &["--verbose=false"]].map(|flags| {
        let mut command = user.command(&[&["send", &served.url, "hello"], flags].concat());
        if flags == ["--verbose=false"] {
            command.env("A2ACLI_VERBOSE", "1");
        }
        Said::of(&mut command).ok().out
    });
    assert!(long.contains("History message:\n") && !short.contains("History"), "{short}{long}");
    assert_eq!(short.lines().count(), off.lines().count());
}

#[test]
fn p09_cli_default_001_protocol_version_highest_mutual() {
    let (served, user) = (Served::start(), User::new());
    assert_eq!(shown(&user, "a2a-version"), "Setting: a2a-version=the highest common one, 1.0 or later");
    for (flags, version) in
        [(&[][..], "1.0"), (&["--a2a-version", "1.0"], "1.0"), (&["--a2a-version", "0.3"], "0.3")]
    {
        let said = user.run(&[&["send", &served.url, "hello", "--debug"], flags].concat()).ok();
        assert!(said.err.contains(&format!("Debug: > a2a-version: {version}\n")), "{said:?}");
    }
}

/// A certificate of nobody known is refused, unless the user says that it does not matter; then that is told.
#[test]
fn p09_cli_default_001_auth_003_transport_security_tls_on() {
    let user = User::new();
    assert_eq!(shown(&user, "insecure"), "Setting: insecure=false");
    let key = "a-secret-of-sixteen-or-more";
    let args =
        ["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--tls-self-signed", "--api-key", key];
    let served = Served::of(&mut user.command(&args));
    let send = ["send", &served.url, "hello", "--api-key", key];
    let said = user.run(&[&send[..], &["-o", "json"]].concat()).failed(3);
    assert_eq!(said.error().0, "A2ACLI_ERR_UNREACHABLE");
    let said = user.run(&[&send[..], &["--insecure"]].concat()).ok();
    assert_eq!(said.field("State"), "TASK_STATE_COMPLETED");
    assert!(said.err.contains("Warning: --insecure: CREDENTIALS ARE SENT"), "{said:?}");
    let said = user.run(&["card", "get", &served.url, "--insecure"]).ok();
    assert!(said.err.contains("Warning: --insecure: the agent's certificate is not checked"), "{said:?}");
    // A flag switches what is configured off again.
    let mut command = user.command(&[&send[..], &["--insecure=false"]].concat());
    Said::of(command.env("A2ACLI_INSECURE", "1")).failed(3);
    let trusted = served.line("tls").rsplit(' ').next().unwrap().to_owned();
    user.run(&[&send[..], &["--ca", &trusted]].concat()).ok();
}

/// They are in the help of every command, too: `help.rs` looks.
#[test]
fn p09_cli_default_001_a_plain_call_warns_of_nothing() {
    let (agent, user) = (always(json!({"task": task("TASK_STATE_COMPLETED")})), User::new());
    assert_eq!(user.run(&["send", &agent.url, "hi", "--async"]).ok().err, "");
}
