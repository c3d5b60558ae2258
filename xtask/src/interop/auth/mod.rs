//! Callers with credentials: an agent with every scheme behind HTTPS, an identity provider, the official clients, `curl`.

mod curl;
pub mod site;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::checks::{AUTH_CHECKS, Verdict, verdicts};
use super::clients::{Binding, CLIENTS, Client, Known};
use super::{environments, parallel};
use crate::agent::Build;
use crate::workspace::Workspace;
use site::Site;

/// Clients with their scripts; they use all bindings of the client.
const SCRIPTS: &[(&str, &str)] = &[
    ("python-1.3.0", "interop/python/auth_1_3.py"),
    ("python-0.3.26", "interop/python/auth_0_3.py"),
    ("js-1.3.0", "interop/js/auth_1_3.mjs"),
];

/// Not installed by us, and without packages.
static CURL: Client = Client {
    name: "curl",
    package: "curl",
    language: super::clients::Language::Python,
    stem: "",
    bindings: &[Binding { argument: "rest", shown: "HTTP+JSON 1.0" }],
    lacks: &[],
    tested: true,
    known: &[],
};

/// Failures that are known, as for the other checks.
const KNOWN: &[(&str, Known)] = &[];

/// The clients to install.
pub fn clients() -> Vec<&'static Client> {
    SCRIPTS.iter().map(|(name, _)| client(name)).collect()
}

/// Everything that runs, in the order of the page's rows.
pub fn runs() -> Vec<(&'static Client, &'static Binding)> {
    let mut clients = clients();
    clients.push(&CURL);
    clients.into_iter().flat_map(|client| client.bindings.iter().map(move |b| (client, b))).collect()
}

/// The file with the output of a run.
pub fn results(folder: &Path, client: &Client, binding: &Binding) -> PathBuf {
    folder.join(format!("auth.{}.{}.txt", client.name, binding.argument))
}

/// Why a check is known to fail.
pub fn reason(client: &Client, binding: &Binding, check: &str) -> Option<&'static str> {
    let this = |(name, known): &&(&str, Known)| {
        *name == client.name && known.binding == binding.argument && known.check == check
    };
    KNOWN.iter().find(this).map(|(_, known)| known.reason)
}

pub fn run(workspace: &Workspace, folder: &Path, build: Build) -> Result<(), String> {
    for (client, binding) in runs() {
        // Remove results of an earlier run.
        save(&results(folder, client, binding), "")?;
    }
    let site = Site::start(workspace, folder, build)?;
    let surprises = parallel::each(runs(), |(client, binding)| {
        let output = match client.name {
            "curl" => curl::checks(&site),
            _ => script(workspace, folder, &site, client, binding)?,
        };
        save(&results(folder, client, binding), &output)?;
        println!("\n{}, {}, with credentials\n{}", client.package, binding.shown, output.trim_end());
        Ok(unexpected(client, binding, &output))
    })?;
    if surprises.is_empty() {
        return Ok(());
    }
    println!("\n-- the last lines of the server's log --\n{}", site.log_tail());
    Err(format!("with credentials, not as expected:\n  {}", surprises.join("\n  ")))
}

fn script(
    workspace: &Workspace,
    folder: &Path,
    site: &Site,
    client: &Client,
    binding: &Binding,
) -> Result<String, String> {
    let script = SCRIPTS.iter().find(|(name, _)| *name == client.name).ok_or("a client without script")?.1;
    let log = results(folder, client, binding).with_extension("log");
    let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let done = environments::command_for(workspace, client, &workspace.root.join(script))
        .args([&site.url, binding.argument])
        .env("CREDENTIALS", site.file("credentials.json"))
        .env("NODE_EXTRA_CA_CERTS", site.file("ca.pem"))
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
    if let Some(missing) = AUTH_CHECKS.iter().find(|check| {
        let only_curl = check.name.starts_with("p05_api_key_in_") && client.name != CURL.name;
        !only_curl && found.iter().all(|(name, _)| *name != check.name)
    }) {
        all.push(named(format!("{} did not run", missing.name)));
    }
    all
}

fn client(name: &str) -> &'static Client {
    CLIENTS.iter().find(|client| client.name == name).expect("it is in the list")
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
