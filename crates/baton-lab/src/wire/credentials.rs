//! What is sent with every request to prove who asks.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::request::encoded;

/// Sent with every request, unless a case leaves it out.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    pub headers: Vec<(String, String)>,
    /// Added to the query of every address.
    pub query: Vec<(String, String)>,
    /// Answers the agent's digest challenges.
    pub digest: Option<Login>,
    /// The client certificate of the run is shown, if the agent asks for one.
    pub certificate: bool,
}

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Login(***)")
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| -> Vec<String> {
            pairs.iter().map(|(name, _)| name.clone()).collect()
        };
        f.debug_struct("Credentials")
            .field("headers", &names(&self.headers))
            .field("query", &names(&self.query))
            .field("digest", &self.digest)
            .field("certificate", &self.certificate)
            .finish()
    }
}

impl Credentials {
    pub fn header(name: impl Into<String>, value: impl Into<String>) -> Self {
        Credentials { headers: vec![(name.into(), value.into())], ..Self::default() }
    }

    pub fn in_query(name: impl Into<String>, value: impl Into<String>) -> Self {
        Credentials { query: vec![(name.into(), value.into())], ..Self::default() }
    }

    pub fn are_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Both, for one request.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.headers.extend(other.headers);
        self.query.extend(other.query);
        self.digest = self.digest.or(other.digest);
        self.certificate |= other.certificate;
        self
    }

    /// All texts that must not be shown.
    pub(super) fn secrets(&self) -> Vec<String> {
        let mut all: Vec<String> = self.query.iter().map(|(_, value)| value.clone()).collect();
        for (_, value) in &self.headers {
            all.push(value.clone());
            let Some((scheme, rest)) = value.split_once(' ') else { continue };
            all.push(rest.to_owned());
            let pair = STANDARD.decode(rest).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"));
            let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
            all.extend(pair.and_then(|pair| Some(pair.split_once(':')?.1.to_owned())));
        }
        all.extend(self.digest.iter().map(|login| login.password.clone()));
        all
    }

    /// The address with the credentials of the query, or with `***` in their places.
    pub(super) fn address(&self, url: &str, masked: bool) -> String {
        let mut url = url.to_owned();
        for (name, value) in &self.query {
            let value = if masked { "***".to_owned() } else { encoded(value) };
            url.push(if url.contains('?') { '&' } else { '?' });
            url += &format!("{}={value}", encoded(name));
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_query_is_added_to_any_address_and_shown_in_none() {
        let credentials = Credentials::in_query("key", "s&cret");
        assert_eq!(credentials.address("http://h/a", false), "http://h/a?key=s%26cret");
        assert_eq!(credentials.address("http://h/a?b=1", false), "http://h/a?b=1&key=s%26cret");
        assert_eq!(credentials.address("http://h/a?b=1", true), "http://h/a?b=1&key=***");
        assert!(!format!("{credentials:?}").contains("cret"));
    }

    #[test]
    fn a_password_is_a_secret_in_its_header_and_alone() {
        let basic = Credentials::header("Authorization", "Basic dTpwYXNz");
        assert_eq!(basic.secrets(), ["Basic dTpwYXNz", "dTpwYXNz", "pass"]);
    }
}
