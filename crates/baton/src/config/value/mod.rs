//! What can stand behind a key: how it is read from TOML and from plain text, and how it is shown.
//!
//! | file | holds |
//! |---|---|
//! | `shown` | values on their way out, as TOML and JSON |
//! | `plain` | texts, numbers, flags, lists, optional values |
//! | `measure` | durations and sizes |
//! | `choice` | one of a few words |
//! | `network` | addresses, URLs, hosts, origins, proxies |
//! | `secret` | what is never shown |
//! | `program` | commands, folders and environments of programs |

mod choice;
mod measure;
mod network;
mod plain;
mod program;
mod secret;
mod shown;

pub(crate) use choice::{Builtin, ExecInput, ExecOutput, LogFormat, Replies};
pub(crate) use measure::{Size, duration};
pub(crate) use network::{AgentPath, HostName, Listen, Origin, PublicUrl, TrustedProxy};
pub(crate) use plain::{Id, LogFilter, Tenant, Word};
pub(crate) use program::{CommandLine, Environment};
pub(crate) use secret::{HttpUrl, Secret, StoreUrl};
pub(crate) use shown::Shown;

use std::path::Path;

use toml::de::DeValue;

/// Longer values are cut when an error repeats them.
const QUOTED: usize = 80;

/// Why a value was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// `expected …, not …`
    pub(crate) text: String,
    /// Which item of a list it was, and where that begins in the file.
    pub(crate) item: Option<(usize, usize)>,
}

impl Refused {
    pub(crate) fn new(text: String) -> Self {
        Refused { text, item: None }
    }
}

pub(crate) trait Value: Clone + PartialEq + PartialOrd + 'static {
    /// What is accepted, with an example: `a duration such as "30s"`.
    fn expected() -> String;

    fn from_text(text: &str) -> Result<Self, Vec<Refused>>;

    /// A text is read as a variable would be; types with other forms say so.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        match value {
            DeValue::String(text) => Self::from_text(text),
            other => Err(Self::refused(&found(other))),
        }
    }

    fn show(&self) -> Shown;

    /// Relative paths of a file start at its folder.
    fn rebase(&mut self, _folder: &Path) {}

    /// `expected …, not …`; `found` is written as it should be repeated.
    fn refused(found: &str) -> Vec<Refused> {
        vec![Refused::new(format!("expected {}, not {found}", Self::expected()))]
    }

    /// The same with the reason, for a text.
    fn refused_because(text: &str, reason: &str) -> Vec<Refused> {
        vec![Refused::new(format!("expected {}, not {} ({reason})", Self::expected(), quoted(text)))]
    }
}

/// A value of a file, as an error repeats it.
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

/// A text as TOML writes it, cut when it is long.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", Shown::text(&text[..end]).toml()),
        None => Shown::text(text).toml(),
    }
}
