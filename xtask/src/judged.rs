//! `cargo xtask judge-clients`: tests the official SDKs as clients with `baton test --as-server`.
//!
//! The known failures of each are listed in a file beside its script, with the reasons; any other failure fails the
//! run, and so does a listed rule that passes. The page about it, `docs/results/clients.md`, is written by hand: every
//! failure was checked.

use std::fs;

use crate::interop::clients::CLIENTS;
use crate::interop::environments;
use crate::process::run as execute;
use crate::setup;
use crate::workspace::Workspace;

/// A client, the generation it is judged in, and its script.
const JUDGED: &[(&str, &str, &str)] = &[
    ("python-1.3.0", "1.0", "interop/python/judged_1_3.py"),
    ("js-1.3.0", "1.0", "interop/js/judged_1_3.mjs"),
    ("python-0.3.26", "0.3", "interop/python/judged_0_3.py"),
    ("python-1.3.0", "0.3", "interop/python/judged_1_3.py"),
    ("js-1.3.0", "0.3", "interop/js/judged_1_3.mjs"),
];

pub fn run(workspace: &Workspace) -> Result<(), String> {
    let wanted = |name: &str| CLIENTS.iter().find(|client| client.name == name);
    let clients: Vec<_> =
        CLIENTS.iter().filter(|client| JUDGED.iter().any(|(name, ..)| *name == client.name)).collect();
    setup::clients(workspace, &clients)?;
    execute(&mut workspace.cargo(&["build", "--locked"]))?;
    let folder = workspace.results().join("judged");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut surprises = Vec::new();
    for (name, generation, script) in JUDGED {
        let client = wanted(name).ok_or_else(|| format!("no client `{name}`"))?;
        let driver = environments::command_for(workspace, client, &workspace.root.join(script));
        let which = format!("{name}_{generation}");
        let mut judge = workspace.command(&workspace.target.join("debug/baton").display().to_string());
        judge.args([
            "test",
            "--as-server",
            "--parallel",
            "2",
            "--timeout",
            "180s",
            "--generation",
            generation,
            "--baseline",
        ]);
        judge.arg(workspace.root.join(format!("interop/judged/{which}.txt")));
        for ending in ["html", "json"] {
            judge.arg("--report").arg(folder.join(format!("{which}.{ending}")));
        }
        judge.arg("--").arg(driver.get_program()).args(driver.get_args());
        // JavaScript scripts find their packages through this variable.
        judge.current_dir(driver.get_current_dir().unwrap_or(&workspace.root));
        judge.env("PYTHONDONTWRITEBYTECODE", "1");
        if let Err(reason) = execute(&mut judge) {
            surprises.push(format!("{which}: {reason}"));
        }
    }
    if surprises.is_empty() { Ok(()) } else { Err(surprises.join("\n")) }
}
