//! The folders: the repository, cargo's target folder, the cache of tools.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

pub struct Workspace {
    pub root: PathBuf,
    /// Cargo's target folder, which `CARGO_TARGET_DIR` or a config file may change.
    pub target: PathBuf,
    /// Tools that setup installs; shared by all checkouts of one user.
    pub tools: PathBuf,
}

impl Workspace {
    pub fn find() -> Result<Self, String> {
        // Found at run time, since checkouts that share a target folder share this binary.
        let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or(env!("CARGO_MANIFEST_DIR").to_owned());
        let root = Path::new(&manifest).parent().ok_or("xtask lies in no workspace")?;
        let metadata = process::output(
            Command::new(cargo_path())
                .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
                .current_dir(root),
        )?;
        let target = target_directory(&metadata).ok_or("cargo metadata names no target_directory")?;
        let tools = match env::var_os("BATON_TOOLS") {
            Some(dir) => PathBuf::from(dir),
            None => PathBuf::from(env::var_os("HOME").ok_or("neither BATON_TOOLS nor HOME is set")?)
                .join(".cache/baton-tools"),
        };
        Ok(Self { root: root.to_owned(), target, tools })
    }

    /// The folder of this checkout's test results, also if several checkouts share `CARGO_TARGET_DIR`; nextest does the
    /// same.
    pub fn results(&self) -> PathBuf {
        self.root.join("target")
    }

    /// A command in the repository that finds our own tools first.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.tools.join("bin")).chain(env::split_paths(&path));
        command.env("PATH", env::join_paths(dirs).expect("a folder of PATH holds a separator"));
        if !colours() {
            command.env("CARGO_TERM_COLOR", "never");
        }
        command.current_dir(&self.root);
        command
    }

    pub fn cargo(&self, args: &[&str]) -> Command {
        let mut command = self.command(&cargo_path());
        command.args(args);
        command
    }
}

/// Whether to use colours: not in CI, not in a pipe.
pub fn colours() -> bool {
    use std::io::IsTerminal;
    env::var_os("CI").is_none() && std::io::stdout().is_terminal()
}

/// The cargo that runs xtask, so that a toolchain override applies to every stage.
fn cargo_path() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Reads one string member of cargo's metadata; a JSON parser would take longer to build than all of xtask.
fn target_directory(metadata: &str) -> Option<PathBuf> {
    let (_, rest) = metadata.split_once("\"target_directory\":\"")?;
    let (path, _) = rest.split_once('"')?;
    Some(PathBuf::from(path.replace("\\\\", "\\")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_directory_is_read_from_metadata() {
        let metadata = r#"{"packages":[],"target_directory":"/somewhere/target","version":1}"#;
        assert_eq!(target_directory(metadata), Some(PathBuf::from("/somewhere/target")));
        assert_eq!(target_directory("{}"), None);
    }
}
