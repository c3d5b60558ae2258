//! `baton test --faults`, `baton test --second` and `baton fault-proxy`, as users type them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::served::{Served, baton};

/// The command, without the environment variables of the test run.
fn lab(args: &[&str]) -> Command {
    let mut command = baton(&["test"]);
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let visible = ["A2A_", "ACTS_", "SUT_"];
        if visible.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

fn report(command: &mut Command) -> (Option<i32>, Value) {
    let output = command.args(["--format", "json", "-q"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout);
    (output.status.code(), report.unwrap_or_else(|error| panic!("{error}: {said}")))
}

/// A few areas of each generation, to draw from.
const SOME: &str = "V1-GET,V1-STREAM,V1-CARD,V03-GET,V03-STREAM,V03-RPC,V01-GET,V01-STREAM,V01-RPC";

#[test]
fn baton_is_judged_the_same_under_faults() {
    let served = Served::start();
    let (code, report) = report(
        lab(&[&served.url, "--select", SOME, "--faults", "--seed", "3", "--timeout", "120s"]).arg("--strict"),
    );
    assert_eq!(code, Some(0), "{}\n{}", report["faults"], served.log());
    let kinds: Vec<&str> =
        report["faults"].as_array().unwrap().iter().filter_map(|kind| kind["fault"].as_str()).collect();
    assert_eq!(kinds, ["split", "delay", "stall", "cut", "reset", "half-close"]);
    let drawn = report["faultChecks"].to_string();
    for generation in ["1.0 jsonrpc", "1.0 rest", "0.3 jsonrpc", "0.3 rest", "0.1 jsonrpc"] {
        assert!(drawn.contains(generation), "{generation}: {drawn}");
    }
    for kind in report["faults"].as_array().unwrap() {
        assert!(kind["holds"] == true && kind["connectionsHit"].as_u64() > Some(0), "{kind}");
        assert_eq!(kind["different"], serde_json::json!([]));
    }
}

#[test]
fn faults_are_asked_for_by_name() {
    let served = Served::start();
    let base = [served.url.as_str(), "--select", "V1-GET", "--binding", "rest"];
    let (code, report) = report(lab(&base).arg("--faults=all,split"));
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["faults"].as_array().unwrap().len(), 1);
    assert_eq!(report["faults"][0]["same"], report["summary"]["passed"], "all checks were run again");
    let wrong = lab(&base).arg("--faults=spilt").output().unwrap();
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("half-close"), "{said}");
}

/// In both directions, and at the same time; the check that no client can force is skipped with a reason.
#[test]
fn t07_two_agents_both_ways() {
    let (one, two) = (Served::start(), Served::start());
    let (code, report) =
        report(&mut lab(&[&one.url, "--second", &two.url, "--select", "two-agents", "--timeout", "120s"]));
    assert_eq!(code, Some(0), "{report}");
    let records = report["categories"]["interop"].as_array().unwrap();
    for binding in ["jsonrpc", "rest"] {
        for (ids, last) in [("V1-TWO-00", 6), ("V03-TWO-00", 5)] {
            for number in 1..=last {
                let id = format!("{ids}{number}");
                let record =
                    records.iter().find(|record| record["test"] == *id && record["binding"] == binding);
                assert_eq!(record.unwrap()["verdict"], "pass", "{id} {binding}: {record:?}");
            }
        }
    }
    let calls = records.iter().find(|record| record["test"] == "V1-TWO-007").unwrap();
    assert_eq!(calls["verdict"], "skip", "{calls}");
    assert!(calls["message"].as_str().unwrap().contains("no way to make an agent call another"), "{calls}");
}

#[test]
fn t07_a_second_agent_is_another_one_and_there() {
    let one = Served::start();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (second, why) in
        [(one.url.clone(), "is the agent under test"), (format!("http://{free}"), "Nothing answers at")]
    {
        let run =
            lab(&[&one.url, "--second", &second, "--select", "two-agents", "--wait", "0"]).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            run.status.code() == Some(2) && said.contains("the second agent: ") && said.contains(why),
            "{said}"
        );
    }
}

/// An agent that calls the other one after the user's phrase; and one that claims to, but does not.
#[cfg(unix)]
#[test]
fn t07_an_agent_that_can_be_made_to_call_is_seen_calling() {
    const CALLS: &str = "import sys, urllib.request\nwords = sys.stdin.read().split()\n\
        for url in (word for word in words if word.startswith('http')):\n    \
        urllib.request.urlopen(url + '/.well-known/agent-card.json').read()\nprint('done')";
    let two = Served::start();
    for (program, verdict) in [(CALLS, "pass"), ("print('done')", "fail")] {
        let program = crate::programs::python(program);
        let one = program.serve(&[]);
        let phrase = "callPhrase=please ask {url} for its card";
        let (_, report) =
            report(&mut lab(&[&one.url, "--second", &two.url, "--select", "V1-TWO-007", "--var", phrase]));
        let records = report["categories"]["interop"].as_array().unwrap();
        assert!(
            !records.is_empty() && records.iter().all(|record| record["verdict"] == verdict),
            "{verdict}: {records:?}"
        );
    }
}

/// A running proxy; killed when dropped.
struct Proxy {
    child: Child,
    out: BufReader<ChildStdout>,
    at: String,
    welcome: String,
}

impl Proxy {
    fn start(args: &[&str]) -> Self {
        let mut command = baton(&["fault-proxy"]);
        let mut child = command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut welcome = String::new();
        while !welcome.contains("Ctrl-C") {
            assert_ne!(out.read_line(&mut welcome).unwrap(), 0, "no welcome: {welcome}");
        }
        let at = welcome.lines().find_map(|line| line.strip_prefix("listening")).unwrap().trim().to_owned();
        Proxy { child, out, at, welcome }
    }

    /// Ctrl-C; what it printed since the welcome, and its exit code.
    #[cfg(unix)]
    fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It has usually ended by then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_fault_proxy_splits_and_says_so() {
    let served = Served::start();
    let proxy = Proxy::start(&["--to", &served.url, "--fault", "split=1+delay=5ms", "--seed", "7"]);
    assert!(proxy.welcome.contains("split=1+delay=5ms (every connection, seed 7)"), "{}", proxy.welcome);
    let card = "/.well-known/agent-card.json";
    let host = served.url.trim_start_matches("http://").to_owned();
    let straight = reqwest::get(format!("{}{card}", served.url)).await.unwrap().text().await.unwrap();
    let request = reqwest::Client::new().get(format!("http://{}{card}", proxy.at)).header("host", host);
    let through = request.header("connection", "close").send().await.unwrap().text().await.unwrap();
    assert_eq!(straight, through);
    let (code, text) = proxy.interrupt();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("connection 1: split=1, after 0 bytes to the server"), "{text}");
    assert!(text.contains("1 connections (1 hit)") && text.contains("injected: 2 delay, 2 split"), "{text}");
}

#[cfg(unix)]
#[tokio::test]
async fn the_fault_proxy_cuts_every_third_connection() {
    let served = Served::start();
    let proxy = Proxy::start(&["--to", &served.url, "--fault", "reset@20", "--every", "3"]);
    let host = served.url.trim_start_matches("http://").to_owned();
    let mut worked = Vec::new();
    for _ in 0..6 {
        let client = reqwest::Client::new();
        let url = format!("http://{}/.well-known/agent-card.json", proxy.at);
        worked.push(client.get(url).header("host", &host).send().await.is_ok());
    }
    assert_eq!(worked, [false, true, true, false, true, true]);
    let (code, text) = proxy.interrupt();
    assert!(code == Some(0) && text.contains("6 connections (2 hit)"), "{text}");
}

#[test]
fn mistakes_of_the_fault_proxy_say_what_to_write() {
    for (args, why) in [
        (&["--to", "127.0.0.1:1", "--fault", "spilt"][..], "there is no such fault"),
        (&["--to", "nowhere"], "HOST:PORT"),
        (&["--to", "127.0.0.1:1", "--listen", "0.0.0.0:0"], "--allow-public"),
        (&[], "--to"),
    ] {
        let run = baton(&["fault-proxy"]).args(args).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.code() == Some(2) && said.contains(why), "{args:?}: {said}");
    }
}
