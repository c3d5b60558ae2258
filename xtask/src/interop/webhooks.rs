//! Webhooks with the official SDKs: their clients register webhooks at a receiver that the script runs, and read what our
//! server sends into their own types.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::checks::{Verdict, WEBHOOK_CHECKS, verdicts};
use super::clients::{Binding, CLIENTS, Client, Known};
use super::{environments, parallel};
use crate::agent::{Agent, Build};
use crate::workspace::Workspace;

/// Clients with their scripts; they use all bindings of the client.
const SCRIPTS: &[(&str, &str)] = &[
    ("python-1.3.0", "interop/python/webhooks_1_3.py"),
    ("python-0.3.26", "interop/python/webhooks_0_3.py"),
    ("js-1.3.0", "interop/js/webhooks_1_3.mjs"),
    ("js-0.3.14", "interop/js/webhooks_0_3.mjs"),
];

/// Failures that are known, as for the other checks.
const KNOWN: &[(&str, Known)] = &[];

/// The demo agent, which may call this machine; one that does what a message says, line by line; one without webhooks.
struct Agents {
    demo: Agent,
    scripted: Agent,
    without: Agent,
}

impl Agents {
    fn start(workspace: &Workspace, folder: &Path, build: Build) -> Result<Self, String> {
        let config = folder.join("webhooks.toml");
        save(&config, "[push]\ndevelopment = true\n")?;
        let config = config.to_str().ok_or("the path of the repository is not text")?;
        let start = |name, flags: &[&str]| Agent::start_with(workspace, folder, build, name, flags);
        let scripted = ["--grpc", "--config", config, "--exec", "cat", "--exec-output", "jsonl"];
        Ok(Agents {
            demo: start("webhooks-demo", &["--grpc"])?,
            scripted: start("webhooks-scripted", &scripted)?,
            without: start("webhooks-without", &["--grpc", "--profile", "streaming"])?,
        })
    }
}

/// The clients to install.
pub fn clients(all: bool) -> Vec<&'static Client> {
    let has_script = |client: &&Client| SCRIPTS.iter().any(|(name, _)| *name == client.name);
    CLIENTS.iter().filter(has_script).filter(|client| all || client.tested).collect()
}

/// Everything that runs, in the order of the page's rows.
pub fn runs(all: bool) -> impl Iterator<Item = (&'static Client, &'static Binding)> {
    clients(all).into_iter().flat_map(|client| client.bindings.iter().map(move |binding| (client, binding)))
}

/// The file with the output of a run.
pub fn results(folder: &Path, client: &Client, binding: &Binding) -> PathBuf {
    folder.join(format!("webhooks.{}.{}.txt", client.name, binding.argument))
}

/// Why a check is known to fail.
pub fn reason(client: &Client, binding: &Binding, check: &str) -> Option<&'static str> {
    let this = |(name, known): &&(&str, Known)| {
        *name == client.name && known.binding == binding.argument && known.check == check
    };
    KNOWN.iter().find(this).map(|(_, known)| known.reason)
}

pub fn run(workspace: &Workspace, folder: &Path, build: Build, all: bool) -> Result<(), String> {
    for (client, binding) in runs(all) {
        // Remove results of an earlier run.
        save(&results(folder, client, binding), "")?;
    }
    let agents = Agents::start(workspace, folder, build)?;
    let surprises = parallel::each(runs(all), |(client, binding)| {
        let output = script(workspace, folder, &agents, client, binding)?;
        save(&results(folder, client, binding), &output)?;
        println!("\n{}, {}, webhooks\n{}", client.package, binding.shown, output.trim_end());
        Ok(unexpected(client, binding, &output))
    })?;
    if surprises.is_empty() {
        return Ok(());
    }
    for agent in [&agents.demo, &agents.scripted] {
        println!("\n-- the last lines of a server's log --\n{}", agent.log_tail(40));
    }
    Err(format!("webhooks, not as expected:\n  {}", surprises.join("\n  ")))
}

fn script(
    workspace: &Workspace,
    folder: &Path,
    agents: &Agents,
    client: &Client,
    binding: &Binding,
) -> Result<String, String> {
    let script = SCRIPTS.iter().find(|(name, _)| *name == client.name).ok_or("a client without script")?.1;
    let log = results(folder, client, binding).with_extension("log");
    let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let done = environments::command_for(workspace, client, &workspace.root.join(script))
        .args([&agents.demo.url(), binding.argument])
        .env("SCRIPTED_AGENT", agents.scripted.url())
        .env("AGENT_WITHOUT_WEBHOOKS", agents.without.url())
        .stdin(Stdio::null())
        .stderr(stderr)
        .output()
        .map_err(|e| format!("{script}: {e}"))?;
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

fn unexpected(client: &Client, binding: &Binding, output: &str) -> Vec<String> {
    let named = |text: String| format!("{} {}: {text}", client.name, binding.argument);
    let found = verdicts(output);
    let mut all: Vec<String> = found
        .iter()
        .filter_map(|(check, verdict)| match (verdict, reason(client, binding, check)) {
            (Verdict::Failed(why), None) => Some(named(format!("{check}: {why}"))),
            (Verdict::Passed, Some(_)) => Some(named(format!("{check} passes, but is listed as failing"))),
            _ => None,
        })
        .collect();
    let ran = |name: &str| found.iter().any(|(check, _)| *check == name);
    if let Some(missing) = WEBHOOK_CHECKS.iter().find(|check| !ran(check.name)) {
        all.push(named(format!("{} did not run", missing.name)));
    }
    all
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_fails_or_does_not_run_is_told() {
        let (client, binding) = runs(false).next().unwrap();
        let mut output: String = WEBHOOK_CHECKS.iter().map(|check| format!("ok {}\n", check.name)).collect();
        assert_eq!(unexpected(client, binding, &output), [""; 0]);
        output = output.replace("ok s14_webhooks_are_signed\n", "FAIL p02_lists_webhooks: why\n");
        let expected = [
            "python-1.3.0 jsonrpc: p02_lists_webhooks: why",
            "python-1.3.0 jsonrpc: s14_webhooks_are_signed did not run",
        ];
        assert_eq!(unexpected(client, binding, &output), expected);
    }

    #[test]
    fn only_the_clients_of_the_test_command_run_by_default() {
        let names = |all| clients(all).iter().map(|client| client.name).collect::<Vec<_>>();
        assert_eq!(names(false), ["python-1.3.0", "python-0.3.26", "js-1.3.0"]);
        assert_eq!(names(true).len(), SCRIPTS.len());
    }
}
