//! What the lab tests of ours: the demo agent in several forms, since no single agent can show every rule, and the client
//! commands.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::agent::{Agent, Build};
use crate::lab;
use crate::process::run as execute;
use crate::workspace::Workspace;

/// Cases that passed, with the generations and bindings they passed in: `1.0 jsonrpc`.
pub type Passed = BTreeMap<String, BTreeSet<String>>;

struct Form {
    name: &'static str,
    /// Of `baton serve`.
    serve: &'static [&'static str],
    /// Whether it has the configuration below.
    configured: Option<&'static str>,
    /// Of `baton test`.
    test: &'static [&'static str],
}

const TOKENS: [&str; 2] = ["conformance-one-0123456789", "conformance-two-9876543210"];
const CALLERS: [&str; 4] = ["--bearer", TOKENS[0], "--other-bearer", TOKENS[1]];

const FORMS: [Form; 6] = [
    Form { name: "full", serve: &[], configured: None, test: &[] },
    Form {
        name: "grpc",
        serve: &["--grpc"],
        configured: None,
        test: &["--binding", "grpc", "--generation", "1.0,0.3"],
    },
    Form { name: "minimal", serve: &["--profile", "minimal", "--grpc"], configured: None, test: &[] },
    Form {
        name: "callers",
        serve: &["--grpc"],
        configured: Some(""),
        test: &["--select", "V1-AUTH,V03-AUTH,V01-AUTH,V01-CARD,V1-CARD"],
    },
    // An agent whose card declares what most do not: an extension that callers must name, an extended card, few media types.
    Form {
        name: "declares",
        serve: &["--grpc"],
        configured: Some(DECLARES),
        test: &[
            "--generation",
            "1.0,0.3",
            "--select",
            "V1-EXT,V1-XCARD,V03-EXT,V1-SEND-008,V03-SEND-016,V1-CARD",
        ],
    },
    Form {
        name: "tls",
        serve: &["--tls-self-signed", "--grpc"],
        configured: None,
        test: &["--insecure", "--select", "V1-TLS,V1-CARD,V1-GRPC,V03-GRPC"],
    },
];

const DECLARES: &str = r#"
[card]
file = "card.json"
extended = "card.json"
[[skill]]
id = "task"
builtin = "demo"
"#;

const CARD: &str = r#"{
  "name": "Declares", "description": "An agent that declares what most do not", "version": "1.0.0",
  "supportedInterfaces": [],
  "capabilities": {
    "streaming": true, "pushNotifications": true, "extendedAgentCard": true,
    "extensions": [{"uri": "urn:example:conformance:v1", "description": "Callers have to name it", "required": true}]
  },
  "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
  "skills": [{"id": "task", "name": "Task", "description": "Does what the text says", "tags": ["demo"],
              "examples": ["complete"]}]
}"#;

/// Runs the lab on every form. Fails if a case fails.
pub fn passed(workspace: &Workspace, build: Build) -> Result<Passed, String> {
    execute(&mut workspace.cargo(build.cargo_args()))?;
    let folder = workspace.results().join("conformance");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut passed = Passed::new();
    let mut failures = Vec::new();
    let mut note = |name: &str, outcome: lab::Outcome| {
        for (case, place) in outcome.passed {
            passed.entry(case).or_default().insert(place);
        }
        failures.extend(outcome.errors.iter().map(|error| format!("{name}: the lab: {error}")));
        let failed = outcome.failures.iter();
        failures.extend(failed.map(|one| format!("{name}: {} {}: {}", one.case, one.place, one.message)));
    };
    // Some cases are about two agents.
    let second = Agent::start_with(workspace, &folder, build, "second", &[])?;
    for form in &FORMS {
        note(form.name, form.test(workspace, &folder, build, &second.url())?);
    }
    note("client", test_client(workspace, &folder, build)?);
    match failures.len() {
        0 => Ok(passed),
        _ => Err(format!(
            "lab cases that failed (reports are in {}):\n  {}",
            folder.display(),
            failures.join("\n  ")
        )),
    }
}

impl Form {
    fn test(
        &self,
        workspace: &Workspace,
        folder: &Path,
        build: Build,
        second: &str,
    ) -> Result<lab::Outcome, String> {
        let written = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok::<_, String>(path.display().to_string())
        };
        let mut serve = self.serve.to_vec();
        let config;
        if let Some(more) = self.configured {
            written("card.json", CARD)?;
            config = written(&format!("{}.toml", self.name), &configuration(more))?;
            serve.extend(["--config", &config]);
        }
        let agent = Agent::start_with(workspace, folder, build, self.name, &serve)?;
        let url = if self.serve.contains(&"--tls-self-signed") {
            agent.url().replacen("http:", "https:", 1)
        } else {
            agent.url()
        };
        let mut flags = self.test.to_vec();
        if self.configured.is_some() {
            flags.extend(CALLERS);
        }
        if self.test.is_empty() || self.name == "grpc" {
            flags.extend(["--second", second]);
        }
        println!("\nthe lab on the agent `{}`", self.name);
        lab::test(workspace, build, &url, &flags, folder, self.name)
    }
}

/// The client commands, called by the script that our own tests use.
fn test_client(workspace: &Workspace, folder: &Path, build: Build) -> Result<lab::Outcome, String> {
    println!("\nthe lab on the client commands");
    let script = workspace.root.join("crates/baton/tests/it/cli/judged.sh").display().to_string();
    let mut command = build.command(workspace);
    let binary = command.get_program().to_owned();
    // Settings of whoever runs this must not decide.
    command.env("HOME", folder).env("XDG_CONFIG_HOME", folder).env("BATON", binary);
    command.args(["test", "--as-server", "--generation", "1.0,0.3,0.1", "--quiet", "--timeout", "60s"]);
    lab::report(command, folder, "client", &["--", "sh", &script])
}

/// Two callers with a token each, and what else the agent has.
fn configuration(more: &str) -> String {
    let token =
        |id: &str, secret: &str| format!("[[auth.bearer.token]]\nid = \"{id}\"\nsecret = \"{secret}\"\n");
    format!("{}{}{more}", token("one", TOKENS[0]), token("two", TOKENS[1]))
}
