//! Compares several reports: different agents, versions of one agent, or before and after a change.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::html::{escaped, page};
use super::json::{Record, Report};
use super::text::{Paint, cut};
use crate::generation::{Binding, Generation};

/// The reports, each with its column name.
#[derive(Debug)]
pub struct Comparison {
    columns: Vec<(String, Report)>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    test: String,
    name: String,
    generation: Generation,
    binding: Binding,
    level: &'static str,
    /// Verdict and message per report; `None` if the report does not have the check.
    cells: Vec<Option<(String, String)>>,
}

impl Row {
    fn differs(&self) -> bool {
        let word = |cell: &Option<(String, String)>| cell.as_ref().map(|(word, _)| word.clone());
        self.cells.iter().any(|cell| word(cell) != word(&self.cells[0]))
    }
}

impl Comparison {
    /// `reports` come with their file names.
    pub fn of(reports: Vec<(String, Report)>) -> Self {
        let mut rows: BTreeMap<(String, Generation, Binding), Row> = BTreeMap::new();
        let count = reports.len();
        for (column, (_, report)) in reports.iter().enumerate() {
            for record in report.categories.records() {
                let key = (record.test.clone(), record.generation, record.binding);
                let row = rows.entry(key).or_insert_with(|| Row::empty(record, count));
                row.cells[column] = Some((record.verdict.clone(), record.message.clone()));
            }
        }
        let columns = named(reports);
        Comparison { columns, rows: rows.into_values().collect() }
    }

    pub fn differences(&self) -> usize {
        self.rows.iter().filter(|row| row.differs()).count()
    }

    fn shown(&self, all: bool) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| all || row.differs())
    }

    /// The lines above the checks: level and counts.
    fn head(&self) -> Vec<(&'static str, Vec<String>)> {
        let of =
            |value: fn(&Report) -> String| self.columns.iter().map(|(_, report)| value(report)).collect();
        vec![
            (
                "agent",
                of(|report| format!("{} {}", report.agent_name, report.agent_version).trim().to_owned()),
            ),
            ("tested", of(|report| report.test_date.clone())),
            (
                "level",
                of(|report| {
                    report
                        .conformance_level
                        .map_or_else(|| "not determined".to_owned(), |level| level.name().to_owned())
                }),
            ),
            ("passed", of(|report| report.summary.all.passed.to_string())),
            ("failed", of(|report| report.summary.all.failed.to_string())),
            ("skipped", of(|report| report.summary.all.skipped.to_string())),
        ]
    }

    pub fn text(&self, all: bool, colour: bool) -> String {
        const FIRST: usize = 34;
        const WIDTH: usize = 24;
        let paint = Paint(colour);
        let mut text = format!("{:<FIRST$}", "");
        for (name, _) in &self.columns {
            text += &paint.bold(&format!("{:<WIDTH$}", cut(name, Some(WIDTH - 1))));
        }
        text = text.trim_end().to_owned() + "\n";
        for (label, values) in self.head() {
            let values: String =
                values.iter().map(|value| format!("{:<WIDTH$}", cut(value, Some(WIDTH - 1)))).collect();
            let _ = writeln!(text, "{label:<FIRST$}{}", values.trim_end());
        }
        text.push('\n');
        for row in self.shown(all) {
            let place = format!("{} {} {}", row.test, row.generation, row.binding);
            let _ = write!(text, "{:<FIRST$}", cut(&place, Some(FIRST - 1)));
            for cell in &row.cells {
                let word = cell.as_ref().map_or("-", |(word, _)| word.as_str());
                let padded = format!("{word:<WIDTH$}");
                text += &match word {
                    "pass" => paint.green(&padded),
                    "fail" | "error" => paint.red(&padded),
                    "inconclusive" => paint.yellow(&padded),
                    _ => paint.dim(&padded),
                };
            }
            text = text.trim_end().to_owned() + "\n";
        }
        let _ = writeln!(text, "\n{}", self.last_line(all));
        text
    }

    pub fn markdown(&self, all: bool) -> String {
        let safe = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ");
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let names = self.columns.iter().map(|(name, _)| safe(name));
        let mut text = row([String::new()].into_iter().chain(names).collect());
        text += &format!("|---|{}\n", "---|".repeat(self.columns.len()));
        for (label, values) in self.head() {
            let values = values.iter().map(|value| safe(value));
            text += &row([format!("**{label}**")].into_iter().chain(values).collect());
        }
        for found in self.shown(all) {
            let cells = found.cells.iter().map(|cell| match cell {
                Some((word, _)) if word == "pass" => "✅ pass".to_owned(),
                Some((word, _)) if word == "fail" => "❌ fail".to_owned(),
                Some((word, _)) => word.clone(),
                None => "–".to_owned(),
            });
            let first = format!("`{}` {} {} ({})", found.test, found.generation, found.binding, found.level);
            text += &row([first].into_iter().chain(cells).collect());
        }
        text + "\n" + &self.last_line(all) + "\n"
    }

    pub fn html(&self, all: bool) -> String {
        let mut body = "<header><div><h1>A2A conformance, side by side</h1></div><button id=\"theme\" type=\"button\">Light / dark</button></header>".to_owned();
        let names: String =
            self.columns.iter().map(|(name, _)| format!("<th>{}</th>", escaped(name))).collect();
        let _ = write!(
            body,
            "<h2>Reports</h2><div class=\"scroll\"><table class=\"counts\"><tr><th></th>{names}</tr>"
        );
        for (label, values) in self.head() {
            let cells: String = values.iter().map(|value| format!("<td>{}</td>", escaped(value))).collect();
            let _ = write!(body, "<tr><td>{label}</td>{cells}</tr>");
        }
        let _ = write!(
            body,
            "</table></div><h2>Checks</h2><div class=\"scroll\"><table class=\"counts\"><tr><th></th>{names}</tr>"
        );
        for row in self.shown(all) {
            let cells: String = row
                .cells
                .iter()
                .map(|cell| match cell {
                    Some((word, message)) => format!(
                        "<td title=\"{}\"><span class=\"chip {}\">{}</span></td>",
                        escaped(message),
                        escaped(word),
                        if word == "inconclusive" { "open" } else { word }
                    ),
                    None => "<td>–</td>".to_owned(),
                })
                .collect();
            let _ = write!(
                body,
                "<tr><td><span class=\"mono\">{}</span> {} {} · {}<br><span class=\"facts\">{}</span></td>{cells}</tr>",
                escaped(&row.test),
                row.generation,
                row.binding,
                row.level,
                escaped(&row.name)
            );
        }
        body += "</table></div>";
        let _ = write!(body, "<p class=\"facts\">{}</p>", self.last_line(all));
        // The page's script uses these.
        body += "<span hidden><select id=\"category\"></select><select id=\"place\"></select><input id=\"words\"><span id=\"none\"></span></span>";
        page("A2A conformance, side by side", &body)
    }

    fn last_line(&self, all: bool) -> String {
        let (rows, differ) = (self.rows.len(), self.differences());
        let hint = if all || differ == rows { "" } else { "; --all shows the others" };
        match differ {
            0 => format!("{rows} checks, no difference{hint}"),
            1 => format!("{rows} checks, 1 differs{hint}"),
            _ => format!("{rows} checks, {differ} differ{hint}"),
        }
    }
}

impl Row {
    fn empty(record: &Record, count: usize) -> Self {
        Row {
            test: record.test.clone(),
            name: record.name.clone(),
            generation: record.generation,
            binding: record.binding,
            level: record.level.name(),
            cells: vec![None; count],
        }
    }
}

/// A column is named after its agent, or after its file if two agents have the same name.
fn named(reports: Vec<(String, Report)>) -> Vec<(String, Report)> {
    let name = |report: &Report| format!("{} {}", report.agent_name, report.agent_version).trim().to_owned();
    let names: Vec<String> = reports.iter().map(|(_, report)| name(report)).collect();
    let unique = |wanted: &str| names.iter().filter(|name| *name == wanted).count() == 1;
    let columns = reports.into_iter().zip(&names);
    columns
        .map(|((file, report), name)| {
            let name = if unique(name) && !name.is_empty() { name.clone() } else { file };
            (name, report)
        })
        .collect()
}
