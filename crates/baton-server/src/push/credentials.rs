//! The header values that callers choose for their webhooks. Nothing else of a request's head comes from callers.

use baton_protocol::signature::webhook::WebhookSecret;
use http::HeaderValue;

/// Longest token, and longest scheme with its credentials.
const MAX_VALUE_BYTES: usize = 4096;

/// How a token begins that is a secret for signatures.
const SECRET_PREFIX: &str = "whsec_";

/// What is wrong with a [member](Self::member) of a webhook. In words for whoever gave it; the value is not repeated, it is a
/// secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadCredentials {
    #[error("must be visible ASCII characters without spaces, at most {MAX_VALUE_BYTES} of them")]
    Token,
    #[error(
        "begins with {SECRET_PREFIX}, so base64 of 24 to 64 bytes has to follow; a token that is no secret for signatures must \
         begin otherwise"
    )]
    Secret,
    #[error("must be a name such as Bearer")]
    Scheme,
    #[error(
        "must be visible ASCII characters, with no space at their ends, at most {MAX_VALUE_BYTES} of them with the scheme"
    )]
    Credentials,
}

impl BadCredentials {
    /// The member of the webhook.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Token | Self::Secret => "token",
            Self::Scheme => "authentication.scheme",
            Self::Credentials => "authentication.credentials",
        }
    }
}

/// Checks a token when it is given. A damaged secret would sign as well, by its text, and its receiver could not verify that.
pub(crate) fn check_token(text: &str) -> Result<(), BadCredentials> {
    token(text)?;
    if text.starts_with(SECRET_PREFIX) && WebhookSecret::parse(text).is_err() {
        return Err(BadCredentials::Secret);
    }
    Ok(())
}

/// The value of `X-A2A-Notification-Token`.
pub(crate) fn token(token: &str) -> Result<HeaderValue, BadCredentials> {
    let is_good = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    header(token, is_good).ok_or(BadCredentials::Token)
}

/// The value of `Authorization`. A scheme without credentials is allowed: some receivers look at nothing else.
pub(crate) fn authorization(scheme: &str, credentials: Option<&str>) -> Result<HeaderValue, BadCredentials> {
    if scheme.is_empty() || !scheme.bytes().all(is_token_byte) {
        return Err(BadCredentials::Scheme);
    }
    let credentials = credentials.unwrap_or_default();
    let is_good = credentials.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        && !credentials.starts_with(' ')
        && !credentials.ends_with(' ');
    let value = if credentials.is_empty() { scheme.to_owned() } else { format!("{scheme} {credentials}") };
    header(&value, is_good).ok_or(BadCredentials::Credentials)
}

/// Marked, so that nothing prints it.
fn header(text: &str, is_good: bool) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok().filter(|_| is_good && text.len() <= MAX_VALUE_BYTES)?;
    value.set_sensitive(true);
    Some(value)
}

/// A byte of a token of RFC 9110, section 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte that could end a header, begin another, or be read differently by two readers.
    fn hostile() -> Vec<String> {
        let mut values: Vec<String> =
            (0..=0x20u8).chain([0x7f]).map(|byte| format!("a{}b", char::from(byte))).collect();
        values.retain(|value| value != "a b");
        values.extend(
            [
                "a\r\nX-Injected: 1",
                "a\r\n b",
                "a\n\tb",
                "\r\n\r\nGET / HTTP/1.1",
                "é",
                "\u{80}",
                "\u{ff}",
                "…",
                " a",
                "a ",
                "a\t",
            ]
            .map(str::to_owned),
        );
        values.push("a".repeat(1024 * 1024));
        values
    }

    #[test]
    fn no_value_makes_another_header() {
        for bad in hostile() {
            assert_eq!(token(&bad), Err(BadCredentials::Token), "{:?}", &bad[..bad.len().min(40)]);
            assert_eq!(authorization("Bearer", Some(&bad)), Err(BadCredentials::Credentials));
            assert_eq!(
                authorization(&bad, Some("x")).is_err(),
                !bad.bytes().all(is_token_byte) || bad.len() > 4096
            );
        }
        for scheme in
            ["", "Bearer\r\nX: y", "Bearer x", "Bea rer", "Bearer:", "\"Bearer\"", "Bäarer", "Bearer,"]
        {
            assert_eq!(authorization(scheme, None), Err(BadCredentials::Scheme), "{scheme:?}");
        }
        assert_eq!(token(""), Err(BadCredentials::Token));
        assert_eq!(token("a b"), Err(BadCredentials::Token));
    }

    #[test]
    fn usual_values_are_taken_as_they_are() {
        assert_eq!(token("s3cret.~-_/+=").unwrap(), "s3cret.~-_/+=");
        assert_eq!(token(&"a".repeat(4096)).unwrap().len(), 4096);
        assert_eq!(authorization("Bearer", Some("abc")).unwrap(), "Bearer abc");
        assert_eq!(authorization("Basic", Some("dTpw")).unwrap(), "Basic dTpw");
        assert_eq!(authorization("Digest", Some("a=\"b\", c=\"d\"")).unwrap(), "Digest a=\"b\", c=\"d\"");
        assert_eq!(authorization("Negotiate", None).unwrap(), "Negotiate");
        assert_eq!(authorization("Negotiate", Some("")).unwrap(), "Negotiate");
    }

    /// What its receiver would call a secret is one.
    #[test]
    fn s14_a_damaged_secret_is_not_taken_for_a_word() {
        let of = |bytes: usize| WebhookSecret::new(vec![7; bytes]).unwrap().to_text();
        for good in [of(24), of(64), of(32).replace('=', ""), "whsec".to_owned(), "s3cret".to_owned()] {
            assert_eq!(check_token(&good), Ok(()), "{good}");
        }
        for bad in ["whsec_", "whsec_c2hvcnQ=", "whsec_not-base64-at-all-but-long-enough", &of(24)[..30]] {
            assert_eq!(check_token(bad), Err(BadCredentials::Secret), "{bad}");
            token(bad).unwrap();
        }
        assert_eq!(check_token("whsec_ "), Err(BadCredentials::Token));
    }

    #[test]
    fn nothing_prints_them() {
        let shown =
            format!("{:?} {:?}", token("s3cret").unwrap(), authorization("Bearer", Some("s3cret")).unwrap());
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
