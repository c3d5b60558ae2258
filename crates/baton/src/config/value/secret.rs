//! Values that are never shown: not by `config show`, not in an error, not by `{:?}`. The types enforce it.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::{Refused, Shown, Value};

/// Shown instead of a secret.
const HIDDEN: &str = "***";

/// A text that is never shown.
#[derive(Clone, PartialEq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// For using the secret; never for a message.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn show() -> Shown {
        Shown::text(HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// The type's name for an error, since the value itself may be a secret.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "this text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Where tasks are kept. A database's URL may hold a password, so a refused one is not repeated.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) enum StoreUrl {
    Memory,
    Sqlite(PathBuf),
}

impl Value for StoreUrl {
    fn expected() -> String {
        "`memory:` or `sqlite:PATH`".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let refused =
            |reason: &str| Err(vec![Refused::new(format!("{reason}; expected {}", Self::expected()))]);
        let Some((scheme, rest)) = text.split_once(':') else {
            return refused("a store is written as `scheme:…`");
        };
        match scheme {
            "memory" if rest.is_empty() => Ok(StoreUrl::Memory),
            "memory" => refused("`memory:` takes nothing after the colon"),
            "sqlite" if rest.is_empty() => refused("the path is missing"),
            // In other tools this is a relative path; for the operating system it is at the root.
            "sqlite" if rest.starts_with("//") && !rest.starts_with("///") => refused(
                "after two slashes it is unclear where the file is: write `sqlite:tasks.db` or \
                         `sqlite:/absolute/tasks.db`",
            ),
            "sqlite" => Ok(StoreUrl::Sqlite(PathBuf::from(rest))),
            "postgres" | "postgresql" | "redis" | "rediss" => {
                refused(&format!("`{scheme}` is not supported yet"))
            }
            // A text that does not look like a scheme may be part of a secret.
            _ if scheme.bytes().all(|byte| byte.is_ascii_lowercase()) && scheme.len() <= 16 => {
                refused(&format!("unknown store `{scheme}`"))
            }
            _ => refused("unknown store"),
        }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let text = value.as_str().ok_or_else(|| Self::refused(kind(value)))?;
        Self::from_text(text)
    }

    fn show(&self) -> Shown {
        Shown::text(self.to_string())
    }

    fn rebase(&mut self, folder: &Path) {
        if let StoreUrl::Sqlite(path) = self {
            *path = folder.join(&*path);
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
        }
    }
}

/// A URL to send to. A user name and password in it are used but not shown.
#[derive(Clone, PartialEq)]
pub(crate) struct HttpUrl {
    url: Secret,
    shown: String,
}

impl HttpUrl {
    pub(crate) fn reveal(&self) -> &str {
        self.url.reveal()
    }
}

impl PartialOrd for HttpUrl {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.reveal().partial_cmp(other.reveal())
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Value for HttpUrl {
    fn expected() -> String {
        "an address such as \"http://127.0.0.1:4318\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let scheme = ["http://", "https://"].into_iter().find(|scheme| text.starts_with(scheme));
        let Some(scheme) = scheme else { return Err(Self::refused("one with another scheme")) };
        let rest = &text[scheme.len()..];
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) =
            authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        if host.is_empty() || rest.contains(['?', '#']) || rest.contains(char::is_whitespace) {
            return Err(Self::refused("one without a host, or with a query, a fragment or a space"));
        }
        let shown = match user {
            Some(_) => format!("{scheme}{HIDDEN}@{host}{path}"),
            None => text.to_owned(),
        };
        Ok(HttpUrl { url: Secret::new(text), shown })
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let text = value.as_str().ok_or_else(|| Self::refused(kind(value)))?;
        Self::from_text(text)
    }

    fn show(&self) -> Shown {
        Shown::text(&self.shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_read_or_refused_with_what_is_accepted() {
        assert_eq!(StoreUrl::from_text("memory:"), Ok(StoreUrl::Memory));
        assert_eq!(StoreUrl::from_text("sqlite:a/b.db"), Ok(StoreUrl::Sqlite("a/b.db".into())));
        for absolute in ["sqlite:/a/b.db", "sqlite:///a/b.db"] {
            assert_eq!(StoreUrl::from_text(absolute), Ok(StoreUrl::Sqlite("/a/b.db".into())));
        }
        for (text, reason) in [
            ("postgres://u:canary@h/db", "`postgres` is not supported yet"),
            ("redis://:canary@h", "`redis` is not supported yet"),
            ("mongo://u:canary@h", "unknown store `mongo`"),
            ("canary_1:x", "unknown store"),
            ("memory", "written as `scheme:…`"),
            ("memory:canary", "nothing after the colon"),
            ("sqlite:", "the path is missing"),
            ("sqlite://canary.db", "write `sqlite:tasks.db` or `sqlite:/absolute/tasks.db`"),
            ("sqlite://", "write `sqlite:tasks.db`"),
        ] {
            let refused = &StoreUrl::from_text(text).unwrap_err()[0].text;
            assert!(refused.contains(reason) && refused.contains("`memory:` or `sqlite:PATH`"), "{refused}");
            assert!(!refused.contains("canary"), "{refused}");
        }
    }

    #[test]
    fn an_address_keeps_its_password_to_itself() {
        let url = HttpUrl::from_text("https://me:canary@collector:4318/v1").unwrap();
        assert_eq!(url.reveal(), "https://me:canary@collector:4318/v1");
        assert_eq!(url.show(), Shown::text("https://***@collector:4318/v1"));
        assert!(!format!("{url:?} {:?}", url.url).contains("canary"));
        for bad in ["canary", "ftp://canary", "http://canary@", "http://a?canary", "http://a canary"] {
            let refused = format!("{:?}", HttpUrl::from_text(bad).unwrap_err());
            assert!(!refused.contains("canary"), "{refused}");
        }
    }
}
