//! The text of every command, compared with the files of `snapshots/`. `BATON_BLESS=1` writes them.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::scripted::{Answer, Scripted, card, task};
use super::{Said, User};
use crate::served::Served;

/// Runs a command, and compares what it prints: ids, times, the agent's address and folders are masked.
fn check(user: &User, url: &str, name: &str, args: &[&str], expected: i32) -> Said {
    check_with(user, url, name, args, "", expected)
}

/// The same with this on the standard input.
fn check_with(user: &User, url: &str, name: &str, args: &[&str], input: &str, expected: i32) -> Said {
    let said = user.run_with(args, input).failed(expected);
    let typed: Vec<String> = args
        .iter()
        .map(|arg| if arg.contains(' ') { format!("{arg:?}") } else { (*arg).to_owned() })
        .collect();
    let mut text = format!("$ baton {}\n{}", typed.join(" "), said.out);
    if !said.err.is_empty() {
        let _ = write!(text, "stderr:\n{}", said.err);
    }
    let _ = writeln!(text, "exit {expected}");
    for part in [&said.out, &said.err] {
        let bad = part.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(bad, None, "{name}: text has no control sequences: {part}");
    }
    compare(name, &steady(&masked(&text, url, user)));
    said
}

/// Compares a text with its file.
#[track_caller]
pub(super) fn compare(name: &str, text: &str) {
    let file = folder().join(format!("{name}.txt"));
    if std::env::var_os("BATON_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, stored, "{name}: BATON_BLESS=1 accepts the new text");
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/snapshots")
}

fn masked(text: &str, url: &str, user: &User) -> String {
    let text = text.replace(url, "http://127.0.0.1:3000");
    // As the name of a file.
    let port = url.rsplit(':').next().unwrap();
    let text = text.replace(&format!("%3a{port}%2f"), "%3a3000%2f");
    let text = text.replace(user.home().to_str().unwrap(), "~").replace(user.folder().to_str().unwrap(), ".");
    // What grows with every check of the lab, and what is different in every run.
    let text: String = text
        .split_inclusive('\n')
        .map(|line| match line.split_once(": ") {
            Some((label @ ("Checks" | "Passed"), _)) => format!("{label}: N\n"),
            Some(("Next page", _)) => "Next page: TOKEN\n".to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    let mut ids: Vec<String> = Vec::new();
    let mut out = String::new();
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-:._".contains(c);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, more) = rest.split_at(end);
        if word.len() == 36 && word.matches('-').count() == 4 {
            let at = ids.iter().position(|id| id == word).unwrap_or_else(|| {
                ids.push(word.to_owned());
                ids.len() - 1
            });
            let _ = write!(out, "ID-{}", at + 1);
        } else if word.len() == 24 && word.ends_with('Z') && word.contains('T') {
            out += "2026-08-20T09:14:07.212Z";
        } else {
            out += word;
        }
        let mut chars = more.chars();
        out.extend(chars.next());
        rest = chars.as_str();
    }
    out
}

/// Measured times and rates are masked, the width of their columns with them; lines that depend on how busy the machine is
/// are left out.
fn steady(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.contains(", from sending") || line.contains("The generator itself was late") {
            continue;
        }
        let mut words: Vec<&str> = line.split(' ').collect();
        for at in 0..words.len() {
            let number = words[at].trim_start_matches('(');
            let unit = words.get(at + 1).map_or("", |unit| unit.trim_end_matches([',', ')', ';']));
            let is_measured = unit == "ms" || number.contains('.') && matches!(unit, "s" | "per");
            if is_measured && number.parse::<f64>().is_ok() {
                words[at] = if words[at].starts_with('(') { "(#.#" } else { "#.#" };
                // On a busy machine a time of milliseconds may be one of seconds.
                if let Some(unit) =
                    words.get_mut(at + 1).filter(|unit| unit.trim_end_matches([',', ')', ';']) == "s")
                {
                    *unit = match unit.strip_prefix('s') {
                        Some(",") => "ms,",
                        Some(")") => "ms)",
                        Some(";") => "ms;",
                        _ => "ms",
                    };
                }
            }
        }
        let is_table = words.contains(&"#.#") || line.contains("p50");
        match is_table {
            true => {
                let indent = if line.starts_with("  ") { "  " } else { "" };
                let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
                out += &format!("{indent}{}\n", words.join(" "));
            }
            false => out += &format!("{}\n", words.join(" ")),
        }
    }
    out
}

#[test]
fn p09_cli_out_005_the_text_of_every_command() {
    let (served, user) = (Served::start(), User::new());
    let url = served.url.as_str();
    let run = |name: &str, args: &[&str]| check(&user, url, name, args, 0);
    run("card-get", &["card", "get", url]);
    run("card-get-validate", &["card", "get", url, "--validate"]);
    run("card-get-verbose", &["card", "get", url, "--verbose"]);
    run("send", &["send", url, "hello"]);
    run("send-verbose", &["send", url, "hello", "--verbose"]);
    run("send-message", &["send", url, "just answer"]);
    run("send-async", &["send", url, "wait until I cancel", "--async"]);
    run("send-data", &["send", url, "give me data"]);
    run("send-fail", &["send", url, "fail"]);
    run("send-refuse", &["send", url, "refuse"]);
    run("send-stream", &["send", url, "tell me a story", "--stream"]);
    run("send-stream-message", &["send", url, "just answer", "--stream"]);
    run("send-auth", &["send", url, "ask me to sign in"]);
    let asked = run("send-asks", &["send", url, "ask me something"]);
    run("send-answer", &["send", url, "--task-id", asked.field("Task"), "Ann"]);
    let file = run("send-file", &["send", url, "make a file"]);
    run("task-get", &["task", "get", url, file.field("Task"), "--history", "2"]);
    run("task-download", &["task", "download", url, file.field("Task"), "--dir", "out"]);
    let held = user.run(&["send", url, "wait until I cancel", "--async"]).ok();
    run("task-get-working", &["task", "get", url, held.field("Task")]);
    run("task-cancel", &["task", "cancel", url, held.field("Task")]);
    run("task-list", &["task", "list", url, "--status", "completed", "--page-size", "2"]);
    run("task-list-empty", &["task", "list", url, "--context-id", "nobody"]);
    let slow = user.run(&["send", url, "work step by step", "--async"]).ok();
    // The first event is the task as it is when the subscription begins.
    user.run(&["task", "get", url, slow.field("Task"), "--wait", "--timeout", "300ms"]).failed(5);
    run("task-subscribe", &["task", "subscribe", url, slow.field("Task")]);
    run("bench", &["bench", url, "--rate", "50", "--requests", "20"]);
    run("bench-stream", &["bench", url, "--rate", "50", "--requests", "20", "--operation", "stream"]);
    run("bench-storm", &["bench", url, "wait until I cancel", "--storm", "10", "--hold", "1s"]);
    run("config-show", &["config", "show", "-a", url, "--bearer", "x"]);
    run("conformance", &["conformance", url, "--select", "agent-card"]);
    run("version", &["--version"]);
    check_with(&user, url, "chat", &["chat", url], "hello\nask me something\nAnn\n", 0);
    let fails = |name: &str, args: &[&str], code: i32| check(&user, url, name, args, code);
    fails("bench-too-many", &["bench", url, "--rate", "5000"], 2);
    fails("error-protocol", &["task", "get", url, "nobody"], 1);
    fails("error-not-cancelable", &["task", "cancel", url, file.field("Task")], 1);
    fails("error-refused-id", &["send", url, "hi", "--task-id", file.field("Task")], 1);
    fails("error-usage", &["send", "--nonsense"], 2);
    fails("error-no-agent", &["send", "hi"], 2);
    fails("error-timeout", &["send", url, "wait until I cancel", "--timeout", "300ms"], 5);
    let without =
        Served::with(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--profile", "streaming"]);
    let list = ["task", "push-config", "list", &without.url, "t-1"];
    check(&user, &without.url, "error-push", &list, 1);
    fails("error-unreachable", &["send", "http://127.0.0.1:1", "hi"], 3);
    fails("error-card-not-found", &["card", "get", "-a", "./missing.json"], 3);
    fails("error-file-exists", &["task", "download", url, file.field("Task"), "--dir", "out"], 2);
}

/// What the demo agent does not have: schemes, an extended card, webhooks, a login.
#[test]
fn p09_cli_out_005_the_text_of_commands_for_agents_with_users() {
    let agent = Scripted::start(
        |url| {
            let flow = json!({"deviceAuthorizationUrl": format!("{url}/device"), "tokenUrl": format!("{url}/token"), "scopes": {}});
            let schemes = json!({"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
                                 "corp": {"oauth2SecurityScheme": {"flows": {"deviceCode": flow}}}});
            let requirements =
                json!([{"schemes": {"key": {"list": []}}}, {"schemes": {"corp": {"list": ["read"]}}}]);
            let capabilities = json!({"streaming": true, "pushNotifications": true, "extendedAgentCard": true,
                                      "extensions": [{"uri": "urn:needed", "required": true}]});
            let provider = json!({"organization": "Buses, Inc.", "url": "https://buses.example"});
            card(
                url,
                json!({"securitySchemes": schemes, "securityRequirements": requirements, "capabilities": capabilities,
                       "provider": provider, "documentationUrl": "https://buses.example/docs"}),
            )
        },
        |heard, _| {
            let json = |body: serde_json::Value| Answer::Plain(200, "application/json", body.to_string());
            let config =
                json!({"id": "pc-1", "taskId": "t-1", "url": "https://hook.example/in", "token": "s3cret"});
            match (heard.target.as_str(), heard.rpc()) {
                ("/device", _) => json(
                    json!({"device_code": "d", "user_code": "WXYZ-1234", "expires_in": 60, "interval": 0,
                                              "verification_uri": "https://id.example/device"}),
                ),
                ("/token", _) => {
                    json(json!({"access_token": "s3cret", "token_type": "Bearer", "expires_in": 3600}))
                }
                _ if !heard.headers.contains_key("x-key") => {
                    Answer::Plain(401, "application/json", "{}".to_owned())
                }
                (_, "GetExtendedAgentCard") => {
                    Answer::Result(card("http://h.example", json!({"name": "Scripted, for friends"})))
                }
                (_, "ListTaskPushNotificationConfigs") => Answer::Result(json!({"configs": [config]})),
                (_, "DeleteTaskPushNotificationConfig") => Answer::Result(json!({})),
                (_, name) if name.contains("PushNotificationConfig") => Answer::Result(config),
                (_, "SendMessage") => Answer::Result(json!({"task": task("TASK_STATE_WORKING")})),
                _ => Answer::Result(task("TASK_STATE_WORKING")),
            }
        },
    );
    let user = User::new();
    let url = agent.url.as_str();
    let run = |name: &str, args: &[&str]| check(&user, url, name, args, 0);
    run("card-get-schemes", &["card", "get", url]);
    run("card-get-extended", &["card", "get", url, "--extended", "--api-key", "k"]);
    check(&user, url, "error-credentials-missing", &["task", "get", url, "t-1"], 4);
    let key = ["--api-key", "k"];
    let hook = |verb: &'static str, rest: &[&'static str]| {
        run(
            &format!("task-push-config-{verb}"),
            &[&["task", "push-config", verb, url, "t-1"], rest, &key].concat(),
        );
    };
    hook("create", &["--url", "https://hook.example/in"]);
    hook("get", &["pc-1"]);
    hook("list", &[]);
    hook("delete", &["pc-1"]);
    run("send-insecure", &["send", url, "hi", "--async", "--insecure", "--api-key", "k"]);
    run("auth-login", &["auth", "login", url, "--client-id", "me", "--scheme", "corp"]);
}

/// Cards as files. The key, the example of RFC 8037, always makes the same signature.
#[test]
fn p09_cli_out_005_the_text_of_the_commands_for_card_files() {
    let key = r#"{"kty":"OKP","crv":"Ed25519","kid":"2026-a","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let user = User::new();
    let write = |name: &str, text: &str| std::fs::write(user.folder().join(name), text).unwrap();
    let run = |name: &str, args: &[&str], code| check(&user, "http://127.0.0.1:3000", name, args, code);
    write("key.jwk", key);
    let made = run("card-new", &["card", "new", "Dice", "--skill", "roll"], 0).out;
    write("card.json", &made);
    run("card-lint", &["card", "lint", "card.json"], 0);
    let signed = run("card-sign", &["card", "sign", "card.json", "--key", "key.jwk"], 0).out;
    write("signed.json", &signed);
    run("card-verify", &["card", "verify", "signed.json", "--key", "key.jwk"], 0);
    write("changed.json", &signed.replace("Answers messages", "Something else"));
    run("card-verify-changed", &["card", "verify", "changed.json", "--key", "key.jwk"], 1);
    run("card-verify-without-key", &["card", "verify", "signed.json"], 1);
    run("card-diff", &["card", "diff", "card.json", "changed.json"], 1);
    write(
        "broken.json",
        &made.replace("http://127.0.0.1", "http://agent.example").replace("\"roll\"", "\"\""),
    );
    run("card-lint-broken", &["card", "lint", "broken.json"], 1);
}

/// All commands below this one, by its help: those that call an agent, or were named.
fn commands(user: &User, words: &[String]) -> Vec<Vec<String>> {
    let args: Vec<&str> = std::iter::once("help").chain(words.iter().map(String::as_str)).collect();
    let help = user.run(&args).ok().out;
    let heading = if words.is_empty() { "Call an agent:\n" } else { "\nCommands:\n" };
    let Some((_, listed)) = help.split_once(heading) else { return vec![words.to_vec()] };
    let listed = listed.split("\n\n").next().unwrap();
    let names =
        listed.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.flat_map(|name| commands(user, &[words, &[name.to_owned()]].concat())).collect()
}

/// Also the help of each, and no command is left out.
#[test]
fn p09_cli_out_005_every_command_has_a_stored_text() {
    let user = User::new();
    let mut all = commands(&user, &[]);
    assert!(all.len() >= 15, "{all:?}");
    for words in &all {
        let name = words.join("-");
        assert!(folder().join(format!("{name}.txt")).exists(), "no text of {name}");
    }
    all.extend([Vec::new(), vec!["completion".to_owned()], vec!["demo-server".to_owned()]]);
    for words in all {
        let args: Vec<&str> = std::iter::once("help").chain(words.iter().map(String::as_str)).collect();
        let name = if words.is_empty() { "baton".to_owned() } else { words.join("-") };
        check(&user, "http://127.0.0.1:3000", &format!("help-{name}"), &args, 0);
    }
}
