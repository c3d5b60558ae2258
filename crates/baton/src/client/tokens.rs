//! Tokens of earlier logins: one file per agent in `~/.config/a2a-cli/tokens`, readable by its user only. A file can be
//! looked at, and removing it is logging out.

mod kept;

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use baton_client::{Origin, Token};
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

pub(crate) use self::kept::{Kept, settle};

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
    /// Authorization servers that the user knows.
    pub(crate) issuers: Vec<String>,
    /// What was asked for instead of the scopes that the card requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
    /// Origins of agents that may have the token.
    #[serde(default)]
    origins: Vec<String>,
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
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) origins: Vec<String>,
}

impl Stored {
    pub(crate) fn of(login: &Login, token: &Token) -> Self {
        let Login { agent, scheme, client_id, client_secret_env, issuers, scopes, origins } = login.clone();
        let seconds =
            |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Stored {
            version: VERSION,
            agent,
            scheme,
            client_id,
            client_secret_env,
            issuers,
            scopes,
            origins,
            access_token: token.access.expose_secret().to_owned(),
            refresh_token: token.refresh.as_ref().map(|refresh| refresh.expose_secret().to_owned()),
            expires_at: token.expires_at.map(seconds),
            issued_by: token.issued_by.to_string(),
        }
    }

    /// `None` if the file was changed so that it makes no sense.
    pub(crate) fn token(&self) -> Option<Token> {
        let expires_at = match self.expires_at.map(Duration::from_secs) {
            Some(since) => Some(SystemTime::UNIX_EPOCH.checked_add(since)?),
            None => None,
        };
        Some(Token {
            access: self.access_token.clone().into(),
            refresh: self.refresh_token.clone().map(Into::into),
            expires_at,
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
            scopes: self.scopes.clone(),
            origins: self.origins.clone(),
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
    remove_left_over(&folder);
    // Containers that share a home may have the same process ids.
    let part = folder.join(format!(".{:016x}{PART}", RandomState::new().build_hasher().finish()));
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

/// The end of the name of a file that is being written.
const PART: &str = ".part";

/// Files that were begun an hour ago are of processes that were killed.
fn remove_left_over(folder: &Path) {
    const OLD: Duration = Duration::from_secs(60 * 60);
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().ends_with(PART)) {
        let written = entry.metadata().and_then(|data| data.modified());
        if written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > OLD)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn create_private(path: &Path) -> io::Result<fs::File> {
    private(fs::OpenOptions::new().write(true).create_new(true)).open(path)
}

/// The file, which is made if there is none.
fn open_private(path: &Path) -> io::Result<fs::File> {
    private(fs::OpenOptions::new().write(true).create(true).truncate(false)).open(path)
}

#[cfg(unix)]
fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(0o600)
}

/// The user's own folder is private on other systems.
#[cfg(not(unix))]
fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    options
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
    }
    // Long names are those of files in deep folders, which differ at their ends.
    match name.len().checked_sub(LONGEST) {
        Some(from) if from > 0 => format!("-{}.json", &name[from..]),
        _ => name + ".json",
    }
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
            scopes: None,
            origins: Vec::new(),
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
        let changed = fs::read_to_string(&path).unwrap().replace("2000000000", &u64::MAX.to_string());
        fs::write(&path, changed).unwrap();
        assert!(load(home.path(), agent).unwrap().token().is_none(), "no clock has this time");
        assert_eq!(fs::read_dir(home.path().join("tokens")).unwrap().count(), 1);
    }

    /// Threads of one process have the same process id, as processes in two containers may have.
    #[test]
    fn writers_with_the_same_process_id_do_not_disturb_each_other() {
        let home = tempfile::tempdir().unwrap();
        let token = |number: u32| Token {
            access: format!("token-{number}").into(),
            refresh: None,
            expires_at: None,
            issued_by: Origin::parse("https://id.example").unwrap(),
        };
        std::thread::scope(|threads| {
            for number in 0..8 {
                let (home, token) = (home.path(), token(number));
                threads.spawn(move || {
                    for _ in 0..20 {
                        save(home, &Stored::of(&login("https://a.example"), &token)).unwrap();
                    }
                });
            }
        });
        assert!(load(home.path(), "https://a.example").is_some());
        assert_eq!(fs::read_dir(home.path().join("tokens")).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn names_of_token_files_stay_in_their_folder() {
        assert_eq!(file_name("https://a.example:1/x"), "https%3a%2f%2fa.example%3a1%2fx.json");
        assert_eq!(file_name("../.."), "%2e.%2f...json");
        assert!(file_name(&"ä".repeat(500)).len() < 200);
        let deep = "/folder".repeat(50);
        assert_ne!(file_name(&format!("{deep}/a.json")), file_name(&format!("{deep}/b.json")));
    }
}
