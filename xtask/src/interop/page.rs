//! `docs/interop.md`: clients and bindings by checks, from the results of the last runs. No times and no dates, so
//! that only a change of behaviour changes the page.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::checks::{
    AUTH_CHECKS, CHECKS, CLIENT_CHECKS, Check, MESSAGE_CHECKS, Verdict, WEBHOOK_CHECKS, verdicts,
};
use super::clients::{Binding, CLIENTS, Client};
use super::{auth, descriptors, our_client, signing, webhooks};
use crate::workspace::Workspace;

const PAGE: &str = "docs/interop.md";
/// Written by hand: what was seen on the wire.
const NOTES: &str = "interop/what-clients-send.md";
const WEBHOOKS: &str = "## Webhooks";
/// The headings that follow it, each after the one before.
const MESSAGES: &str = "## Messages of gRPC";
const SIGNED_CARDS: &str = "## Signed cards";
const OUR_CLIENT: &str = "## Baton's client";
const WITH_CREDENTIALS: &str = "## With credentials";
const FAILS: &str = "## What fails";

/// One client over one binding, with its output; empty if it did not run.
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
    let known = auth_runs(results);
    let notes = workspace.root.join(NOTES);
    let notes = fs::read_to_string(&notes).map_err(|e| format!("{}: {e}", notes.display()))?;
    let page = workspace.root.join(PAGE);
    fs::write(&page, render(&runs, &known, &notes, results))
        .map_err(|e| format!("{}: {e}", page.display()))?;
    println!("\n{PAGE} written");
    Ok(())
}

/// Writes only the part about credentials; the rest of the page stays.
pub fn write_auth(workspace: &Workspace, results: &Path) -> Result<(), String> {
    replace(workspace, WITH_CREDENTIALS, FAILS, |page| with_credentials(page, &auth_runs(results)))
}

/// Writes only the part about webhooks.
pub fn write_webhooks(workspace: &Workspace, results: &Path) -> Result<(), String> {
    replace(workspace, WEBHOOKS, MESSAGES, |page| with_webhooks(page, results))
}

/// Writes only the part about the messages of gRPC.
pub fn write_messages(workspace: &Workspace, results: &Path) -> Result<(), String> {
    replace(workspace, MESSAGES, SIGNED_CARDS, |page| with_messages(page, results))
}

/// Writes only the part about signed cards.
pub fn write_signing(workspace: &Workspace, results: &Path) -> Result<(), String> {
    replace(workspace, SIGNED_CARDS, OUR_CLIENT, |page| with_signed_cards(page, results))
}

/// Writes only the part about our client.
pub fn write_our_client(workspace: &Workspace, results: &Path) -> Result<(), String> {
    replace(workspace, OUR_CLIENT, WITH_CREDENTIALS, |page| with_our_client(page, results))
}

/// Replaces the section with this heading, up to the heading that follows.
fn replace(
    workspace: &Workspace,
    heading: &str,
    next: &str,
    write: impl FnOnce(&mut String),
) -> Result<(), String> {
    let page = workspace.root.join(PAGE);
    let failed = |e| format!("{}: {e}", page.display());
    let text = fs::read_to_string(&page).map_err(failed)?;
    let start = text.find(heading).or_else(|| text.find(next));
    let (before, rest) = text.split_at(start.ok_or_else(|| format!("the page has no `{next}`"))?);
    let after = rest.find(next).map_or("", |at| &rest[at..]);
    let mut new = before.to_owned();
    write(&mut new);
    new.push('\n');
    new.push_str(after);
    fs::write(&page, new).map_err(failed)?;
    println!("\n{PAGE} written");
    Ok(())
}

/// Up to the next heading.
fn with_our_client(page: &mut String, results: &Path) {
    page.push_str(OUR_CLIENT);
    our_client::render(page, results);
}

/// Up to the next heading.
fn with_signed_cards(page: &mut String, results: &Path) {
    page.push_str(SIGNED_CARDS);
    signing::render(page, results);
}

/// Up to the next heading.
fn with_messages(page: &mut String, results: &Path) {
    page.push_str(MESSAGES);
    page.push_str(
        "\n\nBaton's `.proto` files are its own. They are compared with the descriptors inside the official Python \
         packages, in both\ndirections, and the packages read Baton's golden messages. `cargo xtask interop --messages \
         --write` writes this part alone.\n\n",
    );
    let columns: Vec<&str> = MESSAGE_CHECKS.iter().map(|check| check.shown).collect();
    line(page, format_args!("| package | messages | {} | counted |", columns.join(" | ")));
    line(page, format_args!("|---|---|{}---|", ":-:|".repeat(columns.len())));
    for (client, messages) in descriptors::clients() {
        let output = fs::read_to_string(descriptors::results(results, client)).unwrap_or_default();
        let cells: Vec<&str> = MESSAGE_CHECKS.iter().map(|check| cell(&output, check.name)).collect();
        let counted = descriptors::counted(&output).join("; ");
        line(
            page,
            format_args!("| **{}** | `{messages}` | {} | {counted} |", client.package, cells.join(" | ")),
        );
    }
    page.push('\n');
    legend(page, MESSAGE_CHECKS);
}

/// Up to the next heading.
fn with_webhooks(page: &mut String, results: &Path) {
    let run = |(client, binding)| {
        let output = fs::read_to_string(webhooks::results(results, client, binding)).unwrap_or_default();
        Run { client, binding, output }
    };
    let runs: Vec<Run> = webhooks::runs(true).map(run).collect();
    page.push_str(WEBHOOKS);
    page.push_str(
        "\n\nThe official clients register [webhooks](webhooks.md) at a receiver that the check runs on this machine. It \
         reads what\ncomes into the types of the SDK, strictly: protobuf without unknown fields, pydantic models that \
         must keep every member, the\nJavaScript types' `fromJSON` and `toJSON`, or the types that the package declares. \
         @a2a-js/sdk 1.3.0 has a reader for\nreceivers of 0.3, which is used as well; otherwise the SDKs have nothing for \
         receivers. `–`: the client has no such call.\n`cargo xtask interop --webhooks --all --write` writes this part \
         alone.\n\n",
    );
    grid(page, &runs, WEBHOOK_CHECKS);
    page.push('\n');
    legend(page, WEBHOOK_CHECKS);
    reasons(page, &runs, webhooks::reason);
}

fn auth_runs(results: &Path) -> Vec<Run> {
    let run = |(client, binding)| {
        let output = fs::read_to_string(auth::results(results, client, binding)).unwrap_or_default();
        Run { client, binding, output }
    };
    auth::runs().into_iter().map(run).collect()
}

/// Up to the next heading.
fn with_credentials(page: &mut String, runs: &[Run]) {
    page.push_str(WITH_CREDENTIALS);
    page.push_str(
        "\n\nOver HTTPS, with a certificate made for the run and npm `oidc-provider` as identity provider. Python: \
         the SDK's\n`AuthInterceptor`, or httpx for passwords and certificates. JavaScript: the SDK's \
         `createAuthenticatingFetchWithRetry`. Over\ngRPC certificates and passwords are credentials of the channel that the \
         SDKs take; keys and tokens too, but for a2a-sdk 1.3.0,\nwhose `AuthInterceptor` adds them. gRPC libraries answer no \
         challenges, so they have no digest authentication.\n\n",
    );
    grid(page, runs, AUTH_CHECKS);
    page.push('\n');
    legend(page, AUTH_CHECKS);
    reasons(page, runs, auth::reason);
}

/// Why checks of a part fail.
fn reasons(
    page: &mut String,
    runs: &[Run],
    reason: impl Fn(&Client, &Binding, &str) -> Option<&'static str>,
) {
    for run in runs {
        for (name, verdict) in verdicts(&run.output) {
            if let Verdict::Failed(_) = verdict {
                let reason = reason(run.client, run.binding, name).unwrap_or("not yet understood");
                let (client, binding) = (run.client.package, run.binding.shown);
                line(page, format_args!("\n{client}, {binding}, {} fails: {reason}", shown(name)));
            }
        }
    }
}

pub fn legend(page: &mut String, checks: &[Check]) {
    page.push_str("| column | check |\n|---|---|\n");
    for check in checks {
        line(page, format_args!("| {} | {} (`{}`) |", check.shown, check.meaning, check.name));
    }
}

fn render(runs: &[Run], known: &[Run], notes: &str, results: &Path) -> String {
    let mut page = String::from(
        "# Interop\n\n\
         Unmodified third-party clients against Baton's demo agent. Generated from test results by \
         `cargo xtask interop --all --write`;\n\
         `cargo xtask test` runs those in bold. The checks are explained below the grid. The lab's results on \
         third-party agents\n\
         have [a page of their own](results/third-party-servers.md); our client with the same agents is \
         [below](#batons-client).\n\n",
    );
    grid(&mut page, runs, CHECKS);
    page.push_str(
        "\n`ok`: passed. `fails`: see below. `–`: the client does not support it. `?`: did not run.\n\n",
    );
    legend(&mut page, CHECKS);
    lacks(&mut page);
    page.push('\n');
    with_webhooks(&mut page, results);
    page.push('\n');
    with_messages(&mut page, results);
    page.push('\n');
    with_signed_cards(&mut page, results);
    page.push('\n');
    with_our_client(&mut page, results);
    page.push('\n');
    with_credentials(&mut page, known);
    failures(&mut page, runs);
    gaps(&mut page, runs);
    page.push('\n');
    page.push_str(notes.trim_end());
    page.push('\n');
    page
}

/// The versions and bindings that are not in the grid.
fn lacks(page: &mut String) {
    page.push_str(
        "\nThe grid has every version and binding of the SDKs, which are three bindings of 1.0 and three of 0.3, but for:\n\n",
    );
    for client in CLIENTS {
        for lack in client.lacks {
            let what = if lack.what == "1.0" { "all of 1.0" } else { lack.what };
            line(page, format_args!("- {}, {what}: {}", client.package, lack.reason));
        }
    }
    page.push_str(
        "\nFrameworks run over JSON-RPC and HTTP+JSON alone: where they have gRPC, it is the SDK's transport, with a channel \
         that the\nprogram makes. google-adk refuses every card that has an address of gRPC (`host:port` is no URL), so gRPC \
         is off for the rows of\nother bindings: [how cards give it](grpc.md#the-address-on-the-card).\n",
    );
}

fn grid(page: &mut String, runs: &[Run], checks: &[Check]) {
    let columns: Vec<&str> = checks.iter().map(|check| check.shown).collect();
    line(page, format_args!("| client | binding | {} |", columns.join(" | ")));
    line(page, format_args!("|---|---|{}", ":-:|".repeat(columns.len())));
    for run in runs {
        let cells: Vec<&str> = checks.iter().map(|check| cell(&run.output, check.name)).collect();
        let bold = if run.client.tested { "**" } else { "" };
        let client = format!("{bold}{}{bold}", run.client.package);
        line(page, format_args!("| {client} | {} | {} |", run.binding.shown, cells.join(" | ")));
    }
}

pub fn cell(output: &str, check: &str) -> &'static str {
    match verdicts(output).into_iter().find(|(name, _)| *name == check) {
        Some((_, Verdict::Passed)) => "ok",
        Some((_, Verdict::Failed(_))) => "**fails**",
        Some((_, Verdict::Skipped(_))) => "–",
        // Only curl sends keys elsewhere than in a header.
        None if check.starts_with("p05_api_key_in_") => "–",
        None => "?",
    }
}

fn failures(page: &mut String, runs: &[Run]) {
    line(page, format_args!("\n{FAILS}\n"));
    let start = page.len();
    for run in runs {
        for (name, verdict) in verdicts(&run.output) {
            if let Verdict::Failed(_) = verdict {
                // The client's message may contain ids and ports; the reason in the list of known failures does not
                // change.
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

/// Why checks were skipped, one line for each client and reason.
fn gaps(page: &mut String, runs: &[Run]) {
    page.push_str("\n## What clients do not support\n\n");
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

pub fn shown(check: &str) -> &'static str {
    let all = CHECKS.iter().chain(WEBHOOK_CHECKS).chain(AUTH_CHECKS).chain(CLIENT_CHECKS);
    all.into_iter().find(|c| c.name == check).map_or("?", |c| c.shown)
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
        let page = render(&[run(output)], &[run("ok p05_api_key\n")], "## Notes\n", Path::new("nowhere"));
        let row = page.lines().find(|line| line.starts_with("| **a2a-sdk 1.3.0** | JSON-RPC 1.0 |")).unwrap();
        assert!(row.contains("| ok | **fails** | ? | ? | – |"), "{row}");
        assert!(page.contains("- a2a-sdk 1.3.0, JSON-RPC 1.0, send: not yet understood\n"), "{page}");
        assert!(page.contains("- a2a-sdk 1.3.0, get, cancel: it cannot\n"), "{page}");
        assert!(page.contains("| **a2a-sdk 1.3.0** | JSON-RPC 1.0 | ? | ok | – |"), "{page}");
        assert!(!page.contains("4711"), "what changes from run to run stays out");
        assert!(page.ends_with("## Notes\n"));
    }
}
