//! The available cases, and the user's selection.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_lab::case::Case;
use baton_lab::{plan, suites};

use super::args::RunArgs;
use super::as_server;
use crate::exit::Failure;

/// The built-in cases, or those of the files that the user names.
pub(super) fn cases(args: &RunArgs) -> Result<Vec<Arc<Case>>, Failure> {
    if args.suite.is_empty() {
        return suites::embedded().map_err(|error| Failure::failed(error.to_string()));
    }
    let mut all: Vec<Arc<Case>> = Vec::new();
    for path in &args.suite {
        let found = suites::from_path(path, !args.no_corrections);
        for case in found.map_err(|error| Failure::usage(error.to_string()))? {
            // A master file and its folder name the same cases twice.
            let twin = |other: &&Arc<Case>| other.id() == case.id() && other.source.file == case.source.file;
            if all.iter().find(twin).is_none() {
                all.push(case);
            }
        }
    }
    Ok(all)
}

/// Every word of `--select` must match something: a typing error must not look like a pass.
pub(super) fn check_words(select: &[String], cases: &[Arc<Case>]) -> Result<(), Failure> {
    for word in select {
        let wanted = word.trim_start_matches('!');
        let one = [wanted.to_owned()];
        if !wanted.is_empty() && cases.iter().any(|case| plan::selects(&one, case)) {
            continue;
        }
        if as_server::cases().any(|case| plan::selects(&one, &case)) {
            return Err(Failure::usage(format!(
                "--select {word}: this is a rule for clients; add --as-server"
            )));
        }
        let known = vocabulary(cases);
        let hint = did_you_mean(wanted, known.iter().map(String::as_str));
        return Err(Failure::usage(format!(
            "--select {word}: no check, section, category or tag is called that{hint}"
        )));
    }
    Ok(())
}

/// The case with that id.
pub(super) fn case_of<'a>(id: &str, cases: &'a [Arc<Case>]) -> Result<&'a Arc<Case>, Failure> {
    let found = cases.iter().find(|case| case.id().eq_ignore_ascii_case(id));
    found.ok_or_else(|| {
        let hint = did_you_mean(id, cases.iter().map(|case| case.id()));
        Failure::usage(format!("no check is called `{id}`{hint}; --list shows all"))
    })
}

/// All words that a selection can use.
fn vocabulary(cases: &[Arc<Case>]) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for case in cases {
        let test = &case.test;
        words.insert(test.id.clone());
        words.extend(test.id.match_indices('-').map(|(at, _)| test.id[..at].to_owned()));
        words.extend(test.tags.iter().cloned());
        words.insert(case.category.name().to_owned());
        words.insert(test.level.name().to_owned());
        words.insert(case.source.suite_id.clone());
        words.extend(test.section.clone());
    }
    words
}

/// `; did you mean …?`, or nothing.
pub(super) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    const ALIKE: f64 = 0.82;
    let typed = word.to_ascii_lowercase();
    let score = |known: &str| strsim::jaro_winkler(&typed, &known.to_ascii_lowercase());
    let mut near: Vec<(f64, &str)> =
        known.map(|known| (score(known), known)).filter(|(score, _)| *score > ALIKE).collect();
    near.sort_by(|one, two| two.0.total_cmp(&one.0));
    near.dedup_by_key(|(_, known)| *known);
    let names: Vec<String> = near.into_iter().take(3).map(|(_, known)| format!("`{known}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_offered() {
        let known = ["streaming", "lifecycle", "CORE-SEND-001"];
        assert_eq!(did_you_mean("streeming", known.into_iter()), "; did you mean `streaming`?");
        assert_eq!(did_you_mean("core-send-01", known.into_iter()), "; did you mean `CORE-SEND-001`?");
        assert_eq!(did_you_mean("xyz", known.into_iter()), "");
    }
}
