//! `--debug`: what happens on the way, on stderr. No flag shows a credential.

use std::sync::Mutex;
use std::time::Instant;

use baton_client::Observed;
use secrecy::{ExposeSecret as _, SecretString};

use super::settings::{REDACTED, Settings};
use crate::output;

pub(super) fn note(text: &str) {
    output::note(&format!("Debug: {text}"));
}

/// Shows requests and answers, with the time since the request before.
pub(super) fn observer(settings: &Settings) -> impl Fn(&Observed<'_>) + Send + Sync + use<> {
    let secrets = Secrets::of(settings);
    let since = Mutex::new(Instant::now());
    move |observed| {
        let mut since = since.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut lines = Vec::new();
        match observed {
            Observed::Request { method, url, headers, body } => {
                *since = Instant::now();
                lines.push(format!("> {method} {url}"));
                lines.extend(headers.iter().map(|(name, value)| format!("> {name}: {value}")));
                lines.extend(body.map(|body| format!("> {}", String::from_utf8_lossy(body))));
            }
            Observed::Response { status, headers } => {
                lines.push(format!("< {status} after {} ms", since.elapsed().as_millis()));
                lines.extend(headers.iter().map(|(name, value)| format!("< {name}: {value}")));
            }
            Observed::Body(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                lines.extend(text.lines().filter(|line| !line.is_empty()).map(|line| format!("< {line}")));
            }
            Observed::Failed(why) => lines.push(format!("! {why} after {} ms", since.elapsed().as_millis())),
            _ => {}
        }
        for line in lines {
            note(&secrets.hidden(line));
        }
    }
}

/// What must not be shown, wherever it stands.
struct Secrets(Vec<SecretString>);

impl Secrets {
    fn of(settings: &Settings) -> Self {
        let own = settings.service_parameters.iter().map(|(_, value)| value);
        Secrets(settings.bearer.iter().chain(&settings.api_key).chain(own).cloned().collect())
    }

    fn hidden(&self, mut line: String) -> String {
        for secret in self.0.iter().map(|secret| secret.expose_secret()).filter(|secret| !secret.is_empty()) {
            if line.contains(secret) {
                line = line.replace(secret, REDACTED);
            }
        }
        without_members(&line)
    }
}

/// Members of JSON that hold credentials, as those of webhooks do.
const MEMBERS: &[&str] = &["token", "credentials", "access_token", "refresh_token"];

fn without_members(line: &str) -> String {
    let mut shown = line.to_owned();
    for member in MEMBERS {
        let key = format!("\"{member}\":");
        let mut from = 0;
        while let Some(at) = shown[from..].find(&key).map(|at| from + at + key.len()) {
            from = at;
            let rest = shown[at..].trim_start();
            let begin = shown.len() - rest.len();
            if let Some(length) = literal(rest) {
                shown.replace_range(begin..begin + length, &format!("\"{REDACTED}\""));
            }
        }
    }
    shown
}

/// The length of the string that the text begins with, quotes included.
fn literal(text: &str) -> Option<usize> {
    let mut chars = text.char_indices();
    (chars.next()?.1 == '"').then_some(())?;
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some(at + 1),
            '\\' => drop(chars.next()),
            _ => {}
        }
    }
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cli_auth_004_credentials_in_bodies_are_hidden() {
        let secrets = Secrets(vec!["s3cret".to_owned().into()]);
        let line = r#"> {"token": "a\"b","x":"s3cret","authentication":{"credentials":"c","scheme":"Bearer"},"token":7}"#;
        let expected = r#"> {"token": "[redacted]","x":"[redacted]","authentication":{"credentials":"[redacted]","scheme":"Bearer"},"token":7}"#;
        assert_eq!(secrets.hidden(line.to_owned()), expected);
        assert_eq!(without_members("\"token\":\"cut"), "\"token\":\"[redacted]\"");
    }
}
