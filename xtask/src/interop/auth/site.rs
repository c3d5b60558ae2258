//! The agents and the identity provider, with certificates that are made for the run.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::oidc::{self, AUDIENCE, Running};
use super::save;
use crate::agent::{Build, free_address};
use crate::process::output;
use crate::workspace::Workspace;

pub const API_KEY: &str = "api-key-0123456789";
pub const ANN: &str = "ann-0123456789abcdef";
pub const BOB: &str = "bob-0123456789abcdef";
pub const CAROL: [&str; 2] = ["carol", "carol's password"];
pub const DAVE: [&str; 2] = ["dave", "dave's password"];
/// A client that the identity provider knows.
pub const ROBOT: [&str; 2] = ["robot", "robot-secret"];
const EXTENDED: &str = "for those who are known";
const URI: &str = "spiffe://example.com/build";

pub struct Site {
    folder: PathBuf,
    /// Every scheme.
    pub url: String,
    /// API keys only, in the query.
    pub with_query: String,
    /// API keys only, in a cookie.
    pub with_cookie: String,
    pub token_url: String,
    agent: Running,
    _others: [Running; 3],
}

impl Site {
    pub fn start(workspace: &Workspace, results: &Path, build: Build) -> Result<Self, String> {
        let folder = results.join("auth");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        certificates(&folder)?;
        let provider = oidc::start_provider(workspace, results, "auth-provider")?;
        let token_url = format!("{}/token", provider.url());
        let password = |args: &[&str], password| {
            hashed(build.command(workspace).arg("hash-password").args(args), password)
        };
        save(&folder.join("carol"), &password(&[], CAROL[1])?)?;
        save(&folder.join("dave"), &password(&["--digest", DAVE[0]], DAVE[1])?)?;
        save(&folder.join("extended.json"), &extended_card())?;
        save(&folder.join("credentials.json"), &credentials())?;
        save(&folder.join("every.toml"), &every_scheme(&provider.url()))?;
        let start = |name: &str| -> Result<(Running, String), String> {
            let address = free_address()?;
            let mut command = build.command(workspace);
            command.args(["serve", "--listen", &address.to_string(), "--config"]);
            command.arg(format!("{name}.toml")).current_dir(&folder);
            let running = Running::start(&mut command, address, results, &format!("auth-{name}"))?;
            Ok((running, format!("https://{address}")))
        };
        for location in ["query", "cookie"] {
            let key = format!("[auth.api_key]\nsecret = \"{API_KEY}\"\nlocation = \"{location}\"\n");
            save(&folder.join(format!("{location}.toml")), &format!("{SERVED}\n{key}"))?;
        }
        let (agent, url) = start("every")?;
        let (query, with_query) = start("query")?;
        let (cookie, with_cookie) = start("cookie")?;
        let _others = [provider, query, cookie];
        Ok(Site { folder, url, with_query, with_cookie, token_url, agent, _others })
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn log_tail(&self) -> String {
        let log = self.agent.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

const SERVED: &str = "store = \"memory:\"
grpc = true

[tls]
cert = \"server.pem\"
key = \"server.key\"
client_ca = \"ca.pem\"
client_certs = \"optional\"
";

fn every_scheme(issuer: &str) -> String {
    format!(
        r#"{SERVED}
[card]
extended = "extended.json"

[auth]
require = ["apiKey", "bearer", "basic", "digest", "mtls", "oidc(tasks)"]

# All callers have the same address, and many are refused on purpose.
[auth.throttle]
burst = 1000

[auth.api_key]
secret = "{API_KEY}"

[[auth.bearer.token]]
id = "ann"
secret = "{ANN}"

[[auth.bearer.token]]
id = "bob"
secret = "{BOB}"

[[auth.basic.user]]
name = "{}"
password = "@carol"

[[auth.digest.user]]
name = "{}"
password = "@dave"

[auth.mtls]
only_listed = true

[[auth.mtls.client]]
name = "{URI}"
owner = "build"

[auth.oidc]
issuer = "{issuer}"
audience = ["{AUDIENCE}"]

[auth.oidc.oauth2]
grants = ["client_credentials"]
token_url = "{issuer}/token"
scopes = ["tasks"]
"#,
        CAROL[0], DAVE[0]
    )
}

/// For the scripts.
fn credentials() -> String {
    let [[carol, carols], [dave, daves], [robot, robots]] = [CAROL, DAVE, ROBOT];
    format!(
        r#"{{"apiKey": "{API_KEY}", "tokens": {{"ann": "{ANN}", "bob": "{BOB}"}},
"basic": ["{carol}", "{carols}"], "digest": ["{dave}", "{daves}"],
"oauth": {{"id": "{robot}", "secret": "{robots}", "resource": "{AUDIENCE}"}}, "extended": "{EXTENDED}"}}
"#
    )
}

fn extended_card() -> String {
    format!(
        r#"{{"name": "Demo", "description": "{EXTENDED}", "version": "1", "supportedInterfaces": [],
"capabilities": {{"streaming": true}}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
"skills": [{{"id": "task", "name": "Task", "description": "Works on a task.", "tags": ["demo"]}}]}}
"#
    )
}

/// Two authorities: `ca` for the server and the client `build`, `stranger` for `intruder`, who has the same name.
pub fn certificates(folder: &Path) -> Result<(), String> {
    for (ca, issued) in [
        ("ca", &[("server", "IP:127.0.0.1"), ("build", "URI:spiffe://example.com/build")][..]),
        ("stranger", &[("intruder", "URI:spiffe://example.com/build")]),
    ] {
        let key = format!("{ca}.key");
        let ca = format!("{ca}.pem");
        openssl(folder, &format!("req -x509 {NEW_KEY} {key} -out {ca} -days 30 -subj /CN={ca}"))?;
        for (name, alternative) in issued {
            let request = format!("req {NEW_KEY} {name}.key -out {name}.csr -subj /CN={name}");
            openssl(folder, &format!("{request} -addext subjectAltName={alternative}"))?;
            let sign = format!("x509 -req -in {name}.csr -CA {ca} -CAkey {key} -CAcreateserial -days 30");
            openssl(folder, &format!("{sign} -copy_extensions copy -out {name}.pem"))?;
        }
    }
    Ok(())
}

const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout";

fn openssl(folder: &Path, args: &str) -> Result<(), String> {
    output(Command::new("openssl").args(args.split(' ')).current_dir(folder)).map(drop)
}

/// Gives the password to the command and returns its stored form.
fn hashed(command: &mut Command, password: &str) -> Result<String, String> {
    let failed = |e| format!("hash-password: {e}");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(password.as_bytes()).map_err(failed)?;
    }
    let done = child.wait_with_output().map_err(failed)?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() { Ok(text) } else { Err(format!("hash-password ended with {}", done.status)) }
}
