//! How a user names an agent.

use std::path::PathBuf;
use std::str::FromStr;

use reqwest::Url;

use crate::address;
use crate::error::Error;

/// What a user gave to name an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The agent's address; its card is at a well-known path below it.
    Agent(Url),
    /// The card's own address.
    Card(Url),
    /// A file with the card.
    File(PathBuf),
}

/// Where cards are, newest name first. 0.1 and 0.2 have the second.
const WELL_KNOWN: [&str; 2] = [".well-known/agent-card.json", ".well-known/agent.json"];

/// The addresses where the card of an agent may be. An agent below a path has its card below the same path; that of the
/// host would be another agent's. Last, the address may be the card's own.
pub(super) fn card_addresses(agent: &Url) -> Vec<Url> {
    let mut base = agent.clone();
    base.set_query(None);
    base.set_fragment(None);
    if !base.path().ends_with('/') {
        base.set_path(&format!("{}/", base.path()));
    }
    let mut addresses: Vec<Url> = WELL_KNOWN.iter().filter_map(|path| base.join(path).ok()).collect();
    if agent.path() != "/" {
        addresses.push(agent.clone());
    }
    addresses
}

/// `https://host`, `https://host/path`, `https://host/card.json`, `host`, `host:port`, `file:///card.json`,
/// `./card.json`. A host alone is called by https, unless it is this machine.
impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        let shown = address::typed(text);
        let invalid = |problem: &str| Error::Invalid(format!("{shown:?} does not name an agent: {problem}"));
        if text.is_empty() {
            return Err(invalid("it is empty"));
        }
        if let Some(rest) = text.strip_prefix("file:") {
            let path = match rest.starts_with("//") {
                true => Url::parse(text).ok().and_then(|url| url.to_file_path().ok()),
                false => Some(rest.into()),
            };
            return path.map(Reference::File).ok_or_else(|| invalid("it is not a path of this machine"));
        }
        if !text.contains("://") {
            let is_path = text.starts_with(['.', '/', '~']) || text.contains('\\');
            if is_path || text.ends_with(".json") && !text.contains(':') {
                return Ok(Reference::File(text.into()));
            }
        }
        let url = match text.contains("://") {
            true => Url::parse(text),
            false => {
                let is_here = |host: &&str| {
                    text.strip_prefix(host)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
                };
                let is_here = ["localhost", "127.0.0.1", "[::1]"].iter().any(is_here);
                let scheme = if is_here { "http" } else { "https" };
                Url::parse(&format!("{scheme}://{text}"))
            }
        };
        let url = url.map_err(|error| invalid(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("only http and https addresses are called"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("give user and password as credentials, not in the address"));
        }
        Ok(match url.path().ends_with(".json") {
            true => Reference::Card(url),
            false => Reference::Agent(url),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_references_are_told_apart() {
        let agent = |url: &str| Reference::Agent(Url::parse(url).unwrap());
        let card = |url: &str| Reference::Card(Url::parse(url).unwrap());
        for (text, expected) in [
            ("https://a.example", agent("https://a.example")),
            ("a.example", agent("https://a.example")),
            ("a.example:8443/x", agent("https://a.example:8443/x")),
            ("localhost:3000", agent("http://localhost:3000")),
            ("127.0.0.1:3000", agent("http://127.0.0.1:3000")),
            ("[::1]:3000", agent("http://[::1]:3000")),
            ("[2001:db8::1]", agent("https://[2001:db8::1]")),
            ("localhost.example", agent("https://localhost.example")),
            ("http://a.example/agents/1", agent("http://a.example/agents/1")),
            ("https://a.example/cards/my.json", card("https://a.example/cards/my.json")),
            ("./card.json", Reference::File("./card.json".into())),
            ("card.json", Reference::File("card.json".into())),
            ("/etc/card", Reference::File("/etc/card".into())),
            ("file:///tmp/card.json", Reference::File("/tmp/card.json".into())),
            ("file:card.json", Reference::File("card.json".into())),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "ftp://a.example?key=s3cret",
            "https://user:s3cret@a.example",
            "user:s3cret@a.example",
            "https://user:s3/cret@a.example",
            "https://user:s3cret@",
            "https://",
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(!error.contains("s3"), "{error}");
        }
    }

    #[test]
    fn p09_cards_are_below_the_agent() {
        let addresses = |url: &str| {
            let found = card_addresses(&Url::parse(url).unwrap());
            found.iter().map(Url::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            addresses("http://h/a?x=1"),
            ["http://h/a/.well-known/agent-card.json", "http://h/a/.well-known/agent.json", "http://h/a?x=1"]
        );
        assert_eq!(
            addresses("http://h"),
            ["http://h/.well-known/agent-card.json", "http://h/.well-known/agent.json"]
        );
    }
}
