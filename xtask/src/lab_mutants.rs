//! `cargo xtask lab-mutants`: runs every defect of the lab's test agent on every case, and writes the table of
//! `docs/lab.md`.
//!
//! The tests are in `crates/baton-lab/tests/it`: the test command runs each defect on the cases of its section and a
//! sample; here each runs on all cases. They write one file per table of defects, from which the page is made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::process::run as execute;
use crate::workspace::Workspace;

const PAGE: &str = "docs/lab.md";
const BEGIN: &str = "<!-- made by `cargo xtask lab-mutants`: from here -->";
const END: &str = "<!-- to here -->";

/// The result of one defect.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    name: String,
    wrong: String,
    /// The cases that had to fail.
    must: Vec<String>,
    /// The cases that failed.
    did: Vec<String>,
    /// The number of differences from the table of defects.
    problems: usize,
}

/// `only`: tables to run again; the results of the other tables are kept.
pub fn run(workspace: &Workspace, only: &[String]) -> Result<(), String> {
    let results = workspace.results().join("lab-mutants");
    if only.is_empty() && results.exists() {
        fs::remove_dir_all(&results).map_err(|e| format!("{}: {e}", results.display()))?;
    }
    fs::create_dir_all(&results).map_err(|e| format!("{}: {e}", results.display()))?;
    let mut tests = workspace.cargo(&[
        "nextest",
        "run",
        "--locked",
        "--package",
        "baton-lab",
        "--test",
        "it",
        "--profile",
        "mutants",
    ]);
    if only.is_empty() {
        tests.arg("mutants::");
    }
    tests.args(only.iter().map(|table| format!("mutants::{table}")));
    // The files contain failures, too: the page is written in any case, and the failure is reported afterwards.
    let ended = execute(tests.env("BATON_LAB_FULL", "1").env("BATON_LAB_RESULTS", &results));
    let rows = read(&results)?;
    if rows.is_empty() {
        return Err(format!("{} holds no results", results.display()));
    }
    let page = workspace.root.join(PAGE);
    let before = fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    let after = with_table(&before, &table(&rows))?;
    fs::write(&page, after).map_err(|e| format!("{}: {e}", page.display()))?;
    println!("\n{}\n{PAGE} written", summary(&rows));
    ended
}

fn read(folder: &Path) -> Result<Vec<Row>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        for line in text.lines() {
            rows.push(row(line).ok_or_else(|| format!("{}: no result: {line}", file.display()))?);
        }
    }
    Ok(rows)
}

/// Name, defect, cases that must fail, cases that failed, problems; separated by tabs.
fn row(line: &str) -> Option<Row> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().map(str::to_owned);
    let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
    Some(Row {
        name: next()?,
        wrong: next()?,
        must: words(next()?),
        did: words(next()?),
        problems: next()?.parse().ok()?,
    })
}

fn summary(rows: &[Row]) -> String {
    let caught = rows.iter().filter(|row| row.must.iter().all(|id| row.did.contains(id))).count();
    let cases: BTreeSet<&String> = rows.iter().flat_map(|row| &row.must).collect();
    let clean = rows.iter().filter(|row| row.problems == 0).count();
    let all = rows.len();
    format!(
        "{all} defects: {caught} caught, {clean} with no failure but of related cases; {} cases have one or more.",
        cases.len()
    )
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{}\n\n", summary(rows));
    text.push_str("| defect | what is wrong | fails | fails for the same reason |\n|---|---|---|---|\n");
    for Row { name, wrong, must, did, problems } in rows {
        let missed = must.iter().filter(|id| !did.contains(id)).map(|id| format!("**not {id}**"));
        let caught = must.iter().filter(|id| did.contains(id)).cloned().chain(missed);
        let caught: Vec<String> = caught.collect();
        let others: Vec<&str> = did.iter().filter(|id| !must.contains(id)).map(String::as_str).collect();
        let others = match others.len() {
            0..=8 => others.join(" "),
            many => format!("{many} cases, among them {}", others[..4].join(" ")),
        };
        let mark = if *problems == 0 { "" } else { " **(see the test)**" };
        writeln!(text, "| {name} | {wrong} | {} | {others}{mark} |", caught.join(" ")).expect("into memory");
    }
    text
}

/// The page with the new table between its markers.
fn with_table(page: &str, table: &str) -> Result<String, String> {
    let lost = || format!("{PAGE} does not contain the markers `{BEGIN}` and `{END}`");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(lost)?;
    let (_, after) = rest.split_once(END).ok_or_else(lost)?;
    Ok(format!("{before}{BEGIN}\n\n{}\n{END}{after}", table.trim_end().to_owned() + "\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let lines = [
            "send-does-not-wait\tA send is answered too soon.\tV1-SEND-002\tV1-GET-001 V1-SEND-002\t0",
            "lost\tNobody notices.\tV1-X-001\t\t1",
        ];
        lines.iter().map(|line| row(line).unwrap()).collect()
    }

    #[test]
    fn a_row_tells_who_noticed() {
        let table = table(&rows());
        assert!(table.starts_with("2 defects: 1 caught, 1 with no failure but of related cases; 2 cases"));
        assert!(table.contains("| V1-SEND-002 | V1-GET-001 |"), "{table}");
        assert!(table.contains("| **not V1-X-001** |  **(see the test)** |"), "{table}");
        assert_eq!(row("too\tshort"), None);
    }

    #[test]
    fn the_page_keeps_what_is_around_its_table() {
        let page = format!("# Lab\n\n{BEGIN}\nold\n{END}\n\nmore\n");
        let once = with_table(&page, "new\n").unwrap();
        assert_eq!(once, format!("# Lab\n\n{BEGIN}\n\nnew\n\n{END}\n\nmore\n"));
        assert_eq!(with_table(&once, "new\n").unwrap(), once);
        with_table("# Lab", "new").unwrap_err();
    }
}
