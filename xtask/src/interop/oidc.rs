//! Runs a real identity provider, npm `oidc-provider`, and an agent that accepts its tokens: discovery, client
//! credentials, device code, introspection.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::clients::{Client, Language};
use super::environments;
use crate::agent::free_address;
use crate::process::{run as execute, succeeds};
use crate::workspace::Workspace;

const START: Duration = Duration::from_secs(60);
pub const AUDIENCE: &str = "https://agent.test";
const CHECKS: &str = "interop/js/oidc_checks.mjs";

/// Not an A2A client: it issues tokens.
pub static PROVIDER: Client = Client {
    name: "oidc-provider",
    package: "oidc-provider 9.13.3",
    language: Language::JavaScript,
    stem: "oidc_provider",
    bindings: &[],
    lacks: &[],
    tested: true,
    known: &[],
};

/// Starts it on a free port.
pub fn start_provider(workspace: &Workspace, folder: &Path, name: &str) -> Result<Running, String> {
    let probe = "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)";
    if !succeeds(Command::new("node").args(["-e", probe])) {
        return Err(format!("{} needs Node 20 or later", PROVIDER.package));
    }
    let address = free_address()?;
    let mut provider = environments::command(workspace, &PROVIDER);
    Running::start(provider.arg(address.port().to_string()), address, folder, name)
}

pub fn run(workspace: &Workspace, folder: &Path) -> Result<(), String> {
    // With all packages, so that the build of the tests is used.
    execute(&mut workspace.cargo(&["build", "--workspace", "--locked", "--example", "identity_provider"]))?;
    let results = results(folder);
    // Remove results of an earlier run.
    fs::write(&results, "").map_err(|e| format!("{}: {e}", results.display()))?;

    let provider = start_provider(workspace, folder, "oidc-provider")?;
    let address = free_address()?;
    let mut agent = Command::new(workspace.target.join("debug/examples/identity_provider"));
    agent.args([&address.to_string(), &provider.url(), AUDIENCE, "baton"]);
    agent.env("INTROSPECTION_SECRET", "baton-secret");
    let agent = Running::start(&mut agent, address, folder, "oidc-agent")?;

    let done = environments::command_for(workspace, &PROVIDER, &workspace.root.join(CHECKS))
        .args([agent.url(), provider.url()])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{CHECKS}: {e}"))?;
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    fs::write(&results, &output).map_err(|e| format!("{}: {e}", results.display()))?;
    println!("\n{}, tokens\n{}", PROVIDER.package, output.trim_end());
    if done.status.success() {
        return Ok(());
    }
    println!("{}\n{}\n{}", String::from_utf8_lossy(&done.stderr).trim_end(), provider.log(), agent.log());
    Err(format!("{}: the checks ended with {}", PROVIDER.name, done.status))
}

/// The names of the checks that passed in the last run.
pub fn passed(folder: &Path) -> Vec<String> {
    let output = fs::read_to_string(results(folder)).unwrap_or_default();
    output.lines().filter_map(|line| line.strip_prefix("ok ")).map(str::to_owned).collect()
}

fn results(folder: &Path) -> PathBuf {
    folder.join(format!("{}.txt", PROVIDER.name))
}

/// A server that is stopped when this is dropped.
pub struct Running {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Running {
    /// Starts it and waits until it accepts connections.
    pub fn start(
        command: &mut Command,
        address: SocketAddr,
        folder: &Path,
        name: &str,
    ) -> Result<Self, String> {
        let log = folder.join(format!("{name}.log"));
        let failed = |e| format!("{}: {e}", log.display());
        let out = File::create(&log).map_err(failed)?;
        let process = command
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(failed)?)
            .stderr(out)
            .spawn()
            .map_err(|e| format!("{name}: {e}"))?;
        let mut running = Running { process, address, log };
        let begin = Instant::now();
        while TcpStream::connect(address).is_err() {
            let ended = running.process.try_wait().map_err(|e| format!("{name}: {e}"))?;
            if ended.is_some() || begin.elapsed() > START {
                return Err(format!("{name} does not listen\n{}", running.log()));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(running)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
