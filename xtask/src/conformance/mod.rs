//! `docs/conformance.md`: for every numbered line of the specification's checklist, the lab cases and the tests that
//! show that Baton keeps it, or why it does not apply.
//!
//! The lines and their lab cases stand in the lab's checklists; the ledger adds tests and verdicts. A lab case is
//! evidence if it passed just now on one of our agents, a test if it ran and passed.

mod lab_agents;
mod ledger;
mod page;

use std::fs;

use crate::agent::Build;
use crate::generated;
use crate::mission::all_passed;
use crate::workspace::Workspace;

const PAGE: &str = "docs/conformance.md";

#[derive(Debug, Default, PartialEq)]
pub struct Choice {
    write: bool,
    debug: bool,
}

impl Choice {
    pub fn parse(flags: &[String]) -> Result<Self, String> {
        let mut choice = Self::default();
        for flag in flags {
            match flag.as_str() {
                "--write" => choice.write = true,
                "--debug" => choice.debug = true,
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(choice)
    }
}

/// Fails if a line has no verdict, if evidence did not pass, or if the committed page is not what the last results give.
pub fn check(workspace: &Workspace) -> Result<(), String> {
    run(workspace, &Choice::default())
}

pub fn run(workspace: &Workspace, choice: &Choice) -> Result<(), String> {
    let build = if choice.debug { Build::Debug } else { Build::Release };
    let lines = ledger::read(workspace)?;
    let tests = all_passed(workspace)?;
    let lab = lab_agents::passed(workspace, build)?;
    let shown = page::judge(&lines, &tests, &lab)?;
    let fresh = page::render(&shown);
    if choice.write {
        let page = workspace.root.join(PAGE);
        fs::write(&page, fresh).map_err(|e| format!("{}: {e}", page.display()))?;
    } else {
        generated::compare(workspace, PAGE, &fresh, "conformance")?;
    }
    println!("{PAGE}: {}", page::summary(&shown));
    Ok(())
}
