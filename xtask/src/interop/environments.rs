//! Installs the clients: a virtual environment or a folder with `node_modules` for each, outside the repository.
//!
//! An environment is complete if its stamp file has the requested packages; the stamp is written last.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::clients::{Client, Language};
use crate::process::{output, run as execute, succeeds};
use crate::setup::{apt_install, step};
use crate::workspace::Workspace;

/// The caller must hold the lock of the tools folder.
pub fn install(workspace: &Workspace, clients: &[&Client]) -> Result<(), String> {
    let speaks = |language| clients.iter().any(|client| client.language == language);
    if speaks(Language::Python) {
        step("python venv module", has_python(), || apt_install(&["python3", "python3-venv"]))?;
    }
    if speaks(Language::JavaScript) {
        step("node and npm", has_node(), || apt_install(&["nodejs", "npm"]))?;
    }
    for client in clients {
        let name = format!("client {}", client.name);
        step(&name, is_whole(workspace, client), || make(workspace, client))?;
    }
    Ok(())
}

/// A command that runs the client's script, without arguments.
pub fn command(workspace: &Workspace, client: &Client) -> Command {
    command_for(workspace, client, &client.script(workspace))
}

/// A command that runs another script with the client's packages.
pub fn command_for(workspace: &Workspace, client: &Client, script: &Path) -> Command {
    let folder = folder(workspace, client);
    let mut command = match client.language {
        Language::Python => Command::new(python(&folder)),
        Language::JavaScript => Command::new("node"),
    };
    // JavaScript scripts find their packages through this variable.
    command.current_dir(folder).arg(script);
    // Python must not write compiled files into the repository.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn has_python() -> bool {
    // The checks need Python 3.11; in Debian, ensurepip is in a separate package.
    let probe = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))";
    succeeds(Command::new("python3").args(["-c", probe]))
}

/// Node 18 is the first with `fetch`.
fn has_node() -> bool {
    let probe = "process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)";
    succeeds(Command::new("node").args(["-e", probe])) && output(Command::new("npm").arg("--version")).is_ok()
}

fn is_whole(workspace: &Workspace, client: &Client) -> bool {
    let stamped = fs::read_to_string(stamp(&folder(workspace, client)));
    stamped.is_ok() && stamped.ok() == wanted(workspace, client).ok()
}

fn make(workspace: &Workspace, client: &Client) -> Result<(), String> {
    let folder = folder(workspace, client);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    match client.language {
        Language::Python => make_venv(&folder, &list(workspace, client))?,
        Language::JavaScript => make_node_folder(&folder, &list(workspace, client))?,
    }
    fs::write(stamp(&folder), wanted(workspace, client)?).map_err(|e| format!("stamp: {e}"))
}

fn make_venv(folder: &Path, requirements: &Path) -> Result<(), String> {
    execute(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    execute(
        Command::new(python(folder))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(requirements),
    )
}

fn make_node_folder(folder: &Path, lock: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in [lock, &lock.with_file_name("package.json")] {
        let copy = folder.join(file.file_name().expect("a file has a name"));
        fs::copy(file, copy).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    execute(Command::new("npm").args(args).current_dir(folder))
}

/// The file that pins every package of the client.
fn list(workspace: &Workspace, client: &Client) -> PathBuf {
    workspace.root.join(match client.language {
        Language::Python => format!("interop/python/requirements/{}.txt", client.stem),
        Language::JavaScript => format!("interop/js/packages/{}/package-lock.json", client.stem),
    })
}

fn wanted(workspace: &Workspace, client: &Client) -> Result<String, String> {
    let list = list(workspace, client);
    fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))
}

fn folder(workspace: &Workspace, client: &Client) -> PathBuf {
    workspace.tools.join("clients").join(client.name)
}

fn python(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

fn stamp(folder: &Path) -> PathBuf {
    folder.join("installed.stamp")
}
