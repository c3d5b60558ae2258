//! `WWW-Authenticate` for bearer tokens (RFC 6750, section 3).

use http::HeaderValue;

use super::options::{BadTokenOption, ChallengeOptions};
use crate::auth::Refusal;

/// The parts that are the same in every response.
#[derive(Debug)]
pub(crate) struct BearerChallenge {
    realm: String,
    /// With the comma before it, or empty.
    resource_metadata: String,
}

impl BearerChallenge {
    pub(crate) fn new(options: &ChallengeOptions) -> Result<Self, BadTokenOption> {
        check("realm", &options.realm)?;
        let resource_metadata = match &options.resource_metadata {
            Some(url) => {
                check("resource_metadata", url)?;
                format!(", resource_metadata=\"{url}\"")
            }
            None => String::new(),
        };
        Ok(BearerChallenge { realm: options.realm.clone(), resource_metadata })
    }

    /// A request without a token gets no error code (RFC 6750, section 3.1).
    pub(crate) fn header(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        let BearerChallenge { realm, resource_metadata } = self;
        let error = match refused {
            Some(refusal) => {
                format!(", error=\"invalid_token\", error_description=\"{}\"", refusal.reason)
            }
            None => String::new(),
        };
        HeaderValue::from_str(&format!("Bearer realm=\"{realm}\"{error}{resource_metadata}")).ok()
    }
}

/// Text for a quoted string that needs no escapes.
fn check(option: &'static str, text: &str) -> Result<(), BadTokenOption> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        Ok(())
    } else {
        Err(BadTokenOption::new(option, "must be visible ASCII without quotes and backslashes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_why_only_if_there_was_a_token() {
        let mut options = ChallengeOptions::default();
        let shown = |options: &ChallengeOptions, refusal: Option<&Refusal>| {
            let header = BearerChallenge::new(options).unwrap().header(refusal).unwrap();
            header.to_str().unwrap().to_owned()
        };
        assert_eq!(shown(&options, None), r#"Bearer realm="baton""#);
        options.resource_metadata = Some("https://here.test/meta".to_owned());
        assert_eq!(
            shown(&options, Some(&Refusal::new("expired"))),
            "Bearer realm=\"baton\", error=\"invalid_token\", error_description=\"expired\", \
             resource_metadata=\"https://here.test/meta\""
        );
        options.realm = "a\"b".to_owned();
        assert_eq!(BearerChallenge::new(&options).unwrap_err().option(), "realm");
    }
}
