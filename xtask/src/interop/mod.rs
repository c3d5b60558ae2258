//! `cargo xtask interop`: runs unmodified third-party clients against our binary.

mod auth;
pub mod checks;
pub mod clients;
mod descriptors;
pub mod environments;
mod exec;
mod gate;
pub mod metrics;
pub mod oidc;
pub mod our_client;
pub mod our_commands;
mod page;
mod parallel;
mod signing;
mod third_party;
mod webhooks;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::agent::{Agent, Build};
use crate::process::run as execute;
use crate::setup;
use crate::workspace::Workspace;
use checks::{Verdict, verdicts};
use clients::{Binding, CLIENTS, Client};

#[derive(Debug, Default, PartialEq)]
pub struct Choice {
    all: bool,
    only: Vec<String>,
    debug: bool,
    url: Option<String>,
    write: bool,
    list: bool,
    /// Only the example programs.
    exec: bool,
    /// Only `/metrics`.
    metrics: bool,
    /// Only the identity provider.
    oidc: bool,
    /// Only callers with credentials.
    auth: bool,
    /// Only webhooks.
    webhooks: bool,
    /// Only signed cards.
    signing: bool,
    /// Only the messages of gRPC.
    messages: bool,
    /// Only the lab on third-party agents.
    servers: bool,
    /// Only our client with third-party agents.
    client: bool,
}

impl Choice {
    pub fn parse(flags: &[String]) -> Result<Self, String> {
        let mut choice = Self::default();
        let mut flags = flags.iter();
        while let Some(flag) = flags.next() {
            match flag.as_str() {
                "--all" => choice.all = true,
                "--debug" => choice.debug = true,
                "--write" => choice.write = true,
                "--list" => choice.list = true,
                "--exec" => choice.exec = true,
                "--metrics" => choice.metrics = true,
                "--oidc" => choice.oidc = true,
                "--auth" => choice.auth = true,
                "--webhooks" => choice.webhooks = true,
                "--signing" => choice.signing = true,
                "--messages" => choice.messages = true,
                "--servers" => choice.servers = true,
                "--client" => choice.client = true,
                "--url" => choice.url = Some(flags.next().ok_or("--url needs the URL of an agent")?.clone()),
                "--only" => {
                    choice.only.push(flags.next().ok_or("--only needs the name of a client")?.clone());
                }
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        let (what, there) =
            if choice.servers { ("server", third_party::names()) } else { ("client", names()) };
        if let Some(name) = choice.only.iter().find(|name| !there.contains(&name.as_str())) {
            return Err(format!("no {what} `{name}`; there are {}", there.join(", ")));
        }
        if choice.servers {
            return choice.about_servers();
        }
        if choice.write && !(choice.all || choice.auth || choice.signing || choice.messages) {
            return Err("--write needs --all: the page shows every client".to_owned());
        }
        let others = choice.all || choice.url.is_some() || !choice.only.is_empty();
        if choice.exec && (others || choice.metrics) {
            return Err("--exec runs the example programs and nothing else".to_owned());
        }
        if choice.metrics && others {
            return Err("--metrics looks at /metrics and at nothing else".to_owned());
        }
        if choice.oidc && (others || choice.metrics || choice.exec) {
            return Err("--oidc runs an identity provider and nothing else".to_owned());
        }
        if choice.auth && (others || choice.metrics || choice.exec || choice.oidc) {
            return Err("--auth runs clients with credentials and nothing else".to_owned());
        }
        let single = choice.metrics || choice.exec || choice.oidc || choice.auth;
        if choice.webhooks && (single || choice.url.is_some() || !choice.only.is_empty()) {
            return Err("--webhooks runs the checks of webhooks and nothing else".to_owned());
        }
        let single = single || choice.webhooks;
        if choice.signing && (single || others) {
            return Err("--signing runs the checks of signed cards and nothing else".to_owned());
        }
        let single = single || choice.signing;
        if choice.messages && (single || others) {
            return Err("--messages compares the messages of gRPC and does nothing else".to_owned());
        }
        let single = single || choice.messages;
        if choice.client && (single || choice.url.is_some() || !choice.only.is_empty()) {
            return Err("--client runs our client and nothing else".to_owned());
        }
        if choice.write && choice.url.is_some() {
            return Err("--write is about our own agent, not about --url".to_owned());
        }
        Ok(choice)
    }

    fn about_servers(self) -> Result<Self, String> {
        let others = self.exec || self.metrics || self.oidc || self.auth || self.webhooks || self.client;
        if self.all || self.signing || self.messages || others || self.url.is_some() {
            return Err("--servers tests the agents of third-party SDKs and nothing else".to_owned());
        }
        if self.write && !self.only.is_empty() {
            return Err("--write needs all servers: the page shows each".to_owned());
        }
        Ok(self)
    }

    fn clients(&self) -> Vec<&'static Client> {
        if self.exec {
            return exec::clients();
        }
        if self.metrics {
            return vec![&metrics::PARSER];
        }
        if self.oidc {
            return vec![&oidc::PROVIDER];
        }
        if self.auth {
            return auth::clients();
        }
        if self.webhooks {
            return webhooks::clients(self.all);
        }
        if self.signing {
            return signing::clients();
        }
        if self.messages {
            return descriptors::clients().map(|(client, _)| client).collect();
        }
        if self.only.is_empty() {
            return CLIENTS.iter().filter(|client| self.all || client.tested).collect();
        }
        CLIENTS.iter().filter(|client| self.only.iter().any(|name| name == client.name)).collect()
    }
}

/// The stage of the test command.
pub fn run_tested(workspace: &Workspace) -> Result<(), String> {
    run(workspace, &Choice::default())
}

pub fn run(workspace: &Workspace, choice: &Choice) -> Result<(), String> {
    if choice.list {
        let there = if choice.servers { third_party::names() } else { names() };
        println!("{}", there.join("\n"));
        return Ok(());
    }
    let build = if choice.debug { Build::Debug } else { Build::Release };
    if choice.servers {
        return third_party::run(workspace, &choice.only, build, choice.write);
    }
    if choice.client {
        let folder = made(results(workspace))?;
        our_client::run(workspace, &folder, choice.all)?;
        return if choice.write { page::write_our_client(workspace, &folder) } else { Ok(()) };
    }
    let clients = choice.clients();
    setup::clients(workspace, &clients)?;
    if choice.messages {
        let folder = made(results(workspace))?;
        descriptors::run(workspace, &folder)?;
        return if choice.write { page::write_messages(workspace, &folder) } else { Ok(()) };
    }
    // These run with all clients, or on their own flag; not if single clients were chosen.
    let whole = choice.only.is_empty() && choice.url.is_none();
    if whole && !choice.exec && !choice.oidc && !choice.auth && !choice.webhooks && !choice.signing {
        setup::clients(workspace, &[&metrics::PARSER])?;
    }
    if choice.oidc {
        return oidc::run(workspace, &made(results(workspace))?);
    }
    let surprises = match &choice.url {
        Some(url) => run_all(workspace, &clients, |_| url, &made(results(workspace).join("elsewhere"))?)?,
        None => {
            let folder = made(results(workspace))?;
            execute(&mut workspace.cargo(build.cargo_args()))?;
            if choice.auth {
                setup::clients(workspace, &[&oidc::PROVIDER])?;
                auth::run(workspace, &folder, build)?;
                return if choice.write { page::write_auth(workspace, &folder) } else { Ok(()) };
            }
            if choice.webhooks {
                webhooks::run(workspace, &folder, build, choice.all)?;
                return if choice.write { page::write_webhooks(workspace, &folder) } else { Ok(()) };
            }
            if choice.signing {
                signing::run(workspace, &folder, build)?;
                return if choice.write { page::write_signing(workspace, &folder) } else { Ok(()) };
            }
            if whole && !choice.exec {
                metrics::run(workspace, &folder, build)?;
            }
            if whole && !choice.metrics {
                exec::run(workspace, &folder, build)?;
            }
            if choice.exec || choice.metrics {
                return Ok(());
            }
            if whole {
                setup::clients(workspace, &[&oidc::PROVIDER])?;
                oidc::run(workspace, &folder)?;
                auth::run(workspace, &folder, build)?;
                webhooks::run(workspace, &folder, build, choice.all)?;
                descriptors::run(workspace, &folder)?;
                signing::run(workspace, &folder, build)?;
                our_client::run(workspace, &folder, choice.all)?;
            }
            let agent = Agent::start(workspace, &folder, build)?;
            // Apart, since google-adk refuses every card with an address of gRPC.
            let with_grpc = Agent::start_with(workspace, &folder, build, "server-grpc", &["--grpc"])?;
            let (url, grpc_url) = (agent.url(), with_grpc.url());
            let url_for = |binding: &Binding| if binding.is_grpc() { &*grpc_url } else { &*url };
            let surprises = run_all(workspace, &clients, url_for, &folder)?;
            if !surprises.is_empty() {
                for agent in [&agent, &with_grpc] {
                    println!("\n-- the last lines of a server's log --\n{}", agent.log_tail(40));
                }
            }
            surprises
        }
    };
    if choice.write {
        page::write(workspace, &results(workspace))?;
    }
    match surprises.len() {
        0 => Ok(()),
        _ => Err(format!("not as expected:\n  {}", surprises.join("\n  "))),
    }
}

/// The folder with the clients' output for our own agent.
fn results(workspace: &Workspace) -> PathBuf {
    workspace.results().join("interop")
}

fn made(folder: PathBuf) -> Result<PathBuf, String> {
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

/// The output of the tested clients in their last run, as `(suite, output)`, without those that did not run.
pub fn tested_results(workspace: &Workspace) -> Vec<(String, String)> {
    let runs =
        clients::tested().into_iter().flat_map(|client| client.bindings.iter().map(move |b| (client, b)));
    let plain = runs.filter_map(|(client, binding)| {
        let output = fs::read_to_string(client.results(&results(workspace), binding)).ok()?;
        Some((format!("{} {}", client.name, binding.argument), output))
    });
    let with_credentials = auth::runs().into_iter().filter_map(|(client, binding)| {
        let output = fs::read_to_string(auth::results(&results(workspace), client, binding)).ok()?;
        Some((format!("{} {}", client.name, binding.argument), output))
    });
    let webhooks = webhooks::runs(false).filter_map(|(client, binding)| {
        let output = fs::read_to_string(webhooks::results(&results(workspace), client, binding)).ok()?;
        Some((format!("{} {}", client.name, binding.argument), output))
    });
    let signing = signing::clients().into_iter().filter_map(|client| {
        let output = fs::read_to_string(signing::results(&results(workspace), client)).ok()?;
        Some((format!("{} cards", client.name), output))
    });
    let messages = descriptors::clients().filter_map(|(client, _)| {
        let output = fs::read_to_string(descriptors::results(&results(workspace), client)).ok()?;
        Some((format!("{} messages", client.name), output))
    });
    let ours = our_client::tested_results(&results(workspace));
    plain.chain(with_credentials).chain(webhooks).chain(messages).chain(signing).chain(ours).collect()
}

/// What the client commands did with agents of other SDKs in the last run, as `(agent and binding, output)`.
pub fn command_results(workspace: &Workspace) -> Vec<(String, String)> {
    our_commands::last_results(&results(workspace))
}

/// The checks with an identity provider that passed in the last run.
pub fn oidc_results(workspace: &Workspace) -> Vec<String> {
    oidc::passed(&results(workspace))
}

/// Runs every client over each of its bindings; returns what was not as expected.
fn run_all<'a>(
    workspace: &Workspace,
    clients: &[&Client],
    url_for: impl Fn(&Binding) -> &'a str + Sync,
    folder: &Path,
) -> Result<Vec<String>, String> {
    let runs =
        clients.iter().flat_map(|client| client.bindings.iter().map(move |binding| (*client, binding)));
    parallel::each(runs, |(client, binding)| run_one(workspace, client, binding, url_for(binding), folder))
}

fn run_one(
    workspace: &Workspace,
    client: &Client,
    binding: &Binding,
    url: &str,
    folder: &Path,
) -> Result<Vec<String>, String> {
    let results = client.results(folder, binding);
    // Remove results of an earlier run.
    fs::write(&results, "").map_err(|e| format!("{}: {e}", results.display()))?;
    let log = results.with_extension("log");
    let stderr = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let done = environments::command(workspace, client)
        .args([url, binding.argument])
        .stdin(Stdio::null())
        .stderr(stderr)
        .output()
        .map_err(|e| format!("{}: {e}", client.name))?;
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    fs::write(&results, &output).map_err(|e| format!("{}: {e}", results.display()))?;

    println!("\n{}, {}\n{}", client.package, binding.shown, output.trim_end());
    let mut surprises = surprises(client, binding, &output);
    if verdicts(&output).len() != checks::CHECKS.len() {
        println!("{}", fs::read_to_string(&log).unwrap_or_default().trim_end());
        surprises.push(format!(
            "{} {}: the script did not come to its end ({})",
            client.name, binding.argument, done.status
        ));
    }
    Ok(surprises)
}

fn surprises(client: &Client, binding: &Binding, output: &str) -> Vec<String> {
    let known = |check: &str| client.known.iter().any(|k| k.binding == binding.argument && k.check == check);
    let surprise = |(check, verdict): (&str, Verdict<'_>)| match verdict {
        // The first check reports the reason; the others fail because of it.
        Verdict::Failed("no connection") => None,
        Verdict::Failed(reason) if !known(check) => {
            Some(format!("{} {}: {check}: {reason}", client.name, binding.argument))
        }
        Verdict::Passed if known(check) => {
            Some(format!("{} {}: {check} passes, but is listed as failing", client.name, binding.argument))
        }
        _ => None,
    };
    verdicts(output).into_iter().filter_map(surprise).collect()
}

fn names() -> Vec<&'static str> {
    CLIENTS.iter().map(|client| client.name).collect()
}

#[cfg(test)]
mod tests {
    use super::clients::{Known, Language};
    use super::*;

    fn parse(flags: &[&str]) -> Result<Choice, String> {
        Choice::parse(&flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>())
    }

    fn chosen(flags: &[&str]) -> Vec<&'static str> {
        parse(flags).unwrap().clients().iter().map(|client| client.name).collect()
    }

    #[test]
    fn the_default_is_what_the_test_command_runs() {
        assert_eq!(chosen(&[]), ["python-1.3.0", "python-0.3.26", "js-1.3.0"]);
        assert_eq!(chosen(&["--all"]), names());
        assert_eq!(chosen(&["--exec"]), ["python-1.3.0", "js-1.3.0"]);
        assert_eq!(chosen(&["--only", "fasta2a", "--only", "js-0.3.14"]), ["js-0.3.14", "fasta2a"]);
    }

    #[test]
    fn flags_that_make_no_sense_are_refused() {
        assert!(parse(&["--only"]).is_err());
        assert!(parse(&["--only", "curl"]).is_err());
        assert!(parse(&["--write"]).is_err());
        assert!(parse(&["--all", "--write", "--url", "http://127.0.0.1:1"]).is_err());
        assert!(parse(&["--exec", "--all"]).is_err());
        assert!(parse(&["--metrics", "--all"]).is_err());
        assert!(parse(&["--metrics", "--exec"]).is_err());
        assert!(parse(&["--oidc", "--metrics"]).is_err());
        assert!(parse(&["--oidc", "--all"]).is_err());
        assert!(parse(&["--auth", "--oidc"]).is_err());
        assert!(parse(&["--auth", "--write"]).is_ok());
        assert!(parse(&["--webhooks", "--all", "--write"]).is_ok());
        assert!(parse(&["--webhooks", "--write"]).is_err());
        assert!(parse(&["--webhooks", "--auth"]).is_err());
        assert!(parse(&["--webhooks", "--only", "fasta2a"]).is_err());
        assert!(parse(&["--signing"]).is_ok());
        assert!(parse(&["--signing", "--write"]).is_ok());
        assert!(parse(&["--signing", "--all"]).is_err());
        assert!(parse(&["--messages", "--write"]).is_ok());
        assert!(parse(&["--messages", "--signing"]).is_err());
        assert!(parse(&["--messages", "--only", "fasta2a"]).is_err());
        assert!(parse(&["--servers", "--messages"]).is_err());
        assert!(parse(&["--signing", "--webhooks"]).is_err());
        assert!(parse(&["--servers", "--signing"]).is_err());
        assert!(parse(&["--servers", "--oidc"]).is_err());
        assert!(parse(&["--servers", "--all"]).is_err());
        assert!(parse(&["--servers", "--only", "fasta2a"]).is_err());
        assert!(parse(&["--only", "a2a-server-lf"]).is_err());
        assert!(parse(&["--servers", "--only", "a2a-server-lf", "--write"]).is_err());
        assert!(parse(&["--servers", "--only", "a2a-server-lf", "--debug"]).is_ok());
        assert!(parse(&["--client", "--all", "--write"]).is_ok());
        assert!(parse(&["--client", "--write"]).is_err());
        assert!(parse(&["--client", "--auth"]).is_err());
        assert!(parse(&["--client", "--only", "fasta2a"]).is_err());
        assert!(parse(&["--servers", "--client"]).is_err());
        assert!(parse(&["--frobnicate"]).is_err());
    }

    #[test]
    fn only_what_is_not_listed_surprises() {
        let binding = Binding { argument: "rest", shown: "HTTP+JSON 1.0" };
        let client = Client {
            name: "some",
            package: "some 1.0",
            language: Language::Python,
            stem: "client_some",
            bindings: &[],
            lacks: &[],
            tested: false,
            known: &[
                Known { binding: "rest", check: "p02_cancels", reason: "" },
                Known { binding: "rest", check: "p02_sends", reason: "" },
                Known { binding: "jsonrpc", check: "p02_gets_task", reason: "" },
            ],
        };
        let output =
            "FAIL p02_cancels: known\nok p02_sends\nFAIL p02_gets_task: other binding\nok p02_streams\n";
        let expected = [
            "some rest: p02_sends passes, but is listed as failing",
            "some rest: p02_gets_task: other binding",
        ];
        assert_eq!(surprises(&client, &binding, output), expected);
    }
}
