//! Where settings come from: flags, then the environment, then a local file, then the user's own file.

use std::fmt;
use std::path::{Path, PathBuf};

use super::key::{Key, PREFIX};
use super::{dotenv, values};
use crate::client::error::CallError;

/// The user's own file, below the home folder on every system.
const GLOBAL_FILE: &str = ".config/a2a-cli/.env";

/// Variables with their values.
type Assignments = Vec<(String, String)>;

/// Where a value comes from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    BuiltIn,
    GlobalFile(PathBuf),
    /// `found`: by walking up from the working directory, not named by `--config`.
    LocalFile {
        path: PathBuf,
        found: bool,
    },
    Environment(String),
    Flag,
}

impl Source {
    /// Larger is stronger.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::BuiltIn => 0,
            Self::GlobalFile(_) => 1,
            Self::LocalFile { .. } => 2,
            Self::Environment(_) => 3,
            Self::Flag => 4,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::GlobalFile(path) | Self::LocalFile { path, .. } => write!(f, "file:{}", path.display()),
            Self::Environment(name) => write!(f, "env:{name}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

/// What the process was given. Not `Debug`: variables may be secrets.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// Variables with the client's prefix.
    pub(crate) variables: Assignments,
    pub(crate) folder: PathBuf,
    pub(crate) home: Option<PathBuf>,
}

impl Surroundings {
    pub(crate) fn of_process() -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        Surroundings {
            variables: variables.collect(),
            folder: std::env::current_dir().unwrap_or_default(),
            home: std::env::home_dir(),
        }
    }

    /// The folder of the user's own files for the client.
    pub(crate) fn own_folder(&self) -> Option<PathBuf> {
        self.home.as_ref().and_then(|home| Some(home.join(GLOBAL_FILE).parent()?.to_owned()))
    }
}

/// The values of one source.
struct Layer {
    source: fn(&Layer, Key) -> Source,
    path: PathBuf,
    values: Assignments,
}

impl Layer {
    fn get(&self, key: Key) -> Option<&str> {
        let variable = key.variable();
        // As in a shell, the last assignment counts.
        let found = self.values.iter().rev().find(|(name, _)| *name == variable);
        found.map(|(_, value)| value.as_str())
    }
}

/// All sources, strongest first.
pub(crate) struct Layers {
    flags: Vec<(Key, String)>,
    others: Vec<Layer>,
    /// Files that were found and could not be read.
    unread: Vec<String>,
}

/// Values may be secrets.
impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layers").finish_non_exhaustive()
    }
}

impl Layers {
    /// Reads the files. A file that `--config` names must be there and be right. One that is found is nobody's mistake: if it
    /// cannot be read, it is left out and told.
    pub(crate) fn read(flags: Vec<(Key, String)>, around: &Surroundings) -> Result<Self, CallError> {
        let mut layers = Layers { flags, others: Vec::new(), unread: Vec::new() };
        layers.others.push(Layer {
            source: |_, key| Source::Environment(key.variable()),
            path: PathBuf::new(),
            values: around.variables.clone(),
        });
        let named = layers.get(Key::Config).map(|(path, _)| around.folder.join(path));
        match named {
            Some(path) => layers.others.push(Layer {
                values: read_file(&path).map_err(CallError::usage)?.ok_or_else(|| {
                    CallError::usage(format!("--config {}: there is no such file", path.display()))
                })?,
                source: |layer, _| Source::LocalFile { path: layer.path.clone(), found: false },
                path,
            }),
            None => {
                if let Some(path) = nearest(&around.folder) {
                    layers.add_found(path, |layer, _| Source::LocalFile {
                        path: layer.path.clone(),
                        found: true,
                    });
                }
            }
        }
        if let Some(path) = around.home.as_ref().map(|home| home.join(GLOBAL_FILE)) {
            layers.add_found(path, |layer, _| Source::GlobalFile(layer.path.clone()));
        }
        Ok(layers)
    }

    fn add_found(&mut self, path: PathBuf, source: fn(&Layer, Key) -> Source) {
        match read_file(&path) {
            Ok(Some(values)) => self.others.push(Layer { source, path, values }),
            Ok(None) => {}
            Err(why) => self.unread.push(format!("{why}; the file is not used")),
        }
    }

    /// Files that were found and could not be read, with the reason.
    pub(crate) fn unread(&self) -> &[String] {
        &self.unread
    }

    /// The strongest value. An empty one counts as none.
    pub(crate) fn get(&self, key: Key) -> Option<(&str, Source)> {
        if let Some((_, value)) = self.flags.iter().find(|(flag, _)| *flag == key) {
            return Some((value, Source::Flag));
        }
        self.others.iter().find_map(|layer| {
            let value = layer.get(key).filter(|value| !value.is_empty())?;
            // Another file cannot be named by a file.
            let fits = key != Key::Config || layer.path.as_os_str().is_empty();
            fits.then(|| (value, (layer.source)(layer, key)))
        })
    }

    /// The strongest list. A flag is given once per item, so its values are not split.
    pub(crate) fn list(&self, key: Key) -> Option<(Vec<&str>, Source)> {
        let flags: Vec<&str> =
            self.flags.iter().filter(|(flag, _)| *flag == key).map(|(_, value)| value.as_str()).collect();
        if !flags.is_empty() {
            return Some((flags, Source::Flag));
        }
        self.get(key).map(|(value, source)| (values::list(value).collect(), source))
    }

    /// Names that look like settings and are none.
    pub(crate) fn unknown(&self) -> Vec<String> {
        let known = |name: &str| Key::all().any(|key| key.variable() == name);
        let layers = self.others.iter();
        layers
            .flat_map(|layer| {
                let place = match layer.path.as_os_str().is_empty() {
                    true => "environment".to_owned(),
                    false => layer.path.display().to_string(),
                };
                let names = layer.values.iter().filter(|(name, _)| !known(name));
                names.map(move |(name, _)| format!("{place}: {name} is not a setting"))
            })
            .collect()
    }

    /// Files that hold a secret and can be read by other users.
    pub(crate) fn readable_by_others(&self) -> Vec<&Path> {
        let secret = |layer: &&Layer| Key::all().any(|key| key.is_secret() && layer.get(key).is_some());
        let files = self.others.iter().filter(|layer| !layer.path.as_os_str().is_empty()).filter(secret);
        files.map(|layer| layer.path.as_path()).filter(|path| others_may_read(path)).collect()
    }
}

#[cfg(unix)]
fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}

/// The nearest `.env`, from the folder upwards.
fn nearest(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(".env")).find(|path| path.is_file())
}

/// `None` if there is no such file.
fn read_file(path: &Path) -> Result<Option<Assignments>, String> {
    let wrong = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(&error)),
    };
    let values = dotenv::read(&text).map_err(|(line, why)| wrong(&format_args!("line {line}: {why}")))?;
    Ok(Some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each layer sets one more key than the one above it; the strongest wins.
    #[test]
    fn cli_config_002_flag_then_environment_then_file_then_own_file() {
        let place = tempfile::tempdir().unwrap();
        let (home, project) = (place.path().join("home"), place.path().join("a/b"));
        std::fs::create_dir_all(home.join(".config/a2a-cli")).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        let own = "A2ACLI_OUTPUT=own\nA2ACLI_TIMEOUT=own\nA2ACLI_TRANSPORT=own\nA2ACLI_TASK_ID=own\n";
        std::fs::write(home.join(GLOBAL_FILE), own).unwrap();
        let local = "A2ACLI_OUTPUT=local\nA2ACLI_TIMEOUT=local\nA2ACLI_TRANSPORT=local\nA2ACLI_CONFIG=x\nA2ACLI_OUTPT=1\n";
        std::fs::write(place.path().join("a/.env"), local).unwrap();
        std::fs::write(place.path().join("named"), "A2ACLI_TRANSPORT=named\n").unwrap();
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let around = |config: &str| Surroundings {
            variables: vec![
                variable("A2ACLI_OUTPUT", "env"),
                variable("A2ACLI_TIMEOUT", "env"),
                variable("A2ACLI_CONFIG", config),
            ],
            folder: project.clone(),
            home: Some(home.clone()),
        };
        let found =
            |layers: &Layers, key| layers.get(key).map(|(value, source)| (value.to_owned(), source.rank()));
        let flags = vec![(Key::Output, "flag".to_owned())];

        let layers = Layers::read(flags.clone(), &around("")).unwrap();
        assert_eq!(found(&layers, Key::Output), Some(("flag".to_owned(), 4)));
        assert_eq!(found(&layers, Key::Timeout), Some(("env".to_owned(), 3)));
        assert_eq!(found(&layers, Key::Transport), Some(("local".to_owned(), 2)));
        assert_eq!(found(&layers, Key::TaskId), Some(("own".to_owned(), 1)));
        assert_eq!(found(&layers, Key::Bearer), None);
        assert_eq!(found(&layers, Key::Config), None, "a file cannot name another");
        assert_eq!(layers.unknown().len(), 1, "{:?}", layers.unknown());

        let layers = Layers::read(flags.clone(), &around("../../named")).unwrap();
        assert_eq!(
            found(&layers, Key::Transport),
            Some(("named".to_owned(), 2)),
            "instead of the local file"
        );
        assert_eq!(found(&layers, Key::TaskId), Some(("own".to_owned(), 1)), "the user's file still counts");
        assert!(Layers::read(flags.clone(), &around("missing")).is_err());

        // What cannot be read: found, it is told; named, it is an error.
        for (at, bytes) in [
            (place.path().join("a/.env"), &b"A2ACLI_TRANSPORT=\xff\n"[..]),
            (home.join(GLOBAL_FILE), b"A2ACLI_TASK_ID='open\n"),
        ] {
            let before = std::fs::read(&at).unwrap();
            std::fs::write(&at, bytes).unwrap();
            let layers = Layers::read(flags.clone(), &around("")).unwrap();
            assert_eq!(layers.unread().len(), 1, "{:?}", layers.unread());
            assert!(layers.unread()[0].contains(".env"), "{:?}", layers.unread());
            assert!(Layers::read(flags.clone(), &around(at.to_str().unwrap())).is_err());
            std::fs::write(&at, before).unwrap();
        }
    }
}
