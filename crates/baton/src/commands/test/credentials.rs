//! What the agent is shown of its tester: from flags, else from the environment under the names other A2A tools use.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use baton_lab::wire::Credentials;
use serde_json::Value;

use super::args::RunArgs;

/// Where an API key goes when nobody says.
const API_KEY_HEADER: &str = "X-API-Key";

/// Credentials, and which header the card may still name.
#[derive(Default)]
pub(super) struct Given {
    pub(super) credentials: Credentials,
    /// An API key whose header is not settled: the card may know it.
    pub(super) key: Option<String>,
}

pub(super) fn given(args: &RunArgs, environment: &BTreeMap<String, String>) -> Result<Given, String> {
    let mut given = Given::default();
    let headers = &mut given.credentials.headers;
    headers.extend(args.header.iter().cloned());
    if let Some(token) = &args.bearer {
        headers.push(("Authorization".to_owned(), format!("Bearer {}", from_file("--bearer", token)?)));
    }
    if let Some(key) = &args.api_key {
        given.key = Some(from_file("--api-key", key)?);
    }
    if args.bearer.is_none() && args.api_key.is_none() && args.header.is_empty() {
        of_environment(environment, &mut given)?;
    }
    Ok(given)
}

/// The second agent's address, and what it is shown.
pub(super) fn for_second(
    url: &str,
    args: &RunArgs,
    given: &Given,
) -> Result<Option<(String, Credentials)>, String> {
    let Some(second) = &args.second else { return Ok(None) };
    let mut headers = args.second_header.clone();
    if let Some(token) = &args.second_bearer {
        let token = from_file("--second-bearer", token)?;
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    // Credentials are for the host they were given for, and for nobody else.
    if headers.is_empty() && origin(url) == origin(second) {
        headers = given.for_card(&Value::Null)?.headers;
    }
    Ok(Some((second.clone(), Credentials { headers })))
}

/// Scheme, host and port as they are written.
fn origin(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    (scheme, host.rsplit_once('@').map_or(host, |(_, host)| host))
}

impl Given {
    pub(super) fn any(&self) -> bool {
        self.key.is_some() || !self.credentials.headers.is_empty()
    }

    /// All credentials, with an API key where the card wants it.
    pub(super) fn for_card(&self, card: &Value) -> Result<Credentials, String> {
        let mut credentials = self.credentials.clone();
        if let Some(key) = &self.key {
            let header = match place_of_key(card) {
                Some((place, name)) if place == "header" => (name, key.clone()),
                Some((place, name)) if place == "cookie" => ("Cookie".to_owned(), format!("{name}={key}")),
                Some((place, name)) => {
                    return Err(format!(
                        "the card wants the API key `{name}` in the {place}, which this runner cannot do; it can put it into \
                         a header (--header)"
                    ));
                }
                None => (API_KEY_HEADER.to_owned(), key.clone()),
            };
            credentials.headers.push(header);
        }
        Ok(credentials)
    }
}

/// `@FILE` keeps a secret off the command line, which other users of a machine can read.
fn from_file(flag: &str, text: &str) -> Result<String, String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let read =
        std::fs::read_to_string(Path::new(path)).map_err(|error| format!("{flag} @{path}: {error}"))?;
    Ok(read.trim().to_owned())
}

fn of_environment(environment: &BTreeMap<String, String>, given: &mut Given) -> Result<(), String> {
    let get = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
    let headers = &mut given.credentials.headers;
    if let Some(list) = get("A2A_AUTH_HEADERS") {
        let list: BTreeMap<String, String> = serde_json::from_str(&list)
            .map_err(|_| "A2A_AUTH_HEADERS is not a JSON object of header names and texts".to_owned())?;
        headers.extend(list);
    }
    let token = get("A2A_AUTH_TOKEN");
    let kind = get("A2A_AUTH_TYPE").unwrap_or_default().to_ascii_lowercase().replace(['-', '_'], "");
    match kind.as_str() {
        "" | "bearer" => {
            if let Some(token) = get("A2A_BEARER_TOKEN").or(token) {
                headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
            }
        }
        "basic" => {
            let (Some(name), Some(password)) = (get("A2A_AUTH_USERNAME"), get("A2A_AUTH_PASSWORD")) else {
                return Err("A2A_AUTH_TYPE=basic needs A2A_AUTH_USERNAME and A2A_AUTH_PASSWORD".to_owned());
            };
            let both = BASE64_STANDARD.encode(format!("{name}:{password}"));
            headers.push(("Authorization".to_owned(), format!("Basic {both}")));
        }
        "apikey" | "custom" => {
            let token = token.ok_or_else(|| format!("A2A_AUTH_TYPE={kind} needs A2A_AUTH_TOKEN"))?;
            match get("A2A_AUTH_HEADER") {
                Some(name) => headers.push((name, token)),
                None if kind == "custom" => {
                    return Err("A2A_AUTH_TYPE=custom needs A2A_AUTH_HEADER".to_owned());
                }
                None => given.key = Some(token),
            }
        }
        other => {
            return Err(format!(
                "A2A_AUTH_TYPE={other} is unknown; there are bearer, basic, apikey and custom"
            ));
        }
    }
    Ok(())
}

/// Where the card wants an API key, and under which name; in the words of 1.0 and of 0.3.
fn place_of_key(card: &Value) -> Option<(String, String)> {
    let schemes = card["securitySchemes"].as_object()?;
    schemes.values().find_map(|scheme| {
        let new = &scheme["apiKeySecurityScheme"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if new.is_object() {
            return Some((text(&new["location"])?.to_ascii_lowercase(), text(&new["name"])?));
        }
        (scheme["type"] == "apiKey").then_some(())?;
        Some((text(&scheme["in"])?, text(&scheme["name"])?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug, clap::Parser)]
    struct Typed {
        #[command(flatten)]
        run: RunArgs,
    }

    /// Who has the token of one agent must not get to know it by being the other.
    #[test]
    fn the_second_agent_is_not_shown_the_first_ones_credentials() {
        let shown = |line: &str| {
            let args = <Typed as clap::Parser>::try_parse_from(line.split(' ')).unwrap().run;
            let given = given(&args, &BTreeMap::new()).unwrap();
            for_second("http://a:1/x", &args, &given).unwrap().unwrap().1.headers
        };
        let bearer = |token: &str| vec![("Authorization".to_owned(), format!("Bearer {token}"))];
        assert_eq!(shown("test http://a:1/x --bearer one --second http://b:1"), []);
        assert_eq!(shown("test http://a:1/x --bearer one --second http://a:2"), []);
        assert_eq!(shown("test http://a:1/x --bearer one --second https://a:1"), []);
        assert_eq!(shown("test http://a:1/x --bearer one --second http://a:1/y"), bearer("one"));
        assert_eq!(
            shown("test http://a:1/x --bearer one --second http://b --second-bearer two"),
            bearer("two")
        );
        let own = shown("test http://a:1/x --second http://b --second-header X-Key:k");
        assert_eq!(own, [("X-Key".to_owned(), "k".to_owned())]);
    }

    fn headers(pairs: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let environment =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut given = Given::default();
        of_environment(&environment, &mut given)?;
        given.for_card(&json!({})).map(|credentials| credentials.headers)
    }

    #[test]
    fn t01_the_environment_of_other_tools_is_understood() {
        let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        for (environment, wanted) in [
            (&[("A2A_AUTH_TOKEN", "t")][..], header("Authorization", "Bearer t")),
            (&[("A2A_BEARER_TOKEN", "t")], header("Authorization", "Bearer t")),
            (&[("A2A_AUTH_TYPE", "apikey"), ("A2A_AUTH_TOKEN", "k")], header("X-API-Key", "k")),
            (
                &[("A2A_AUTH_TYPE", "api-key"), ("A2A_AUTH_TOKEN", "k"), ("A2A_AUTH_HEADER", "K")],
                header("K", "k"),
            ),
            (
                &[("A2A_AUTH_TYPE", "basic"), ("A2A_AUTH_USERNAME", "u"), ("A2A_AUTH_PASSWORD", "p")],
                header("Authorization", "Basic dTpw"),
            ),
            (&[("A2A_AUTH_HEADERS", r#"{"X-A":"b"}"#)], header("X-A", "b")),
            (&[], Vec::new()),
        ] {
            assert_eq!(headers(environment), Ok(wanted), "{environment:?}");
        }
        for bad in [
            &[("A2A_AUTH_TYPE", "magic")][..],
            &[("A2A_AUTH_TYPE", "basic")],
            &[("A2A_AUTH_TYPE", "custom"), ("A2A_AUTH_TOKEN", "t")],
            &[("A2A_AUTH_HEADERS", "x")],
        ] {
            headers(bad).unwrap_err();
        }
    }

    #[test]
    fn an_api_key_goes_where_the_card_says() {
        let given = Given { key: Some("secret".to_owned()), ..Given::default() };
        let header = |card: Value| given.for_card(&card).map(|credentials| credentials.headers);
        let new = |place: &str| json!({"securitySchemes": {"k": {"apiKeySecurityScheme": {"location": place, "name": "K"}}}});
        assert_eq!(header(new("header")).unwrap(), [("K".to_owned(), "secret".to_owned())]);
        assert_eq!(header(new("cookie")).unwrap(), [("Cookie".to_owned(), "K=secret".to_owned())]);
        assert!(!header(new("query")).unwrap_err().contains("secret"));
        let old = json!({"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "Old"}}});
        assert_eq!(header(old).unwrap()[0].0, "Old");
    }
}
