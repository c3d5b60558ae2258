//! Tokens of earlier logins: one file per agent in `~/.config/a2a-cli/tokens`, readable by its user only. A file can be
//! looked at, and removing it is logging out.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use baton_client::{Origin, Token};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

/// What is kept of a login.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stored {
    version: u32,
    /// The address of the agent's card, or its file.
    agent: String,
    /// The security scheme of the card.
    pub(crate) scheme: String,
    pub(crate) client_id: String,
    /// The variable that holds the client's secret; the secret itself is not kept.
    pub(crate) client_secret_env: Option<String>,
    /// Authorization servers that may have the secret.
    pub(crate) issuers: Vec<String>,
    access_token: String,
    refresh_token: Option<String>,
    /// Seconds since 1970.
    expires_at: Option<u64>,
    issued_by: String,
}

/// The format of the files.
const VERSION: u32 = 1;

/// How the token was obtained.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) agent: String,
    pub(crate) scheme: String,
    pub(crate) client_id: String,
    pub(crate) client_secret_env: Option<String>,
    pub(crate) issuers: Vec<String>,
}

impl Stored {
    pub(crate) fn of(login: &Login, token: &Token) -> Self {
        let Login { agent, scheme, client_id, client_secret_env, issuers } = login.clone();
        let seconds =
            |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Stored {
            version: VERSION,
            agent,
            scheme,
            client_id,
            client_secret_env,
            issuers,
            access_token: token.access.expose_secret().to_owned(),
            refresh_token: token.refresh.as_ref().map(|refresh| refresh.expose_secret().to_owned()),
            expires_at: token.expires_at.map(seconds),
            issued_by: token.issued_by.to_string(),
        }
    }

    /// `None` if the file was changed so that it makes no sense.
    pub(crate) fn token(&self) -> Option<Token> {
        Some(Token {
            access: self.access_token.clone().into(),
            refresh: self.refresh_token.clone().map(Into::into),
            expires_at: self.expires_at.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            issued_by: Origin::parse(&self.issued_by).ok()?,
        })
    }

    pub(crate) fn login(&self) -> Login {
        Login {
            agent: self.agent.clone(),
            scheme: self.scheme.clone(),
            client_id: self.client_id.clone(),
            client_secret_env: self.client_secret_env.clone(),
            issuers: self.issuers.clone(),
        }
    }
}

/// The file of an agent, below the folder of the user's own files.
pub(crate) fn path(own_folder: &Path, agent: &str) -> PathBuf {
    own_folder.join("tokens").join(file_name(agent))
}

/// The token of an earlier login at this agent.
pub(crate) fn load(own_folder: &Path, agent: &str) -> Option<Stored> {
    let text = fs::read_to_string(path(own_folder, agent)).ok()?;
    let stored: Stored = serde_json::from_str(&text).ok()?;
    (stored.agent == agent && stored.version == VERSION).then_some(stored)
}

/// Replaces the file as a whole, so that no reader sees half of it.
pub(crate) fn save(own_folder: &Path, stored: &Stored) -> io::Result<PathBuf> {
    let path = path(own_folder, &stored.agent);
    let folder = own_folder.join("tokens");
    make_private_folder(&folder)?;
    let part = folder.join(format!(".{}.part", std::process::id()));
    // Left over from a process that was killed.
    let _ = fs::remove_file(&part);
    let text = serde_json::to_string_pretty(stored)?;
    let written = create_private(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    });
    match written.and_then(|()| fs::rename(&part, &path)) {
        Ok(()) => Ok(path),
        Err(error) => {
            let _ = fs::remove_file(&part);
            Err(error)
        }
    }
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// The user's own folder is private on other systems.
#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
fn make_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Readable, and different for different agents up to a length that every system allows.
fn file_name(agent: &str) -> String {
    const LONGEST: usize = 180;
    let mut name = String::new();
    for byte in agent.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => name.push(byte.into()),
            b'.' if !name.is_empty() => name.push('.'),
            byte => name += &format!("%{byte:02x}"),
        }
        if name.len() >= LONGEST {
            break;
        }
    }
    name + ".json"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(agent: &str) -> Login {
        Login {
            agent: agent.to_owned(),
            scheme: "corp".to_owned(),
            client_id: "me".to_owned(),
            client_secret_env: None,
            issuers: Vec::new(),
        }
    }

    #[test]
    fn cli_auth_007_tokens_are_kept_for_their_user_and_found_again() {
        let home = tempfile::tempdir().unwrap();
        let token = Token {
            access: "s3cret".to_owned().into(),
            refresh: Some("r3fresh".to_owned().into()),
            expires_at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000)),
            issued_by: Origin::parse("https://id.example").unwrap(),
        };
        let agent = "https://a.example/.well-known/agent-card.json";
        let path = save(home.path(), &Stored::of(&login(agent), &token)).unwrap();
        // A second login replaces the first.
        save(home.path(), &Stored::of(&login(agent), &token)).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            let folder = path.parent().unwrap();
            assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
        let found = load(home.path(), agent).unwrap().token().unwrap();
        assert_eq!(found.access.expose_secret(), "s3cret");
        assert_eq!((found.expires_at, found.issued_by), (token.expires_at, token.issued_by));
        assert!(load(home.path(), "https://b.example").is_none());
        assert_eq!(fs::read_dir(home.path().join("tokens")).unwrap().count(), 1);
    }

    #[test]
    fn names_of_token_files_stay_in_their_folder() {
        assert_eq!(file_name("https://a.example:1/x"), "https%3a%2f%2fa.example%3a1%2fx.json");
        assert_eq!(file_name("../.."), "%2e.%2f...json");
        assert!(file_name(&"ä".repeat(500)).len() < 200);
    }
}
