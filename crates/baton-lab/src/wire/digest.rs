//! HTTP digest authentication (RFC 7616) as a client does it, with SHA-256 only.

use sha2::{Digest as _, Sha256};

use super::credentials::Login;

/// An agent's challenge, and how often it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: String,
    /// `qop=auth` is offered.
    counts: bool,
    used: u32,
}

impl Challenge {
    /// The first digest challenge with SHA-256 among the values of `WWW-Authenticate`.
    pub(super) fn find<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        values.flat_map(challenges).find_map(|(scheme, parameters)| {
            if !scheme.eq_ignore_ascii_case("digest") {
                return None;
            }
            let get = |name: &str| {
                let found = parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.clone())
            };
            let algorithm = get("algorithm").unwrap_or_default();
            algorithm.eq_ignore_ascii_case("SHA-256").then_some(())?;
            let offered = get("qop").unwrap_or_default();
            Some(Challenge {
                realm: get("realm")?,
                nonce: get("nonce")?,
                opaque: get("opaque"),
                algorithm,
                counts: offered.split(',').any(|word| word.trim() == "auth"),
                used: 0,
            })
        })
    }

    /// The value of `Authorization` for a request; `client` is a nonce of our own.
    pub(super) fn answer(&mut self, login: &Login, method: &str, target: &str, client: &str) -> String {
        self.used += 1;
        let Challenge { realm, nonce, algorithm, used, .. } = &*self;
        let Login { user, password } = login;
        let secret = hashed(&format!("{user}:{realm}:{password}"));
        let asked = hashed(&format!("{method}:{target}"));
        let mut value = format!(
            "Digest username=\"{}\", realm=\"{}\", nonce=\"{nonce}\", uri=\"{target}\", algorithm={algorithm}",
            escaped(user),
            escaped(realm)
        );
        let response = if self.counts {
            value += &format!(", qop=auth, nc={used:08x}, cnonce=\"{client}\"");
            hashed(&format!("{secret}:{nonce}:{used:08x}:{client}:auth:{asked}"))
        } else {
            hashed(&format!("{secret}:{nonce}:{asked}"))
        };
        if let Some(opaque) = &self.opaque {
            value += &format!(", opaque=\"{opaque}\"");
        }
        value + &format!(", response=\"{response}\"")
    }
}

fn hashed(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// The challenges of one header value: a scheme, and its parameters.
fn challenges(value: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut all: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for item in items(value) {
        // `Scheme name=value` begins a challenge; `name=value` goes on with it.
        let head = item.split('=').next().unwrap_or_default().trim_end();
        let (scheme, parameter) = match head.split_once(' ') {
            Some((scheme, _)) => (Some(scheme), item[scheme.len()..].trim_start()),
            None if !item.contains('=') => (Some(item.as_str()), ""),
            None => (None, item.as_str()),
        };
        if let Some(scheme) = scheme {
            all.push((scheme.to_owned(), Vec::new()));
        }
        if let (Some((_, parameters)), Some((name, value))) = (all.last_mut(), parameter.split_once('=')) {
            let value = value.trim();
            let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            let value = bare.map_or_else(|| value.to_owned(), |quoted| quoted.replace('\\', ""));
            parameters.push((name.trim().to_owned(), value));
        }
    }
    all
}

/// Parts between commas that are not inside quotes.
fn items(value: &str) -> Vec<String> {
    let (mut all, mut now) = (Vec::new(), String::new());
    let (mut quoted, mut escape) = (false, false);
    for letter in value.chars() {
        match letter {
            ',' if !quoted => all.push(std::mem::take(&mut now)),
            _ => {
                quoted ^= letter == '"' && !escape;
                escape = letter == '\\' && quoted && !escape;
                now.push(letter);
            }
        }
    }
    all.push(now);
    all.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7616, section 3.9.1.
    #[test]
    fn the_example_of_the_rfc() {
        let values = [
            "Bearer, Basic realm=\"a, b\"",
            "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=MD5, nonce=\"x\"",
            "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=SHA-256, \
             nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
             opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"",
        ];
        let mut found = Challenge::find(values.into_iter()).unwrap();
        let login = Login { user: "Mufasa".to_owned(), password: "Circle of Life".to_owned() };
        let client = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
        let answer = found.answer(&login, "GET", "/dir/index.html", client);
        let response = "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1";
        assert!(answer.contains(&format!("response=\"{response}\"")), "{answer}");
        assert!(answer.contains("nc=00000001") && answer.contains("opaque=\"FQhe/"), "{answer}");
        assert!(!answer.contains("Circle"));
        assert!(found.answer(&login, "GET", "/", client).contains("nc=00000002"));
        assert_eq!(Challenge::find(values.into_iter().take(2)), None);
    }
}
