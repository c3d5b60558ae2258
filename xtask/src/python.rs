//! The Python side: a virtual environment with the pinned SDK, and its checks against our release binary.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::agent::Agent;
use crate::process::{run as execute, succeeds};
use crate::workspace::Workspace;

const VENV: &str = "py-a2a-1.3.0";
const REQUIREMENTS: &str = "interop/python/requirements.txt";

/// Runs interop/python/client_1_3.py; what it prints is kept for the mission page.
pub fn interop(workspace: &Workspace) -> Result<(), String> {
    let folder = workspace.results().join("interop");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let results = folder.join("python-client_1_3.txt");
    // Results of an earlier run must not stand for this one.
    let mut kept = File::create(&results).map_err(|e| format!("{}: {e}", results.display()))?;

    execute(&mut workspace.cargo(&["build", "--release", "--locked"]))?;
    let agent = Agent::start(workspace, &folder)?;
    let mut checks = Command::new(python(workspace))
        .arg(workspace.root.join("interop/python/client_1_3.py"))
        .arg(agent.url())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("python: {e}"))?;
    for line in BufReader::new(checks.stdout.take().expect("stdout is piped")).lines() {
        let line = line.map_err(|e| format!("output of the checks: {e}"))?;
        println!("{line}");
        writeln!(kept, "{line}").map_err(|e| format!("{}: {e}", results.display()))?;
    }
    let status = checks.wait().map_err(|e| format!("python: {e}"))?;
    if status.success() {
        return Ok(());
    }
    println!("-- the last lines of the server's log --\n{}", agent.log_tail(40));
    Err(format!("the checks ended with {status}"))
}

pub fn can_make_venv() -> bool {
    // The checks use what came with 3.11; Debian leaves ensurepip to a package of its own.
    let probe = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
    succeeds(Command::new("python3").args(["-c", probe]))
}

pub fn venv_ready(workspace: &Workspace) -> bool {
    let wanted = fs::read_to_string(workspace.root.join(REQUIREMENTS));
    let stamped = fs::read_to_string(stamp(workspace));
    python(workspace).exists() && stamped.is_ok() && stamped.ok() == wanted.ok()
}

pub fn make_venv(workspace: &Workspace) -> Result<(), String> {
    let venv = venv(workspace);
    let requirements = workspace.root.join(REQUIREMENTS);
    if venv.exists() {
        fs::remove_dir_all(&venv).map_err(|e| format!("{}: {e}", venv.display()))?;
    }
    execute(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    execute(
        Command::new(python(workspace))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(&requirements),
    )?;
    // Last, so that a stamp stands for a whole environment; it holds what was asked for.
    fs::copy(&requirements, stamp(workspace)).map_err(|e| format!("stamp: {e}"))?;
    Ok(())
}

fn venv(workspace: &Workspace) -> PathBuf {
    workspace.tools.join(VENV)
}

fn python(workspace: &Workspace) -> PathBuf {
    venv(workspace).join(Path::new("bin/python"))
}

fn stamp(workspace: &Workspace) -> PathBuf {
    venv(workspace).join("installed-requirements.txt")
}
