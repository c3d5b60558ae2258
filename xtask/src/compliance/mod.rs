//! `docs/cli-compliance.yaml`: for every requirement of the A2A CLI specification, whether it is met, and the tests that show
//! it. The form is that of the specification's own report.
//!
//! It is made from test results: a test or a check is evidence for the ids in its name (`cli_send_001`), if it ran and
//! passed. A requirement without evidence fails, unless `docs/cli-requirements.tsv` says that it is open.

mod evidence;
mod report;

use std::fs;
use std::process::Command;

use self::evidence::Evidence;
use self::report::Report;
use crate::mission::passed_tests;
use crate::workspace::Workspace;
use crate::{generated, interop, process};

const REGISTRY: &str = "docs/cli-requirements.tsv";
const PAGE: &str = "docs/cli-compliance.yaml";

/// Fails if a requirement is not shown, or if the committed file is not what the last results give.
pub fn check(workspace: &Workspace) -> Result<(), String> {
    let committed = fs::read_to_string(workspace.root.join(PAGE)).unwrap_or_default();
    // The date of the report is no result.
    let date = report::date_of(&committed).unwrap_or("2026-01-01");
    let report = generate(workspace)?;
    generated::compare(workspace, PAGE, &report.render(date), "compliance")?;
    println!("{PAGE} is up to date: {}", report.summary());
    report.problems().map_or(Ok(()), Err)
}

/// Writes the file, also if something is not shown: then it says so.
pub fn write(workspace: &Workspace) -> Result<(), String> {
    let page = workspace.root.join(PAGE);
    let committed = fs::read_to_string(&page).unwrap_or_default();
    let report = generate(workspace)?;
    let unchanged = report::date_of(&committed).is_some_and(|date| report.render(date) == committed);
    if !unchanged {
        let today = process::output(Command::new("date").args(["-u", "+%F"]))?;
        fs::write(&page, report.render(today.trim())).map_err(|e| format!("{}: {e}", page.display()))?;
    }
    println!("{PAGE}: {}", report.summary());
    report.problems().map_or(Ok(()), Err)
}

fn generate(workspace: &Workspace) -> Result<Report, String> {
    let path = workspace.root.join(REGISTRY);
    let registry = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let requirements = evidence::parse_registry(&registry, REGISTRY)?;
    let checks = interop::command_results(workspace);
    if let Some((suite, _)) = checks.iter().find(|(_, output)| output.is_empty()) {
        return Err(format!("no results of {suite}; `cargo xtask interop --client` makes them"));
    }
    let evidence = Evidence::collect(&requirements, &passed_tests(workspace)?, &checks)?;
    Ok(Report { requirements, evidence, version: version(workspace)? })
}

/// The version of the tool.
fn version(workspace: &Workspace) -> Result<String, String> {
    let path = workspace.root.join("Cargo.toml");
    let manifest = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| "Cargo.toml has no version".to_owned())
}
