//! A gate before a third-party agent (`interop/servers/gate.py`): TLS by an authority of our own, and a credential for
//! everything but the card. The agent behind it is as it was.

use std::path::Path;
use std::process::Command;

use super::oidc::Running;
use crate::agent::free_address;
use crate::workspace::Workspace;

/// The credential that a gate wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    ApiKey,
    Bearer,
}

/// That of the first user, so that agents with users know it, too.
const TOKEN: &str = "first-token";
const API_KEY: &str = "key-of-the-gate";

impl Credential {
    pub const ALL: [Self; 2] = [Self::ApiKey, Self::Bearer];

    /// For the gate, and in names of files.
    pub fn word(self) -> &'static str {
        match self {
            Self::ApiKey => "api-key",
            Self::Bearer => "bearer",
        }
    }

    /// The column on the page.
    pub fn shown(self) -> &'static str {
        match self {
            Self::ApiKey => "API key",
            Self::Bearer => "bearer",
        }
    }

    fn secret(self) -> &'static str {
        match self {
            Self::ApiKey => API_KEY,
            Self::Bearer => TOKEN,
        }
    }
}

/// A running gate; dropping this stops it.
pub struct Gate {
    /// Arguments for the tour.
    pub arguments: Vec<String>,
    _running: Running,
}

impl Gate {
    /// `folder` has the certificates; `agent` is the port of the agent behind the gate.
    pub fn start(
        workspace: &Workspace,
        folder: &Path,
        name: &str,
        agent: u16,
        wants: Credential,
    ) -> Result<Self, String> {
        let address = free_address()?;
        let mut command = Command::new("python3");
        command.arg(workspace.root.join("interop/servers/gate.py"));
        command.args([address.port().to_string(), agent.to_string()]);
        command.args(["server.pem", "server.key"].map(|file| folder.join(file)));
        command.args([wants.word(), wants.secret()]).env("PYTHONDONTWRITEBYTECODE", "1");
        let log = format!("{name}-gate-{}", wants.word());
        let _running = Running::start(&mut command, address, folder, &log)?;
        let file = |name: &str| folder.join(name).display().to_string();
        let arguments = vec![
            format!("https://{address}"),
            "--ca".to_owned(),
            file("ca.pem"),
            "--stranger".to_owned(),
            file("stranger.pem"),
            format!("--{}", wants.word()),
            wants.secret().to_owned(),
        ];
        Ok(Gate { arguments, _running })
    }
}
