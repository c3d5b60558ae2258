//! Credentials in use, so that nothing that is said about a call shows them: an agent may repeat one in its answer.

use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret as _, SecretString};

use super::settings::{REDACTED, Settings};

/// Clones share the list.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<Mutex<Vec<SecretString>>>);

impl Secrets {
    pub(crate) fn of(settings: &Settings) -> Self {
        let Settings { bearer, api_key, user, service_parameters, .. } = settings;
        let user = user.as_ref().map(|(_, password)| password);
        let own = service_parameters.iter().map(|(_, value)| value);
        let secrets = bearer.iter().chain(api_key).chain(user).chain(own).cloned().collect();
        Secrets(Arc::new(Mutex::new(secrets)))
    }

    /// One more, such as a token that was kept.
    pub(crate) fn add(&self, secret: SecretString) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(secret);
    }

    pub(crate) fn hidden(&self, mut text: String) -> String {
        let secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for secret in secrets.iter().map(|secret| secret.expose_secret()).filter(|secret| !secret.is_empty())
        {
            let in_json = serde_json::Value::from(secret).to_string();
            for spelling in [secret, in_json.trim_matches('"')] {
                if text.contains(spelling) {
                    text = without(&text, spelling);
                }
            }
        }
        text
    }
}

/// Shorter ones are parts of ordinary words, too.
const LIKELY_A_WORD: usize = 8;

/// The text with every occurrence of the secret hidden; a short one only where it stands by itself.
fn without(text: &str, secret: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(secret) {
        let (before, found) = rest.split_at(at);
        let after = &found[secret.len()..];
        let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let last = before.chars().next_back().or_else(|| out.chars().next_back());
        let in_word = secret.len() < LIKELY_A_WORD && (is_part(last) || is_part(after.chars().next()));
        out += before;
        out += if in_word { secret } else { REDACTED };
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_auth_004_short_secrets_do_not_hide_ordinary_words() {
        let secrets = Secrets::default();
        for secret in ["k", "a-long-secret"] {
            secrets.add(secret.to_owned().into());
        }
        let hidden = |text: &str| secrets.hidden(text.to_owned());
        assert_eq!(
            hidden("unknown task, key k, X-Key: k"),
            "unknown task, key [redacted], X-Key: [redacted]"
        );
        assert_eq!(hidden("xa-long-secretx kk"), "x[redacted]x kk");
        secrets.add("a\"quoted one".to_owned().into());
        assert_eq!(hidden(r#"{"x":"a\"quoted one"}"#), r#"{"x":"[redacted]"}"#);
    }
}
