//! The client commands with agents of other people's SDKs: `crates/baton/examples/cli_tour` runs the binary. Its checks are
//! named after requirements of the CLI specification, and are evidence in `docs/cli-compliance.yaml`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::checks::{Verdict, verdicts};
use super::our_client::section;
use super::third_party::agents::{self, ThirdParty};
use crate::workspace::Workspace;

/// The agents that have all that the checks need: both bindings, streams, webhooks, an extended card, and two users.
const AGENTS: &[&ThirdParty] = &[&agents::PYTHON_1_3, &agents::JS_1_3];

const BINDINGS: &[&str] = &["JSON-RPC 1.0", "HTTP+JSON 1.0"];

pub fn covers(agent: &ThirdParty) -> bool {
    AGENTS.iter().any(|known| known.name == agent.name)
}

/// Runs the checks with an agent; returns what failed.
pub fn run_one(
    workspace: &Workspace,
    folder: &Path,
    agent: &ThirdParty,
    url: &str,
) -> Result<Vec<String>, String> {
    let results = results(folder, agent);
    let log = results.with_extension("log");
    let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let debug = workspace.target.join("debug");
    let done = Command::new(debug.join("examples/cli_tour"))
        .arg(debug.join("baton"))
        .arg(url)
        .args(agent.bearer())
        .stdin(Stdio::null())
        .stderr(stderr)
        .output()
        .map_err(|e| format!("cli_tour: {e}"))?;
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    fs::write(&results, &output).map_err(|e| format!("{}: {e}", results.display()))?;
    println!("\nour commands, {}\n{}", agent.package, output.trim_end());
    let surprises = surprises(agent.name, &output);
    if !surprises.is_empty() {
        println!("{}", fs::read_to_string(&log).unwrap_or_default().trim_end());
    }
    Ok(surprises)
}

fn surprises(name: &str, output: &str) -> Vec<String> {
    let expected = output.lines().find_map(|line| line.strip_suffix(" checks by each binding")?.parse().ok());
    let mut found = Vec::new();
    for binding in BINDINGS {
        let told = verdicts(section(output, binding));
        if Some(told.len()) != expected {
            found.push(format!("{name} {binding}: the checks of the commands did not come to their end"));
        }
        found.extend(told.iter().filter_map(|(check, verdict)| match verdict {
            Verdict::Failed(reason) => Some(format!("{name} {binding}: {check}: {reason}")),
            Verdict::Passed | Verdict::Skipped(_) => None,
        }));
    }
    found
}

/// Removes the results of an earlier run.
pub fn forget(folder: &Path) -> Result<(), String> {
    AGENTS.iter().try_for_each(|agent| {
        let results = results(folder, agent);
        fs::write(&results, "").map_err(|e| format!("{}: {e}", results.display()))
    })
}

/// The results as `(agent and binding, output)`; those that did not run are empty.
pub fn last_results(folder: &Path) -> Vec<(String, String)> {
    let folder = &folder.join("our-client");
    let runs = AGENTS.iter().flat_map(|agent| BINDINGS.iter().map(move |binding| (agent, binding)));
    runs.map(|(agent, binding)| {
        let output = fs::read_to_string(results(folder, agent)).unwrap_or_default();
        (format!("{} {binding}", agent.name), section(&output, binding).to_owned())
    })
    .collect()
}

fn results(folder: &Path, agent: &ThirdParty) -> PathBuf {
    folder.join(format!("{}.commands.txt", agent.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_missing_checks_surprise() {
        let output = "JSON-RPC 1.0\nok p09_cli_send_001_x\nok p09_cli_send_002_x\nHTTP+JSON 1.0\nFAIL p09_cli_send_001_x: why\n\
                      2 checks by each binding\n";
        let found = surprises("some", output);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("HTTP+JSON 1.0: the checks of the commands did not come"), "{found:?}");
        assert_eq!(found[1], "some HTTP+JSON 1.0: p09_cli_send_001_x: why");
        assert_eq!(surprises("some", "").len(), BINDINGS.len());
    }
}
