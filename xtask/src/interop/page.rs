//! `docs/interop.md`: clients and bindings by checks, from the results of the last runs. No times and no dates, so
//! that only a change of behaviour changes the page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::checks::{CHECKS, Verdict, verdicts};
use super::clients::{Binding, CLIENTS, Client};
use crate::workspace::Workspace;

const PAGE: &str = "docs/interop.md";
/// Written by hand: what was seen on the wire.
const NOTES: &str = "interop/what-clients-send.md";

/// One client over one binding, with what it printed; empty if it did not run.
struct Run {
    client: &'static Client,
    binding: &'static Binding,
    output: String,
}

pub fn write(workspace: &Workspace, results: &Path) -> Result<(), String> {
    let pairs = CLIENTS.iter().flat_map(|client| client.bindings.iter().map(move |b| (client, b)));
    let runs: Vec<Run> = pairs
        .map(|(client, binding)| {
            let output = fs::read_to_string(client.results(results, binding)).unwrap_or_default();
            Run { client, binding, output }
        })
        .collect();
    let notes = workspace.root.join(NOTES);
    let notes = fs::read_to_string(&notes).map_err(|e| format!("{}: {e}", notes.display()))?;
    let page = workspace.root.join(PAGE);
    fs::write(&page, render(&runs, &notes)).map_err(|e| format!("{}: {e}", page.display()))?;
    println!("\n{PAGE} written");
    Ok(())
}

fn render(runs: &[Run], notes: &str) -> String {
    let mut page = String::from(
        "# Interop\n\n\
         Clients that others made, unmodified, against the demo agent of Baton. Generated from results by \
         `cargo xtask interop --all --write`;\n\
         `cargo xtask test` runs those in bold. What a check asks for is said below the grid. The other way round, agents \
         of others under our lab,\n\
         has [a page of its own](results/third-party-servers.md).\n\n",
    );
    grid(&mut page, runs);
    page.push_str(
        "\n`ok`: passed. `fails`: see below. `–`: the client has no way to ask for it. `?`: did not run.\n\n\
         | column | check |\n|---|---|\n",
    );
    for check in CHECKS {
        line(&mut page, format_args!("| {} | {} (`{}`) |", check.shown, check.meaning, check.name));
    }
    failures(&mut page, runs);
    gaps(&mut page, runs);
    page.push('\n');
    page.push_str(notes.trim_end());
    page.push('\n');
    page
}

fn grid(page: &mut String, runs: &[Run]) {
    let columns: Vec<&str> = CHECKS.iter().map(|check| check.shown).collect();
    line(page, format_args!("| client | binding | {} |", columns.join(" | ")));
    line(page, format_args!("|---|---|{}", ":-:|".repeat(columns.len())));
    for run in runs {
        let cells: Vec<&str> = CHECKS.iter().map(|check| cell(&run.output, check.name)).collect();
        let bold = if run.client.tested { "**" } else { "" };
        let client = format!("{bold}{}{bold}", run.client.package);
        line(page, format_args!("| {client} | {} | {} |", run.binding.shown, cells.join(" | ")));
    }
}

fn cell(output: &str, check: &str) -> &'static str {
    match verdicts(output).into_iter().find(|(name, _)| *name == check) {
        Some((_, Verdict::Passed)) => "ok",
        Some((_, Verdict::Failed(_))) => "**fails**",
        Some((_, Verdict::Skipped(_))) => "–",
        None => "?",
    }
}

fn failures(page: &mut String, runs: &[Run]) {
    page.push_str("\n## What fails\n\n");
    let start = page.len();
    for run in runs {
        for (name, verdict) in verdicts(&run.output) {
            if let Verdict::Failed(_) = verdict {
                // What the client said may hold ids and ports; the list of known failures says it for good.
                let known = |k: &&super::clients::Known| k.binding == run.binding.argument && k.check == name;
                let reason = run.client.known.iter().find(known).map_or("not yet understood", |k| k.reason);
                let (client, binding) = (run.client.package, run.binding.shown);
                line(page, format_args!("- {client}, {binding}, {}: {reason}", shown(name)));
            }
        }
    }
    if page.len() == start {
        page.push_str("Nothing.\n");
    }
}

/// Why cells are empty, one line for each client and reason.
fn gaps(page: &mut String, runs: &[Run]) {
    page.push_str("\n## What clients cannot ask for\n\n");
    for client in CLIENTS {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for run in runs.iter().filter(|run| run.client.name == client.name) {
            for (name, verdict) in verdicts(&run.output) {
                let Verdict::Skipped(reason) = verdict else { continue };
                let place = reasons.iter().position(|(known, _)| *known == reason).unwrap_or_else(|| {
                    reasons.push((reason, Vec::new()));
                    reasons.len() - 1
                });
                if !reasons[place].1.contains(&shown(name)) {
                    reasons[place].1.push(shown(name));
                }
            }
        }
        for (reason, checks) in reasons {
            line(page, format_args!("- {}, {}: {reason}", client.package, checks.join(", ")));
        }
    }
}

fn shown(check: &str) -> &'static str {
    CHECKS.iter().find(|c| c.name == check).map_or("?", |c| c.shown)
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("a string grows");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_verdicts_and_their_reasons() {
        let client = &CLIENTS[0];
        let run = |output: &str| Run { client, binding: &client.bindings[0], output: output.to_owned() };
        let output = "ok p02_discovers_card\nFAIL p02_sends: at port 4711\nskip p02_gets_task: it cannot\n\
                      skip p02_cancels: it cannot\n";
        let page = render(&[run(output)], "## Notes\n");
        let row = page.lines().find(|line| line.starts_with("| **a2a-sdk 1.3.0** | JSON-RPC 1.0 |")).unwrap();
        assert!(row.contains("| ok | **fails** | ? | ? | – |"), "{row}");
        assert!(page.contains("- a2a-sdk 1.3.0, JSON-RPC 1.0, send: not yet understood\n"), "{page}");
        assert!(page.contains("- a2a-sdk 1.3.0, get, cancel: it cannot\n"), "{page}");
        assert!(!page.contains("4711"), "what changes from run to run stays out");
        assert!(page.ends_with("## Notes\n"));
    }
}
