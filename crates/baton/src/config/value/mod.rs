//! The types of values: how each is read from TOML and from plain text, and how it is shown.
//!
//! | file | holds |
//! |---|---|
//! | `shown` | values for display, as TOML and JSON |
//! | `plain` | texts, numbers, flags, lists, optional values |
//! | `measure` | durations and sizes |
//! | `choice` | one of a few words |
//! | `network` | addresses, URLs, hosts, origins, proxies |
//! | `secret`, `secret_text` | values that are never shown |
//! | `requirement` | what callers need |
//! | `token` | keys and algorithms of tokens |
//! | `admin_socket` | where the administration socket is |
//! | `program` | commands, folders and environments of programs |

mod admin_socket;
mod choice;
mod measure;
mod network;
mod plain;
mod program;
mod requirement;
mod secret;
mod secret_text;
mod shown;
mod token;

pub(crate) use admin_socket::AdminSocket;
pub(crate) use choice::{
    AtProxy, Builtin, CardGrpc, CertName, ClientCerts, ClientSecret, ExecInput, ExecOutput, GrantType,
    KeyLocation, LogFormat, MinTls, Replies,
};
pub(crate) use measure::{Size, duration};
pub(crate) use network::{AgentPath, AllowedHost, HostName, Listen, Origin, PublicUrl, TrustedProxy};
pub(crate) use plain::{Id, LogFilter, Tenant, Word};
pub(crate) use program::{CommandLine, Environment};
pub(crate) use requirement::Requirement;
pub(crate) use secret::{HttpUrl, Secret, StoreUrl, kind};
pub(crate) use secret_text::{SecretText, name_of_file};
pub(crate) use shown::Shown;
pub(crate) use token::{JwtAlgorithm, KeysAt};

use std::path::Path;

use toml::de::DeValue;

/// Longer values are shortened in errors.
const QUOTED: usize = 80;

/// Why a value was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// `expected …, not …`
    pub(crate) text: String,
    /// The index of the list item, and its offset in the file.
    pub(crate) item: Option<(usize, usize)>,
}

impl Refused {
    pub(crate) fn new(text: String) -> Self {
        Refused { text, item: None }
    }
}

pub(crate) trait Value: Clone + PartialEq + PartialOrd + Send + Sync + 'static {
    /// Whether it may be a secret. What was given for one is never repeated in an error, and an empty text is a mistake:
    /// it comes from a variable that is not set, and must not leave a server open.
    const SECRET: bool = false;

    /// What is accepted, with an example: `a duration such as "30s"`.
    fn expected() -> String;

    fn from_text(text: &str) -> Result<Self, Vec<Refused>>;

    /// By default a TOML string is read like a variable; types with other forms override this.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        match value {
            DeValue::String(text) => Self::from_text(text),
            other => Err(Self::refused(&found(other))),
        }
    }

    fn show(&self) -> Shown;

    /// Makes a relative path start at the configuration file's folder.
    fn rebase(&mut self, _folder: &Path) {}

    /// `expected …, not …`; `found` is already formatted for the message.
    fn refused(found: &str) -> Vec<Refused> {
        vec![Refused::new(format!("expected {}, not {found}", Self::expected()))]
    }

    /// The same with a reason, for text.
    fn refused_because(text: &str, reason: &str) -> Vec<Refused> {
        vec![Refused::new(format!("expected {}, not {} ({reason})", Self::expected(), quoted(text)))]
    }
}

/// A value of a file, formatted for an error; [`kind`] where it may be a secret.
pub(crate) fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A text as TOML writes it, shortened if it is long.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", Shown::text(&text[..end]).toml()),
        None => Shown::text(text).toml(),
    }
}
