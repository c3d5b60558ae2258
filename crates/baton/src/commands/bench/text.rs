//! The result as text: fields, and tables in blocks.

use std::time::Duration;

use super::histogram::SHARES;
use super::plan::Pace;
use super::report::{Lost, Report, Row};
use super::tally::Errors;
use crate::output::text::Section;

pub(super) fn text(report: &Report) -> String {
    let mut section = Section::default();
    section.field("Agent", &report.agent);
    section.field("Interface", format!("{} {} {}", report.binding, report.version, report.url));
    if let Some(after) = report.stopped_after {
        section.field("Stopped", format!("by Ctrl-C after {}", time(after)));
    }
    load(&mut section, report);
    streams(&mut section, report);
    let rows: Vec<Row> = report.rows().into_iter().filter(|row| !row.is_redundant).collect();
    if !rows.is_empty() {
        section.block("Latency", &latency_table(&rows));
    }
    let errors = report.errors();
    if !errors.0.is_empty() {
        section.block("Errors", &error_table(&errors));
    }
    let notes = report.notes();
    if !notes.is_empty() {
        section.block("Notes", &notes.join("\n"));
    }
    section.end()
}

fn load(section: &mut Section, report: &Report) {
    let (Some(plan), Some(load)) = (&report.plan.load, &report.load) else { return };
    let tally = &load.tally;
    section.field(
        "Load",
        format!("{}, {}, at most {} at once", plan.mix, plan.words(), report.plan.concurrency),
    );
    section.field(
        "Sent",
        match plan.pace {
            Pace::Open { .. } => format!("{} of {} requests", tally.sent, plan.most),
            Pace::Max => format!("{} requests ({} at most)", tally.sent, plan.most),
        },
    );
    section.field("Answered", format!("{} ({:.1} per second)", tally.answered, report.per_second(load)));
    section.field("Failed", tally.failed.to_string());
    let unanswered = tally.sent.saturating_sub(tally.answered + tally.failed);
    for (label, count) in
        [("Unanswered", unanswered), ("Sent late", tally.waited), ("Not sent", tally.unsent)]
    {
        if count > 0 {
            section.field(label, count.to_string());
        }
    }
    if !tally.outcomes.is_empty() {
        section.field("Outcomes", counts(tally.outcomes.iter().map(|(name, count)| (*name, *count))));
    }
}

fn streams(section: &mut Section, report: &Report) {
    if let Some(held) = &report.held {
        section.field(
            "Held streams",
            format!(
                "{} of {} opened in {}, {} still open at the end",
                held.opened,
                held.wanted,
                time(held.opened_in),
                held.held
            ),
        );
        if let Some(storm) = &held.storm {
            let last = storm.times.summary().max.map(|last| format!(", the last after {}", time(last)));
            let repeated = match storm.repeated_tries {
                0 => String::new(),
                tries => format!(", {tries} tries had to be repeated"),
            };
            section.field(
                "Storm",
                format!(
                    "{} streams cut at once, {} back{}{repeated}",
                    storm.cut,
                    storm.back,
                    last.unwrap_or_default()
                ),
            );
        }
    }
    let Some(streams) = report.streams() else { return };
    section.field("Events", format!("{} in {} streams", streams.events, streams.count));
    let unknown = "unknown: they have no ids".to_owned();
    let is_numbered = streams.order.numbered > 0 || streams.events == 0;
    section.field(
        "Events lost",
        match report.lost(&streams) {
            Lost::Counted(lost) if report.checked.streams == streams.count => lost.to_string(),
            Lost::Counted(lost) => {
                format!("{lost} ({} of {} streams checked)", report.checked.streams, streams.count)
            }
            Lost::NotChecked => "not checked".to_owned(),
            Lost::NoIds => unknown.clone(),
            Lost::NotAllReplayed(0) => "unknown: see the notes".to_owned(),
            Lost::NotAllReplayed(lost) => format!("{lost} or more: see the notes"),
        },
    );
    let known = |count: u64| if is_numbered { count.to_string() } else { unknown.clone() };
    section.field("Events doubled", known(streams.order.repeated));
    section.field("Events out of order", known(streams.order.out_of_order));
    section.field("Streams ended", counts(streams.endings.iter().map(|(name, count)| (*name, *count))));
    let checked = &report.checked;
    if checked.agreeing + checked.differing > 0 {
        section.field(
            "Tasks compared",
            format!("{} of {} agree with GetTask", checked.agreeing, checked.agreeing + checked.differing),
        );
    }
}

fn counts<'a>(of: impl Iterator<Item = (&'a str, u64)>) -> String {
    of.map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// Columns of equal width, figures to the right.
fn latency_table(rows: &[Row]) -> String {
    let mut table: Vec<Vec<String>> = Vec::new();
    let names = SHARES.iter().map(|(name, ..)| *name).chain(["max"]);
    table.push(std::iter::once("").chain(names).map(str::to_owned).collect());
    for row in rows {
        let times = row.summary.shares.iter().chain([&row.summary.max]);
        let shown = times.map(|value| value.map_or_else(|| "-".to_owned(), time));
        table.push(std::iter::once(row.label.clone()).chain(shown).collect());
    }
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line += &format!("  {cell:>width$}");
        }
        line
    };
    table.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn error_table(errors: &Errors) -> String {
    let widest = errors.0.values().map(|failures| failures.count.to_string().len()).max().unwrap_or_default();
    let line = |(name, failures): (&String, &super::tally::Failures)| {
        let example = match failures.example.as_str() {
            "" => String::new(),
            example => format!(": {example}"),
        };
        format!("{:>widest$}  {name}{example}", failures.count)
    };
    errors.0.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Three digits, in milliseconds or seconds: `0.412 ms`, `12.3 ms`, `1.23 s`.
pub(super) fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = if seconds >= 0.9995 { (seconds, "s") } else { (seconds * 1e3, "ms") };
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::histogram::Summary;

    #[test]
    fn the_table_is_aligned() {
        let row = |label: &str, times: [Option<u64>; 4], max| {
            let time = |time: Option<u64>| time.map(Duration::from_micros);
            let summary = Summary { count: 1, shares: times.map(time), max: time(Some(max)) };
            Row { key: ("", ""), label: label.to_owned(), summary, is_redundant: false }
        };
        let rows = [
            row("send", [Some(412), Some(1_234), Some(12_345), Some(1_234_567)], 61_000_000),
            row("storm, back after", [Some(10_000), None, None, None], 123_456),
        ];
        let expected = [
            "                        p50      p90      p99   p99.9     max",
            "send               0.412 ms  1.23 ms  12.3 ms  1.23 s  61.0 s",
            "storm, back after   10.0 ms        -        -       -  123 ms",
        ];
        assert_eq!(latency_table(&rows).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn times_have_three_digits() {
        for (microseconds, shown) in [
            (0, "0.000 ms"),
            (412, "0.412 ms"),
            (1_234, "1.23 ms"),
            (12_345, "12.3 ms"),
            (123_456, "123 ms"),
            (999_499, "999 ms"),
            (999_500, "1.00 s"),
            (1_234_567, "1.23 s"),
            (61_000_000, "61.0 s"),
            (600_000_000, "600 s"),
        ] {
            assert_eq!(time(Duration::from_micros(microseconds)), shown);
        }
    }
}
