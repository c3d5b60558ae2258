//! The name of the default store, made from what is served: the demo agent, a program, or the agents of a file. Each
//! gets a file of its own, so that none lists the tasks of another, or takes a message for a repeat of a message to
//! another.

use std::path::{Component, Path, PathBuf};

use super::schema::Config;

/// The folder of default stores, in the working folder.
const FOLDER: &str = "./baton-data";

/// The demo agent's store. In earlier versions it was the default for all agents.
pub(crate) const DEMO_STORE: &str = "./baton-data/demo.db";

#[derive(Debug, Clone, Copy)]
pub(crate) enum Served<'a> {
    Demo,
    /// The command, as typed.
    Program(&'a str),
    /// A configuration file with agents.
    File(&'a Path),
}

impl<'a> Served<'a> {
    pub(crate) fn of(config: &Config, program: Option<&'a str>, file: Option<&'a Path>) -> Self {
        let agents = !config.agents.is_empty() || !config.skills.is_empty();
        match (program, file) {
            (Some(program), _) => Served::Program(program),
            (None, Some(file)) if agents => Served::File(file),
            _ => Served::Demo,
        }
    }

    /// The store's file. A hash of the whole command or path distinguishes programs or files of the same name.
    pub(crate) fn store(self) -> PathBuf {
        let name = match self {
            Served::Demo => return PathBuf::from(DEMO_STORE),
            Served::Program(typed) => {
                let name = crate::agents::exec::name(typed);
                format!("{}-{:08x}.db", plain(&name), hash(typed.trim().as_bytes()))
            }
            Served::File(file) => {
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

/// The other stores in the folder of this one.
pub(crate) fn others_than(store: &Path) -> Vec<PathBuf> {
    let folder = store.parent().unwrap_or(Path::new(""));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_other = |path: &PathBuf| path.extension().is_some_and(|end| end == "db") && path != store;
    let mut others: Vec<_> = files.filter(is_other).collect();
    others.sort();
    others
}

/// Makes an absolute path below the working folder relative, so that both forms name the same store.
fn below_here(file: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let below = file.strip_prefix(&here).unwrap_or(file);
    below.components().filter(|part| *part != Component::CurDir).collect()
}

/// Only characters that every file system and shell accepts without quotes.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let name: String = name.trim_start_matches('.').chars().take(40).map(plain).collect();
    if name.is_empty() { "agent".to_owned() } else { name }
}

/// FNV-1a. File names depend on it, so it must not change.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(typed: &str) -> String {
        Served::Program(typed).store().display().to_string()
    }

    /// Stores are found by these names, so they must not change.
    #[test]
    fn each_thing_has_a_file_of_its_own() {
        assert_eq!(Served::Demo.store(), Path::new("./baton-data/demo.db"));
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
        assert_ne!(program("demo"), Served::Demo.store().display().to_string());
        let file = |path: &str| Served::File(Path::new(path)).store().display().to_string();
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
