//! Runs our binary as an agent, on a free port with a store of its own.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::workspace::Workspace;

const START: Duration = Duration::from_secs(60);

/// Which build of our binary.
#[derive(Debug, Clone, Copy)]
pub enum Build {
    Debug,
    Release,
}

impl Build {
    /// The same arguments as in the stage `build-release`: with other packages, cargo would build dependencies again.
    pub fn cargo_args(self) -> &'static [&'static str] {
        match self {
            Self::Debug => &["build", "--locked"],
            Self::Release => &["build", "--release", "--locked"],
        }
    }

    /// A command that runs the binary, without arguments.
    pub fn command(self, workspace: &Workspace) -> Command {
        Command::new(workspace.target.join(self.binary()))
    }

    fn binary(self) -> &'static str {
        match self {
            Self::Debug => "debug/baton",
            Self::Release => "release/baton",
        }
    }
}

pub struct Agent {
    process: Child,
    address: SocketAddr,
    store: PathBuf,
    log: PathBuf,
}

impl Agent {
    /// Starts the demo agent and waits until it accepts connections. Store and log go under `folder`.
    pub fn start(workspace: &Workspace, folder: &Path, build: Build) -> Result<Self, String> {
        Self::start_with(workspace, folder, build, "server", &[])
    }

    /// The same with other flags; `name` separates its store and log from those of other agents in that folder.
    pub fn start_with(
        workspace: &Workspace,
        folder: &Path,
        build: Build,
        name: &str,
        flags: &[&str],
    ) -> Result<Self, String> {
        let store = folder.join(format!("store-{name}-{}", std::process::id()));
        fs::create_dir_all(&store).map_err(|e| format!("{}: {e}", store.display()))?;
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).map_err(|e| format!("{}: {e}", log.display()))?;
        let address = free_address()?;
        let binary = workspace.target.join(build.binary());
        let process = Command::new(&binary)
            .args(["serve", "--listen", &address.to_string(), "--store"])
            .arg(format!("sqlite:{}", store.join("demo.db").display()))
            .args(flags)
            .current_dir(&store)
            .stdout(out.try_clone().map_err(|e| format!("{}: {e}", log.display()))?)
            .stderr(out)
            .spawn()
            .map_err(|e| format!("{}: {e}", binary.display()))?;
        let mut agent = Self { process, address, store, log };
        agent.wait_until_it_listens()?;
        Ok(agent)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn log_tail(&self, lines: usize) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    fn wait_until_it_listens(&mut self) -> Result<(), String> {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.process.try_wait().map_err(|e| format!("the server: {e}"))? {
                return Err(format!("the server ended at once with {status}\n{}", self.log_tail(40)));
            }
            if start.elapsed() > START {
                return Err(format!("the server does not listen after {START:?}\n{}", self.log_tail(40)));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Errors do not matter here: the process may be gone, and the next run uses another folder.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.store);
    }
}

/// A port that was free a moment ago; the system gives the next ephemeral port another number.
pub fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("no free port: {e}"))?;
    listener.local_addr().map_err(|e| format!("no free port: {e}"))
}
