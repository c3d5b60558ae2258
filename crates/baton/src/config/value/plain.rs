//! Texts, numbers, flags, lists, and values that may be absent.

use std::ops::Deref;

use toml::de::{DeInteger, DeValue};
use tracing_subscriber::EnvFilter;

use super::{Refused, Shown, Value, found, quoted};
use crate::config::problem::did_you_mean;

impl Value for String {
    fn expected() -> String {
        "a text".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        Ok(text.to_owned())
    }

    fn show(&self) -> Shown {
        Shown::text(self)
    }
}

impl Value for bool {
    fn expected() -> String {
        "true or false".to_owned()
    }

    /// Accepts 1 and 0, too, as variables often have them.
    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(Self::refused(&quoted(text))),
        }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        value.as_bool().ok_or_else(|| Self::refused(&found(value)))
    }

    fn show(&self) -> Shown {
        Shown::Flag(*self)
    }
}

/// The value of a TOML integer that is not negative.
pub(super) fn whole(integer: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

macro_rules! whole_number {
    ($type:ty) => {
        impl Value for $type {
            fn expected() -> String {
                if <$type>::MAX as u64 == u64::MAX {
                    "a whole number".to_owned()
                } else {
                    format!("a whole number up to {}", <$type>::MAX)
                }
            }

            fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
                text.replace('_', "").parse().map_err(|_| Self::refused(&quoted(text)))
            }

            fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
                let number = value.as_integer().and_then(whole);
                number.and_then(|number| number.try_into().ok()).ok_or_else(|| Self::refused(&found(value)))
            }

            fn show(&self) -> Shown {
                Shown::Whole(*self as u64)
            }
        }
    };
}

whole_number!(u32);
whole_number!(u64);
whole_number!(usize);

impl Value for f64 {
    fn expected() -> String {
        "a number".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let number = text.replace('_', "").parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| Self::refused(&quoted(text)))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let text = match value {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            other => return Err(Self::refused(&found(other))),
        };
        Self::from_text(text).map_err(|_| Self::refused(&found(value)))
    }

    fn show(&self) -> Shown {
        Shown::Real(*self)
    }
}

/// An empty text means absent, so that a higher layer can unset the value of a lower one.
impl<T: Value> Value for Option<T> {
    const SECRET: bool = T::SECRET;

    fn expected() -> String {
        T::expected()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        if text.is_empty() && !T::SECRET { Ok(None) } else { T::from_text(text).map(Some) }
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        if value.as_str() == Some("") && !T::SECRET { Ok(None) } else { T::from_toml(value).map(Some) }
    }

    fn show(&self) -> Shown {
        self.as_ref().map_or(Shown::Absent, T::show)
    }

    fn rebase(&mut self, folder: &std::path::Path) {
        if let Some(value) = self {
            value.rebase(folder);
        }
    }
}

/// A TOML array, or a text with commas.
impl<T: Value> Value for Vec<T> {
    fn expected() -> String {
        format!("a list, each item {}", T::expected())
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        gather(items.map(|item| (0, T::from_text(item))))
    }

    fn from_toml(value: &DeValue<'_>) -> Result<Self, Vec<Refused>> {
        let array = value.as_array().ok_or_else(|| Self::refused(&found(value)))?;
        gather(array.iter().map(|item| (item.span().start, T::from_toml(item.get_ref()))))
    }

    fn show(&self) -> Shown {
        Shown::List(self.iter().map(T::show).collect())
    }
}

/// All items, or the reasons for all that are refused.
fn gather<T>(items: impl Iterator<Item = (usize, Result<T, Vec<Refused>>)>) -> Result<Vec<T>, Vec<Refused>> {
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for (index, (start, item)) in items.enumerate() {
        match item {
            Ok(item) => taken.push(item),
            Err(reasons) => refused
                .extend(reasons.into_iter().map(|reason| Refused { item: Some((index, start)), ..reason })),
        }
    }
    if refused.is_empty() { Ok(taken) } else { Err(refused) }
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident: $allowed:literal, $expected:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, PartialOrd)]
        pub(crate) struct $name(String);

        impl $name {
            pub(crate) fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Value for $name {
            fn expected() -> String {
                $expected.to_owned()
            }

            fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || $allowed.contains(&byte);
                if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
                    return Err(Self::refused(&quoted(text)));
                }
                Ok($name(text.to_owned()))
            }

            fn show(&self) -> Shown {
                Shown::text(&self.0)
            }
        }
    };
}

name! {
    /// Names an agent in stores, logs and metrics.
    Id: b"._-", "a name of at most 64 of the characters A-Z a-z 0-9 . _ -"
}

name! {
    /// Names one of several agents at the same address.
    Tenant: b"._~-", "a name of at most 64 of the characters A-Z a-z 0-9 . _ ~ -"
}

/// A text on one line that is not empty.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct Word(String);

impl Word {
    /// A word of our own.
    pub(crate) fn of(text: &'static str) -> Self {
        Word(text.to_owned())
    }
}

impl Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Value for Word {
    fn expected() -> String {
        "a text on one line".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        if text.trim().is_empty() || text.chars().any(char::is_control) || text.len() > 256 {
            return Err(Self::refused(&quoted(text)));
        }
        Ok(Word(text.to_owned()))
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}

/// The filter parser takes a single unknown word for the name of a module, which would silence everything else. So this
/// refuses the first such word.
fn no_level(filter: &str) -> Option<String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    // Span filters contain commas, too.
    if filter.contains(['[', '{']) {
        return None;
    }
    let is_level = |word: &str| {
        LEVELS.contains(&word.to_ascii_lowercase().as_str()) || matches!(word.as_bytes(), [b'0'..=b'5'])
    };
    let words = filter.split(',').map(str::trim).filter(|word| !word.is_empty() && !word.contains('='));
    let word = words.into_iter().find(|word| !is_level(word))?;
    Some(match did_you_mean(word, LEVELS) {
        Some(level) => format!("`{word}` is no level; did you mean `{level}`?"),
        None => format!("`{word}` is no level; for all that a module says, write `{word}=trace`"),
    })
}

/// The log filter: `info`, `debug,hyper=warn`.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(crate) struct LogFilter(String);

impl LogFilter {
    pub(crate) fn info() -> Self {
        LogFilter("info".to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for LogFilter {
    fn expected() -> String {
        "a log filter such as \"info\" or \"debug,hyper=warn\"".to_owned()
    }

    fn from_text(text: &str) -> Result<Self, Vec<Refused>> {
        let text = text.trim();
        if let Some(word) = no_level(text) {
            return Err(Self::refused_because(text, &word));
        }
        match EnvFilter::try_new(text) {
            Ok(_) if text.is_empty() => Err(Self::refused(&quoted(text))),
            Ok(_) => Ok(LogFilter(text.to_owned())),
            Err(error) => Err(Self::refused_because(text, &error.to_string())),
        }
    }

    fn show(&self) -> Shown {
        Shown::text(&self.0)
    }
}
