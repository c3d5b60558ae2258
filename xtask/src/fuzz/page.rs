//! `docs/results/fuzz.md`: the figures of the last run, and one line for each before it. What was found is told by people.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use super::Outcome;
use crate::process::output;
use crate::workspace::Workspace;

const PAGE: &str = "docs/results/fuzz.md";
const BEGIN: &str = "<!-- made by `cargo xtask fuzz --write`: from here -->";
const END: &str = "<!-- to here -->";
/// New lines of history go above it.
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
    let lost = || format!("{PAGE} has lost its marks `{BEGIN}`, `{END}` and `{HISTORY}`");
    let (before, rest) = page.split_once(BEGIN).ok_or_else(lost)?;
    let (_, after) = rest.split_once(END).ok_or_else(lost)?;
    let (history, below) = after.split_once(HISTORY).ok_or_else(lost)?;
    let line = history_line(date, engine, outcomes);
    Ok(format!(
        "{before}{BEGIN}\n\n{}\n{END}{history}{line}\n{HISTORY}{below}",
        table(date, engine, outcomes)
    ))
}

fn table(date: &str, engine: &str, outcomes: &[Outcome]) -> String {
    let mut text = format!("{date}, {engine}.\n\n");
    text += "| target | executions | seconds | per second | started from | corpus | code reached | slowest | memory | result |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n";
    for it in outcomes {
        let per_second = if it.seconds > 0.0 { (it.executions as f64 / it.seconds) as u64 } else { 0 };
        let seen = |number: u64, unit: &str| {
            if number == 0 { "–".to_owned() } else { format!("{}{unit}", grouped(number)) }
        };
        writeln!(
            text,
            "| {} | {} | {:.0} | {} | {} | {} | {} | {} | {} | {} |",
            it.name,
            grouped(it.executions),
            it.seconds,
            grouped(per_second),
            it.seeds,
            it.corpus,
            seen(it.coverage, ""),
            if it.slowest >= 1.0 { format!("{:.0} ms", it.slowest) } else { "< 1 ms".to_owned() },
            seen(it.peak_mib, " MiB"),
            if it.failed { "**failed**" } else { "nothing found" },
        )
        .expect("into memory");
    }
    text
}

fn history_line(date: &str, engine: &str, outcomes: &[Outcome]) -> String {
    let executions: u64 = outcomes.iter().map(|it| it.executions).sum();
    let seconds: f64 = outcomes.iter().map(|it| it.seconds).sum();
    let failed = outcomes.iter().filter(|it| it.failed).count();
    let engine = engine.split(',').next().unwrap_or(engine);
    format!("| {date} | {engine} | {} | {} | {seconds:.0} | {failed} |", outcomes.len(), grouped(executions))
}

/// For the terminal.
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
        assert!(once.contains("| sse | 1,234,567 | 60 | 20,576 |"), "{once}");
        assert!(once.contains("| calls | 0 |") && once.contains("**failed**") && !once.contains("old"));
        assert!(once.contains("| 2026-01-02 | libFuzzer | 2 | 1,234,567 | 60 | 1 |\n<!-- more"), "{once}");
        assert!(once.ends_with("\n\n## Findings\n"));
        let twice = with_run(&once, "2026-01-03", "libFuzzer, guided", &[]).unwrap();
        assert_eq!(twice.matches("| libFuzzer |").count(), 2);
        with_run("# Fuzz", "", "", &[]).unwrap_err();
    }
}
