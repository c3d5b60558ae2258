//! How long a command takes from nothing: our client, `curl` with the same requests, and the Python SDK's client.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Point, Points, Row, Verdict};
use crate::cores::Place;
use crate::server::Server;
use crate::subjects::{Kind, Program, Subject};
use crate::wire;

/// The same server for all: Baton's echo agent.
const fn client(name: &'static str, shown: &'static str, kind: Kind) -> Subject {
    Subject { name, shown, program: Program::Rust("baton-echo"), path: "/", kind, env: &[] }
}

const BATON: Subject = client("baton-command", "`baton`", Kind::Baton);
const CURL: Subject = client("curl", "`curl`", Kind::Control);
const PYTHON: Subject = client("python-client", "a2a-sdk 1.3.0 (Python), its client", Kind::Peer);

/// Commands per point. Python takes about a second each.
const RUNS: (usize, usize) = (5, 20);
const RUNS_OF_PYTHON: usize = 3;

pub const COMMANDS: Row = Row {
    id: "cold-start",
    work: "cold start of `baton card get` and `baton send --async`: from starting the process to its end",
    remark: "`curl` makes the same requests: the card; or the card, and then the message on the same connection. Wall \
             time, and CPU of the process (user and system) to a half millisecond, medians of the rounds. Clients are \
             on one core, the server on the other.",
    rounds: (3, 15),
    subjects: &[BATON, CURL, PYTHON],
    measure,
    columns: &[
        ("card", "card, ms"),
        ("send", "send, ms"),
        ("card_cpu", "card, CPU ms"),
        ("send_cpu", "send, CPU ms"),
    ],
    judge: |figures| {
        let to_curl = |name| figures.ratio("cold-start", name, &BATON, &CURL);
        let of_python = |name| figures.ratio("cold-start", name, &PYTHON, &BATON);
        vec![
            Verdict::at_most("`card get`: at most 1.3 × curl", to_curl("card"), 1.3, " ×"),
            Verdict::at_most("`send --async`: at most 1.3 × curl", to_curl("send"), 1.3, " ×"),
            Verdict::at_least("`card get`: 5 × faster than Python", of_python("card"), 5.0, " ×"),
            Verdict::at_least("`send --async`: 5 × faster than Python", of_python("send"), 5.0, " ×"),
        ]
    },
};

fn measure(point: &Point<'_>) -> Result<Points, String> {
    let server = point.bench.start(&point.subject, Place::Own, &[])?;
    let runs = match point.subject == PYTHON {
        true => RUNS_OF_PYTHON,
        false => point.bench.pick(RUNS.0, RUNS.1),
    };
    let mut points = Vec::new();
    for (wall, cpu, what) in [("card", "card_cpu", What::Card), ("send", "send_cpu", What::Send)] {
        let mut times = Vec::new();
        let before = cpu_of_children()?;
        for _ in 0..runs {
            times.push(once(point, &server, what)?.as_secs_f64() * 1e3);
        }
        let spent = cpu_of_children()? - before;
        times.sort_by(f64::total_cmp);
        points.push((wall, times[times.len() / 2]));
        points.push((cpu, spent.as_secs_f64() * 1e3 / runs as f64));
    }
    Ok(points)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Card,
    Send,
}

/// Runs the command once; its answer must be the agent's.
fn once(point: &Point<'_>, server: &Server, what: What) -> Result<Duration, String> {
    let mut command = command(point, server, what)?;
    // Settings of whoever runs this must not count.
    command.env("HOME", &point.bench.scratch).current_dir(&point.bench.scratch);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let done = command.output().map_err(|error| format!("{}: {error}", point.subject.name))?;
    let took = start.elapsed();
    let said = String::from_utf8_lossy(&done.stdout);
    let expected = if what == What::Card { "echo" } else { "TASK_STATE_" };
    if !done.status.success() || !said.contains(expected) {
        let errors = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{}: {} {said}{errors}", point.subject.name, done.status));
    }
    Ok(took)
}

fn command(point: &Point<'_>, server: &Server, what: What) -> Result<Command, String> {
    let bench = point.bench;
    let url = format!("http://{}", server.target.address);
    Ok(match (point.subject.name, what) {
        ("baton-command", what) => {
            let binary = bench.baton.as_deref().ok_or("no baton: --baton is not given")?;
            let mut command = Command::new(binary);
            match what {
                What::Card => command.args(["card", "get", &url]),
                What::Send => command.args(["send", &url, wire::TEXT, "--async"]),
            };
            command
        }
        ("curl", what) => {
            let mut command = Command::new("curl");
            command.args(["-sS", &format!("{url}/.well-known/agent-card.json")]);
            if what == What::Send {
                let body =
                    wire::send("SendMessage", wire::TEXT, r#","configuration":{"returnImmediately":true}"#);
                command.args(["--next", "-sS", &format!("{url}/"), "-H", "A2A-Version: 1.0"]);
                command.args(["-H", "Content-Type: application/json", "-d", &body]);
            }
            command
        }
        (_, what) => {
            let tools = bench.tools.as_deref().ok_or("no environments: --tools is not given")?;
            let mut command = Command::new(tools.join("python/bin/python"));
            command.arg(bench.sources.join("python/client.py"));
            match what {
                What::Card => command.args(["card", &url]),
                What::Send => command.args(["send", &url, wire::TEXT]),
            };
            command
        }
    })
}

/// Processor time of all children that have ended, in hundredths of a second.
fn cpu_of_children() -> Result<Duration, String> {
    const FILE: &str = "/proc/self/stat";
    let text = fs::read_to_string(Path::new(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    // Behind the name, which may hold anything: the fields from the third on. The children's are the 16th and 17th.
    let (_, fields) = text.rsplit_once(')').ok_or("a strange /proc")?;
    let ticks: Option<u64> =
        fields.split_whitespace().skip(13).take(2).map(|field| field.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(10 * ticks.ok_or("a strange /proc")?))
}
