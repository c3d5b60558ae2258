//! Credentials do not get into reports, wherever an agent or a message repeats them.

use std::fmt;

use super::request::encoded;

/// Shorter ones would blot out ordinary text; as headers they are masked all the same.
const SHORTEST: usize = 4;
const MASK: &str = "***";

/// The texts that must not be shown.
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Each secret in the spellings it can turn up in.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for secret in secrets.into_iter().filter(|secret| secret.len() >= SHORTEST) {
            let json = serde_json::Value::String(secret.clone()).to_string();
            let json = json.trim_matches('"').to_owned();
            for form in [secret.clone(), json, encoded(&secret)] {
                if !all.contains(&form) {
                    all.push(form);
                }
            }
        }
        // The longest first: a secret inside another one must not leave half of it.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(all)
    }

    pub fn hide(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), MASK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_in_every_spelling() {
        let secrets = Secrets::new(["to\"ken/1".to_owned(), "to\"ken/1-longer".to_owned(), "abc".to_owned()]);
        for (text, hidden) in [
            ("Bearer to\"ken/1", "Bearer ***"),
            (r#"{"echo":"to\"ken/1"}"#, r#"{"echo":"***"}"#),
            ("?key=to%22ken%2F1&x", "?key=***&x"),
            ("to\"ken/1-longer", "***"),
            ("abc is too short", "abc is too short"),
        ] {
            let mut text = text.to_owned();
            secrets.hide(&mut text);
            assert_eq!(text, hidden);
        }
        assert!(!format!("{secrets:?}").contains("ken"));
    }
}
