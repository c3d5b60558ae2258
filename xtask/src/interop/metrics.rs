//! Reads `/metrics` with the parsers of the official Prometheus library, and compares the values with the requests made
//! before.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;

use super::clients::{Client, Language};
use super::environments;
use crate::agent::{Agent, Build};
use crate::workspace::Workspace;

/// Not an A2A client: it only reads metrics.
pub static PARSER: Client = Client {
    name: "prometheus-client",
    package: "prometheus-client 0.26.0",
    language: Language::Python,
    stem: "metrics",
    bindings: &[],
    lacks: &[],
    tested: true,
    known: &[],
};

/// On a separate server, since requests of others would be counted, too.
pub fn run(workspace: &Workspace, folder: &Path, build: Build) -> Result<(), String> {
    let agent = Agent::start_with(workspace, folder, build, "metrics", &[])?;
    let log = folder.join("metrics.client.log");
    let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let done = environments::command(workspace, &PARSER)
        .args([agent.url().as_str(), "-"])
        .stdin(Stdio::null())
        .stderr(stderr)
        .output()
        .map_err(|e| format!("{}: {e}", PARSER.name))?;
    println!("\n{}, /metrics\n{}", PARSER.package, String::from_utf8_lossy(&done.stdout).trim_end());
    if done.status.success() {
        return Ok(());
    }
    println!("{}\n{}", std::fs::read_to_string(&log).unwrap_or_default().trim_end(), agent.log_tail(20));
    Err(format!("/metrics: {} ended with {}", PARSER.name, done.status))
}
