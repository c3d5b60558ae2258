//! `[auth]`: makes the schemes that are enforced.

mod api_key;
mod bearer;
mod follow;
mod issuers;
mod mtls;
mod passwords;
mod proxy;
mod records;

pub(crate) use api_key::{KeyPlace, StoredKeys};

use std::fmt;
use std::sync::Arc;

use baton_server::auth::{Chain, Scheme, ThrottleOptions};

use super::change::Values;
use super::environment::Variables;
use super::problem::{Problem, Problems, did_you_mean};
use super::schema::{self, Config};
use super::setting::{Section, Setting, Source};
use super::value::{Id, Requirement, Secret, SecretText};
use follow::is_key;
use records::Records;

/// The schemes that are enforced, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuthPlan {
    schemes: Vec<SchemePlan>,
    throttle: ThrottleOptions,
}

/// One scheme, and what it was made of.
#[derive(Debug, Clone)]
struct SchemePlan {
    /// Its name on cards.
    name: String,
    /// The key of its table: `auth.basic`.
    table: &'static str,
    scheme: Arc<dyn Scheme>,
    made_of: Arc<MadeOf>,
    records: Records,
    /// The configuration has it no longer: it lets nobody in.
    withdrawn: bool,
}

/// To compare with what a later configuration says.
struct MadeOf {
    values: Values,
    /// The secrets of the section, as they were read.
    secrets: Vec<Secret>,
    /// How issuers are called, if the scheme calls one.
    calls: Option<Arc<Calls>>,
}

/// `[auth.fetch]`, which all issuers share.
struct Calls {
    values: Values,
    /// The text of the file with authorities.
    authorities: Option<String>,
}

impl fmt::Debug for MadeOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MadeOf")
    }
}

/// Makes the schemes. Mistakes are added to `problems`, and the scheme is left out. At a reload `running` has the schemes in
/// effect; those that are gone from the configuration are there, withdrawn.
pub(crate) fn plan(
    config: &Config,
    variables: &Variables,
    stored: Option<&StoredKeys>,
    running: Option<&AuthPlan>,
    problems: &mut Problems,
) -> AuthPlan {
    let (schemes, secrets) = (Vec::new(), Vec::new());
    let mut planner = Planner { variables, problems, running, schemes, secrets, calls: None };
    planner.all(config, stored);
    let schemes = planner.schemes;
    let mut plan = AuthPlan { schemes, throttle: throttle(&config.auth.throttle) };
    if let Some(running) = running {
        plan.keep_withdrawn(running);
    }
    plan.check_requirements(config, problems);
    plan
}

/// The names of the schemes that the configuration has, also of those with a mistake.
fn written(config: &Config) -> Vec<String> {
    let auth = &mut config.auth.clone();
    let name = |id: &Setting<Option<Id>>, usual: &str| id.as_ref().map_or(usual, |id| id.as_str()).to_owned();
    let mut names = Vec::new();
    if auth.api_key.is_on() == Some(true) {
        names.push(name(&auth.api_key.id, api_key::NAME));
    }
    let mut tables: [(&Setting<Option<Id>>, &str, bool); 5] = [
        (&auth.bearer.id.clone(), "bearer", auth.bearer.is_there()),
        (&auth.basic.id.clone(), "basic", auth.basic.is_there()),
        (&auth.digest.id.clone(), "digest", auth.digest.is_there()),
        (&auth.mtls.id.clone(), "mtls", auth.mtls.is_there()),
        (&auth.proxy.id.clone(), "proxy", auth.proxy.is_there()),
    ];
    names.extend(tables.iter_mut().filter(|table| table.2).map(|(id, usual, _)| name(id, usual)));
    names.extend(auth.jwt.iter().map(|issuer| name(&issuer.id, "jwt")));
    names.extend(auth.oidc.iter().map(|issuer| name(&issuer.id, "oidc")));
    names.extend(auth.introspection.iter().map(|issuer| name(&issuer.id, "introspection")));
    names
}

fn throttle(section: &schema::Throttle) -> ThrottleOptions {
    let mut options = ThrottleOptions::default();
    options.burst = *section.burst;
    options.every = *section.every;
    options.per_address = *section.per_address;
    options.max_entries = *section.max_entries;
    options
}

impl AuthPlan {
    /// Whether anybody is authenticated.
    pub(crate) fn enforces(&self) -> bool {
        !self.schemes.is_empty()
    }

    /// The names of the schemes on cards.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.schemes.iter().map(|plan| plan.name.as_str())
    }

    pub(crate) fn chain(&self) -> Chain {
        let chain = Chain::new().throttle(&self.throttle);
        let add = |chain: Chain, plan: &SchemePlan| chain.shared_scheme(&plan.name, Arc::clone(&plan.scheme));
        self.schemes.iter().fold(chain, add)
    }

    /// A requirement can only name a scheme that is enforced.
    fn check_requirements(&self, config: &Config, problems: &mut Problems) {
        let (auth, written) = (&config.auth.require, &written(config));
        self.check("auth.require", auth.source(), auth.iter(), written, problems);
        let skills = |key, skills: &[schema::Skill], problems: &mut Problems| {
            for skill in skills {
                self.check(key, skill.require.source(), skill.require.iter().flatten(), written, problems);
            }
        };
        skills("skill.require", &config.skills, problems);
        for agent in &config.agents {
            self.check(
                "agent.require",
                agent.require.source(),
                agent.require.iter().flatten(),
                written,
                problems,
            );
            skills("agent.skill.require", &agent.skills, problems);
        }
    }

    fn check<'a>(
        &self,
        key: &str,
        source: &Source,
        list: impl IntoIterator<Item = &'a Requirement>,
        written: &[String],
        problems: &mut Problems,
    ) {
        for name in list.into_iter().flat_map(Requirement::schemes) {
            if !self.schemes.iter().any(|plan| plan.name == name) && !written.iter().any(|it| it == name) {
                problems.add(Problem::new(source.clone(), key, self.unknown(name, written)));
            }
        }
    }

    fn unknown(&self, name: &str, written: &[String]) -> String {
        let made = self.schemes.iter().map(|plan| &plan.name).filter(|name| !written.contains(name));
        let names: Vec<&str> = made.chain(written).map(String::as_str).collect();
        match (did_you_mean(name, names.iter().copied()), !names.is_empty()) {
            (Some(near), _) => format!("there is no scheme `{name}`; did you mean `{near}`?"),
            (None, true) => {
                let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                format!("there is no scheme `{name}`; there are {}", names.join(", "))
            }
            (None, false) => format!("there is no scheme `{name}`: [auth] has none"),
        }
    }
}

impl MadeOf {
    fn same_as(&self, other: &MadeOf) -> bool {
        self.secrets == other.secrets && self.has_options_of(other, &[])
    }

    /// Whether both are the same but for these keys, with their secrets. All secrets of a scheme that has records are theirs.
    fn has_options_of(&self, other: &MadeOf, records: &[&str]) -> bool {
        let same_secrets = !records.is_empty() || self.secrets == other.secrets;
        let same_calls = match (&self.calls, &other.calls) {
            (Some(one), Some(other)) => {
                one.authorities == other.authorities && one.values.same_as(&other.values)
            }
            (None, None) => true,
            _ => false,
        };
        // A scheme keeps its name until a restart, so that its records can stay.
        let is_left_out =
            |key: &str| records.iter().any(|word| is_key(key, word)) || (key == "id" && !records.is_empty());
        same_secrets && same_calls && self.values.same_but_for(&other.values, is_left_out)
    }
}

struct Planner<'a> {
    variables: &'a Variables,
    problems: &'a mut Problems,
    /// The schemes in effect, at a reload.
    running: Option<&'a AuthPlan>,
    schemes: Vec<SchemePlan>,
    /// The secrets of the scheme that is being made.
    secrets: Vec<Secret>,
    /// How the issuer of the scheme that is being made is called.
    calls: Option<Arc<Calls>>,
}

impl Planner<'_> {
    /// In the order in which they say who the owner is, if a request has several credentials.
    fn all(&mut self, config: &Config, stored: Option<&StoredKeys>) {
        let auth = &config.auth;
        self.api_key(&auth.api_key, stored);
        self.bearer(&auth.bearer);
        self.basic(&auth.basic);
        self.digest(&auth.digest);
        self.issuers(auth);
        self.mtls(&auth.mtls, &config.tls);
        self.proxy(&auth.proxy, &config.trusted_proxies);
    }

    fn refuse(&mut self, source: &Source, key: &str, text: impl Into<String>) {
        self.problems.add(Problem::new(source.clone(), key, text));
    }

    /// Whether the table's scheme is in effect. Then it may lose its last record, and lets nobody in.
    fn is_running(&self, table: &str) -> bool {
        self.running.is_some_and(|running| running.schemes.iter().any(|plan| plan.table == table))
    }

    /// Reads a secret; `None` if there is none, or it cannot be read.
    fn secret(&mut self, setting: &Setting<Option<SecretText>>, key: &str) -> Option<Secret> {
        match setting.as_ref()?.read(self.variables) {
            Ok(secret) => {
                self.secrets.push(secret.clone());
                Some(secret)
            }
            Err(reason) => {
                self.refuse(setting.source(), key, reason);
                None
            }
        }
    }

    /// A secret that was read, but cannot be used.
    fn unusable(&mut self, setting: &Setting<Option<SecretText>>, key: &str, reason: &dyn fmt::Display) {
        let whence = setting.as_ref().map(SecretText::whence).unwrap_or_default();
        self.refuse(setting.source(), key, format!("{whence}{reason}"));
    }

    /// Adds a scheme, or says why it cannot be made.
    fn add(
        &mut self,
        table: &'static str,
        id: &Setting<Option<Id>>,
        section: &mut dyn Section,
        source: &Source,
        (scheme, records): (Arc<dyn Scheme>, Records),
    ) {
        let secrets = std::mem::take(&mut self.secrets);
        // By default the last word of the table's name.
        let name = id.as_ref().map_or_else(|| table.rsplit('.').next().unwrap_or(table), |id| id.as_str());
        if self.schemes.iter().any(|plan| plan.name == name) {
            let source = if id.is_set() { id.source() } else { source };
            let text = format!("there is another scheme `{name}`; give this one an id of its own");
            return self.refuse(source, &format!("{table}.id"), text);
        }
        let name = name.to_owned();
        let made_of =
            Arc::new(MadeOf { values: Values::of_section(section), secrets, calls: self.calls.clone() });
        self.schemes.push(SchemePlan { name, table, scheme, made_of, records, withdrawn: false });
    }
}
