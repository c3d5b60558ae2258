//! The configuration: defaults, then `baton.toml`, then the environment, then flags; later ones win.
//!
//! | file | holds |
//! |---|---|
//! | `schema` | every key with its default and bounds |
//! | `setting`, `value` | one value, its source; how each type is read and shown |
//! | `file`, `environment`, `flags` | the layers |
//! | `check` | rules between keys |
//! | `problem` | what is wrong, all at once, with its place |
//! | `show`, `change`, `keys` | visitors: print, compare, list |
//! | `thing` | what the default store is named after |
//! | `agents`, `card`, `handler` | what the agents of a configuration are made of |
//! | `bounds` | the library's option types, filled in |

mod agents;
mod bounds;
mod card;
mod change;
mod check;
mod environment;
mod file;
mod flags;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod handler;
mod keys;
mod problem;
mod schema;
mod setting;
mod show;
#[cfg(test)]
mod tests;
mod thing;
mod value;

pub(crate) use agents::AgentPlan;
pub(crate) use change::between as changes;
pub(crate) use check::not_loopback;
pub(crate) use flags::Flag;
pub(crate) use problem::{Problem, Problems};
pub(crate) use schema::{Config, Log, Traces};
pub(crate) use show::{json as show_json, toml as show_toml};
pub(crate) use thing::DEMO_STORE;
#[cfg(feature = "otel")]
pub(crate) use value::HttpUrl;
pub(crate) use value::{LogFormat, StoreUrl, duration};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use environment::Variables;
use setting::{Place, Source};
use thing::Thing;

use crate::agents::demo::Profile;
use crate::agents::exec::flags::ExecFlags;

/// `config.default.toml`: every key, what it is for, and its default.
pub(crate) const DEFAULT_FILE: &str = include_str!("../../config.default.toml");

/// Looked for in the working folder when no file is named.
const FILE: &str = "baton.toml";
/// Names the file, as `--config` does.
const VARIABLE: &str = "BATON_CONFIG";

/// All that a configuration is made from, so that it can be made again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs {
    /// `--config`
    file: Option<PathBuf>,
    /// A file that is to be there, though nobody named it.
    found: Option<PathBuf>,
    flags: Vec<Flag>,
    variables: Variables,
    /// `--profile`, which is no key: it chooses among the demo agent's own cards.
    profile: Option<Profile>,
    /// `--exec` and what goes with it: a skill, which is for the file or for flags of its own.
    exec: ExecFlags,
    /// The store has tasks from the time when all agents at the root shared a scope.
    shares_scope: bool,
}

/// A configuration without a fault.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// Its agents, with their cards read.
    pub(crate) agents: Vec<AgentPlan>,
    /// The file it was read from, if there was one.
    pub(crate) file: Option<PathBuf>,
    /// What is odd, but no reason to stop.
    pub(crate) warnings: Vec<String>,
}

impl Inputs {
    /// The process's own environment, with these flags.
    pub(crate) fn of_process(
        file: Option<PathBuf>,
        flags: Vec<Flag>,
        profile: Option<Profile>,
        exec: ExecFlags,
    ) -> Self {
        // A name that is no text is none of ours.
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Inputs {
            file,
            found: None,
            flags,
            variables: variables.collect(),
            profile,
            exec,
            shares_scope: false,
        }
    }

    /// From now on a file that was found has to be there.
    pub(crate) fn keep_to(&mut self, file: Option<&Path>) {
        self.found = file.map(Path::to_owned);
    }

    /// From now on the program goes by the name that every agent at the root once had.
    pub(crate) fn share_scope(&mut self, loaded: &mut Loaded) {
        self.shares_scope = true;
        loaded.agents.iter_mut().for_each(AgentPlan::share_scope);
    }

    /// Reads the file, puts the layers on one another, and checks the result: all that is wrong, whether the
    /// configuration or a server made from it finds it, is told at once.
    pub(crate) async fn load(&self) -> Result<Loaded, Problems> {
        let (loaded, mut problems) = self.read();
        // What a card switches off is for the log of the server that is started, not for this trial.
        let proof = Box::pin(agents::prove(&loaded.agents, &mut problems));
        proof.with_subscriber(NoSubscriber::default()).await;
        problems.unless_any(loaded)
    }

    fn read(&self) -> (Loaded, Problems) {
        let mut problems = Problems::default();
        let Some((path, named_by)) = self.file() else { return self.lay(None, problems) };
        let name = path.display().to_string();
        let text = file::text_of(&path).unwrap_or_else(|reason| {
            problems.add(match named_by {
                Some(source) => Problem::new(source, "", format!("{name}: {reason}")),
                None => Problem::in_file(Place { file: Arc::from(name), line: 0 }, "", reason),
            });
            String::new()
        });
        self.lay(Some((&path, &text)), problems)
    }

    /// The agents of which nothing is wrong so far are in it even if there are problems elsewhere.
    fn lay(&self, file: Option<(&Path, &str)>, mut problems: Problems) -> (Loaded, Problems) {
        let mut config = Config::default();
        if let Some((path, text)) = file {
            file::read(text, path, &mut config, &mut problems);
        }
        let mut warnings = environment::overlay(&self.variables, &mut config, &mut problems);
        flags::overlay(&self.flags, &mut config, &mut problems);
        check::rules(&config, &mut problems);
        let mut agents = agents::plan(&config, self.profile, &self.exec, &mut problems, &mut warnings);
        if self.shares_scope {
            agents.iter_mut().for_each(AgentPlan::share_scope);
        }
        let file = file.map(|(path, _)| path.to_owned());
        if !config.store.url.is_set() {
            let thing = Thing::of(&config, self.exec.exec.as_deref(), file.as_deref());
            let store = StoreUrl::Sqlite(thing.store());
            config.store.url.replace(store, Source::Default);
        }
        (Loaded { config, agents, file, warnings }, problems)
    }

    /// The file, and who named it.
    fn file(&self) -> Option<(PathBuf, Option<Source>)> {
        if let Some(path) = &self.file {
            return Some((path.clone(), Some(Source::Flag("--config"))));
        }
        if let Some(path) = self.variables.get(VARIABLE).filter(|path| !path.is_empty()) {
            return Some((PathBuf::from(path), Some(Source::Variable(VARIABLE.to_owned()))));
        }
        let here = Path::new(FILE);
        let found = self.found.clone().or_else(|| here.exists().then(|| here.to_owned()));
        found.map(|path| (path, None))
    }
}
