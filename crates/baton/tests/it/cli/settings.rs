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

/// It could be somebody else's authority, or the key of somebody else's certificate.
#[test]
fn p09_cli_config_002_certificates_of_a_found_file_are_said() {
    let user = User::new();
    let text = "A2ACLI_CA=./ca.pem\nA2ACLI_CLIENT_CERT=./cert.pem\nA2ACLI_CLIENT_KEY=./key.pem\n";
    std::fs::write(user.folder().join(".env"), text).unwrap();
    let said = user.run(&["config", "show"]).ok();
    for name in ["ca", "client-cert", "client-key"] {
        assert!(said.err.contains(&format!("Warning: {name} comes from ")), "{name}: {said:?}");
    }
}

/// A file that somebody else left on the way up does not keep the user from working.
#[test]
fn p09_cli_config_002_a_found_file_that_cannot_be_read_is_a_warning() {
    let (served, user) = (Served::start(), User::new());
    for bytes in [&b"A2ACLI_OUTPUT=\xff\n"[..], b"A2ACLI_OUTPUT\n"] {
        std::fs::write(user.folder().join(".env"), bytes).unwrap();
        let said = user.run(&["send", &served.url, "hello"]).ok();
        assert!(said.err.contains("Warning: ") && said.err.contains("the file is not used"), "{said:?}");
        let said = user.run(&["send", &served.url, "hello", "--config", ".env"]).failed(2);
        assert!(said.err.contains(".env: "), "{said:?}");
    }
}

/// One file per agent: who it is, how it is reached, and with what.
#[test]
fn p09_cli_config_002_settings_of_one_agent_are_one_file() {
    let (one, two, user) = (Served::start(), Served::start(), User::new());
    for (name, served, binding) in [("one.env", &one, "jsonrpc"), ("two.env", &two, "rest")] {
        let text = format!("A2ACLI_AGENT_CARD={}\nA2ACLI_TRANSPORT={binding}\n", served.url);
        std::fs::write(user.folder().join(name), text).unwrap();
    }
    for (name, served, binding) in [("one.env", &one, "JSONRPC"), ("two.env", &two, "HTTP+JSON")] {
        let said = user.run(&["send", "hello", "--config", name, "--debug"]).ok();
        assert!(said.err.contains(&format!("interface {binding} 1.0 {}", served.url)), "{said:?}");
        // The environment goes before the file, and a flag before both.
        let mut command = user.command(&["send", "hello", "--config", name, "--debug"]);
        let said = Said::of(command.env("A2ACLI_AGENT_CARD", &two.url)).ok();
        assert!(said.err.contains(&two.url), "{said:?}");
        let mut command = user.command(&["send", &one.url, "hello", "--config", name, "--debug"]);
        let said = Said::of(command.env("A2ACLI_AGENT_CARD", &two.url)).ok();
        assert!(said.err.contains(&one.url) && !said.err.contains(&two.url), "{said:?}");
    }
}

/// `config show` reads, and does not write.
#[test]
fn p09_cli_config_001_showing_the_settings_leaves_no_trace() {
    let user = User::new();
    user.run(&["config", "show", "-a", "agents.example.net", "--bearer", "s3cret", "--task-id", "t-1"]).ok();
    for folder in [user.home(), user.folder()] {
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }
}
