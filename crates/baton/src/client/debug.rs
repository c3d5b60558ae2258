//! `--debug`: what happens on the way, on stderr. No flag shows a credential.

use std::sync::Mutex;
use std::time::Instant;

use baton_client::Observed;

use super::secrets::Secrets;
use super::settings::REDACTED;
use crate::output;

pub(super) fn note(text: &str) {
    output::note(&format!("Debug: {text}"));
}

/// Shows requests and answers, with the time since the request before.
pub(super) fn observer(secrets: Secrets) -> impl Fn(&Observed<'_>) + Send + Sync {
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
                // As a whole: a member and its value may stand on different lines.
                let text = without_members(&secrets.hidden(String::from_utf8_lossy(bytes).into_owned()));
                lines.extend(text.lines().filter(|line| !line.is_empty()).map(|line| format!("< {line}")));
            }
            Observed::Failed(why) => lines.push(format!("! {why} after {} ms", since.elapsed().as_millis())),
            _ => {}
        }
        for line in lines {
            note(&without_members(&secrets.hidden(line)));
        }
    }
}

/// Members of JSON that hold credentials, as those of webhooks do.
const MEMBERS: &[&str] = &["token", "credentials", "access_token", "refresh_token"];

fn without_members(text: &str) -> String {
    let mut shown = text.to_owned();
    for member in MEMBERS {
        let key = format!("\"{member}\":");
        let mut from = 0;
        while let Some(at) = shown[from..].find(&key).map(|at| from + at + key.len()) {
            from = at;
            let mut rest = shown[at..].trim_start();
            // The value may be on the next line of an event.
            while let Some(next) = rest.strip_prefix("data:") {
                rest = next.trim_start();
            }
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
        let secrets = Secrets::default();
        secrets.add("s3cret".to_owned().into());
        let line = r#"> {"token": "a\"b","x":"s3cret","authentication":{"credentials":"c","scheme":"Bearer"},"token":7}"#;
        let expected = r#"> {"token": "[redacted]","x":"[redacted]","authentication":{"credentials":"[redacted]","scheme":"Bearer"},"token":7}"#;
        assert_eq!(without_members(&secrets.hidden(line.to_owned())), expected);
        assert_eq!(without_members("\"token\":\"cut"), "\"token\":\"[redacted]\"");
        assert_eq!(without_members("\"token\":\ndata:  \"a\""), "\"token\":\ndata:  \"[redacted]\"");
    }
}
