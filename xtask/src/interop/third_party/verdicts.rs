//! `interop/servers/verdicts.tsv`: every failure that the lab reports about a third-party SDK, checked by hand.
//!
//! A failure that is not in the file has not been checked; a row whose failure no longer occurs is outdated. Both fail
//! the run.

use std::fs;

use crate::lab::{Failure, Outcome};
use crate::workspace::Workspace;

const FILE: &str = "interop/servers/verdicts.tsv";
const COLUMNS: usize = 7;

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub agent: String,
    pub case: String,
    /// `1.0 jsonrpc`; a row of the file may name several bindings.
    pub places: Vec<String>,
    /// A race: the check sometimes passes.
    pub sometimes: bool,
    pub section: String,
    pub does: String,
    pub verdict: String,
}

impl Row {
    fn is_about(&self, agent: &str, failure: &Failure) -> bool {
        self.agent == agent && self.case == failure.case && self.places.contains(&failure.place)
    }
}

pub fn read(workspace: &Workspace) -> Result<Vec<Row>, String> {
    let text = fs::read_to_string(workspace.root.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let cells: Vec<&str> = line.split('\t').collect();
        let bad = |why: &str| format!("{FILE}:{number}: {why}");
        let [agent, case, places, when, section, does, verdict] = cells[..] else {
            return Err(bad(&format!("{COLUMNS} columns, separated by tabs, not {}", cells.len())));
        };
        let Some((generation, bindings)) = places.split_once(' ') else {
            return Err(bad("the third column is a generation and its bindings, such as `1.0 jsonrpc,rest`"));
        };
        if !matches!(when, "always" | "sometimes") {
            return Err(bad("the fourth column is `always` or `sometimes`"));
        }
        if [agent, case, section, does, verdict].iter().any(|cell| cell.is_empty()) {
            return Err(bad("a column is empty"));
        }
        rows.push(Row {
            agent: agent.to_owned(),
            case: case.to_owned(),
            places: bindings.split(',').map(|binding| format!("{generation} {binding}")).collect(),
            sometimes: when == "sometimes",
            section: section.to_owned(),
            does: does.to_owned(),
            verdict: verdict.to_owned(),
        });
    }
    Ok(rows)
}

/// Differences between the results and the file.
pub fn surprises(rows: &[Row], agent: &str, outcome: &Outcome) -> Vec<String> {
    let mut found: Vec<String> = outcome
        .failures
        .iter()
        .filter(|failure| !rows.iter().any(|row| row.is_about(agent, failure)))
        .map(|failure| {
            let Failure { case, place, level, message, .. } = failure;
            format!("{agent} {case} {place} ({level}): nobody has checked it: {}", short(message))
        })
        .collect();
    for row in rows.iter().filter(|row| row.agent == agent && !row.sometimes) {
        for place in &row.places {
            let still = |failure: &Failure| failure.case == row.case && failure.place == *place;
            if !outcome.failures.iter().any(still) {
                found.push(format!("{agent} {} {place}: is listed, but does not fail any more", row.case));
            }
        }
    }
    found
}

fn short(message: &str) -> String {
    message.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::agents;
    use super::*;

    fn failure(case: &str, place: &str) -> Failure {
        let text = |text: &str| text.to_owned();
        Failure {
            case: text(case),
            place: text(place),
            name: text("n"),
            level: text("must"),
            message: text("m"),
        }
    }

    #[test]
    fn unchecked_and_outdated_rows_surprise() {
        let rows = parse(
            "# a comment\none\tV1-A-001\t1.0 jsonrpc,rest\talways\t3.1\tdoes\tright\n\
             one\tV1-A-002\t1.0 rest\tsometimes\t3.1\tdoes\tright\ntwo\tV1-A-003\t1.0 rest\talways\t3\td\tr\n",
        )
        .unwrap();
        let with = |failures: &[Failure]| Outcome { failures: failures.to_vec(), ..Outcome::default() };
        let both = [failure("V1-A-001", "1.0 jsonrpc"), failure("V1-A-001", "1.0 rest")];
        assert!(surprises(&rows, "one", &with(&both)).is_empty());
        let found = surprises(&rows, "one", &with(&[both[0].clone(), failure("V1-A-003", "1.0 rest")]));
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("V1-A-003 1.0 rest (must): nobody has checked it"), "{found:?}");
        assert!(found[1].contains("V1-A-001 1.0 rest: is listed"), "{found:?}");
    }

    #[test]
    fn bad_rows_are_refused() {
        for row in [
            "a\tb",
            "a\tb\t1.0\talways\ts\td\tv",
            "a\tb\t1.0 rest\tnever\ts\td\tv",
            "a\tb\t1.0 rest\talways\t\td\tv",
        ] {
            assert!(parse(row).is_err(), "{row}");
        }
    }

    #[test]
    fn the_file_names_agents_that_there_are() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let rows = parse(&fs::read_to_string(root.join(FILE)).unwrap()).unwrap();
        for row in rows {
            assert!(agents::ALL.iter().any(|agent| agent.name == row.agent), "{}", row.agent);
        }
    }
}
