//! Owners who can authenticate at a served process: attackers and those who must not notice them.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;

use crate::served::baton;

/// Owners of one attack. The server asks each caller for a bearer token, a password, an API key or a JWT.
pub(super) struct Owners {
    folder: TempDir,
    text: String,
}

/// A public key of an issuer that does not exist: no JWT is valid.
const ISSUER_KEYS: &str = r#"{"keys": [{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "1",
"x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;

impl Owners {
    /// Each has a bearer token.
    pub(super) fn new(names: &[&str]) -> Self {
        let mut owners = Owners { folder: tempfile::tempdir().unwrap(), text: String::new() };
        for name in names {
            owners.text +=
                &format!("[[auth.bearer.token]]\nid = \"{name}\"\nsecret = \"{}\"\n", secret(name));
        }
        owners
    }

    /// One more, with a password.
    pub(super) fn with_password(mut self, name: &str) -> Self {
        let mut command = baton(&["hash-password"]);
        let mut hashing = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(hashing.stdin.take().unwrap(), "{}", secret(name)).unwrap();
        let hash = String::from_utf8(hashing.wait_with_output().unwrap().stdout).unwrap();
        self.text += &format!("[[auth.basic.user]]\nname = \"{name}\"\npassword = '{}'\n", hash.trim());
        self
    }

    /// API keys and JWTs are accepted, too; nobody has one.
    pub(super) fn with_all_schemes(mut self) -> Self {
        let keys = self.folder.path().join("keys.json");
        fs::write(&keys, ISSUER_KEYS).unwrap();
        self.text += &format!(
            "[auth.api_key]\nlocation = \"header\"\n[auth.jwt]\nissuer = \"https://login.example.com\"\n\
             audience = [\"agent\"]\njwks = '@{}'\n",
            keys.display()
        );
        self
    }

    /// For `--config`.
    pub(super) fn config(&self) -> String {
        let path = self.folder.path().join("baton.toml");
        fs::write(&path, &self.text).unwrap();
        path.display().to_string()
    }
}

fn secret(name: &str) -> String {
    format!("the secret of {name}").replace(' ', "-")
}

/// The value of `Authorization` of an owner with a token.
pub(super) fn bearer(name: &str) -> String {
    format!("Bearer {}", secret(name))
}

/// The value of `Authorization` of an owner with a password.
pub(super) fn basic(name: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{}", secret(name))))
}
