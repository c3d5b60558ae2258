//! Our client against agents of other people's SDKs: `crates/baton-client/examples/tour.rs` makes its checks by every
//! interface of the agent's card, first with the agent as it is, then through a [`gate`](super::gate) with TLS that wants a
//! credential; then the client commands make theirs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;

use super::auth::site::certificates;
use super::checks::{CLIENT_CHECKS, Check, GATE_CHECKS, Verdict, verdicts};
use super::clients::{Client, Known};
use super::gate::{Credential, Gate};
use super::third_party::agents::{self, JS_0_3, Running, ThirdParty};
use super::{our_commands, page};
use crate::process::run as execute;
use crate::workspace::Workspace;

/// An agent, and what our client has to manage with it.
struct Server {
    agent: &'static ThirdParty,
    /// The interfaces, as the tour names them. An interface that is missing fails the run.
    interfaces: &'static [&'static str],
    /// Whether `cargo xtask test` runs it; the others run with `--all`.
    tested: bool,
    /// What the agent cannot do. A failure that is not listed fails the run, and so does a listed one that passes.
    known: &'static [Known],
}

/// With the agent as it is, and through a gate.
const WAYS: [Option<Credential>; 3] = [None, Some(Credential::ApiKey), Some(Credential::Bearer)];

/// Of the Rust SDKs, whose agents here have no gRPC.
const V1: &[&str] = &["JSON-RPC 1.0", "HTTP+JSON 1.0"];
const V0_3: &[&str] = &["JSON-RPC 0.3", "HTTP+JSON 0.3", "gRPC 0.3"];
const BOTH: &[&str] =
    &["JSON-RPC 1.0", "HTTP+JSON 1.0", "gRPC 1.0", "JSON-RPC 0.3", "HTTP+JSON 0.3", "gRPC 0.3"];

const SERVERS: &[Server] = &[
    Server {
        agent: &agents::PYTHON_1_3,
        interfaces: BOTH,
        tested: true,
        known: &[Known {
            binding: "HTTP+JSON 0.3",
            check: "p09_removes_a_webhook",
            reason: "the SDK's compatibility layer has no DELETE route (404)",
        }],
    },
    Server {
        agent: &agents::PYTHON_0_3,
        interfaces: V0_3,
        tested: true,
        known: &[
            Known {
                binding: "HTTP+JSON 0.3",
                check: "p09_lists_webhooks",
                reason: "the SDK has the route, but its handler raises `NotImplementedError` (500)",
            },
            Known {
                binding: "HTTP+JSON 0.3",
                check: "p09_removes_a_webhook",
                reason: "the SDK has no DELETE route (405)",
            },
            Known {
                binding: "gRPC 0.3",
                check: "p09_subscribes_and_cancels",
                reason: "before the task's next event the SDK sends nothing to a subscriber, not even headers; our client takes \
                         that for no answer",
            },
            Known {
                binding: "gRPC 0.3",
                check: "p09_lists_webhooks",
                reason: "the SDK's handler lacks the method (UNIMPLEMENTED)",
            },
            Known {
                binding: "gRPC 0.3",
                check: "p09_removes_a_webhook",
                reason: "the SDK's handler lacks the method (UNIMPLEMENTED)",
            },
        ],
    },
    Server { agent: &agents::JS_1_3, interfaces: BOTH, tested: true, known: &[] },
    Server { agent: &JS_0_3, interfaces: V0_3, tested: false, known: &[] },
    Server { agent: &agents::A2A_SERVER_LF, interfaces: V1, tested: false, known: &[] },
    Server { agent: &agents::A2A_PROTOCOL_SDK, interfaces: V1, tested: false, known: &[] },
];

fn chosen(all: bool) -> impl Iterator<Item = &'static Server> {
    SERVERS.iter().filter(move |server| all || server.tested)
}

/// The packages of the agents that the test command runs.
pub fn tested_packages() -> Vec<&'static Client> {
    agents::clients(&chosen(false).map(|server| server.agent).collect::<Vec<_>>())
}

/// Runs the tour with each agent, all at once: agents mostly wait.
pub fn run(workspace: &Workspace, folder: &Path, all: bool) -> Result<(), String> {
    let third_party: Vec<&ThirdParty> = chosen(all).map(|server| server.agent).collect();
    crate::setup::clients(workspace, &agents::clients(&third_party))?;
    agents::build(workspace, &third_party)?;
    // The stage `nextest` has built it with these features.
    let programs = ["--example", "tour", "--example", "cli_tour", "--bin", "baton"];
    execute(workspace.cargo(&["build", "--workspace", "--locked"]).args(programs))?;
    let folder = folder.join("our-client");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    certificates(&folder)?;
    for (server, way) in chosen(all).flat_map(|server| WAYS.map(|way| (server, way))) {
        // Remove results of an earlier run.
        save(&results(&folder, server, way), "")?;
    }
    our_commands::forget(&folder)?;
    let ended: Vec<Result<Vec<String>, String>> = thread::scope(|scope| {
        let folder = &folder;
        let runs: Vec<_> =
            chosen(all).map(|server| scope.spawn(move || run_one(workspace, folder, server))).collect();
        runs.into_iter().map(|run| run.join().unwrap_or(Err("a worker panicked".to_owned()))).collect()
    });
    let mut surprises = Vec::new();
    for ended in ended {
        surprises.extend(ended?);
    }
    match surprises.len() {
        0 => Ok(()),
        _ => Err(format!("our client, not as expected:\n  {}", surprises.join("\n  "))),
    }
}

impl Server {
    fn has_grpc(&self) -> bool {
        self.interfaces.iter().any(|interface| is_grpc(interface))
    }

    /// Those that a run reaches.
    fn reached(&self, way: Option<Credential>) -> impl Iterator<Item = &'static str> {
        // The gate speaks HTTP/1, and takes the addresses of gRPC from the card.
        self.interfaces.iter().copied().filter(move |interface| way.is_none() || !is_grpc(interface))
    }
}

fn is_grpc(interface: &str) -> bool {
    interface.starts_with("gRPC")
}

fn run_one(workspace: &Workspace, folder: &Path, server: &Server) -> Result<Vec<String>, String> {
    let flags: &[&str] = if server.has_grpc() { &["--grpc"] } else { &[] };
    let running = Running::start(workspace, server.agent, folder, flags)?;
    let mut surprises = Vec::new();
    for way in WAYS {
        surprises.extend(run_way(workspace, folder, server, &running, way)?);
    }
    drop(running);
    if our_commands::covers(server.agent) {
        // Without gRPC: it is at a port of its own, where the commands send no credential unless each is told to.
        let running = Running::start(workspace, server.agent, folder, &[])?;
        surprises.extend(our_commands::run_one(workspace, folder, server.agent, &running.url())?);
    }
    Ok(surprises)
}

fn run_way(
    workspace: &Workspace,
    folder: &Path,
    server: &Server,
    running: &Running,
    way: Option<Credential>,
) -> Result<Vec<String>, String> {
    let agent = server.agent;
    let gate =
        way.map(|wants| Gate::start(workspace, folder, agent.name, running.port(), wants)).transpose()?;
    let results = results(folder, server, way);
    let log = results.with_extension("tour.log");
    let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let mut tour = std::process::Command::new(workspace.target.join("debug/examples/tour"));
    match &gate {
        Some(gate) => tour.args(&gate.arguments),
        None => tour.arg(running.url()),
    };
    // Behind the gate, too, the agent knows its users by their tokens.
    if let Some(token) = agent.token().filter(|_| way != Some(Credential::Bearer)) {
        tour.args(["--bearer", token]);
    }
    let done = tour.stdin(Stdio::null()).stderr(stderr).output().map_err(|e| format!("tour: {e}"))?;
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    save(&results, &output)?;
    println!(
        "\nour client, {}{}\n{}",
        agent.package,
        behind(way),
        with_known_marked(server, output.trim_end())
    );
    let mut surprises: Vec<String> =
        server.reached(way).flat_map(|interface| surprises(server, interface, way, &output)).collect();
    surprises.extend(unlisted(server, &output));
    if !surprises.is_empty() {
        println!("{}", fs::read_to_string(&log).unwrap_or_default().trim_end());
    }
    Ok(surprises)
}

/// The output with another word for what the agent is known not to do: who looks for a failure should find none.
fn with_known_marked(server: &Server, output: &str) -> String {
    let (mut interface, mut marked) = ("", String::with_capacity(output.len()));
    for line in output.lines() {
        interface = if BOTH.contains(&line) { line } else { interface };
        let rest = line.strip_prefix("FAIL ").filter(|rest| {
            let check = rest.split(':').next().unwrap_or_default();
            server.known.iter().any(|known| known.binding == interface && known.check == check)
        });
        // Writing to a String cannot fail.
        let _ = match rest {
            Some(rest) => writeln!(marked, "known {rest}"),
            None => writeln!(marked, "{line}"),
        };
    }
    marked.trim_end().to_owned()
}

/// How a run is called, behind the name of its agent.
fn behind(way: Option<Credential>) -> String {
    way.map(|wants| format!(", {} and TLS", wants.shown())).unwrap_or_default()
}

/// The checks of a run, in the order in which they are made.
fn checks(way: Option<Credential>) -> impl Iterator<Item = &'static Check> {
    CLIENT_CHECKS.iter().chain(GATE_CHECKS.iter().filter(move |_| way.is_some()))
}

fn surprises(server: &Server, interface: &str, way: Option<Credential>, output: &str) -> Vec<String> {
    let name = format!("{}{}", server.agent.name, behind(way));
    let known = |check: &str| server.known.iter().any(|k| k.binding == interface && k.check == check);
    let told = verdicts(section(output, interface));
    let mut found: Vec<String> = told
        .iter()
        .filter_map(|(check, verdict)| match verdict {
            Verdict::Failed(reason) if !known(check) => {
                Some(format!("{name} {interface}: {check}: {reason}"))
            }
            Verdict::Passed if known(check) => {
                Some(format!("{name} {interface}: {check} passes, but is listed as failing"))
            }
            _ => None,
        })
        .collect();
    let expected = checks(way).count();
    if told.len() != expected {
        found.push(format!("{name} {interface}: {} of {expected} checks ran", told.len()));
    }
    found
}

/// Interfaces that nobody expects.
fn unlisted(server: &Server, output: &str) -> Vec<String> {
    let others = BOTH.iter().filter(|interface| !server.interfaces.contains(interface));
    others
        .filter(|interface| !section(output, interface).is_empty())
        .map(|interface| format!("{} {interface}: is not in the list of interfaces", server.agent.name))
        .collect()
}

/// What the tour said about one interface.
pub fn section<'a>(output: &'a str, interface: &str) -> &'a str {
    let is_heading = |line: &str| BOTH.contains(&line.trim_end());
    let (mut start, mut at) = (None, 0);
    for line in output.split_inclusive('\n') {
        match start {
            None if line.trim_end() == interface => start = Some(at + line.len()),
            Some(start) if is_heading(line) => return &output[start..at],
            _ => {}
        }
        at += line.len();
    }
    start.map_or("", |start| &output[start..])
}

/// The results of the tested agents, as `(suite, output)`.
pub fn tested_results(folder: &Path) -> Vec<(String, String)> {
    let folder = folder.join("our-client");
    chosen(false)
        .flat_map(|server| WAYS.map(|way| (server, way)))
        .flat_map(|(server, way)| {
            let output = fs::read_to_string(results(&folder, server, way)).unwrap_or_default();
            server.reached(way).map(move |interface| {
                let suite = format!("baton-client, {} {interface}{}", server.agent.name, behind(way));
                (suite, section(&output, interface).to_owned())
            })
        })
        .collect()
}

/// The section of `docs/interop.md`.
pub fn render(page: &mut String, folder: &Path) {
    let folder = folder.join("our-client");
    page.push_str(
        "\n\nThe library `baton-client` against agents of other people's SDKs (`interop/servers`), unmodified, as their \
         documentation\nshows them. `cargo xtask interop --client --all --write` writes this part alone. `–`: not in this \
         version, or not on the\nagent's card. The client commands are checked with a2a-sdk 1.3.0 and @a2a-js/sdk 1.3.0 by both bindings of 1.0: \
         [what passed](cli-compliance.yaml).\n\n",
    );
    let columns: Vec<&str> = CLIENT_CHECKS.iter().map(|check| check.shown).collect();
    let mut fails = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(page, "| agent | interface | {} |", columns.join(" | "));
    let _ = writeln!(page, "|---|---|{}", ":-:|".repeat(columns.len()));
    for server in SERVERS {
        let output = fs::read_to_string(results(&folder, server, None)).unwrap_or_default();
        let package = server.agent.package;
        for interface in server.interfaces {
            let told = section(&output, interface);
            let cells: Vec<&str> = CLIENT_CHECKS.iter().map(|check| page::cell(told, check.name)).collect();
            let _ = writeln!(page, "| {} | {interface} | {} |", bold(server), cells.join(" | "));
        }
        for Known { binding, check, reason } in server.known {
            let _ = writeln!(fails, "- {package}, {binding}, {}: {reason}", page::shown(check));
        }
    }
    page.push('\n');
    page::legend(page, CLIENT_CHECKS);
    page.push_str("\nWhat fails, and why:\n\n");
    page.push_str(&fails);
    render_gates(page, &folder);
}

/// The same agents behind gates.
fn render_gates(page: &mut String, folder: &Path) {
    page.push_str(
        "\nThe same agents behind a gate of ours (`interop/servers/gate.py`) that terminates TLS with a certificate made for \
         the run\nand wants a credential for everything but the card, which it adds to the agent's card. The agents behind it \
         are as they\nwere; those with users get their own bearer token as well. `API key` and `bearer`: all the checks above \
         came out as they\ndid without the gate. It speaks HTTP/1, so gRPC is not behind it.\n\n",
    );
    let columns = Credential::ALL.iter().map(|wants| wants.shown());
    let columns: Vec<&str> = columns.chain(GATE_CHECKS.iter().map(|check| check.shown)).collect();
    let _ = writeln!(page, "| agent | interface | {} |", columns.join(" | "));
    let _ = writeln!(page, "|---|---|{}", ":-:|".repeat(columns.len()));
    for server in SERVERS {
        let output = |way| fs::read_to_string(results(folder, server, way)).unwrap_or_default();
        let gates = Credential::ALL.map(|wants| output(Some(wants)));
        let plain = output(None);
        for interface in server.reached(Some(Credential::ApiKey)) {
            let cells = |output: &str, checks: &[Check]| -> Vec<&'static str> {
                checks.iter().map(|check| page::cell(section(output, interface), check.name)).collect()
            };
            let usual = cells(&plain, CLIENT_CHECKS);
            let as_usual = gates.iter().map(|gate| match cells(gate, CLIENT_CHECKS) {
                told if told.contains(&"?") => "?",
                told if told == usual => "ok",
                _ => "**fails**",
            });
            let guards = GATE_CHECKS.iter().enumerate().map(|(at, _)| {
                let mut told = gates.iter().map(|gate| cells(gate, GATE_CHECKS)[at]);
                told.find(|cell| *cell != "ok").unwrap_or("ok")
            });
            let row: Vec<&str> = as_usual.chain(guards).collect();
            let _ = writeln!(page, "| {} | {interface} | {} |", bold(server), row.join(" | "));
        }
    }
    page.push('\n');
    page::legend(page, GATE_CHECKS);
}

/// The package, in bold if the test command runs it.
fn bold(server: &Server) -> String {
    let mark = if server.tested { "**" } else { "" };
    format!("{mark}{}{mark}", server.agent.package)
}

fn results(folder: &Path, server: &Server, way: Option<Credential>) -> PathBuf {
    let gate = way.map(|wants| format!(".{}", wants.word())).unwrap_or_default();
    folder.join(format!("{}{gate}.txt", server.agent.name))
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "JSON-RPC 1.0\nok p09_sends\nskip p09_streams: no\nHTTP+JSON 0.3\nFAIL p09_sends: why\n\
                          ok p09_removes_a_webhook\n";

    #[test]
    fn sections_are_told_apart() {
        assert_eq!(section(OUTPUT, "JSON-RPC 1.0"), "ok p09_sends\nskip p09_streams: no\n");
        assert_eq!(section(OUTPUT, "HTTP+JSON 0.3"), "FAIL p09_sends: why\nok p09_removes_a_webhook\n");
        assert_eq!(section(OUTPUT, "HTTP+JSON 1.0"), "");
    }

    #[test]
    fn what_is_not_listed_surprises_and_so_does_what_passes_although_listed() {
        let found = surprises(&SERVERS[0], "HTTP+JSON 0.3", None, OUTPUT);
        assert_eq!(found[0], "python-1.3.0 HTTP+JSON 0.3: p09_sends: why");
        assert!(found[1].ends_with("p09_removes_a_webhook passes, but is listed as failing"), "{found:?}");
        assert!(found[2].ends_with("2 of 12 checks ran"), "{found:?}");
        let gated = surprises(&SERVERS[0], "HTTP+JSON 0.3", Some(Credential::ApiKey), OUTPUT);
        assert_eq!(gated[2], "python-1.3.0, API key and TLS HTTP+JSON 0.3: 2 of 15 checks ran");
        assert_eq!(
            unlisted(&SERVERS[1], OUTPUT),
            ["python-0.3.26 JSON-RPC 1.0: is not in the list of interfaces"]
        );
    }

    #[test]
    fn grpc_is_not_behind_gates() {
        let (js, rust) = (&SERVERS[2], &SERVERS[4]);
        assert_eq!(js.reached(None).count(), BOTH.len());
        assert_eq!(js.reached(Some(Credential::Bearer)).filter(|interface| is_grpc(interface)).count(), 0);
        assert!(js.has_grpc() && !rust.has_grpc());
    }

    #[test]
    fn known_failures_do_not_look_like_failures() {
        let output =
            "JSON-RPC 0.3\nFAIL p09_removes_a_webhook: why\nHTTP+JSON 0.3\nFAIL p09_removes_a_webhook: why";
        assert_eq!(
            with_known_marked(&SERVERS[0], output),
            "JSON-RPC 0.3\nFAIL p09_removes_a_webhook: why\nHTTP+JSON 0.3\nknown p09_removes_a_webhook: why"
        );
    }

    #[test]
    fn known_failures_name_checks_and_interfaces_that_there_are() {
        for server in SERVERS {
            for known in server.known {
                assert!(CLIENT_CHECKS.iter().any(|check| check.name == known.check), "{}", known.check);
                assert!(server.interfaces.contains(&known.binding), "{}", known.binding);
            }
        }
    }
}
