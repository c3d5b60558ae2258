//! `docs/mission.md`: for every id of the ledger, the tests that carry it in their name and passed.
//!
//! It is made from test results: the JUnit file of nextest, and the output of the clients of the test command in
//! `target/interop/*.txt`. It has no times and no dates, so that the committed page can be compared with a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::interop::checks::{Verdict, verdicts};
use crate::workspace::Workspace;
use crate::{generated, interop, junit};

const LEDGER: &str = "docs/mission-ledger.tsv";
const PAGE: &str = "docs/mission.md";

/// Fails if the committed page is not what the last results give.
pub fn check(workspace: &Workspace) -> Result<(), String> {
    generated::compare(workspace, PAGE, &generate(workspace)?, "mission")?;
    println!("{PAGE} is up to date");
    Ok(())
}

pub fn write(workspace: &Workspace) -> Result<(), String> {
    let page = workspace.root.join(PAGE);
    fs::write(&page, generate(workspace)?).map_err(|e| format!("{}: {e}", page.display()))
}

/// Removes old results before a test run.
pub fn forget_results(workspace: &Workspace) -> Result<(), String> {
    match fs::remove_file(junit_file(workspace)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(format!("old test results: {e}")),
        _ => Ok(()),
    }
}

fn generate(workspace: &Workspace) -> Result<String, String> {
    let path = workspace.root.join(LEDGER);
    let ledger = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(render(&parse_ledger(&ledger)?, &all_passed(workspace)?))
}

/// The tests that passed, and the checks that clients of other SDKs passed, as `interop::client check`.
pub fn all_passed(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut tests = passed_tests(workspace)?;
    for (suite, output) in interop::tested_results(workspace) {
        let passed = verdicts(&output).into_iter().filter(|(_, verdict)| *verdict == Verdict::Passed);
        tests.extend(passed.map(|(test, _)| format!("interop::{suite} {test}")));
    }
    let with_provider = interop::oidc_results(workspace);
    tests.extend(with_provider.iter().map(|test| format!("interop::oidc-provider {test}")));
    Ok(tests)
}

/// The tests that passed in the last run, as `binary test`.
pub fn passed_tests(workspace: &Workspace) -> Result<Vec<String>, String> {
    let path = junit_file(workspace);
    let junit = fs::read_to_string(&path)
        .map_err(|e| format!("{}: {e}; `cargo xtask test --only nextest` makes it", path.display()))?;
    Ok(junit::passed(&junit).into_iter().map(|(binary, test)| format!("{binary} {test}")).collect())
}

fn junit_file(workspace: &Workspace) -> PathBuf {
    workspace.results().join("nextest/default/junit.xml")
}

struct Requirement {
    id: String,
    text: String,
    /// The part that is not built yet, so that no test can show it.
    missing: Option<String>,
}

fn parse_ledger(ledger: &str) -> Result<Vec<Requirement>, String> {
    let rows = ledger.lines().enumerate().filter(|(_, line)| !line.is_empty());
    rows.map(|(number, line)| match *line.split('\t').collect::<Vec<_>>() {
        [id, text, ref missing @ ..] if section(id).is_some() && missing.len() <= 1 => {
            let missing = missing.first().map(|missing| (*missing).to_owned());
            Ok(Requirement { id: id.to_owned(), text: text.to_owned(), missing })
        }
        _ => Err(format!("{LEDGER}:{}: not `X-00<TAB>requirement[<TAB>what is missing]`", number + 1)),
    })
    .collect()
}

fn section(id: &str) -> Option<&'static str> {
    match id.split_once('-')? {
        ("S", _) => Some("Server"),
        ("P", _) => Some("Protocol"),
        ("T", _) => Some("Interop tester"),
        _ => None,
    }
}

fn render(ledger: &[Requirement], tests: &[String]) -> String {
    let mut shown: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for test in tests {
        for id in ids(test) {
            shown.entry(id).or_default().insert(test);
        }
    }
    let has_tests = |requirement: &&Requirement| shown.contains_key(&requirement.id);
    let (closed, partly): (Vec<_>, Vec<_>) =
        ledger.iter().filter(has_tests).partition(|requirement| requirement.missing.is_none());
    let mut page = format!(
        "# Mission\n\n\
         Every requirement of the [ledger](mission-ledger.tsv) with the tests that carry its id in their name \
         and passed.\n\
         Generated from test results by `cargo xtask mission --write`; `cargo xtask test` fails when this page \
         is out of date.\n\n\
         {} of {} shown by tests, {} in part.\n",
        closed.len(),
        ledger.len(),
        partly.len()
    );
    let mut current = None;
    for requirement in ledger {
        if section(&requirement.id) != current {
            current = section(&requirement.id);
            write!(page, "\n## {}\n", current.expect("the ledger was checked")).expect("a string grows");
        }
        write!(page, "\n**{}** {}\n\n", requirement.id, requirement.text).expect("a string grows");
        match shown.get(&requirement.id) {
            Some(tests) => {
                for test in tests {
                    writeln!(page, "- `{test}`").expect("a string grows");
                }
            }
            None => page.push_str("- open\n"),
        }
        if let Some(missing) = &requirement.missing {
            writeln!(page, "- still missing: {missing}").expect("a string grows");
        }
    }
    page
}

/// The ledger ids in a test's name: a segment `s01` or `s_01` at the start, after `_`, `::` or the binary's name,
/// followed by `_` and a letter. If a digit follows, it is a section of the specification instead
/// (`s03_01_06_subscribe`).
fn ids(name: &str) -> BTreeSet<String> {
    let bytes = name.as_bytes();
    let starts = (0..bytes.len()).filter(|&at| at == 0 || matches!(bytes[at - 1], b'_' | b':' | b' '));
    starts
        .filter_map(|at| {
            let (letter, rest) = bytes[at..].split_first()?;
            let rest = rest.strip_prefix(b"_").unwrap_or(rest);
            match (letter, rest) {
                (b's' | b'p' | b't', [tens @ b'0'..=b'9', ones @ b'0'..=b'9', b'_', after, ..])
                    if !after.is_ascii_digit() =>
                {
                    let letter = letter.to_ascii_uppercase() as char;
                    Some(format!("{letter}-{}{}", *tens as char, *ones as char))
                }
                _ => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Vec<String> {
        ids(name).into_iter().collect()
    }

    #[test]
    fn ids_are_name_segments() {
        assert_eq!(found("s01_malformed_json"), ["S-01"]);
        assert_eq!(found("baton-server::it list::p06_filters"), ["P-06"]);
        assert_eq!(found("baton s_18_smoke"), ["S-18"]);
        assert_eq!(found("card_t02_and_s03_agree"), ["S-03", "T-02"]);
        assert_eq!(found("interop::python-1.3.0 jsonrpc p02_sends"), ["P-02"]);
    }

    #[test]
    fn other_names_hold_no_id() {
        for name in ["ls01_x", "s1_x", "s001_x", "s01", "s01x_y", "S01_x", "s03_01_06_subscribe", ""] {
            assert!(found(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn the_page_is_sorted_and_names_what_is_open() {
        let ledger =
            parse_ledger("S-01\tfirst\nS-02\tsecond\nP-01\tthird\nP-02\tfourth\thalf of it\n").unwrap();
        let tests = ["b it::s01_z", "a it::s01_y", "a it::s01_y", "a it::s99_no_such_id", "a it::p02_x"];
        let tests = tests.map(str::to_owned);
        let page = render(&ledger, &tests);
        let (_, body) = page.split_once("1 of 4 shown by tests, 1 in part.\n").expect("one id is whole");
        let expected = "\n## Server\n\n**S-01** first\n\n- `a it::s01_y`\n- `b it::s01_z`\n\n\
                        **S-02** second\n\n- open\n\n## Protocol\n\n**P-01** third\n\n- open\n\n\
                        **P-02** fourth\n\n- `a it::p02_x`\n- still missing: half of it\n";
        assert_eq!(body, expected);
    }

    #[test]
    fn a_bad_ledger_line_is_named() {
        assert_eq!(
            parse_ledger("S-01\tok\nwrong\n").err().unwrap(),
            format!("{LEDGER}:2: not `X-00<TAB>requirement[<TAB>what is missing]`")
        );
    }

    #[test]
    fn the_ledger_is_whole() {
        let ledger = parse_ledger(include_str!("../../docs/mission-ledger.tsv")).unwrap();
        let ids: Vec<&str> = ledger.iter().map(|requirement| requirement.id.as_str()).collect();
        let expected: Vec<String> = [("S", 18), ("P", 9), ("T", 9)]
            .into_iter()
            .flat_map(|(letter, last)| (1..=last).map(move |n| format!("{letter}-{n:02}")))
            .collect();
        assert_eq!(ids, expected);
    }
}
