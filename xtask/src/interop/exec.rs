//! Runs the programs of `examples/exec` with `baton serve --exec`, called by an unmodified client: streams, a cancel
//! that must leave no process, and a kill of the server.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use super::clients::{CLIENTS, Client};
use super::environments;
use crate::agent::{Agent, Build};
use crate::workspace::Workspace;

const SCRIPT: &str = "interop/python/exec_agents.py";

struct Example {
    name: &'static str,
    file: &'static str,
    flags: &'static [&'static str],
}

const EXAMPLES: &[Example] = &[
    Example { name: "greet", file: "greet.py", flags: &[] },
    Example { name: "count", file: "count.sh", flags: &[] },
    Example { name: "ask", file: "ask.mjs", flags: &["--exec-input", "json", "--exec-output", "jsonl"] },
];

/// The official Python SDK.
pub fn client() -> &'static Client {
    CLIENTS.iter().find(|client| client.name == "python-1.3.0").expect("it is in the list")
}

/// The clients to install: the Python SDK, and one that brings Node for `ask.mjs`.
pub fn clients() -> Vec<&'static Client> {
    CLIENTS.iter().filter(|client| ["python-1.3.0", "js-1.3.0"].contains(&client.name)).collect()
}

/// Runs all examples in parallel, since each mostly waits.
pub fn run(workspace: &Workspace, folder: &Path, build: Build) -> Result<(), String> {
    let failed: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> = EXAMPLES
            .iter()
            .map(|example| scope.spawn(|| run_one(workspace, folder, build, example)))
            .collect();
        runs.into_iter()
            .filter_map(|run| run.join().unwrap_or(Err("a worker panicked".to_owned())).err())
            .collect()
    });
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

fn run_one(workspace: &Workspace, folder: &Path, build: Build, example: &Example) -> Result<(), String> {
    let Example { name, file, flags } = example;
    let program = workspace.root.join("examples/exec").join(file);
    let program = program.to_str().ok_or("the path of the repository is not text")?;
    let agent = Agent::start_with(
        workspace,
        folder,
        build,
        &format!("exec-{name}"),
        &[&["--exec", program], *flags].concat(),
    )?;
    let log = folder.join(format!("exec-{name}.client.log"));
    let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let done = environments::command_for(workspace, client(), &workspace.root.join(SCRIPT))
        .args([agent.url().as_str(), *name])
        .env("SERVER_PID", agent.pid().to_string())
        .stdin(Stdio::null())
        .stderr(stderr)
        .output()
        .map_err(|e| format!("{SCRIPT}: {e}"))?;
    println!(
        "\n{}, `baton serve --exec {file}`\n{}",
        client().package,
        String::from_utf8_lossy(&done.stdout).trim_end()
    );
    if done.status.success() {
        return Ok(());
    }
    let told = std::fs::read_to_string(&log).unwrap_or_default();
    let lines: Vec<&str> = told.lines().collect();
    println!("{}\n{}", lines[lines.len().saturating_sub(20)..].join("\n"), agent.log_tail(20));
    Err(format!("--exec {file}: the client ended with {}", done.status))
}
