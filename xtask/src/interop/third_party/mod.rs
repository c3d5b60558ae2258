//! `cargo xtask interop --servers`: runs the lab on agents of third-party SDKs, and compares the failures with the list
//! of failures that were checked by hand.

pub mod agents;
mod page;
mod verdicts;

use std::fs;
use std::path::Path;

use crate::agent::Build;
use crate::lab::{self, Outcome};
use crate::process::run as execute;
use crate::setup;
use crate::workspace::Workspace;
use agents::{ALL, Running, ThirdParty};

/// Tests all agents, or those in `only`; `write` writes the page.
pub fn run(workspace: &Workspace, only: &[String], build: Build, write: bool) -> Result<(), String> {
    let chosen: Vec<&ThirdParty> =
        ALL.iter().filter(|agent| only.is_empty() || only.iter().any(|name| name == agent.name)).collect();
    let rows = verdicts::read(workspace)?;
    setup::clients(workspace, &agents::clients(&chosen))?;
    agents::build(workspace, &chosen)?;
    execute(&mut workspace.cargo(build.cargo_args()))?;
    let folder = workspace.results().join("servers/reports");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;

    let mut results = Vec::new();
    let mut surprises = Vec::new();
    for agent in chosen {
        let outcome = test(workspace, agent, &folder, build)?;
        surprises.extend(outcome.errors.iter().map(|error| format!("{}: the lab: {error}", agent.name)));
        surprises.extend(verdicts::surprises(&rows, agent.name, &outcome));
        results.push((agent, outcome));
    }
    if write {
        page::write(workspace, &results, &rows)?;
    }
    match surprises.len() {
        0 => Ok(()),
        _ => Err(format!(
            "not as interop/servers/verdicts.tsv says (reports are in {}):\n  {}",
            folder.display(),
            surprises.join("\n  ")
        )),
    }
}

pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|agent| agent.name).collect()
}

/// Starts the agent, tests it, stops it.
fn test(workspace: &Workspace, agent: &ThirdParty, folder: &Path, build: Build) -> Result<Outcome, String> {
    // Without gRPC: no failure over it was checked by hand yet.
    let running = Running::start(workspace, agent, folder, &[])?;
    println!("\n{}", agent.package);
    lab::test(workspace, build, &running.url(), agent.flags, folder, agent.name)
}
