//! The help, completions, the skill and the demo server.

use serde_json::json;

use super::User;
use super::scripted::{Answer, Scripted, card};
use crate::served::Served;

/// Every command of the specification.
const COMMANDS: &[&[&str]] = &[
    &["card", "get"],
    &["send"],
    &["chat"],
    &["task", "get"],
    &["task", "list"],
    &["task", "cancel"],
    &["task", "subscribe"],
    &["task", "download"],
    &["task", "push-config", "create"],
    &["task", "push-config", "get"],
    &["task", "push-config", "list"],
    &["task", "push-config", "delete"],
    &["auth", "login"],
    &["config", "show"],
    &["conformance"],
    &["completion"],
    &["demo-server"],
];

#[test]
fn p09_cli_cli_001_help_and_version_everywhere() {
    let user = User::new();
    let whole = user.run(&["help"]).ok().out;
    assert_eq!(user.run(&["--help"]).ok().out, whole);
    assert_eq!(user.run(&["-h"]).ok().out, whole);
    for command in COMMANDS {
        let help = user.run(&[&["help"], *command].concat()).ok().out;
        assert!(help.contains(&format!("Usage: baton {}", command.join(" "))), "{help}");
        for flag in ["--help", "-h"] {
            assert_eq!(user.run(&[*command, &[flag]].concat()).ok().out, help, "{command:?}");
        }
        assert!(whole.contains(&format!("\n  {}", command[0])), "{command:?}: {whole}");
        // The defaults in effect are there.
        if !matches!(command, ["completion" | "demo-server"]) {
            for words in [
                "[default: text]",
                "[default: 2s]",
                "[default: none]",
                "[default: the card's order]",
                "Exit status",
            ] {
                assert!(help.contains(words), "{words}: {help}");
            }
        }
    }
    let version = format!("baton {}\n", env!("CARGO_PKG_VERSION"));
    for args in [&["--version"][..], &["-v"], &["-V"], &["send", "-v"], &["task", "get", "--version"]] {
        assert_eq!(user.run(args).ok().out, version, "{args:?}");
    }
}

/// In the help of every command that takes a credential, and in the manual.
#[test]
fn p09_cli_auth_002_the_help_says_who_can_see_a_flag() {
    let user = User::new();
    let manual = include_str!("../../../../../docs/cli.md");
    let helps = COMMANDS[..COMMANDS.len() - 2]
        .iter()
        .map(|command| user.run(&[&["help"], *command].concat()).ok().out);
    for text in helps.chain([manual.to_owned()]) {
        for words in ["process table", "history", "A2ACLI_BEARER", "A2ACLI_API_KEY", "A2ACLI_USER"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

/// A header is a header: nothing calls it a way to authenticate.
#[test]
fn p09_cli_auth_001_svc_param_is_not_described_as_a_credential() {
    let help = User::new().run(&["help", "send"]).ok().out;
    let (_, credentials) = help.split_once("Credentials and TLS:\n").unwrap();
    let (credentials, _) = credentials.split_once("\n\n").unwrap();
    assert!(!credentials.contains("--svc-param"), "{credentials}");
    assert!(help.contains("--svc-param <NAME:VALUE>   A header of every request to the agent."), "{help}");
}

#[test]
fn p09_cli_cli_002_completions_and_manual_pages() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "nushell"] {
        let said = user.run(&["completion", shell]).ok();
        assert!(said.out.contains("push-config") && said.err.is_empty(), "{shell}");
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
    let said = user.run(&["send", &served.url, "ask me something"]).ok();
    assert_eq!(said.field("State"), "TASK_STATE_INPUT_REQUIRED");
    // It leaves nothing behind.
    let left: Vec<_> =
        std::fs::read_dir(user.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["baton.toml"]);
}

#[test]
fn p09_cli_conform_001_a_short_report_in_the_client_s_form() {
    let (served, user) = (Served::start(), User::new());
    assert_eq!(user.run(&["conformance", &served.url, "--select", "agent-card"]).ok().field("Failed"), "0");
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
