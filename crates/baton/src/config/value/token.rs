//! Where an issuer's keys are, and which signatures count.

use std::path::{Path, PathBuf};

use baton_server::auth::jwt::Algorithm;

use super::{HttpUrl, Refused, Shown, Value, quoted};

/// A key set: a URL, or `@FILE`.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) enum KeysAt {
    Url(HttpUrl),
    File(PathBuf),
}

impl Value for KeysAt {
    fn expected() -> String {
        "a URL such as \"https://login.example.com/keys\", or \"@FILE\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        match text.strip_prefix('@') {
            Some("") => Err(Self::refused("`@` alone")),
            Some(path) => Ok(KeysAt::File(path.into())),
            None => HttpUrl::from_text(text).map(KeysAt::Url).map_err(|_| Self::refused("this text")),
        }
    }

    fn show(&self) -> Shown {
        match self {
            KeysAt::Url(url) => url.show(),
            KeysAt::File(path) => Shown::text(format!("@{}", path.display())),
        }
    }

    fn rebase(&mut self, folder: &Path) {
        if let KeysAt::File(path) = self {
            *path = folder.join(&*path);
        }
    }
}

/// An algorithm for signatures, by its name in JWTs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct JwtAlgorithm(pub(crate) Algorithm);

impl PartialOrd for JwtAlgorithm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.0.name().partial_cmp(other.0.name())
    }
}

impl Value for JwtAlgorithm {
    fn expected() -> String {
        "an algorithm with public keys such as \"ES256\", \"RS256\" or \"EdDSA\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        Algorithm::parse(text).map(JwtAlgorithm).ok_or_else(|| Self::refused(&quoted(text)))
    }

    fn show(&self) -> Shown {
        Shown::text(self.0.name())
    }
}
