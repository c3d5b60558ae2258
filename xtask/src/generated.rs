//! Pages that are made from test results and committed.

use std::fs;

use crate::workspace::Workspace;

/// Fails, and shows the difference, if the committed page is not `fresh`. `command` is the one that writes it.
pub fn compare(workspace: &Workspace, page: &str, fresh: &str, command: &str) -> Result<(), String> {
    let committed = workspace.root.join(page);
    if fs::read_to_string(&committed).unwrap_or_default() == fresh {
        return Ok(());
    }
    let written = workspace.results().join(committed.file_name().unwrap_or_default());
    fs::write(&written, fresh).map_err(|e| format!("{}: {e}", written.display()))?;
    let mut diff = workspace.command("git");
    diff.args(["--no-pager", "diff", "--no-index", "--unified=1", "--", page]).arg(&written);
    // The exit code only says that the files differ.
    let _ = diff.status();
    Err(format!("{page} differs from the test results; `cargo xtask {command} --write` writes it"))
}
