//! Our own suites, which are embedded, and other suites, from files.

use std::path::Path;
use std::sync::Arc;

use crate::acts::corrections;
use crate::acts::document::{self, BadDocument, Document};
use crate::case::{Case, Category, Source};
use crate::generation::Generation;

/// File name and text of each embedded suite; made by `build.rs`.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/suites.rs"));

/// The cases of our own suites.
pub fn embedded() -> Result<Vec<Arc<Case>>, BadDocument> {
    let mut cases = Vec::new();
    for (file, text) in EMBEDDED {
        let document = document::parse(file, text)?;
        cases.extend(cases_of(file, document, true, false)?);
    }
    Ok(cases)
}

/// The cases of a file, or of every `*.acts.yaml` in a folder.
pub fn from_path(path: &Path, correct: bool) -> Result<Vec<Arc<Case>>, BadDocument> {
    let bad = |reason: String| BadDocument { file: path.display().to_string(), reason };
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| bad(error.to_string()))?;
        files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        let is_suite = |path: &std::path::PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.ends_with(".acts.yaml") || name.ends_with(".acts.yml") || name.ends_with(".acts.json")
        };
        files.retain(is_suite);
        files.sort();
        if files.is_empty() {
            return Err(bad("there is no *.acts.yaml file in this folder".to_owned()));
        }
    }
    let mut cases = Vec::new();
    for file in files {
        for (file, document) in document::load(&file)? {
            cases.extend(cases_of(&file.display().to_string(), document, false, correct)?);
        }
    }
    Ok(cases)
}

fn cases_of(
    file: &str,
    document: Document,
    embedded: bool,
    correct: bool,
) -> Result<Vec<Arc<Case>>, BadDocument> {
    let bad = |reason: String| BadDocument { file: file.to_owned(), reason };
    let minor = document.spec_version.split('.').take(2).collect::<Vec<_>>().join(".");
    let generation: Generation = minor.parse().map_err(bad)?;
    let mut cases = Vec::new();
    for suite in document.suites {
        let source = Arc::new(Source {
            file: file.to_owned(),
            suite_id: suite.id.clone(),
            suite_name: suite.name.clone(),
            spec_version: document.spec_version.clone(),
            variables: document.variables.clone(),
            embedded,
        });
        for mut test in suite.tests {
            test.tags.extend(suite.tags.iter().cloned());
            let written_level = test.level;
            let corrections = if correct { corrections::apply(&mut test) } else { Vec::new() };
            let category = match &test.category {
                Some(name) => Category::named(name)
                    .ok_or_else(|| bad(format!("{}: no category is called `{name}`", test.id)))?,
                None => category_of(&test.id),
            };
            let source = Arc::clone(&source);
            let test = Arc::new(test);
            cases.push(Arc::new(Case { test, category, generation, source, corrections, written_level }));
        }
    }
    Ok(cases)
}

/// The report's category for the first word of an id.
fn category_of(id: &str) -> Category {
    let mut words = id.split('-');
    match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
        ("INTEROP" | "CLIENT", _) => Category::Interop,
        ("CARD", _) => Category::AgentCard,
        ("STREAM", _) | (_, "SSE") => Category::Streaming,
        (_, "ERR" | "CAP" | "AUTH") | ("SEC" | "VER", _) => Category::ErrorHandling,
        _ => Category::Lifecycle,
    }
}

#[cfg(test)]
mod tests;
