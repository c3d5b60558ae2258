//! The lab on agents that ask who calls: with credentials, without, and with those of two users.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::served::{Served, baton};

const ONE: &str = "canary-one-0123456789";
const TWO: &str = "canary-two-9876543210";

/// Two users of the demo agent.
fn serve(folder: &Path, more: &[&str]) -> Served {
    let config = format!(
        "listen = \"127.0.0.1:0\"\nstore = \"memory:\"\n\
         [[auth.bearer.token]]\nid = \"one\"\nsecret = \"{ONE}\"\n\
         [[auth.bearer.token]]\nid = \"two\"\nsecret = \"{TWO}\"\n"
    );
    std::fs::write(folder.join("baton.toml"), config).unwrap();
    Served::of(baton(&["serve"]).args(more).current_dir(folder))
}

/// Runs `baton test` and reads its report; panics if the agent does not conform.
fn tested(folder: &Path, url: &str, args: &[&str]) -> (Value, String) {
    let (code, report, said) = ran(folder, url, args);
    assert_eq!(code, Some(0), "{said}");
    (report, said)
}

/// The exit code, the report, and what was printed.
fn ran(folder: &Path, url: &str, args: &[&str]) -> (Option<i32>, Value, String) {
    let report = folder.join("report.json");
    let mut command: Command = baton(&["test", url, "--all-evidence", "--report"]);
    command.arg(&report).args(args).stdin(Stdio::null());
    for name in ["A2A_URL", "A2A_AUTH_TOKEN", "A2A_AUTH_TYPE", "A2A_BEARER_TOKEN", "A2A_AUTH_HEADERS"] {
        command.env_remove(name);
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let written = std::fs::read_to_string(&report).unwrap();
    for secret in [ONE, TWO] {
        assert!(!written.contains(secret) && !said.contains(secret), "a secret is in a report");
    }
    (status.code(), serde_json::from_str(&written).unwrap(), said)
}

/// The verdicts of a check, on every generation and binding it was planned for.
fn verdicts<'a>(report: &'a Value, id: &str) -> Vec<&'a str> {
    let categories = report["categories"].as_object().into_iter().flat_map(serde_json::Map::values);
    let all = categories.filter_map(Value::as_array).flatten();
    all.filter(|one| one["test"] == id).filter_map(|one| one["verdict"].as_str()).collect()
}

fn assert_all_pass<'a>(report: &Value, ids: impl IntoIterator<Item = &'a &'a str>, said: &str) {
    for id in ids {
        let verdicts = verdicts(report, id);
        let passed = !verdicts.is_empty() && verdicts.iter().all(|verdict| *verdict == "pass");
        assert!(passed, "{id}: {verdicts:?}\n{said}");
    }
}

const WITHOUT_CREDENTIALS: [&str; 15] = [
    "V1-AUTH-001",
    "V1-AUTH-002",
    "V1-AUTH-003",
    "V1-AUTH-004",
    "V1-AUTH-008",
    "V1-AUTH-009",
    "V03-AUTH-001",
    "V03-AUTH-002",
    "V03-AUTH-003",
    "V03-AUTH-004",
    "V03-AUTH-005",
    "V01-AUTH-001",
    "V01-AUTH-002",
    "V01-AUTH-003",
    "V01-AUTH-005",
];
const WITH_TWO_USERS: [&str; 8] = [
    "V1-AUTH-005",
    "V1-AUTH-006",
    "V1-AUTH-007",
    "V1-AUTH-010",
    "V03-AUTH-006",
    "V03-AUTH-007",
    "V01-AUTH-006",
    "V01-AUTH-007",
];

fn token(folder: &Path, name: &str, secret: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, secret).unwrap();
    format!("@{}", path.display())
}

#[test]
fn s16_t05_two_users_are_kept_apart_in_every_generation() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), &[]);
    let (one, two) = (token(folder.path(), "one", ONE), token(folder.path(), "two", TWO));
    let (report, said) = tested(folder.path(), &server.url, &["--bearer", &one, "--other-bearer", &two]);
    assert_all_pass(&report, WITHOUT_CREDENTIALS.iter().chain(&WITH_TWO_USERS), &said);
}

#[test]
fn s16_t05_without_credentials_only_checks_that_need_none_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), &[]);
    let (code, report, said) = ran(folder.path(), &server.url, &["--generation", "1.0,0.3,0.1"]);
    assert_eq!(code, Some(2), "an agent that was hardly tested does not count as right: {said}");
    assert_all_pass(&report, &WITHOUT_CREDENTIALS, &said);
    for id in WITH_TWO_USERS.iter().chain(&["V1-SEND-001", "V03-SEND-001", "V01-SEND-001"]) {
        assert!(verdicts(&report, id).iter().all(|verdict| *verdict == "skip"), "{id}");
    }
    assert!(said.contains("asks for credentials (HTTP 401), and none were given"), "{said}");
}

#[test]
fn s16_wrong_credentials_end_the_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), &[]);
    let output = baton(&["test", &server.url, "--bearer", "canary-wrong-555555"]).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("refuses the given credentials (HTTP 401)") && !said.contains("555555"), "{said}");
}

#[test]
fn s16_t05_an_agent_with_tls_is_tested_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), &["--tls-self-signed"]);
    assert!(server.url.starts_with("https://"), "{}", server.welcome);
    let one = token(folder.path(), "one", ONE);
    let ca = folder.path().join("baton-data/self-signed.crt").display().to_string();
    let args = ["--bearer", &one, "--ca", &ca, "--generation", "1.0", "--faults=split,reset"];
    let (report, said) = tested(folder.path(), &server.url, &args);
    let run = ["V1-TLS-001", "V1-TLS-002", "V1-AUTH-001", "V1-SEND-001", "V1-HOST-010"];
    assert_all_pass(&report, &run, &said);
    assert!(!said.contains("NOT checked"), "{said}");

    let untrusted = baton(&["test", &server.url]).output().unwrap();
    let told = String::from_utf8_lossy(&untrusted.stderr).into_owned();
    assert_eq!(untrusted.status.code(), Some(2), "{told}");
    assert!(told.contains("certificate is not trusted") && told.contains("--ca FILE"), "{told}");
    let unchecked = ["--bearer", &one, "--insecure", "--select", "V1-TLS"];
    let (report, said) = tested(folder.path(), &server.url, &unchecked);
    assert!(said.contains("certificates were NOT checked"), "{said}");
    assert!(report["remarks"].to_string().contains("NOT checked"), "{report}");
}
