//! The stage `deny`: licences, banned crates, sources; known vulnerabilities if the advisory database is installed.

use std::env;
use std::fs;
use std::path::PathBuf;

use crate::process::run;
use crate::workspace::Workspace;

pub fn check(workspace: &Workspace) -> Result<(), String> {
    run(&mut workspace.cargo(&["deny", "--locked", "check", "bans", "licenses", "sources"]))?;
    if has_advisory_database() {
        run(&mut workspace.cargo(&["deny", "--locked", "--offline", "check", "advisories"]))
    } else {
        println!("advisories: skipped, no advisory database here (`cargo deny fetch db` gets one)");
        Ok(())
    }
}

/// Tests must not depend on the network, so only an existing copy is used.
fn has_advisory_database() -> bool {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    home.and_then(|home| fs::read_dir(home.join("advisory-dbs")).ok())
        .is_some_and(|entries| entries.flatten().any(|entry| entry.path().join(".git").exists()))
}
