//! The page: every goal with its figure and verdict, then every row with all servers.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::bench::Bench;
use crate::chart;
use crate::figures::{Figures, shown};
use crate::machine;
use crate::rows::{ROWS, Row, Verdict};

const HISTORY: &str = "## History";
const HISTORY_HEAD: &str = "| date | commit | run | goals reached | SendMessage CPU | SendMessage/s | durable sends/s |\n\
                            |---|---|---|--:|--:|--:|--:|\n";

const INTRODUCTION: &str = "\
# Benchmarks

Made by `cargo xtask bench`; [bench/README.md](../bench/README.md) says how, and what the servers are. All servers run
the same echo agent: working, one text artifact, completed. Server and generator have a core each, every point is a
fresh process, rounds are interleaved, a figure is the median of its rounds. Ratios within this run are what counts;
the absolute figures belong to this machine. CPU is user and system time of the server's process per request.
";

/// The page without the history, which only the file has.
pub fn text(bench: &Bench, figures: &Figures) -> String {
    let mut out = INTRODUCTION.to_owned();
    let (date, commit) = machine::when_and_what(&bench.sources);
    let _ = writeln!(
        out,
        "\nMachine: {}. {date}, commit {commit}{}.",
        machine::described(),
        bench.pick(", a quick run", "")
    );
    if bench.others > 0.5 {
        let load = shown(bench.others);
        let _ =
            writeln!(out, "\n**The machine was not idle (load {load} at the start): compare with care.**");
    }
    out += "\n![CPU per SendMessage](benchmarks.svg)\n\n## Goals\n\n| work | goal | measured | |\n|---|---|--:|---|\n";
    let chosen = || ROWS.iter().filter(|row| bench.is_chosen(row));
    for row in chosen() {
        for verdict in (row.judge)(figures) {
            let Verdict { goal, measured, reached } = verdict;
            let word = match reached {
                Some(true) => "reached",
                Some(false) => "**missed**",
                None => "not measured",
            };
            let _ = writeln!(out, "| {} | {goal} | {measured} | {word} |", row.work);
        }
    }
    chosen().for_each(|row| section(&mut out, row, figures));
    out
}

fn section(out: &mut String, row: &Row, figures: &Figures) {
    let _ = write!(out, "\n## {}: {}\n\n{}\n\n| server |", row.id, row.work, row.remark);
    row.columns.iter().for_each(|(_, heading)| *out += &format!(" {heading} |"));
    *out += "\n|---|";
    row.columns.iter().for_each(|_| *out += "--:|");
    *out += "\n";
    for subject in row.subjects {
        let values: Vec<String> = row
            .columns
            .iter()
            .map(|(name, _)| figures.get(row.id, name, subject).map_or("–".to_owned(), shown))
            .collect();
        if values.iter().any(|value| value != "–") {
            let _ = writeln!(out, "| {} | {} |", subject.shown, values.join(" | "));
        }
    }
    for (subject, why) in figures.notes(row.id) {
        let first = why.lines().next().unwrap_or_default();
        let _ = writeln!(out, "\nNot measured on {}: {first}.", subject.shown);
    }
}

/// Writes the page and its chart, and adds a line of history.
pub fn write(file: &Path, text: &str, bench: &Bench, figures: &Figures) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let old = fs::read_to_string(file).unwrap_or_default();
    let lines = old.split_once(HISTORY_HEAD).map_or("", |(_, lines)| lines);
    let history = format!("{HISTORY}\n\n{HISTORY_HEAD}{}{lines}", line(bench, figures));
    fs::write(file, format!("{text}\n{history}")).map_err(failed)?;
    fs::write(file.with_extension("svg"), chart::svg(figures)).map_err(failed)
}

fn line(bench: &Bench, figures: &Figures) -> String {
    use crate::subjects::BATON;
    let verdicts: Vec<Verdict> =
        ROWS.iter().filter(|row| bench.is_chosen(row)).flat_map(|row| (row.judge)(figures)).collect();
    let reached = verdicts.iter().filter(|verdict| verdict.reached == Some(true)).count();
    let (date, commit) = machine::when_and_what(&bench.sources);
    let figure = |row, name, unit: &str| match figures.get(row, name, &BATON) {
        Some(value) => format!("{}{unit}", shown(value)),
        None => "–".to_owned(),
    };
    format!(
        "| {date} | {commit} | {} | {reached} of {} | {} | {} | {} |\n",
        bench.pick("quick", "full"),
        verdicts.len(),
        figure("send", "cpu", " µs"),
        figure("throughput", "rate", ""),
        figure("durable", "rate", "")
    )
}
