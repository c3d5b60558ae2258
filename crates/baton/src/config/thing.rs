//! What is served, for the default store to be named after: the demo agent, a program, or the agents of a file. Each has a
//! file of its own, so that none lists another's tasks or answers a message with what another one said.

use std::path::{Component, Path, PathBuf};

use super::schema::Config;

/// Where default stores are, in the working folder.
const FOLDER: &str = "./baton-data";

/// The demo agent's. Before there was a file for each thing, it was everybody's.
pub(crate) const DEMO_STORE: &str = "./baton-data/demo.db";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Thing<'a> {
    Demo,
    /// The command, as typed.
    Program(&'a str),
    /// A file that has agents in it.
    File(&'a Path),
}

impl<'a> Thing<'a> {
    pub(crate) fn of(config: &Config, program: Option<&'a str>, file: Option<&'a Path>) -> Self {
        let agents = !config.agents.is_empty() || !config.skills.is_empty();
        match (program, file) {
            (Some(program), _) => Thing::Program(program),
            (None, Some(file)) if agents => Thing::File(file),
            _ => Thing::Demo,
        }
    }

    /// Its file. What two things may have in common, a program's name or a file's, is told apart by a hash of the whole.
    pub(crate) fn store(self) -> PathBuf {
        let name = match self {
            Thing::Demo => return PathBuf::from(DEMO_STORE),
            Thing::Program(typed) => {
                let name = crate::agents::exec::name(typed);
                format!("{}-{:08x}.db", plain(&name), hash(typed.trim().as_bytes()))
            }
            Thing::File(file) => {
                let file = below_here(file);
                let name = plain(&file.file_name().unwrap_or_default().to_string_lossy());
                match file.components().count() {
                    0 | 1 => format!("{name}.db"),
                    _ => format!("{name}-{:08x}.db", hash(file.as_os_str().as_encoded_bytes())),
                }
            }
        };
        Path::new(FOLDER).join(name)
    }
}

/// The same file is the same, whether it is named from here or from the root.
fn below_here(file: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let below = file.strip_prefix(&here).unwrap_or(file);
    below.components().filter(|part| *part != Component::CurDir).collect()
}

/// What every file system and every shell takes as it is.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.trim_start_matches('.').chars().take(40).map(plain).collect();
    if name.is_empty() { "agent".to_owned() } else { name }
}

/// FNV-1a. It names files, so it stays as it is.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(typed: &str) -> String {
        Thing::Program(typed).store().display().to_string()
    }

    /// Tasks are found again by these names: they stay.
    #[test]
    fn each_thing_has_a_file_of_its_own() {
        assert_eq!(Thing::Demo.store(), Path::new("./baton-data/demo.db"));
        assert_eq!(program("python3 shout.py"), "./baton-data/shout-194bf432.db");
        assert_eq!(program(" python3 shout.py "), program("python3 shout.py"));
        for (one, other) in [
            ("tr a-z A-Z", "tr A-Z a-z"),
            ("a/greet.py", "b/greet.py"),
            ("python3 greet.py", "node greet.js"),
            ("demo", "demo.py"),
        ] {
            assert_ne!(program(one), program(other));
        }
        assert_ne!(program("demo"), Thing::Demo.store().display().to_string());
        let file = |path: &str| Thing::File(Path::new(path)).store().display().to_string();
        assert_eq!(file("baton.toml"), "./baton-data/baton.toml.db");
        assert_eq!(file("./baton.toml"), "./baton-data/baton.toml.db");
        assert_eq!(file("demo.toml"), "./baton-data/demo.toml.db");
        let here = std::env::current_dir().unwrap();
        assert_eq!(file(here.join("baton.toml").to_str().unwrap()), "./baton-data/baton.toml.db");
        assert_ne!(file("a/baton.toml"), file("b/baton.toml"));
        assert!(file("/etc/baton/agents.toml").starts_with("./baton-data/agents.toml-"));
        assert!(
            program("./wild name; rm -rf").starts_with("./baton-data/wild-"),
            "{}",
            program("./wild name; rm -rf")
        );
    }
}
