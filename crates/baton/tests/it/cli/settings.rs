//! Flags, variables and files.

use super::{Said, User};
use crate::served::Served;

#[test]
fn p09_cli_config_002_sources_in_their_order() {
    let user = User::new();
    std::fs::create_dir_all(user.home().join(".config/a2a-cli")).unwrap();
    let own = user.home().join(".config/a2a-cli/.env");
    std::fs::write(&own, "A2ACLI_OUTPUT=json\nA2ACLI_TIMEOUT=7s\nA2ACLI_POLL_INTERVAL=7s\n").unwrap();
    let inner = user.folder().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    std::fs::write(user.folder().join(".env"), "A2ACLI_POLL_INTERVAL=6s\nA2ACLI_OUTPUT=text\nOTHER=1\n")
        .unwrap();
    std::fs::write(user.folder().join("agent.env"), "A2ACLI_POLL_INTERVAL=5s\n").unwrap();
    let mut command = user.command(&["config", "show", "--bearer", "s3cret"]);
    command.current_dir(&inner).env("A2ACLI_API_KEY", "s3cret").env("A2ACLI_VERBOSE", "yes");
    let said = Said::of(&mut command).ok();
    let local = std::fs::canonicalize(user.folder().join(".env")).unwrap();
    for line in [
        format!("Setting: output=text source=file:{}", local.display()),
        format!("Setting: timeout=7s source=file:{}", own.display()),
        format!("Setting: poll-interval=6s source=file:{}", local.display()),
        "Setting: bearer=[redacted] source=flag".to_owned(),
        "Setting: api-key=[redacted] source=env:A2ACLI_API_KEY".to_owned(),
        "Setting: verbose=yes source=env:A2ACLI_VERBOSE".to_owned(),
        "Setting: insecure=false source=built-in".to_owned(),
    ] {
        assert!(said.out.lines().any(|shown| shown == line), "{line}\n{said:?}");
    }
    let mut command = user.command(&["config", "show", "-o", "json", "--config", "agent.env"]);
    let shown = Said::of(&mut command).ok().json();
    assert_eq!((&shown["poll-interval"]["value"], &shown["timeout"]["value"]), (&"5s".into(), &"7s".into()));
}

#[test]
fn p09_cli_config_001_files_with_secrets_that_others_can_read_are_warned_about() {
    use std::os::unix::fs::PermissionsExt as _;
    let user = User::new();
    let file = user.folder().join(".env");
    std::fs::write(&file, "A2ACLI_BEARER=s3cret\n").unwrap();
    for (mode, warns) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let said = user.run(&["config", "show"]).ok();
        assert_eq!(said.err.contains("chmod 600"), warns, "{said:?}");
        assert!(!said.out.contains("s3cret"));
    }
}

/// A folder of somebody else could redirect the user's credentials.
#[test]
fn p09_cli_config_002_what_a_found_file_decides_is_said() {
    let (served, user) = (Served::start(), User::new());
    std::fs::write(
        user.folder().join(".env"),
        format!("A2ACLI_AGENT_CARD={}\nA2ACLI_INSECURE=1\n", served.url),
    )
    .unwrap();
    let said = user.run(&["send", "hello"]).ok();
    assert!(
        said.err.contains("Warning: agent-card comes from ") && said.err.contains("insecure comes from"),
        "{said:?}"
    );
    let mut command = user.command(&["send", "hello"]);
    let said = Said::of(command.env("A2ACLI_CONTEXT_ID", "c-of-env")).ok();
    assert!(said.err.contains("context-id=c-of-env comes from env:A2ACLI_CONTEXT_ID"), "{said:?}");
    assert_eq!(said.field("Context"), "c-of-env");
}

#[test]
fn p09_cli_default_001_defaults_are_shown_and_overridden_by_flags() {
    let (served, user) = (Served::start(), User::new());
    let shown = user.run(&["config", "show"]).ok().out;
    for name in
        ["output=text", "async=false", "verbose=false", "insecure=false", "transport=", "a2a-version="]
    {
        assert!(shown.contains(&format!("Setting: {name}")), "{name}: {shown}");
    }
    let mut command =
        user.command(&["send", &served.url, "hello", "--verbose=false", "-o", "text", "--insecure=no"]);
    command.env("A2ACLI_VERBOSE", "1").env("A2ACLI_OUTPUT", "json").env("A2ACLI_INSECURE", "1");
    let said = Said::of(&mut command).ok();
    assert!(
        said.err.is_empty() && said.out.starts_with("Task: ") && !said.out.contains("History"),
        "{said:?}"
    );
}

#[test]
fn p09_cli_out_007_debug_shows_choices_and_raw_messages_on_stderr() {
    let (served, user) = (Served::start(), User::new());
    let said = user.run(&["send", &served.url, "hello", "--debug"]).ok();
    for words in [
        "Debug: interface JSONRPC 1.0 ",
        "Debug: > GET ",
        "Debug: > POST ",
        "Debug: > a2a-version: 1.0\n",
        "SendStreamingMessage",
        "Debug: < 200 after ",
        "Debug: < data: {",
    ] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
}
