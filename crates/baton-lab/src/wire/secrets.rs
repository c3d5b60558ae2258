//! Keeps credentials out of reports, even if an agent or a message repeats them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::credentials::Credentials;
use super::request::encoded;

/// Variables with these words in their names are treated as secrets. `other…` variables are the credentials of a second
/// user.
const TELLING: &[&str] = &["token", "secret", "password", "key", "credential", "bearer", "header"];

/// Shorter secrets are not replaced in text, since they would match ordinary text; as headers they are always masked.
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
    /// Each secret in all encodings in which it can occur.
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
        // The longest first, so that a secret inside another does not leave parts of it.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Secrets(all)
    }

    /// The secrets of a run: its credentials, variables whose names sound like secrets, and the user info of the URL.
    pub fn of<'a>(
        credentials: impl IntoIterator<Item = &'a Credentials>,
        given: &BTreeMap<String, Value>,
        url: &str,
    ) -> Self {
        let sounds = |name: &str| TELLING.iter().any(|word| name.to_ascii_lowercase().contains(word));
        let own = credentials.into_iter().flat_map(Credentials::secrets);
        let given = given.iter().filter(|(name, _)| sounds(name)).filter_map(|(_, value)| value.as_str());
        let given = given.flat_map(|value| [Some(value), value.split_once(": ").map(|(_, rest)| rest)]);
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next();
        let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
        Self::new(own.chain(given.flatten().chain(user).map(str::to_owned)))
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

    #[test]
    fn a_run_knows_its_secrets() {
        let credentials = Credentials::header("Authorization", "Bearer abcd");
        let given = [("myToken", "efgh"), ("otherHeader", "X-Key: ijkl"), ("webhookUrl", "http://open")];
        let given = given.map(|(name, value)| (name.to_owned(), Value::String(value.to_owned()))).into();
        let secrets = Secrets::of([&credentials], &given, "http://mnop:qrst@host/a@b");
        let mut text = "abcd efgh ijkl mnop:qrst http://open a@b".to_owned();
        secrets.hide(&mut text);
        assert_eq!(text, "*** *** *** *** http://open a@b");
    }
}
