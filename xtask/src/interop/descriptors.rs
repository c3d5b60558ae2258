//! The messages of gRPC against the descriptors inside the official Python packages: `interop/python/descriptors.py`, with
//! the packages of 1.0 and of 0.3.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::checks::{MESSAGE_CHECKS, unexpected};
use super::clients::{CLIENTS, Client};
use super::environments;
use crate::workspace::Workspace;

const SCRIPT: &str = "interop/python/descriptors.py";

/// The clients whose packages have descriptors, with the names of those.
const PACKAGES: &[(&str, &str)] = &[("python-1.3.0", "lf.a2a.v1"), ("python-0.3.26", "a2a.v1")];

/// The clients with their packages of messages, in the order of the page's rows.
pub fn clients() -> impl Iterator<Item = (&'static Client, &'static str)> {
    PACKAGES.iter().map(|(name, messages)| {
        let client = CLIENTS.iter().find(|client| client.name == *name).expect("it is in the list");
        (client, *messages)
    })
}

/// The file with the output of a run.
pub fn results(folder: &Path, client: &Client) -> PathBuf {
    folder.join(format!("messages.{}.txt", client.name))
}

pub fn run(workspace: &Workspace, folder: &Path) -> Result<(), String> {
    let mut surprises = Vec::new();
    for (client, messages) in clients() {
        let results = results(folder, client);
        let log = results.with_extension("log");
        let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let done = environments::command_for(workspace, client, &workspace.root.join(SCRIPT))
            .arg(messages)
            .stdin(Stdio::null())
            .stderr(stderr)
            .output()
            .map_err(|e| format!("{SCRIPT}: {e}"))?;
        let output = String::from_utf8_lossy(&done.stdout).into_owned();
        fs::write(&results, &output).map_err(|e| format!("{}: {e}", results.display()))?;
        println!("\n{}, messages of gRPC\n{}", client.package, output.trim_end());
        let found = unexpected(client, MESSAGE_CHECKS, &output);
        if !found.is_empty() {
            println!("{}", fs::read_to_string(&log).unwrap_or_default().trim_end());
        }
        surprises.extend(found);
    }
    match surprises.len() {
        0 => Ok(()),
        _ => Err(format!("messages of gRPC, not as expected:\n  {}", surprises.join("\n  "))),
    }
}

/// How many facts of the descriptors agreed, and how many golden messages: what the script notes.
pub fn counted(output: &str) -> Vec<&str> {
    output.lines().filter_map(|line| line.strip_prefix("note ")).collect()
}
