//! `docs/results/third-party-servers.md`: the lab's results on third-party SDKs, and the findings of the checks by
//! hand.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::agents::ThirdParty;
use super::verdicts::Row;
use crate::lab::Outcome;
use crate::process::output;
use crate::workspace::Workspace;

const PAGE: &str = "docs/results/third-party-servers.md";

pub fn write(workspace: &Workspace, results: &[(&ThirdParty, Outcome)], rows: &[Row]) -> Result<(), String> {
    let date = output(Command::new("date").args(["-u", "+%Y-%m-%d"]))?;
    let page = workspace.root.join(PAGE);
    fs::write(&page, render(date.trim(), results, rows)).map_err(|e| format!("{}: {e}", page.display()))?;
    println!("\n{PAGE} written");
    Ok(())
}

fn render(date: &str, results: &[(&ThirdParty, Outcome)], rows: &[Row]) -> String {
    let mut page = format!(
        "# Third-party SDKs as servers\n\n\
         `baton test` on agents that use third-party SDKs, unmodified, as their documentation shows. The agents are in\n\
         `interop/servers`; they know the `tck-` phrases and offer what the SDK offers. Made on {date} by\n\
         `cargo xtask interop --servers --write`, which installs the SDKs, starts each agent on a free port, runs all\n\
         generations and bindings of its card, and stops it.\n\n\
         **Every failure below was checked by hand**, against the specification and the exchanged bytes; the findings are kept in\n\
         `interop/servers/verdicts.tsv`. The command fails when a failure is not in that file, and when a listed one is gone.\n\n\
         | SDK | offers | level | generation and binding | passed | failed | skipped |\n|---|---|---|---|--:|--:|--:|\n"
    );
    for (agent, outcome) in results {
        for (place, counts) in &outcome.counts {
            line(
                &mut page,
                format_args!(
                    "| {} | {} | {} | {place} | {} | {} | {} |",
                    agent.package, agent.offers, outcome.level, counts.passed, counts.failed, counts.skipped
                ),
            );
        }
    }
    page.push_str(
        "\nSkipped is what the card does not advertise. *should* and *may* lower the level, but do not make a run fail.\n",
    );
    for (agent, outcome) in results {
        failures(&mut page, agent, outcome, rows);
    }
    page
}

fn failures(page: &mut String, agent: &ThirdParty, outcome: &Outcome, rows: &[Row]) {
    line(page, format_args!("\n## {}\n", agent.package));
    let mine: Vec<&Row> = rows.iter().filter(|row| row.agent == agent.name).collect();
    if mine.is_empty() {
        line(page, format_args!("Nothing failed."));
        return;
    }
    line(page, format_args!("| case | level | section | asks | what the SDK does | checked by hand |"));
    line(page, format_args!("|---|---|---|---|---|---|"));
    for row in mine {
        let failure = outcome.failures.iter().find(|failure| failure.case == row.case);
        let (level, asks) = failure.map_or(("", "did not fail this time"), |f| (&*f.level, &*f.name));
        let often = if row.sometimes { " (sometimes)" } else { "" };
        let (case, places) = (&row.case, row.places.join(", "));
        let cells = [level, &row.section, asks, &row.does, &row.verdict].map(escaped);
        line(page, format_args!("| `{case}` {places}{often} | {} |", cells.join(" | ")));
    }
}

fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|")
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(page, "{text}");
}

#[cfg(test)]
mod tests {
    use super::super::agents::ALL;
    use super::*;
    use crate::lab::{Counts, Failure};

    #[test]
    fn a_failure_stands_with_its_verdict() {
        let text = |text: &str| text.to_owned();
        let failure = Failure {
            case: text("V1-A-001"),
            place: text("1.0 rest"),
            name: text("A name"),
            level: text("must"),
            message: text("m"),
        };
        let row = Row {
            agent: text(ALL[0].name),
            case: text("V1-A-001"),
            places: vec![text("1.0 rest")],
            sometimes: true,
            section: text("3.1"),
            does: text("says a|b"),
            verdict: text("right: 3.1 says so"),
        };
        let counts = [(text("1.0 rest"), Counts { passed: 2, failed: 1, skipped: 0 })];
        let outcome = Outcome {
            level: text("partial"),
            counts: counts.into_iter().collect(),
            failures: vec![failure],
            ..Outcome::default()
        };
        let page = render("2026-01-02", &[(&ALL[0], outcome)], &[row]);
        assert!(page.contains("| partial | 1.0 rest | 2 | 1 | 0 |"), "{page}");
        let row =
            "| `V1-A-001` 1.0 rest (sometimes) | must | 3.1 | A name | says a\\|b | right: 3.1 says so |";
        assert!(page.contains(row), "{page}");
    }
}
