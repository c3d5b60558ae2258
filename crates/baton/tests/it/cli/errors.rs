//! Errors and exit statuses.

use serde_json::json;

use super::User;
use super::scripted::{Answer, Scripted, card, task};
use crate::served::Served;

#[test]
fn p09_cli_out_004_errors_are_envelopes_with_the_protocol_s_names() {
    let (served, user) = (Served::start(), User::new());
    for binding in ["jsonrpc", "rest"] {
        let said =
            user.run(&["task", "get", &served.url, "nobody", "-o", "json", "--transport", binding]).failed(1);
        let error = said.json()["error"].take();
        assert_eq!(error["code"], "TaskNotFoundError");
        assert_eq!(error["a2aCode"], if binding == "rest" { json!(404) } else { json!(-32001) });
        assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
        assert!(said.err.is_empty(), "{said:?}");
    }
    let said = user.run(&["task", "get", &served.url, "nobody"]).failed(1);
    assert!(said.out.is_empty() && said.err.starts_with("Error: TaskNotFoundError\n"), "{said:?}");
}

#[test]
fn p09_cli_exit_001_statuses_by_kind_of_failure() {
    let agent = Scripted::start(
        |url| {
            let schemes = json!({"k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}});
            card(
                url,
                json!({"securitySchemes": schemes, "securityRequirements": [{"schemes": {"k": {"list": []}}}]}),
            )
        },
        |heard, _| match heard.headers.get("x-key") {
            _ if heard.rpc() == "ListTasks" => Answer::Plain(500, "text/html", "<p>oops</p>".to_owned()),
            None => Answer::Plain(401, "application/json", "{}".to_owned()),
            Some(_) => Answer::Plain(403, "application/json", "{}".to_owned()),
        },
    );
    let closed = Scripted::start(|_| json!({}), |_, _| Answer::Result(task("TASK_STATE_COMPLETED")));
    let page =
        Scripted::start(|_| json!({}), |_, _| Answer::Plain(200, "text/html", "<p>welcome</p>".to_owned()));
    let user = User::new();
    std::fs::write(user.folder().join("wrong.json"), r#"{"name": 7}"#).unwrap();
    let nobody = "http://127.0.0.1:1";
    for (args, status, code) in [
        (&["send"][..], 2, "A2ACLI_ERR_USAGE"),
        (&["send", &agent.url, "x", "--no-such-flag"], 2, "A2ACLI_ERR_USAGE"),
        (&["send", &agent.url, "x", "--wait", "--async"], 2, "A2ACLI_ERR_USAGE"),
        (&["send", "x"], 2, "A2ACLI_ERR_USAGE"),
        (&["card", "get", "-a", "./missing.json"], 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        (&["card", "get", "-a", "./wrong.json"], 1, "A2ACLI_ERR_CARD_INVALID"),
        (&["card", "get", &closed.url], 1, "A2ACLI_ERR_CARD_INVALID"),
        (&["card", "get", &format!("{}/page.json", page.url)], 3, "A2ACLI_ERR_CARD_NOT_FOUND"),
        (&["card", "get", nobody], 3, "A2ACLI_ERR_UNREACHABLE"),
        (&["send", &agent.url, "x"], 4, "A2ACLI_ERR_CREDENTIALS_MISSING"),
        (&["send", &agent.url, "x", "--api-key", "k"], 4, "A2ACLI_ERR_AUTH_FAILED"),
        (&["task", "list", &agent.url, "--api-key", "k"], 1, "A2ACLI_ERR_INTERNAL"),
    ] {
        let said = user.run(&[args, &["-o", "json"]].concat()).failed(status);
        assert_eq!(said.error().0, code, "{args:?}: {said:?}");
        assert_eq!(said.out.matches("\"error\"").count(), 1);
    }
}

#[test]
fn p09_cli_cli_001_help_and_version_everywhere() {
    let user = User::new();
    for args in [&["help"][..], &["help", "send"], &["send", "--help"], &["task", "get", "-h"], &["--help"]] {
        assert!(user.run(args).ok().out.contains("Usage: baton"), "{args:?}");
    }
    let help = user.run(&["help", "send"]).ok().out;
    for words in ["[default: text]", "[default: 2s]", "process table", "A2ACLI_BEARER", "Exit status"] {
        assert!(help.contains(words), "{words}: {help}");
    }
    let version = format!("baton {}\n", env!("CARGO_PKG_VERSION"));
    for args in [&["--version"][..], &["-v"], &["-V"], &["send", "-v"], &["task", "get", "--version"]] {
        assert_eq!(user.run(args).ok().out, version, "{args:?}");
    }
}

#[test]
fn p09_cli_cli_002_completions_and_manual_pages() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "nushell"] {
        assert!(user.run(&["completion", shell]).ok().out.contains("push-config"), "{shell}");
    }
    user.run(&["completion", "tcsh"]).failed(2);
    user.run(&["man", "--dir", "pages"]).ok();
    assert!(user.folder().join("pages/baton-task-push-config-create.1").exists());
}

/// The configuration of the server has moved, and says where to.
#[test]
fn the_old_words_point_at_the_new_ones() {
    let user = User::new();
    let said = user.run(&["config", "check", "--config", "my agents.toml"]).failed(2);
    assert!(said.err.contains("Hint: baton serve config check --config 'my agents.toml'\n"), "{said:?}");
    assert!(user.run(&["config", "default"]).failed(2).err.contains("baton serve config default"));
    assert!(
        user.run(&["config", "show", "--format", "toml"]).failed(2).err.contains("baton serve config show")
    );
    user.run(&["serve", "config", "default"]).ok();
}

#[test]
fn p09_cli_demo_server_001_serves_whatever_is_configured_around_it() {
    let user = User::new();
    std::fs::write(user.folder().join("baton.toml"), "broken =").unwrap();
    let served = Served::of(&mut user.command(&["demo-server", "--listen", "127.0.0.1:0"]));
    assert_eq!(user.run(&["send", &served.url, "hello"]).ok().field("State"), "TASK_STATE_COMPLETED");
}

#[test]
fn p09_cli_conform_001_a_short_report_in_the_client_s_form() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["conformance", &served.url, "--select", "agent-card"]).ok();
    assert_eq!((said.field("Agent"), said.field("Failed")), ("Baton demo agent", "0"));
    assert!(said.field("Passed").parse::<u32>().unwrap() > 0);
    let said = user.run(&["conformance", &served.url, "--select", "agent-card", "-o", "json"]).ok();
    assert_eq!(said.json()["failed"], 0);
    let broken = Scripted::start(|url| card(url, json!({})), |_, _| Answer::Error(-32603, "no"));
    let said = user.run(&["conformance", &broken.url, "--select", "V1-GET"]).failed(1);
    assert!(said.out.contains("Problem: "), "{said:?}");
}

/// One small skill, which sends agents to the help instead of listing commands, and restates no rules.
#[test]
fn p09_cli_skill_001_002_one_skill_that_points_at_the_help() {
    let skills = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills");
    let found: Vec<_> = std::fs::read_dir(&skills).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(found, ["baton"]);
    let skill = std::fs::read_to_string(skills.join("baton/SKILL.md")).unwrap();
    assert!(skill.starts_with("---\nname: baton\n") && skill.contains("\ncompatibility: "), "{skill}");
    assert!(skill.contains("`baton help COMMAND`") && skill.contains("baton --version"), "{skill}");
    assert!(skill.lines().count() < 40 && !skill.contains("MUST"), "{skill}");
    // The examples can be typed: every option in them exists.
    let examples = std::fs::read_to_string(skills.join("baton/references/examples.md")).unwrap();
    let user = User::new();
    for line in examples.lines().filter(|line| line.starts_with("baton ")) {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let command: Vec<&str> =
            words.iter().copied().take_while(|word| !word.starts_with('-')).take(2).collect();
        let help = user.run(&[&["help"], &command[..]].concat()).ok().out;
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "{option} in {line}");
        }
    }
}
