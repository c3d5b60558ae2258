//! Credentials for the agent: from flags, else from the environment variables of other A2A tools.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use baton_lab::wire::trust::{Identity, certificates};
use baton_lab::wire::{Credentials, Login, Trust, TrustOptions};
use serde_json::Value;

use super::args::RunArgs;
use crate::config::name_of_file;

/// The default header for an API key.
const API_KEY_HEADER: &str = "X-API-Key";

/// Credentials, and an API key whose place is not known yet.
#[derive(Default)]
pub(super) struct Given {
    pub(super) credentials: Credentials,
    /// An API key whose place the card may name.
    pub(super) key: Option<String>,
}

pub(super) fn given(args: &RunArgs, environment: &BTreeMap<String, String>) -> Result<Given, String> {
    let mut given = Given::default();
    let credentials = &mut given.credentials;
    credentials.headers.extend(args.header.iter().cloned());
    if let Some(token) = &args.bearer {
        credentials.headers.push(bearer("--bearer", token)?);
    }
    if let Some(pair) = &args.basic {
        credentials.headers.push(basic("--basic", pair)?);
    }
    if let Some(pair) = &args.digest {
        let (user, password) = login("--digest", pair)?;
        credentials.digest = Some(Login { user, password });
    }
    if let Some(key) = &args.api_key {
        given.key = Some(from_file("--api-key", key)?);
    }
    if !given.any() {
        of_environment(environment, &mut given)?;
    }
    given.credentials.certificate = args.client_cert.is_some();
    Ok(given)
}

/// The credentials of a second user, if there are any.
pub(super) fn of_other_user(args: &RunArgs) -> Result<Given, String> {
    let mut given = Given::default();
    let headers = &mut given.credentials.headers;
    headers.extend(args.other_header.iter().cloned());
    if let Some(token) = &args.other_bearer {
        headers.push(bearer("--other-bearer", token)?);
    }
    if let Some(pair) = &args.other_basic {
        headers.push(basic("--other-basic", pair)?);
    }
    if let Some(key) = &args.other_api_key {
        given.key = Some(from_file("--other-api-key", key)?);
    }
    Ok(given)
}

/// What is trusted and shown in TLS handshakes.
pub(super) fn trust(args: &RunArgs) -> Result<Trust, String> {
    let mut options = TrustOptions { insecure: args.insecure, ..TrustOptions::default() };
    for path in &args.ca {
        options.extra.extend(certificates(path).map_err(|why| format!("--ca {why}"))?);
    }
    if let (Some(chain), Some(key)) = (&args.client_cert, &args.client_key) {
        options.identity = Some(Identity::read(chain, key).map_err(|why| format!("--client-cert: {why}"))?);
    }
    Trust::new(options)
}

fn bearer(flag: &str, token: &str) -> Result<(String, String), String> {
    Ok(("Authorization".to_owned(), format!("Bearer {}", from_file(flag, token)?)))
}

fn basic(flag: &str, pair: &str) -> Result<(String, String), String> {
    let (user, password) = login(flag, pair)?;
    let pair = BASE64_STANDARD.encode(format!("{user}:{password}"));
    Ok(("Authorization".to_owned(), format!("Basic {pair}")))
}

/// An error must not contain the text: it may be a password.
fn login(flag: &str, pair: &str) -> Result<(String, String), String> {
    let pair = from_file(flag, pair)?;
    let (user, password) =
        pair.split_once(':').ok_or_else(|| format!("{flag}: write USER:PASSWORD, or @FILE"))?;
    Ok((user.to_owned(), password.to_owned()))
}

/// The second agent's address, and its credentials.
pub(super) fn for_second(
    url: &str,
    args: &RunArgs,
    given: &Given,
) -> Result<Option<(String, Credentials)>, String> {
    let Some(second) = &args.second else { return Ok(None) };
    let mut own = Credentials { headers: args.second_header.clone(), ..Credentials::default() };
    if let Some(token) = &args.second_bearer {
        own.headers.push(bearer("--second-bearer", token)?);
    }
    // Credentials are sent only to the host they were given for.
    if own.headers.is_empty() && origin(url) == origin(second) {
        own = given.for_card(&Value::Null)?;
    }
    Ok(Some((second.clone(), own)))
}

/// Scheme, host and port as they are written.
fn origin(url: &str) -> (&str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    (scheme, host.rsplit_once('@').map_or(host, |(_, host)| host))
}

impl Given {
    pub(super) fn any(&self) -> bool {
        self.key.is_some() || !self.credentials.are_empty()
    }

    /// All credentials, with an API key in the place that the card names.
    pub(super) fn for_card(&self, card: &Value) -> Result<Credentials, String> {
        let Some(key) = &self.key else { return Ok(self.credentials.clone()) };
        let more = match place_of_key(card) {
            Some((place, name)) => match place.as_str() {
                "header" => Credentials::header(name, key),
                "cookie" => Credentials::header("Cookie", format!("{name}={key}")),
                "query" => Credentials::in_query(name, key),
                _ => {
                    return Err(format!(
                        "the card expects the API key `{name}` in the {place}, which is no place that A2A knows; a \
                         header can be sent with --header"
                    ));
                }
            },
            None => Credentials::header(API_KEY_HEADER, key),
        };
        Ok(self.credentials.clone().and(more))
    }
}

/// `@FILE` keeps a secret off the command line, which other users of a machine can read.
fn from_file(flag: &str, text: &str) -> Result<String, String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let path = Path::new(path);
    let unread = |error| format!("{flag}: {}: {error}", name_of_file(path));
    Ok(std::fs::read_to_string(path).map_err(unread)?.trim().to_owned())
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
            return Err(format!("A2A_AUTH_TYPE={other} is unknown; use bearer, basic, apikey or custom"));
        }
    }
    Ok(())
}

/// Where the card expects an API key, and under which name; for cards of 1.0 and of 0.3.
fn place_of_key(card: &Value) -> Option<(String, String)> {
    let schemes = card["securitySchemes"].as_object()?;
    schemes.values().find_map(|scheme| {
        let new = &scheme["apiKeySecurityScheme"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        if new.is_object() {
            return Some((text(&new["location"])?.to_ascii_lowercase(), text(&new["name"])?));
        }
        (scheme["type"] == "apiKey").then_some(())?;
        Some((text(&scheme["in"])?.to_ascii_lowercase(), text(&scheme["name"])?))
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

    /// A second agent at another address must not receive the first one's token.
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

    #[test]
    fn a_password_goes_into_no_message() {
        let typed =
            |line: &str| <Typed as clap::Parser>::try_parse_from(line.split(' ')).map(|typed| typed.run);
        let made = given(&typed("test http://h --basic u:p:q").unwrap(), &BTreeMap::new()).unwrap();
        assert_eq!(made.credentials.headers[0].1, "Basic dTpwOnE=");
        let made = given(&typed("test http://h --digest u:p").unwrap(), &BTreeMap::new()).unwrap();
        assert_eq!(made.credentials.digest.as_ref().unwrap().user, "u");
        assert!(!format!("{:?}", made.credentials).contains('p'.to_string().repeat(2).as_str()));
        let bad = given(&typed("test http://h --basic onlysecret").unwrap(), &BTreeMap::new());
        assert!(!bad.err().unwrap().contains("onlysecret"));
        typed("test http://h --basic u:p --bearer t").unwrap_err();
        let other = of_other_user(&typed("test http://h --other-api-key k").unwrap()).unwrap();
        assert_eq!(other.for_card(&Value::Null).unwrap(), Credentials::header("X-API-Key", "k"));
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
        assert!(!header(new("body")).unwrap_err().contains("secret"));
        let query = given.for_card(&new("query")).unwrap();
        assert_eq!((query.headers, query.query), (Vec::new(), vec![("K".to_owned(), "secret".to_owned())]));
        let old = json!({"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "Old"}}});
        assert_eq!(header(old).unwrap()[0].0, "Old");
    }
}
