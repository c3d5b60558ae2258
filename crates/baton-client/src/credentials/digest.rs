//! Digest authentication, RFC 7616: SHA-256, and MD5 for old servers.

use std::fmt::Write as _;

use http::HeaderValue;
use md5::Md5;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::challenge;
use crate::error::Error;
use crate::http::Request;

/// A server's nonce, and how often it was used.
pub(super) struct Session {
    algorithm: Algorithm,
    is_session: bool,
    /// As the server spells it; `None` if it did not name one.
    algorithm_name: Option<String>,
    realm: String,
    nonce: String,
    opaque: Option<String>,
    with_quality: bool,
    hash_user: bool,
    stale: bool,
    count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Sha256,
    Md5,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("algorithm", &self.algorithm).field("realm", &self.realm).finish()
    }
}

impl Session {
    /// Takes the strongest challenge that is understood.
    pub(super) fn begin(headers: &[String]) -> Option<Self> {
        let offered = headers.iter().flat_map(|header| challenge::read(header));
        let mut understood: Vec<Session> =
            offered.filter(|it| it.scheme == "digest").filter_map(|it| Self::of(&it)).collect();
        understood.sort_by_key(|session| session.algorithm == Algorithm::Md5);
        understood.into_iter().next()
    }

    fn of(challenge: &challenge::Challenge) -> Option<Self> {
        let algorithm_name = challenge.get("algorithm").map(str::to_owned);
        let spelled = algorithm_name.as_deref().unwrap_or("MD5").to_ascii_uppercase();
        let (name, is_session) = match spelled.strip_suffix("-SESS") {
            Some(name) => (name, true),
            None => (spelled.as_str(), false),
        };
        let algorithm = match name {
            "SHA-256" => Algorithm::Sha256,
            "MD5" => Algorithm::Md5,
            _ => return None,
        };
        let with_quality = match challenge.get("qop") {
            Some(list) if list.split(',').any(|it| it.trim().eq_ignore_ascii_case("auth")) => true,
            // Only `auth-int`, which covers the body; hardly any server has it.
            Some(_) => return None,
            None => false,
        };
        let is_true = |name: &str| challenge.get(name).is_some_and(|it| it.eq_ignore_ascii_case("true"));
        Some(Session {
            algorithm,
            is_session,
            algorithm_name,
            realm: challenge.get("realm")?.to_owned(),
            nonce: challenge.get("nonce")?.to_owned(),
            opaque: challenge.get("opaque").map(str::to_owned),
            with_quality,
            hash_user: is_true("userhash"),
            stale: is_true("stale"),
            count: 0,
        })
    }

    /// The nonce of the request was too old; user and password were not looked at.
    pub(super) fn is_stale(&self) -> bool {
        self.stale
    }

    /// `Authorization` for a request. Each use of the nonce has another count.
    pub(super) fn answer(
        &mut self,
        user: &str,
        password: &SecretString,
        request: &Request,
    ) -> Result<HeaderValue, Error> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|error| Error::Credentials(format!("no randomness: {error}")))?;
        let uri = match request.url.query() {
            Some(query) => format!("{}?{query}", request.url.path()),
            None => request.url.path().to_owned(),
        };
        let text = self.line(user, password, request.method.as_str(), &uri, &hex(&random));
        super::secret(&text)
    }

    fn line(&mut self, user: &str, password: &SecretString, method: &str, uri: &str, cnonce: &str) -> String {
        self.count += 1;
        let count = format!("{:08x}", self.count);
        let Session { realm, nonce, .. } = &*self;
        let hash = |text: &str| self.hash(text);
        let mut secret = hash(&format!("{user}:{realm}:{}", password.expose_secret()));
        if self.is_session {
            secret = hash(&format!("{secret}:{nonce}:{cnonce}"));
        }
        let asked = hash(&format!("{method}:{uri}"));
        let response = match self.with_quality {
            true => hash(&format!("{secret}:{nonce}:{count}:{cnonce}:auth:{asked}")),
            false => hash(&format!("{secret}:{nonce}:{asked}")),
        };
        let mut line = String::from("Digest ");
        if self.hash_user {
            let _ = write!(line, "username=\"{}\", userhash=true", hash(&format!("{user}:{realm}")));
        } else if user.is_ascii() {
            let _ = write!(line, "username={}", quoted(user));
        } else {
            let _ = write!(line, "username*=UTF-8''{}", extended(user));
        }
        let _ = write!(line, ", realm={}, nonce={}, uri={}", quoted(realm), quoted(nonce), quoted(uri));
        if let Some(name) = &self.algorithm_name {
            let _ = write!(line, ", algorithm={name}");
        }
        let _ = write!(line, ", response=\"{response}\"");
        if self.with_quality {
            let _ = write!(line, ", qop=auth, nc={count}, cnonce=\"{cnonce}\"");
        }
        if let Some(opaque) = &self.opaque {
            let _ = write!(line, ", opaque={}", quoted(opaque));
        }
        line
    }

    fn hash(&self, text: &str) -> String {
        match self.algorithm {
            Algorithm::Sha256 => hex(&Sha256::digest(text)),
            Algorithm::Md5 => hex(&Md5::digest(text)),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Percent-encoded, as RFC 8187 has it.
fn extended(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7616, section 3.9.1.
    #[test]
    fn p09_the_examples_of_the_rfc() {
        let header = |algorithm: &str| {
            format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm={algorithm}, \
                 nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            )
        };
        let cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let password = SecretString::from("Circle of Life");
        for (algorithm, expected) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let mut session = Session::begin(&[header(algorithm)]).unwrap();
            let line = session.line("Mufasa", &password, "GET", "/dir/index.html", cnonce);
            assert!(line.contains(&format!("response=\"{expected}\"")), "{line}");
            assert!(line.contains("nc=00000001"), "{line}");
            assert!(session.line("Mufasa", &password, "GET", "/", cnonce).contains("nc=00000002"));
        }
        let both = [header("MD5"), header("SHA-256")];
        assert_eq!(Session::begin(&both).unwrap().algorithm, Algorithm::Sha256);
    }

    #[test]
    fn challenges_that_are_not_understood_are_left_alone() {
        for header in [
            "Basic realm=\"x\"",
            "Digest realm=\"x\"",
            "Digest realm=\"x\", nonce=\"n\", algorithm=SHA-512-256",
            "Digest realm=\"x\", nonce=\"n\", qop=\"auth-int\"",
        ] {
            assert!(Session::begin(&[header.to_owned()]).is_none(), "{header}");
        }
    }
}
