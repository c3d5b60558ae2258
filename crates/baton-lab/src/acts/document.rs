//! ACTS documents: the published grammar, and what the official files use beyond it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::condition::Condition;
use super::reading;
use crate::generation::Binding;

/// The major version of the format that is supported.
const MAJOR: &str = "1";
/// Most files that a document may include.
const MOST_INCLUDES: usize = 64;

/// A file that cannot be run. `file` includes the line, if it is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct BadDocument {
    pub file: String,
    pub reason: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub acts_version: String,
    pub spec_version: String,
    #[serde(default)]
    pub spec_ref: Option<String>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    #[serde(default)]
    pub variables: BTreeMap<String, Value>,
    #[serde(default)]
    pub include: Vec<String>,
    #[serde(default)]
    pub suites: Vec<Suite>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub tests: Vec<Test>,
}

/// The level of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Must,
    Should,
    May,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Must, Self::Should, Self::May];

    pub fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
        }
    }
}

/// One test. The members after `assertions` are Baton's own additions to the published grammar.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    pub id: String,
    pub name: String,
    pub level: Level,
    #[serde(default)]
    pub steps: Vec<Step>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub spec_ref: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub origin: Option<Value>,
    #[serde(default)]
    pub transport: Vec<Binding>,
    #[serde(default)]
    pub preconditions: Preconditions,
    #[serde(default)]
    pub requires_behaviors: Vec<String>,
    #[serde(default)]
    pub runner_requirements: Vec<String>,
    #[serde(default)]
    pub assertions: Vec<Named>,

    /// The section of the specification with the requirement.
    #[serde(default)]
    pub section: Option<String>,
    /// The requirement, as a sentence.
    #[serde(default)]
    pub requirement: Option<String>,
    /// What the agent's author should do when the test fails.
    #[serde(default)]
    pub remedy: Option<String>,
    /// One of the report's categories.
    #[serde(default)]
    pub category: Option<String>,
    /// The name of a native check, written in Rust. Then there are no steps.
    #[serde(default)]
    pub native: Option<String>,
    /// Why a correction disabled it. Never in a file.
    #[serde(skip)]
    pub off: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preconditions {
    #[serde(default)]
    pub capabilities: BTreeMap<String, Value>,
    #[serde(default)]
    pub skills: Vec<Value>,
    #[serde(default)]
    pub transport: Option<Value>,
    #[serde(default)]
    pub extensions: Vec<String>,
    #[serde(default)]
    pub description: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub operation: Option<String>,
    #[serde(default)]
    pub params: Option<Value>,
    #[serde(default)]
    pub raw: Option<Raw>,
    #[serde(default)]
    pub client_response: Option<ClientResponse>,
    #[serde(default)]
    pub assertion: Option<Named>,
    #[serde(default)]
    pub expect: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    pub expect_error: Option<Value>,
    #[serde(default)]
    pub expect_stream: Option<ExpectStream>,
    #[serde(default)]
    pub expect_parsed: Option<Value>,
    #[serde(default)]
    pub capture: BTreeMap<String, String>,
    #[serde(default)]
    pub assertions: Vec<Named>,
    #[serde(default)]
    pub repeat: Option<Repeat>,
    #[serde(default)]
    pub delay_ms: Option<u64>,
}

/// `expect_error:` without a value means "any error".
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Option<Value>,
    #[serde(default)]
    pub body_raw: Option<String>,
    /// Baton's own member: sends the request without the user's credentials.
    #[serde(default)]
    pub anonymous: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientResponse {
    pub operation: String,
    pub wire_payload: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectStream {
    #[serde(default)]
    pub min_count: Option<usize>,
    #[serde(default)]
    pub max_count: Option<usize>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub ordering: Option<String>,
    #[serde(default)]
    pub events: Vec<Map<String, Value>>,
    #[serde(default)]
    pub final_event: Option<Value>,
    #[serde(default)]
    pub each_event: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    pub until: String,
    #[serde(default = "ten")]
    pub max_attempts: u32,
    #[serde(default = "one_second")]
    pub delay_ms: u64,
    #[serde(default)]
    pub backoff: Backoff,
}

fn ten() -> u32 {
    10
}

fn one_second() -> u64 {
    1000
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    #[default]
    None,
    Linear,
    Exponential,
}

/// An assertion on the result of an earlier step.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub source: Option<String>,
    #[serde(default)]
    pub path: Option<String>,
    #[serde(default, rename = "match")]
    pub matches: Option<Value>,
    #[serde(default)]
    pub any: Option<Nodes>,
    #[serde(default)]
    pub all: Option<Nodes>,
    #[serde(default)]
    pub none: Option<Nodes>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    pub path: String,
    #[serde(rename = "match")]
    pub matches: Value,
}

/// Reads one document and checks the rules that its types do not express.
pub fn parse(file: &str, text: &str) -> Result<Document, BadDocument> {
    let bad = |reason: String| BadDocument { file: file.to_owned(), reason };
    let at_line = |line: Option<u64>, reason: String| BadDocument {
        file: line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")),
        reason,
    };
    let document: Document = serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map(|place| place.line());
        at_line(line, in_one_line(&error.without_snippet().to_string()))
    })?;
    let major = document.acts_version.split('.').next().unwrap_or_default();
    if major != MAJOR {
        let version = &document.acts_version;
        return Err(bad(format!("acts_version is {version:?}; this runner reads {MAJOR}.x")));
    }
    if document.include.is_empty() && document.suites.is_empty() {
        return Err(bad("there is neither `suites` nor `include`".to_owned()));
    }
    let mut ids = std::collections::HashSet::new();
    for test in document.suites.iter().flat_map(|suite| &suite.tests) {
        let wrong = |reason: String| {
            let line = line_of(text, &test.id);
            at_line(line, format!("{}: {reason}", test.id))
        };
        if !ids.insert(&test.id) {
            return Err(wrong("the id is there twice".to_owned()));
        }
        check(test).map_err(wrong)?;
    }
    Ok(document)
}

/// Removes the position from the parser's message, since it is reported separately.
fn in_one_line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    match first.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((_, reason)) => reason.to_owned(),
        None => first.to_owned(),
    }
}

/// The line where a test begins, found by its id: the parsed document has no positions.
fn line_of(text: &str, id: &str) -> Option<u64> {
    let begins = |line: &str| {
        let rest = line.trim_start().trim_start_matches("- ").trim_start().strip_prefix("id:");
        rest.is_some_and(|rest| rest.trim().trim_matches(['"', '\'']) == id)
    };
    (1..).zip(text.lines()).find(|(_, line)| begins(line)).map(|(number, _)| number)
}

fn check(test: &Test) -> Result<(), String> {
    if test.steps.is_empty() == test.native.is_none() {
        return Err("a test has either `steps` or `native`".to_owned());
    }
    let mut ids = std::collections::HashSet::new();
    for (index, step) in test.steps.iter().enumerate() {
        let name = step.id.clone().unwrap_or_else(|| format!("step {}", index + 1));
        if step.id.as_ref().is_some_and(|id| !ids.insert(id)) {
            return Err(format!("{name}: the step id is there twice"));
        }
        let kinds = [
            step.operation.is_some(),
            step.raw.is_some(),
            step.client_response.is_some(),
            step.assertion.is_some(),
        ];
        if kinds.into_iter().filter(|kind| *kind).count() != 1 {
            return Err(format!(
                "{name}: exactly one of `operation`, `raw`, `client_response`, `assertion` must be there"
            ));
        }
        if step.expect.is_some() && step.expect_error.is_some() {
            return Err(format!("{name}: `expect` and `expect_error` exclude each other"));
        }
        if let Some(operation) = &step.operation
            && reading::operation(operation).is_none()
        {
            return Err(format!("{name}: no operation is called `{operation}`"));
        }
        if let Some(repeat) = &step.repeat {
            Condition::parse(&repeat.until).map_err(|reason| format!("{name}: repeat.until: {reason}"))?;
        }
        if step.client_response.is_some() && step.expect_parsed.is_none() {
            return Err(format!("{name}: a client step needs `expect_parsed`"));
        }
    }
    Ok(())
}

/// A file and all files it includes, each with its name. The variables of a master file are defaults for the included
/// files.
pub fn load(path: &Path) -> Result<Vec<(PathBuf, Document)>, BadDocument> {
    let mut loaded = Vec::new();
    let mut open: Vec<(PathBuf, BTreeMap<String, Value>, Option<String>)> =
        vec![(path.to_owned(), BTreeMap::new(), None)];
    while let Some((path, defaults, from)) = open.pop() {
        let shown = path.display().to_string();
        if loaded.len() >= MOST_INCLUDES {
            let reason = format!("more than {MOST_INCLUDES} files; do they include one another?");
            return Err(BadDocument { file: shown, reason });
        }
        let text = std::fs::read_to_string(&path).map_err(|error| match from {
            Some(file) => BadDocument { file, reason: format!("includes {shown}: {error}") },
            None => BadDocument { file: shown.clone(), reason: error.to_string() },
        })?;
        let mut document = parse(&shown, &text)?;
        for (name, value) in defaults {
            document.variables.entry(name).or_insert(value);
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        // Reversed, so that the first named file is read first.
        for name in document.include.iter().rev() {
            open.push((folder.join(name), document.variables.clone(), Some(shown.clone())));
        }
        loaded.push((path, document));
    }
    Ok(loaded)
}
