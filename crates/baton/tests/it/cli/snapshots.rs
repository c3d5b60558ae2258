//! The text of every command against the demo agent, compared with the files of `snapshots/`. `BATON_BLESS=1` writes them.

use std::fmt::Write as _;
use std::path::Path;

use super::User;
use crate::served::Served;

/// Runs a command, and compares what it prints: ids, times, ports and folders are masked.
fn check(user: &User, served: &Served, name: &str, args: &[&str], expected: i32) -> super::Said {
    let said = user.run(args).failed(expected);
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
    let text = masked(&text, served, user);
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("BATON_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, stored, "{name}: BATON_BLESS=1 accepts the new text");
    said
}

fn masked(text: &str, served: &Served, user: &User) -> String {
    let text = text.replace(&served.url, "http://127.0.0.1:3000");
    let text = text.replace(user.home().to_str().unwrap(), "~").replace(user.folder().to_str().unwrap(), ".");
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

#[test]
fn p09_cli_out_005_the_text_of_every_command() {
    let (served, user) = (Served::start(), User::new());
    let url = served.url.as_str();
    let run = |name: &str, args: &[&str]| check(&user, &served, name, args, 0);
    run("card-get", &["card", "get", url]);
    run("card-get-validate", &["card", "get", url, "--validate"]);
    run("card-get-verbose", &["card", "get", url, "--verbose"]);
    run("send", &["send", url, "hello"]);
    run("send-verbose", &["send", url, "hello", "--verbose"]);
    run("send-message", &["send", url, "just answer"]);
    run("send-async", &["send", url, "wait until I cancel", "--async"]);
    run("send-data", &["send", url, "give me data"]);
    run("send-fail", &["send", url, "fail"]);
    run("send-stream", &["send", url, "tell me a story", "--stream"]);
    let asked = run("send-asks", &["send", url, "ask me something"]);
    run("send-answer", &["send", url, "--task-id", asked.field("Task"), "Ann"]);
    let file = run("send-file", &["send", url, "make a file"]);
    run("task-get", &["task", "get", url, file.field("Task"), "--history", "2"]);
    run("task-download", &["task", "download", url, file.field("Task"), "--dir", "out"]);
    let held = user.run(&["send", url, "wait until I cancel", "--async"]).ok();
    run("task-cancel", &["task", "cancel", url, held.field("Task")]);
    run("task-list", &["task", "list", url, "--status", "input-required"]);
    run("config-show", &["config", "show", "-a", url, "--bearer", "x"]);
    let fails = |name: &str, args: &[&str], code: i32| check(&user, &served, name, args, code);
    fails("error-protocol", &["task", "get", url, "nobody"], 1);
    fails("error-usage", &["send", "--nonsense"], 2);
    fails("error-timeout", &["send", url, "wait until I cancel", "--timeout", "300ms"], 5);
    fails("error-push", &["task", "push-config", "list", url, "t-1"], 1);
}

#[test]
fn the_help_of_every_command() {
    let (served, user) = (Served::start(), User::new());
    for command in [
        "",
        "send",
        "task get",
        "task list",
        "task download",
        "card get",
        "config show",
        "auth login",
        "conformance",
    ] {
        let words: Vec<&str> =
            std::iter::once("help").chain(command.split(' ').filter(|word| !word.is_empty())).collect();
        let name = format!(
            "help-{}",
            if command.is_empty() { "baton".to_owned() } else { command.replace(' ', "-") }
        );
        check(&user, &served, &name, &words, 0);
    }
}
