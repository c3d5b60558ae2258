//! The configuration: defaults, then `baton.toml`, then the environment, then flags; later ones win.
//!
//! | file | holds |
//! |---|---|
//! | `schema` | every key with its default and bounds |
//! | `setting`, `value` | one value with its source; how each type is read and shown |
//! | `file`, `environment`, `flags` | the layers |
//! | `check`, `listening` | rules between keys |
//! | `problem` | mistakes, collected with their places |
//! | `show`, `change`, `keys` | visitors: print, compare, list |
//! | `default_store` | the name of the default store |
//! | `agents`, `card`, `handler` | the agents, their cards and their logic |
//! | `auth` | the schemes that are enforced |
//! | `master_key` | the key that encrypts the secrets in the store |
//! | `bounds` | the library's option types, filled in |
//! | `tls` | the certificate and the key |
//! | `signing` | the key that signs cards |

mod agents;
mod auth;
mod bounds;
mod card;
mod change;
mod check;
mod default_store;
mod environment;
mod file;
mod flags;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod handler;
mod keys;
mod listening;
mod master_key;
mod problem;
mod schema;
mod setting;
mod show;
mod signing;
#[cfg(test)]
mod tests;
mod tls;
mod value;

pub(crate) use agents::AgentPlan;
pub(crate) use auth::{AuthPlan, KeyPlace, StoredKeys};
pub(crate) use change::between as changes;
pub(crate) use default_store::{DEMO_STORE, others_than};
pub(crate) use flags::Flag;
pub(crate) use listening::Listening;
pub(crate) use problem::{Problem, Problems};
pub(crate) use schema::{Config, Log, Traces};
pub(crate) use show::{json as show_json, toml as show_toml};
#[cfg(feature = "otel")]
pub(crate) use value::HttpUrl;
pub(crate) use value::{AdminSocket, LogFormat, StoreUrl, duration, name_of_file};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_server::MasterKeys;
use baton_server::auth::KeySet;
use baton_server::card::CardSigning;
use baton_server::tls::TlsOptions;
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use default_store::Served;
use environment::Variables;
use setting::Place;
pub(crate) use setting::Source;

use crate::agents::demo::Profile;
use crate::agents::exec::flags::ExecFlags;

/// `config.default.toml`: every key with its meaning and its default.
pub(crate) const DEFAULT_FILE: &str = include_str!("../../config.default.toml");

/// Looked for in the working folder when no file is named.
const FILE: &str = "baton.toml";
/// Names the file, as `--config` does.
const VARIABLE: &str = "BATON_CONFIG";

/// All inputs of a configuration, so that it can be loaded again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inputs {
    /// `--config`
    file: Option<PathBuf>,
    /// A `baton.toml` that was found at the first load and must exist at a reload.
    found: Option<PathBuf>,
    /// Neither the environment nor a file is read.
    alone: bool,
    flags: Vec<Flag>,
    variables: Variables,
    /// `--profile`, which is not a key: it chooses one of the demo agent's cards.
    profile: Option<Profile>,
    /// `--exec` and its flags: they define a skill, which otherwise only the file can.
    exec: ExecFlags,
    /// The store has tasks of a version in which all agents at the root shared a scope.
    shares_scope: bool,
    /// The keys of the store, once it is open.
    stored_keys: Option<StoredKeys>,
}

/// A valid configuration.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// Its agents, with their cards read.
    pub(crate) agents: Vec<AgentPlan>,
    /// How callers are authenticated.
    pub(crate) auth: AuthPlan,
    /// Whether other machines may reach it.
    pub(crate) listening: Listening,
    /// The file it was read from, if there was one.
    pub(crate) file: Option<PathBuf>,
    /// The certificate and its key, if there are files for them.
    pub(crate) tls: Option<TlsOptions>,
    /// What encrypts the secrets in the store, if anything does.
    pub(crate) master_keys: Option<MasterKeys>,
    /// What signs the cards, if they are signed.
    pub(crate) signing: Option<CardSigning>,
    /// Warnings: suspicious, but allowed.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    /// Adds the rest of `[tls]` to a certificate that does not come from its files.
    pub(crate) fn with_tls_clients(&self, options: TlsOptions) -> Result<TlsOptions, Problems> {
        let mut problems = Problems::default();
        let hsts = options.hsts;
        let options = tls::with_clients(self, options, &mut problems);
        match options {
            Some(mut options) => {
                options.hsts &= hsts;
                if let Err(error) = options.check() {
                    let place = self.tls.client_ca.source().clone();
                    problems.add(Problem::new(place, "tls.client_ca", error.to_string()));
                }
                problems.unless_any(options)
            }
            None => Err(problems),
        }
    }
}

impl Inputs {
    /// With the environment of the process and these flags.
    pub(crate) fn of_process(
        file: Option<PathBuf>,
        flags: Vec<Flag>,
        profile: Option<Profile>,
        exec: ExecFlags,
    ) -> Self {
        // Variables whose name is not UTF-8 cannot be ours.
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Inputs {
            file,
            found: None,
            alone: false,
            flags,
            variables: variables.collect(),
            profile,
            exec,
            shares_scope: false,
            stored_keys: None,
        }
    }

    /// Only the flags count.
    pub(crate) fn alone(self) -> Self {
        Inputs { alone: true, variables: Variables::default(), ..self }
    }

    /// From now on the file that was found must exist.
    pub(crate) fn keep_to(&mut self, file: Option<&Path>) {
        self.found = file.map(Path::to_owned);
    }

    /// From now on the program has the id that every agent at the root had in earlier versions.
    pub(crate) fn share_scope(&mut self, loaded: &mut Loaded) {
        self.shares_scope = true;
        loaded.agents.iter_mut().for_each(AgentPlan::share_scope);
    }

    /// From the next load on, the keys of the store are accepted, if keys are.
    pub(crate) fn use_keys(&mut self, stored: StoredKeys) {
        self.stored_keys = Some(stored);
    }

    /// Reads the file, applies the layers, and checks the result. All mistakes are reported together, also those that
    /// only a server built from the configuration finds.
    pub(crate) async fn load(&self) -> Result<Loaded, Problems> {
        self.load_beside(None).await
    }

    /// The same for a server that has these schemes: one that the configuration has no longer stays, and lets nobody in.
    pub(crate) async fn load_again(&self, running: &AuthPlan) -> Result<Loaded, Problems> {
        self.load_beside(Some(running)).await
    }

    async fn load_beside(&self, running: Option<&AuthPlan>) -> Result<Loaded, Problems> {
        let (mut loaded, mut problems) = self.read(running);
        loaded.tls = tls::read(&loaded.config, &mut problems, &mut loaded.warnings);
        // This trial must not log what a card switches off: the real server logs it at start.
        let proof =
            Box::pin(agents::trial_build(&loaded.config, &loaded.agents, &loaded.auth, &mut problems));
        proof.with_subscriber(NoSubscriber::default()).await;
        // That subscriber names no highest level, so all levels were asked for, and would be from now on.
        tracing::callsite::rebuild_interest_cache();
        problems.unless_any(loaded)
    }

    /// Before the store is open it is unknown whether it has keys, and so whether callers will be authenticated. If the
    /// store's file exists, a configuration that is right with keys is accepted for now; the next load, which knows the
    /// keys, decides.
    pub(crate) async fn load_before_store(&self) -> Result<Loaded, Problems> {
        let problems = match self.load().await {
            Ok(loaded) => return Ok(loaded),
            Err(problems) => problems,
        };
        let may_have_keys = |loaded: Loaded| match &*loaded.config.store.url {
            StoreUrl::Sqlite(path) => path.exists(),
            StoreUrl::Memory => false,
        };
        if !self.load_place().is_ok_and(may_have_keys) {
            return Err(problems);
        }
        let Ok(keys) = KeySet::new() else { return Err(problems) };
        let stored_keys = Some(StoredKeys { keys: Arc::new(keys), any: true });
        Inputs { stored_keys, ..self.clone() }.load().await.map_err(|_| problems)
    }

    /// For `baton key`: where the store and the socket are. Mistakes elsewhere are left to the server: an expired
    /// certificate must not prevent that a key is revoked.
    pub(crate) fn load_place(&self) -> Result<Loaded, Problems> {
        let (loaded, problems) = self.read(None);
        let file = loaded.file.as_ref().map(|file| file.display().to_string());
        problems.only_of(&["store", "admin"], file.as_deref()).unless_any(loaded)
    }

    fn read(&self, running: Option<&AuthPlan>) -> (Loaded, Problems) {
        let mut problems = Problems::default();
        let Some((path, named_by)) = self.file() else { return self.apply_layers(None, running, problems) };
        let name = path.display().to_string();
        let text = file::text_of(&path).unwrap_or_else(|reason| {
            problems.add(match named_by {
                Some(source) => Problem::new(source, "", format!("{name}: {reason}")),
                None => Problem::in_file(Place { file: Arc::from(name), line: 0 }, "", reason),
            });
            String::new()
        });
        self.apply_layers(Some((&path, &text)), running, problems)
    }

    /// Contains the valid agents even if there are problems elsewhere.
    fn apply_layers(
        &self,
        file: Option<(&Path, &str)>,
        running: Option<&AuthPlan>,
        mut problems: Problems,
    ) -> (Loaded, Problems) {
        let mut config = Config::default();
        if let Some((path, text)) = file {
            file::read(text, path, &mut config, &mut problems);
        }
        let mut warnings = environment::overlay(&self.variables, &mut config, &mut problems);
        flags::overlay(&self.flags, &mut config, &mut problems);
        check::rules(&config, &mut problems);
        let auth = auth::plan(&config, &self.variables, self.stored_keys.as_ref(), running, &mut problems);
        let master_keys = master_key::read(&config, &self.variables, &mut problems);
        let signing = signing::read(&config, &self.variables, &mut problems, &mut warnings);
        let mut agents = agents::plan(&config, self.profile, &self.exec, &mut problems, &mut warnings);
        let listening = Listening::of(&config, &auth, &agents);
        listening::check(&config, &listening, &mut problems);
        if self.shares_scope {
            agents.iter_mut().for_each(AgentPlan::share_scope);
        }
        let file = file.map(|(path, _)| path.to_owned());
        if !config.store.url.is_set() {
            let served = Served::of(&config, self.exec.exec.as_deref(), file.as_deref());
            let store = StoreUrl::Sqlite(served.store());
            config.store.url.replace(store, Source::Default);
        }
        (
            Loaded { config, agents, auth, listening, file, tls: None, master_keys, signing, warnings },
            problems,
        )
    }

    /// The file, and the flag or variable that named it.
    fn file(&self) -> Option<(PathBuf, Option<Source>)> {
        if let Some(path) = &self.file {
            return Some((path.clone(), Some(Source::Flag("--config"))));
        }
        if let Some(path) = self.variables.get(VARIABLE).filter(|path| !path.is_empty()) {
            return Some((PathBuf::from(path), Some(Source::Variable(VARIABLE.to_owned()))));
        }
        if self.alone {
            return None;
        }
        let here = Path::new(FILE);
        let found = self.found.clone().or_else(|| here.exists().then(|| here.to_owned()));
        found.map(|path| (path, None))
    }
}
