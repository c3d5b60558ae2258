//! The third-party agents under test: for each SDK a small program of ours that uses it as its documentation says.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::free_address;
use crate::interop::clients::{Client, Language};
use crate::interop::environments;
use crate::process::run as execute;
use crate::workspace::Workspace;

/// Enough for interpreters on a busy machine.
const START: Duration = Duration::from_secs(60);

/// The workspace of the Rust agents.
const RUST: &str = "interop/servers/rust";

pub struct ThirdParty {
    /// For `--only`, in `verdicts.tsv`, and in the names of files.
    pub name: &'static str,
    /// The package in its registry.
    pub package: &'static str,
    /// The path of our program, from the root of the repository.
    pub program: &'static str,
    pub kind: Kind,
    /// Flags for `baton test`.
    pub flags: &'static [&'static str],
    /// Supported features, for the page.
    pub offers: &'static str,
}

impl ThirdParty {
    /// The token of its first user, if it has users.
    pub fn bearer(&self) -> Option<&'static str> {
        self.flags.iter().skip_while(|flag| **flag != "--bearer").nth(1).copied()
    }
}

pub enum Kind {
    /// A script and its packages.
    Script(&'static Client),
    /// A binary of the Rust workspace.
    Rust(&'static str),
}

const fn packages(
    name: &'static str,
    package: &'static str,
    language: Language,
    stem: &'static str,
) -> Client {
    Client { name, package, language, stem, bindings: &[], lacks: &[], tested: false, known: &[] }
}

static PYTHON_1_3_PACKAGES: Client =
    packages("server-python-1.3.0", "a2a-sdk 1.3.0", Language::Python, "server_1_3");
static PYTHON_0_3_PACKAGES: Client =
    packages("server-python-0.3.26", "a2a-sdk 0.3.26", Language::Python, "server_0_3");
static JS_1_3_PACKAGES: Client =
    packages("server-js-1.3.0", "@a2a-js/sdk 1.3.0", Language::JavaScript, "server_1_3");

static JS_0_3_PACKAGES: Client =
    packages("server-js-0.3.14", "@a2a-js/sdk 0.3.14", Language::JavaScript, "server_0_3");

/// The two users of agents that have users.
const AS_USER: &[&str] = &["--bearer", "first-token", "--var", "otherBearer=second-token"];

/// Those that the lab tests.
pub const ALL: &[ThirdParty] = &[PYTHON_1_3, PYTHON_0_3, JS_1_3, A2A_SERVER_LF, A2A_PROTOCOL_SDK];

pub const PYTHON_1_3: ThirdParty = ThirdParty {
    name: "python-1.3.0",
    package: "a2a-sdk 1.3.0 (Python)",
    program: "interop/servers/python_1_3.py",
    kind: Kind::Script(&PYTHON_1_3_PACKAGES),
    flags: AS_USER,
    offers: "streams, webhooks, extended card, two users; 0.3 through the SDK's compatibility layer",
};

pub const PYTHON_0_3: ThirdParty = ThirdParty {
    name: "python-0.3.26",
    package: "a2a-sdk 0.3.26 (Python)",
    program: "interop/servers/python_0_3.py",
    kind: Kind::Script(&PYTHON_0_3_PACKAGES),
    flags: &[],
    offers: "streams, webhooks",
};

pub const JS_1_3: ThirdParty = ThirdParty {
    name: "js-1.3.0",
    package: "@a2a-js/sdk 1.3.0",
    program: "interop/servers/js_1_3.mjs",
    kind: Kind::Script(&JS_1_3_PACKAGES),
    flags: AS_USER,
    offers: "streams, webhooks, extended card, two users; 0.3 through the SDK's compatibility layer",
};

pub const A2A_SERVER_LF: ThirdParty = ThirdParty {
    name: "a2a-server-lf",
    package: "a2a-server-lf 0.5.3 (Rust)",
    program: "interop/servers/rust/a2a_server_lf/src/main.rs",
    kind: Kind::Rust("a2a_server_lf"),
    flags: &[],
    offers: "streams, webhooks",
};

pub const A2A_PROTOCOL_SDK: ThirdParty = ThirdParty {
    name: "a2a-protocol-sdk",
    package: "a2a-protocol-sdk 0.15.0 (Rust)",
    program: "interop/servers/rust/a2a_protocol_sdk/src/main.rs",
    kind: Kind::Rust("a2a_protocol_sdk_agent"),
    flags: AS_USER,
    offers: "streams, webhooks, extended card, two users",
};

/// Only for our client.
pub const JS_0_3: ThirdParty = ThirdParty {
    name: "js-0.3.14",
    package: "@a2a-js/sdk 0.3.14",
    program: "interop/servers/js_0_3.mjs",
    kind: Kind::Script(&JS_0_3_PACKAGES),
    flags: &[],
    offers: "streams, webhooks",
};

/// The packages of the scripts among them.
pub fn clients(agents: &[&ThirdParty]) -> Vec<&'static Client> {
    let scripts = agents.iter().filter_map(|agent| match agent.kind {
        Kind::Script(client) => Some(client),
        Kind::Rust(_) => None,
    });
    scripts.collect()
}

impl ThirdParty {
    /// The token of its first user, if it has users.
    pub fn token(&self) -> Option<&'static str> {
        self.flags.iter().skip_while(|flag| **flag != "--bearer").nth(1).copied()
    }
}

/// Compiles the Rust agents.
pub fn build(workspace: &Workspace, agents: &[&ThirdParty]) -> Result<(), String> {
    let packages: Vec<&str> = agents
        .iter()
        .filter_map(|agent| match agent.kind {
            Kind::Rust(binary) => Some(binary),
            Kind::Script(_) => None,
        })
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    let mut cargo = workspace.cargo(&["build", "--locked"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    // A separate target folder, so that they do not affect our builds.
    execute(cargo.current_dir(workspace.root.join(RUST)).env("CARGO_TARGET_DIR", target(workspace)))
}

fn target(workspace: &Workspace) -> PathBuf {
    workspace.results().join("servers")
}

/// A running agent; dropping this stops it.
pub struct Running {
    process: Child,
    address: SocketAddr,
}

impl Running {
    /// `flags` are for the program, behind its port.
    pub fn start(
        workspace: &Workspace,
        agent: &ThirdParty,
        folder: &Path,
        flags: &[&str],
    ) -> Result<Self, String> {
        let log = folder.join(format!("{}.log", agent.name));
        let out = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let address = free_address()?;
        let mut command = match agent.kind {
            Kind::Script(client) => {
                environments::command_for(workspace, client, &workspace.root.join(agent.program))
            }
            Kind::Rust(binary) => Command::new(target(workspace).join("debug").join(binary)),
        };
        let process = command
            .arg(address.port().to_string())
            .args(flags)
            .stdout(out.try_clone().map_err(|e| format!("{}: {e}", log.display()))?)
            .stderr(out)
            .spawn()
            .map_err(|e| format!("{}: {e}", agent.name))?;
        let mut running = Self { process, address };
        running.wait_until_it_listens(&log)?;
        Ok(running)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    fn wait_until_it_listens(&mut self, log: &Path) -> Result<(), String> {
        let start = Instant::now();
        let said = || fs::read_to_string(log).unwrap_or_default();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.process.try_wait().map_err(|e| format!("the agent: {e}"))? {
                return Err(format!("the agent ended at once with {status}\n{}", said()));
            }
            if start.elapsed() > START {
                return Err(format!("the agent does not listen after {START:?}\n{}", said()));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_and_every_list_of_packages_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for agent in ALL.iter().chain([&JS_0_3]) {
            assert!(root.join(agent.program).is_file(), "{}", agent.program);
        }
        for list in [
            "python/requirements/server_1_3.txt",
            "js/packages/server_1_3/package-lock.json",
            "js/packages/server_0_3/package-lock.json",
        ] {
            assert!(root.join("interop").join(list).is_file(), "{list}");
        }
    }
}
