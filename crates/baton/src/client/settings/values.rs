//! How the values of settings are read.

use std::time::Duration;

use baton_client::Origin;
use baton_protocol::domain::JsonObject;
use secrecy::SecretString;

/// `250ms`, `2s`, `5m`, `1h30m`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if bare { format!("{text}s") } else { text.to_owned() };
    crate::config::duration(&text).ok_or_else(|| "write a time such as 250ms, 2s, 5m or 1h30m".to_owned())
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err("write true or false (1, yes, on; 0, no, off)".to_owned()),
    }
}

/// The name of a binding on the wire.
pub(super) fn binding(text: &str) -> Result<&'static str, String> {
    match text.to_ascii_lowercase().as_str() {
        "jsonrpc" | "json-rpc" => Ok("JSONRPC"),
        "rest" | "http+json" | "http-json" => Ok("HTTP+JSON"),
        "grpc" => Ok("GRPC"),
        _ => Err("write jsonrpc, rest (or http+json) or grpc".to_owned()),
    }
}

/// `name:value`, split at the first colon. An error must not contain the value: it may be a secret.
pub(super) fn service_parameter(text: &str) -> Result<(String, String), String> {
    let Some((name, value)) = text.split_once(':') else { return Err("write NAME:VALUE".to_owned()) };
    let (name, value) = (name.trim(), value.trim());
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err("the name is not a valid header name".to_owned());
    }
    if value.chars().any(char::is_control) {
        return Err("the value holds control characters".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// `name:password`, split at the first colon. An error must not contain the password.
pub(super) fn user(text: &str) -> Result<(String, SecretString), String> {
    match text.split_once(':') {
        Some((name, password)) if !name.is_empty() => Ok((name.to_owned(), password.into())),
        _ => Err("write NAME:PASSWORD".to_owned()),
    }
}

/// In variables and files a list is separated by commas or line breaks.
pub(super) fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', ',']).map(str::trim).filter(|item| !item.is_empty())
}

pub(super) fn origin(text: &str) -> Result<Origin, String> {
    Origin::parse(text)
        .map_err(|_| "write the address of a host, such as https://agents.example.net".to_owned())
}

pub(super) fn object(text: &str) -> Result<JsonObject, String> {
    JsonObject::parse(text).map_err(|error| format!("write a JSON object: {error}"))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        for (text, milliseconds) in [("250ms", 250), ("2", 2_000), ("5m", 300_000), ("1h30m", 5_400_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)));
        }
        for bad in ["", "x", "1.5", "-1s", "1x"] {
            duration(bad).unwrap_err();
        }
        assert_eq!((boolean("ON"), boolean("0")), (Ok(true), Ok(false)));
        boolean("maybe").unwrap_err();
        assert_eq!(
            (binding("REST"), binding("http+json"), binding("JSONRPC")),
            (Ok("HTTP+JSON"), Ok("HTTP+JSON"), Ok("JSONRPC"))
        );
        binding("soap").unwrap_err();
        assert_eq!(service_parameter("X-A: b:c "), Ok(("X-A".to_owned(), "b:c".to_owned())));
        for bad in ["X-A", ":v", "X A:v", "X-A:a\u{7}vv"] {
            assert!(!service_parameter(bad).unwrap_err().contains("vv"), "{bad}");
        }
        let (name, password) = user("ann:p:w").unwrap();
        assert_eq!((name.as_str(), password.expose_secret()), ("ann", "p:w"));
        for bad in ["vv", ":vv", ""] {
            assert!(!user(bad).unwrap_err().contains("vv"), "{bad}");
        }
        assert_eq!(list("a:1, b:2\nc:3\n").collect::<Vec<_>>(), ["a:1", "b:2", "c:3"]);
    }
}
