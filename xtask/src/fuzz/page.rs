//! `docs/results/fuzz.md`: the figures of the last run, and one line of history per run. The findings on that page are
//! written by hand.

use std::fs;
use std::process::Command;

use super::Outcome;
use crate::process::output;
use crate::workspace::Workspace;

const PAGE: &str = "docs/results/fuzz.md";
const BEGIN: &str = "<!-- made by `cargo xtask fuzz --write`: from here -->";
const END: &str = "<!-- to here -->";
/// New lines of history are inserted above this.
const HISTORY: &str = "<!-- more history above -->";

pub fn write(workspace: &Workspace, engine: &str, outcomes: &[Outcome]) -> Result<(), String> {
    let path = workspace.root.join(PAGE);
    let page = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let date = output(Command::new("date").args(["-u", "+%F"]))?;
    let page = with_run(&page, date.trim(), engine, outcomes)?;
    fs::write(&path, page).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("{PAGE} written");
    Ok(())
}

fn with_run(page: &str, date: &str, engine: &str, outcomes: &[Outcome]) -> Result<String, String> {
    let lost = || format!("{PAGE} does not contain the markers `{BEGIN}`, `{END}` and `{HISTORY}`");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(lost)?;
    let (old, after) = rest.split_once(END).ok_or_else(lost)?;
    let (history, below) = after.split_once(HISTORY).ok_or_else(lost)?;
    let line = history_line(date, engine, outcomes);
    let table = table(old, date, engine, outcomes);
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{history}{line}\n{HISTORY}{below}"))
}

const HEADER: &str = "\
| target | date | by | executions | seconds | per second | started from | corpus | code reached | slowest | memory | result |
|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|
";

/// Targets that did not run keep their old row.
fn table(old: &str, date: &str, engine: &str, outcomes: &[Outcome]) -> String {
    let name_of = |row: &str| row.split('|').nth(1).unwrap_or_default().trim().to_owned();
    let rows = old.lines().filter(|row| row.starts_with("| ") && !row.starts_with("| target "));
    let mut rows: Vec<String> = rows.map(str::to_owned).collect();
    for outcome in outcomes {
        let row = row(date, engine, outcome);
        match rows.iter_mut().find(|old| name_of(old) == outcome.name) {
            Some(old) => *old = row,
            None => rows.push(row),
        }
    }
    rows.iter().fold(HEADER.to_owned(), |text, row| text + row + "\n")
}

fn row(date: &str, engine: &str, it: &Outcome) -> String {
    let per_second = if it.seconds > 0.0 { (it.executions as f64 / it.seconds) as u64 } else { 0 };
    let seen = |number: u64, unit: &str| {
        if number == 0 { "–".to_owned() } else { format!("{}{unit}", grouped(number)) }
    };
    format!(
        "| {} | {date} | {} | {} | {:.0} | {} | {} | {} | {} | {} | {} | {} |",
        it.name,
        short(engine),
        grouped(it.executions),
        it.seconds,
        grouped(per_second),
        it.seeds,
        it.corpus,
        seen(it.coverage, ""),
        if it.slowest >= 1.0 { format!("{:.0} ms", it.slowest) } else { "–".to_owned() },
        seen(it.peak_mib, " MiB"),
        if it.failed { "**failed**" } else { "nothing found" },
    )
}

fn short(engine: &str) -> &str {
    engine.split(',').next().unwrap_or(engine)
}

fn history_line(date: &str, engine: &str, outcomes: &[Outcome]) -> String {
    let executions: u64 = outcomes.iter().map(|it| it.executions).sum();
    let seconds: f64 = outcomes.iter().map(|it| it.seconds).sum();
    let failed = outcomes.iter().filter(|it| it.failed).count();
    let engine = short(engine);
    format!("| {date} | {engine} | {} | {} | {seconds:.0} | {failed} |", outcomes.len(), grouped(executions))
}

/// A line for the terminal.
pub fn line(it: &Outcome) -> String {
    let result = if it.failed { "FAILED" } else { "ok" };
    let Outcome { name, executions, seconds, corpus, coverage, .. } = it;
    format!(
        "{result:6} {name:16} {executions:>12} runs in {seconds:>6.1} s, corpus {corpus}, code reached {coverage}"
    )
}

/// `1234567` is `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_replaces_the_table_and_adds_a_line() {
        let page = format!("# Fuzz\n{BEGIN}\nold\n{END}\n\n| date |\n|---|\n{HISTORY}\n\n## Findings\n");
        let one =
            Outcome { name: "sse".to_owned(), executions: 1_234_567, seconds: 60.0, ..Outcome::default() };
        let two = Outcome { name: "calls".to_owned(), failed: true, ..Outcome::default() };
        let once = with_run(&page, "2026-01-02", "libFuzzer, guided", &[one, two]).unwrap();
        assert!(once.contains("| sse | 2026-01-02 | libFuzzer | 1,234,567 | 60 | 20,576 |"), "{once}");
        assert!(
            once.contains("| calls | 2026-01-02 |") && once.contains("**failed**") && !once.contains("old")
        );
        assert!(once.contains("| 2026-01-02 | libFuzzer | 2 | 1,234,567 | 60 | 1 |\n<!-- more"), "{once}");
        assert!(once.ends_with("\n\n## Findings\n"));
        let mended = Outcome { name: "calls".to_owned(), executions: 7, ..Outcome::default() };
        let twice = with_run(&once, "2026-01-03", "libFuzzer, guided", &[mended]).unwrap();
        assert!(
            twice.contains("| sse | 2026-01-02 |") && twice.contains("| calls | 2026-01-03 |"),
            "{twice}"
        );
        assert!(!twice.contains("**failed**"), "{twice}");
        with_run("# Fuzz", "", "", &[]).unwrap_err();
    }
}
