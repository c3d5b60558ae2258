//! The environment over the file: `BATON_` and the key in capitals, `BATON_LIMITS_MAX_BODY`. An empty variable counts
//! as none, since that is how many launchers write "not set".

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::problem::{Problem, Problems, did_you_mean};
use super::schema::Config;
use super::setting::{Field, Section, Sections, Source, Visit};

const PREFIX: &str = "BATON";

/// Names with our prefix that are not keys of the configuration.
const OTHERS: &[&str] = &[
    // Where the file is.
    "BATON_CONFIG",
    // Wraps the secrets that the store keeps.
    "BATON_MASTER_KEY",
    "BATON_MASTER_KEY_FILE",
    // Told to programs that answer for a skill; a server started by one inherits them.
    "BATON_TASK_ID",
    "BATON_CONTEXT_ID",
    "BATON_ATTEMPT",
    "BATON_SKILL",
    "BATON_RUN",
    // Of the tests and tools of this repository.
    "BATON_TOOLS",
    "BATON_FAULT_POINT",
    "BATON_FAULT_SYNC",
    "BATON_FAULTS_FULL",
    "BATON_FAULTS_RESULTS",
    "BATON_KILLS",
    "BATON_SEED",
    "BATON_TEST_POSTGRES",
    "BATON_TEST_REDIS",
    "BATON_WRITE_GOLDEN",
];

/// The port alone, as hosting platforms give it.
const PORT: &str = "PORT";

pub(crate) type Variables = BTreeMap<String, OsString>;

/// Lays the environment over the configuration; the answer is what to warn of.
pub(crate) fn overlay(variables: &Variables, into: &mut Config, problems: &mut Problems) -> Vec<String> {
    let mut names = Vec::new();
    into.visit(&mut Overlay { variables, prefix: PREFIX, short: None, names: &mut names, problems });
    if !matches!(into.listen.source(), Source::Variable(_)) {
        take_port(variables, into, problems);
    }
    warnings(variables, &names)
}

/// Only the port: which address it is at is said elsewhere, loopback unless told.
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
            None => format!("{name}: unknown variable, not used; `baton config default` lists the keys"),
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
    /// The key that the prefix alone stands for.
    short: Option<&'static str>,
    names: &'a mut Vec<String>,
    problems: &'a mut Problems,
}

impl Overlay<'_> {
    fn take(&mut self, name: &str, key: &str, field: &mut dyn Field) {
        let Some(value) = self.variables.get(name).filter(|value| !value.is_empty()) else { return };
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
        // The short name is the one people know; the long one follows the rule. Said twice, the short one counts.
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

    /// Which of several a variable would mean, nobody could tell.
    fn list(&mut self, _name: &'static str, _sections: &mut dyn Sections) {}
}

fn variable(prefix: &str, name: &str) -> String {
    format!("{prefix}_{}", name.to_ascii_uppercase())
}
