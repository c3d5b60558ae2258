//! Reads `WWW-Authenticate`: schemes, each with its parameters.

/// One challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Challenge {
    /// In lower case.
    pub(super) scheme: String,
    /// Names in lower case; values without their quotes.
    parameters: Vec<(String, String)>,
}

impl Challenge {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

/// All challenges of a header, which may have several. What cannot be read is left out.
pub(super) fn read(header: &str) -> Vec<Challenge> {
    let mut challenges: Vec<Challenge> = Vec::new();
    for item in items(header) {
        let (before, value) = match item.split_once('=') {
            Some((before, value)) => (before.trim(), Some(value.trim())),
            None => (item, None),
        };
        // `Digest realm="x"`: a scheme in front of its first parameter.
        let name = match before.rsplit_once(char::is_whitespace) {
            Some((scheme, name)) => {
                challenges
                    .push(Challenge { scheme: scheme.trim().to_ascii_lowercase(), parameters: Vec::new() });
                name
            }
            None if value.is_none() => {
                challenges.push(Challenge { scheme: before.to_ascii_lowercase(), parameters: Vec::new() });
                continue;
            }
            None => before,
        };
        if let (Some(challenge), Some(value)) = (challenges.last_mut(), value) {
            challenge.parameters.push((name.to_ascii_lowercase(), unquoted(value)));
        }
    }
    challenges
}

/// Splits at commas outside quotes.
fn items(header: &str) -> Vec<&str> {
    let (mut found, mut start) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in header.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                found.push(&header[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&header[start..]);
    found.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut out = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(next) = characters.next() {
        out.extend(if next == '\\' { characters.next() } else { Some(next) });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_challenges_in_one_header() {
        let header = r#"Basic realm="a, \"b\"", Negotiate, Digest realm="c", qop="auth, auth-int" , nonce=n1,stale=TRUE"#;
        let found = read(header);
        let schemes: Vec<_> = found.iter().map(|it| it.scheme.as_str()).collect();
        assert_eq!(schemes, ["basic", "negotiate", "digest"]);
        assert_eq!(found[0].get("realm"), Some("a, \"b\""));
        assert_eq!(found[2].get("qop"), Some("auth, auth-int"));
        assert_eq!(found[2].get("nonce"), Some("n1"));
        assert_eq!(found[2].get("stale"), Some("TRUE"));
    }

    #[test]
    fn nonsense_is_no_challenge() {
        for header in ["", ",,,", "=", "\"", "a=b", "Digest realm=\"unclosed, nonce=1"] {
            let _ = read(header);
        }
        assert!(read("realm=\"x\"").is_empty());
    }
}
