//! Environment variables override the file: `BATON_` and the key in capitals, `BATON_LIMITS_MAX_BODY`. An empty
//! variable is ignored, since many launchers write "not set" that way; but an empty secret is a mistake, since whoever sets
//! it believes that the server is protected.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::problem::{Problem, Problems, did_you_mean};
use super::schema::Config;
use super::setting::{Field, Section, Sections, Setting, Source, Visit};
use super::value::SecretText;

const PREFIX: &str = "BATON";

/// Names with our prefix that are not keys of the configuration.
const OTHERS: &[&str] = &[
    // Where the file is.
    "BATON_CONFIG",
    // Set for programs of `exec`; a server started by such a program inherits them.
    "BATON_TASK_ID",
    "BATON_CONTEXT_ID",
    "BATON_ATTEMPT",
    "BATON_SKILL",
    "BATON_RUN",
    // Read by `baton listen`.
    "BATON_WEBHOOK_SECRET",
    "BATON_WEBHOOK_TOKEN",
    // Used by the tests and tools of this repository.
    "BATON_TOOLS",
    "BATON_FAULT_POINT",
    "BATON_FAULT_PUSH_PACE",
    "BATON_FAULT_SYNC",
    "BATON_FAULTS_FULL",
    "BATON_FAULTS_RESULTS",
    "BATON_KILLS",
    "BATON_SEED",
    "BATON_TEST_POSTGRES",
    "BATON_TEST_REDIS",
    "BATON_WRITE_GOLDEN",
];

/// The secret of API keys, by the name that people guess.
const API_KEY: &str = "BATON_API_KEY";

/// Encrypts the secrets in the store; and the one that did so before. Each has a twin that ends in [`FILE`].
const MASTER_KEY: &str = "BATON_MASTER_KEY";
const MASTER_KEY_OLD: &str = "BATON_MASTER_KEY_OLD";

/// `NAME_FILE` names a file with what `NAME` would hold, as secrets are given to containers.
pub(super) const FILE: &str = "_FILE";

/// The port only, as hosting platforms set it.
const PORT: &str = "PORT";

pub(crate) type Variables = BTreeMap<String, OsString>;

/// Applies the environment to the configuration; returns warnings.
pub(crate) fn overlay(variables: &Variables, into: &mut Config, problems: &mut Problems) -> Vec<String> {
    let mut names = Vec::new();
    into.visit(&mut Overlay { variables, prefix: PREFIX, short: None, names: &mut names, problems });
    names.push(API_KEY.to_owned());
    take_api_key(variables, into, problems);
    for (name, key, setting) in [
        (MASTER_KEY, "master_key", &mut into.master_key),
        (MASTER_KEY_OLD, "master_key_old", &mut into.master_key_old),
    ] {
        names.push(format!("{name}{FILE}"));
        take_file(variables, name, key, setting, problems);
    }
    if !matches!(into.listen.source(), Source::Variable(_)) {
        take_port(variables, into, problems);
    }
    warnings(variables, &names)
}

/// The same key as `BATON_AUTH_API_KEY_SECRET`, and wins over it.
fn take_api_key(variables: &Variables, into: &mut Config, problems: &mut Problems) {
    let prefix = "";
    let mut names = Vec::new();
    let mut overlay = Overlay { variables, prefix, short: None, names: &mut names, problems };
    overlay.take(API_KEY, "auth.api_key.secret", &mut into.auth.api_key.secret);
}

/// From the twin of the variable that ends in [`FILE`].
fn take_file(
    variables: &Variables,
    name: &str,
    key: &str,
    setting: &mut Setting<Option<SecretText>>,
    problems: &mut Problems,
) {
    let file = format!("{name}{FILE}");
    let Some(path) = variables.get(&file) else { return };
    let mut refuse = |text: String| {
        problems.add(Problem::new(Source::Variable(file.clone()), key, text));
    };
    if path.is_empty() {
        return refuse("the path is empty".to_owned());
    }
    if variables.contains_key(name) {
        return refuse(format!("{name} is set, too; set one of them"));
    }
    setting.replace(Some(SecretText::File(path.into())), Source::Variable(file.clone()));
}

/// Changes only the port of `listen`, so that it cannot open the server to other machines.
fn take_port(variables: &Variables, into: &mut Config, problems: &mut Problems) {
    let Some(text) = variables.get(PORT).filter(|text| !text.is_empty()) else { return };
    match text.to_str().and_then(|text| text.parse::<u16>().ok()) {
        Some(port) => {
            let listen = into.listen.with_port(port);
            into.listen.replace(listen, Source::Variable(PORT.to_owned()));
        }
        None => {
            let shown = super::value::quoted(&text.to_string_lossy());
            let text = format!("expected a port, a number up to 65535, not {shown}");
            problems.add(Problem::new(Source::Variable(PORT.to_owned()), "listen", text));
        }
    }
}

fn warnings(variables: &Variables, names: &[String]) -> Vec<String> {
    let ours = variables.keys().filter(|name| name.starts_with("BATON_"));
    let unknown = ours.filter(|name| {
        !names.contains(name) && !OTHERS.contains(&name.as_str()) && !of_a_kubernetes_service(name)
    });
    let known = || names.iter().map(String::as_str).chain(OTHERS.iter().copied());
    unknown
        .map(|name| match did_you_mean(name, known()) {
            Some(near) => format!("{name}: unknown variable, not used; did you mean `{near}`?"),
            None => {
                format!("{name}: unknown variable, not used; `baton serve config default` lists the keys")
            }
        })
        .collect()
}

/// Kubernetes puts these into every container when a service is called `baton`.
fn of_a_kubernetes_service(name: &str) -> bool {
    name == "BATON_PORT" || name.starts_with("BATON_PORT_") || name.starts_with("BATON_SERVICE_")
}

struct Overlay<'a> {
    variables: &'a Variables,
    prefix: &'a str,
    /// The key for which the prefix alone is short.
    short: Option<&'static str>,
    names: &'a mut Vec<String>,
    problems: &'a mut Problems,
}

impl Overlay<'_> {
    fn take(&mut self, name: &str, key: &str, field: &mut dyn Field) {
        let Some(value) = self.variables.get(name) else { return };
        if value.is_empty() && !field.is_secret() {
            return;
        }
        let source = Source::Variable(name.to_owned());
        let Some(text) = value.to_str() else {
            return self.problems.add(Problem::new(source, key, "not UTF-8 text"));
        };
        let Err(refused) = field.accept_text(text, source.clone()) else { return };
        for refused in refused {
            self.problems.add(Problem::new(source.clone(), key, refused.text));
        }
    }
}

impl Visit for Overlay<'_> {
    fn field(&mut self, name: &'static str, field: &mut dyn Field) {
        let long = variable(self.prefix, name);
        let short = (self.short == Some(name)).then(|| self.prefix.to_owned());
        // The short name (`BATON_STORE`) wins over the full one (`BATON_STORE_URL`), because people know it better.
        for variable in [Some(long), short].into_iter().flatten() {
            self.take(&variable, name, field);
            self.names.push(variable);
        }
    }

    fn table(&mut self, name: &'static str, section: &mut dyn Section) {
        let prefix = variable(self.prefix, name);
        let short = section.short_for();
        let (variables, names, problems) = (self.variables, &mut *self.names, &mut *self.problems);
        section.visit(&mut Overlay { variables, prefix: &prefix, short, names, problems });
    }

    /// A variable could not say which item of a list it means.
    fn list(&mut self, _name: &'static str, _sections: &mut dyn Sections) {}
}

fn variable(prefix: &str, name: &str) -> String {
    format!("{prefix}_{}", name.to_ascii_uppercase())
}
