//! `baton test compare`: reports side by side.

use std::path::PathBuf;

use baton_lab::report::compare::Comparison;
use baton_lab::report::json::Report;
use clap::ValueEnum;

use super::args::Colour;
use super::terminal;
use crate::exit::Failure;

#[derive(Debug, clap::Args)]
pub(super) struct Compare {
    /// JSON reports, as `--report NAME.json` writes them.
    #[arg(value_name = "REPORT", required = true, num_args = 2..)]
    reports: Vec<PathBuf>,

    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Show the checks with equal results, too.
    #[arg(long)]
    all: bool,

    /// Colours in text; auto: on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Html,
}

pub(super) fn run(args: &Compare) -> Result<(), Failure> {
    let mut reports = Vec::new();
    for path in &args.reports {
        let shown = path.display();
        let bad = |why: String| Failure::usage(format!("{shown}: {why}"));
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        let report: Report = serde_json::from_str(&text).map_err(|error| {
            bad(format!("this is not a report of `baton test --report NAME.json`: {error}"))
        })?;
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        reports.push((name, report));
    }
    let comparison = Comparison::of(reports);
    let text = match args.format {
        Format::Text => comparison.text(args.all, terminal::colours(args.color)),
        Format::Markdown => comparison.markdown(args.all),
        Format::Html => comparison.html(args.all),
    };
    terminal::print(&text);
    Ok(())
}
