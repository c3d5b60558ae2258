//! `baton test` on the command line: exit codes, reports, selection, credentials, an agent that starts late.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::served::{Served, baton, text};

/// The command, without the environment variables of the test run.
fn lab(args: &[&str]) -> Command {
    let mut command = baton(&["test"]);
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let visible = ["A2A_", "ACTS_", "SUT_", "NO_COLOR"];
        if visible.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

struct Ended {
    code: Option<i32>,
    out: String,
    said: String,
}

fn ended(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code(), out: text(stdout), said: text(stderr) }
}

/// A suite of one file: tests that pass, fail and are skipped on the demo agent.
fn suite(folder: &Path) -> String {
    let file = folder.join("mine.acts.yaml");
    let document = json!({
    "acts_version": "1.0", "spec_version": "1.0",
    "suites": [{"id": "mine", "name": "Mine", "tests": [
        {"id": "MINE-CARD-001", "name": "the card has a name", "level": "must", "category": "agent-card",
         "steps": [{"id": "get", "operation": "get_agent_card", "params": {}, "expect": {"body": {"name": {"exists": true}}}}]},
        {"id": "MINE-LIFE-001", "name": "lists", "level": "must", "category": "lifecycle",
         "steps": [{"id": "list", "operation": "list_tasks", "params": {}, "expect": {"body": {"tasks": {"type": "array"}}}}]},
        {"id": "MINE-BAD-001", "name": "no agent does this", "level": "must", "category": "lifecycle",
         "requirement": "An agent answers with teapots.", "remedy": "Buy a teapot.", "section": "4.18",
         "steps": [{"id": "list", "operation": "list_tasks", "params": {}, "expect": {"body": {"teapots": {"exists": true}}}}]},
        {"id": "MINE-SOFT-001", "name": "few agents do this", "level": "should", "category": "lifecycle",
         "steps": [{"id": "list", "operation": "list_tasks", "params": {}, "expect": {"body": {"cups": {"exists": true}}}}]},
        {"id": "MINE-LOGIN-001", "name": "credentials are repeated", "level": "may", "category": "interop",
         "steps": [{"id": "send", "operation": "send_message", "params": {"message": {"role": "ROLE_USER", "parts": [{"text": "{{secretPhrase}}"}]}},
                    "expect": {"body": {"task": {"absent": true}}}}]},
    ]}]});
    std::fs::write(&file, document.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn t08_exit_codes_tell_conforming_from_not_from_not_tested() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let suite = suite(folder.path());
    let good = ["--suite", &suite, "--select", "MINE-CARD,MINE-LIFE"];
    let run = ended(lab(&[&server.url]).args(good));
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.said);
    let run = ended(&mut lab(&[&server.url, "--suite", &suite, "--select", "MINE-BAD"]));
    assert_eq!(run.code, Some(1), "{}", run.out);
    assert!(run.said.contains("does not conform"), "{}", run.said);
    for said in
        ["MINE-BAD-001", "An agent answers with teapots.", "Buy a teapot.", "section 4.18", "curl -sS"]
    {
        assert!(run.out.contains(said), "{said}: {}", run.out);
    }
    let soft = ["--suite", &suite, "--select", "MINE-SOFT"];
    assert_eq!(ended(lab(&[&server.url]).args(soft)).code, Some(0), "a recommendation does not count");
    assert_eq!(ended(lab(&[&server.url, "--strict"]).args(soft)).code, Some(1), "unless asked for");

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let run = ended(lab(&[&format!("http://{free}"), "--wait", "0"]).args(good));
    assert_eq!(run.code, Some(2), "{}", run.out);
    assert!(
        run.said.contains("Nothing answers at") && run.said.contains("Is the agent running"),
        "{}",
        run.said
    );
    let run = ended(&mut lab(&[&format!("{}/elsewhere", server.url)]));
    assert!(run.code == Some(2) && run.said.contains("No agent card is at"), "{}", run.said);
    let run = ended(&mut lab(&[]));
    assert!(run.code == Some(2) && run.said.contains("the agent's address is missing"), "{}", run.said);
}

/// The address may come from the environment, the tester may be there before the agent.
#[test]
fn t08_an_agent_that_starts_late_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let suite = suite(folder.path());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut early = lab(&["--suite", &suite, "--select", "MINE-CARD", "--wait", "60s"]);
    early.env("A2A_URL", format!("http://{port}")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut early = early.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(early.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("waiting up to 60 s"), "{said}");
    let _server = Served::with(&["serve", "--listen", &port.to_string(), "--store", "memory:"]);
    assert_eq!(early.wait().unwrap().code(), Some(0));
}

#[test]
fn t01_every_format_on_stdout_and_in_files() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let suite = suite(folder.path());
    let format = |name: &str| {
        let run = ended(&mut lab(&[&server.url, "--suite", &suite, "--format", name, "--timeout", "30s"]));
        assert_eq!(run.code, Some(1), "{name}: {}", run.said);
        run.out
    };
    let report: Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!((&report["agentUrl"], &report["agentName"]), (&json!(server.url), &json!("Baton demo agent")));
    assert_eq!(report["conformanceLevel"], "minimal");
    let failed = &report["categories"]["lifecycle"].as_array().unwrap()[2];
    assert_eq!((&failed["test"], &failed["status"]), (&json!("MINE-BAD-001"), &json!("fail")));
    assert_eq!(failed["evidence"][0]["received"]["status"], 200, "the whole response of a failure");
    assert!(format("markdown").contains("### Failed tests"));
    assert!(format("junit").contains("<testsuites"));
    assert!(format("tap").starts_with("TAP version 14"));
    assert!(format("badge").starts_with("<svg"));
    assert!(format("html").starts_with("<!doctype html>"));
    assert_eq!(serde_json::from_str::<Value>(&format("acts")).unwrap().as_array().unwrap().len(), 2);

    let names = ["a.json", "a.md", "a.xml", "a.html", "a.tap", "a.svg", "a.txt", "a.acts.json"];
    let mut command = lab(&[&server.url, "--suite", &suite, "--quiet"]);
    for name in names {
        command.arg("--report").arg(folder.path().join(name));
    }
    let run = ended(&mut command);
    assert!(run.code == Some(1) && run.out.starts_with("conformance: minimal"), "{}", run.out);
    for name in names.iter().filter(|name| !name.contains(".acts")) {
        assert!(folder.path().join(name).metadata().unwrap().len() > 100, "{name}");
    }
    for binding in ["jsonrpc", "rest"] {
        assert!(folder.path().join(format!("a-1.0-{binding}.acts.json")).is_file(), "one per binding");
    }
    let compared = ended(lab(&["compare"]).args(["a.json", "a.json"]).current_dir(folder.path()));
    assert!(
        compared.code == Some(0) && compared.out.contains("no difference"),
        "{}{}",
        compared.out,
        compared.said
    );
}

/// If a report cannot be written, the raw results go to stdout, and the exit code says so.
#[test]
fn t06_a_report_that_cannot_be_written_leaves_the_results_on_stdout() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let suite = suite(folder.path());
    let blocked = folder.path().join("a.json");
    std::fs::create_dir_all(blocked.join("in-the-way")).unwrap();
    let run = ended(lab(&[&server.url, "--suite", &suite, "-q", "--report"]).arg(&blocked));
    assert_eq!(run.code, Some(2), "{}", run.said);
    assert!(run.said.contains("a report could not be made"), "{}", run.said);
    let lines: Vec<Value> = run.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(lines.len(), 10, "every check on both bindings: {}", run.out);
    assert!(lines.iter().any(|line| line["test"] == "MINE-BAD-001" && line["status"] == "fail"));

    let run = ended(&mut lab(&[&server.url, "--report", "report.pdf"]));
    assert!(run.code == Some(2) && run.said.contains(".html"), "before anything is run: {}", run.said);
}

#[test]
fn t01_a_selection_is_checked_and_shown() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let suite = suite(folder.path());
    let run = ended(&mut lab(&[&server.url, "--suite", &suite, "--select", "MINE-CRD"]));
    assert!(run.code == Some(2) && run.said.contains("did you mean `MINE-CARD`"), "{}", run.said);
    let run = ended(&mut lab(&[
        &server.url,
        "--suite",
        &suite,
        "--binding",
        "rest",
        "--select",
        "agent-card",
        "-v",
    ]));
    assert!(
        run.code == Some(0) && run.out.contains("1.0 rest") && !run.out.contains("jsonrpc"),
        "{}",
        run.out
    );
    let run = ended(&mut lab(&[
        &server.url,
        "--suite",
        &suite,
        "--select",
        "!MINE-BAD,!MINE-SOFT",
        "--format",
        "json",
    ]));
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert!(report["remarks"].to_string().contains("only a selection"), "{}", report["remarks"]);

    let run = ended(&mut lab(&["--suite", &suite, "--list", "--select", "lifecycle"]));
    assert!(run.out.contains("MINE-BAD-001") && !run.out.contains("MINE-CARD-001"), "{}", run.out);
    let run = ended(&mut lab(&["--suite", &suite, "--explain", "mine-bad-001"]));
    for said in ["teapots", "Buy a teapot.", "4.18", "ListTasks", "must"] {
        assert!(run.out.contains(said), "{said}: {}", run.out);
    }
    let run = ended(&mut lab(&["--explain", "V1-SEND-01"]));
    assert!(run.code == Some(2) && run.said.contains("did you mean `V1-SEND-0"), "{}", run.said);
    let run = ended(&mut lab(&["--corrections"]));
    assert!(
        run.code == Some(0) && run.out.contains("F15") && run.out.contains("STREAM-MULTI-001"),
        "{}",
        run.out
    );
    let run = ended(&mut lab(&[&server.url, "--suite", "nowhere.acts.yaml"]));
    assert!(run.code == Some(2) && run.said.contains("nowhere.acts.yaml"), "{}", run.said);
}

#[test]
fn t08_a_baseline_is_written_and_kept_to() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let suite = suite(folder.path());
    let list = folder.path().join("expected.txt");
    let list = list.to_str().unwrap();
    let args = [server.url.as_str(), "--suite", &suite, "--var", "secretPhrase=hello"];
    let with = |more: &[&str]| ended(lab(&args).args(more));
    assert_eq!(with(&["--write-baseline", list]).code, Some(1));
    let run = with(&["--baseline", list]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.said);

    let whole = std::fs::read_to_string(list).unwrap();
    std::fs::write(list, whole.replacen("MINE-BAD-001 1.0 rest", "# MINE-BAD-001 1.0 rest", 1)).unwrap();
    let run = with(&["--baseline", list]);
    assert!(
        run.code == Some(1) && run.out.contains("not listed, and failed: MINE-BAD-001 1.0 rest"),
        "{}",
        run.out
    );
    std::fs::write(list, format!("{whole}MINE-CARD-001\n")).unwrap();
    let run = with(&["--baseline", list]);
    assert!(run.code == Some(1) && run.out.contains("listed, but passed: MINE-CARD-001"), "{}", run.out);
    std::fs::write(list, "MINE-CRAD-001\n").unwrap();
    let run = with(&["--baseline", list]);
    assert!(
        run.code == Some(2) && run.said.contains("line 1") && run.said.contains("`MINE-CARD-001`"),
        "{}",
        run.said
    );
}

/// Credentials reach the agent and nothing else: not the terminal, not a file.
#[test]
fn t06_no_report_holds_a_secret() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let suite = suite(folder.path());
    let mut command =
        lab(&[&server.url, "--suite", &suite, "--all-evidence", "-v", "--header", "X-Extra: s3cret-header"]);
    command.args(["--bearer", "s3cret-token", "--var", "secretPhrase=s3cret-phrase"]);
    let names = ["a.json", "a.md", "a.xml", "a.html", "a.tap", "a.txt", "a.acts.json"];
    for name in names {
        command.arg("--report").arg(folder.path().join(name));
    }
    let run = ended(&mut command);
    assert_eq!(run.code, Some(1), "{}", run.said);
    let mut all = vec![("stdout".to_owned(), run.out), ("stderr".to_owned(), run.said)];
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        all.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
    }
    for (name, text) in &all {
        assert!(!text.contains("s3cret"), "{name} holds a secret");
    }
    let json = all.iter().find(|(name, _)| name.ends_with("a.json")).unwrap();
    assert!(json.1.contains("***"), "they were sent, and masked");
}

#[test]
fn colours_are_for_terminals() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let suite = suite(folder.path());
    let args = [server.url.as_str(), "--suite", &suite, "--select", "MINE-CARD"];
    assert!(!ended(&mut lab(&args)).out.contains('\u{1b}'), "a pipe is no terminal");
    assert!(ended(lab(&args).args(["--color", "always"])).out.contains('\u{1b}'));
}

/// After an interrupt, the finished checks are reported.
#[tokio::test]
async fn an_interrupted_run_still_reports() {
    let (server, folder) = (Served::start(), tempfile::tempdir().unwrap());
    let file = folder.path().join("slow.acts.yaml");
    let send = json!({"id": "send", "operation": "send_message", "capture": {"task": "task.id"},
        "params": {"message": {"role": "ROLE_USER", "parts": [{"text": "tck-cancel"}]}, "configuration": {"returnImmediately": true}}});
    let poll = json!({"id": "poll", "operation": "get_task", "params": {"id": "{{send.task}}"},
        "repeat": {"until": "status.state == TASK_STATE_COMPLETED", "max_attempts": 1000, "delay_ms": 200}});
    let card = json!({"id": "get", "operation": "get_agent_card", "params": {}});
    let document = json!({"acts_version": "1.0", "spec_version": "1.0", "suites": [{"id": "s", "name": "S", "tests": [
        {"id": "SLOW-CARD-001", "name": "quick", "level": "must", "steps": [card]},
        {"id": "SLOW-LIFE-001", "name": "slow", "level": "must", "steps": [send, poll]}]}]});
    std::fs::write(&file, document.to_string()).unwrap();
    let mut command =
        lab(&[&server.url, "--binding", "jsonrpc", "--parallel", "1", "--format", "json", "--suite"]);
    let child = command.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first look's own task works for a moment, too, and nobody counts checks yet: it is the slow case's that is
    // waited for.
    let working = async {
        loop {
            let asked = json!({"status": "TASK_STATE_WORKING", "historyLength": 1});
            let tasks = server.call("ListTasks", asked).await["tasks"].take();
            let slow = |task: &Value| task["history"][0]["parts"][0]["text"] == "tck-cancel";
            if tasks.as_array().is_some_and(|tasks| tasks.iter().any(slow)) {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), working).await.unwrap();
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(String::from_utf8_lossy(&stderr).contains("interrupted: 1 of 2 checks"), "{stderr:?}");
    let report: Value = serde_json::from_slice(&stdout).unwrap();
    assert_eq!(report["summary"]["passed"], 1);
    // The agent did not notice.
    server.send(text("m-1", "still there?")).await;
}

/// The built-in suites are there, whole, and hold what the levels are judged by.
#[test]
fn t08_the_built_in_suites_are_in_the_binary() {
    let run = ended(&mut lab(&["--list"]));
    assert_eq!(run.code, Some(0), "{}", run.said);
    for id in ["V1-SEND-001", "V1-GET-001"] {
        assert!(run.out.contains(id), "{id}");
    }
}
