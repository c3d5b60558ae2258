//! Discovery: finds the agent, reads its card, and finds out which test phrases it knows.
//!
//! If nothing can be tested, a diagnosis of one sentence says why.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::acts::stream::state_of;
use crate::generation::{Binding, Generation};
use crate::target::{self, Behaviours, Interface, Second, Target};
use crate::wire::no_answer::Kind;
use crate::wire::request::{self, Operation};
use crate::wire::{Answer, Credentials, Exchange, Probe, Request};

/// Why nothing can be tested, in one sentence that says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub sentence: String,
    /// An agent that is still starting can cause this: waiting may help.
    pub temporary: bool,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// The result of discovery.
#[derive(Debug)]
pub struct Discovery {
    pub target: Target,
    /// Warnings that do not prevent testing.
    pub warnings: Vec<String>,
    pub evidence: Vec<Exchange>,
}

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How long to wait for an agent that is still starting.
    pub wait: Duration,
    /// Generations that the user named: tried even if the card does not declare them.
    pub generations: Vec<Generation>,
    /// The second agent's address and credentials.
    pub second: Option<(String, Credentials)>,
    /// Skills whose examples are used; all of them when empty.
    pub skills: Vec<String>,
}

const CARD: &str = "/.well-known/agent-card.json";
const LEGACY_CARD: &str = "/.well-known/agent.json";

/// Discovers the agent at `url` (its base address, or that of its card), and the second agent if there is one.
pub async fn discover(url: &str, probe: &Probe, options: &Options) -> Result<Discovery, Diagnosis> {
    let mut found = look(url, probe, options).await?;
    if let Some((url, credentials)) = &options.second {
        let about = |diagnosis: Diagnosis| Diagnosis {
            sentence: format!("the second agent: {}", diagnosis.sentence),
            ..diagnosis
        };
        let other = look(url, &probe.acting_as(credentials.clone()), options).await.map_err(about)?;
        if other.target.base == found.target.base {
            return Err(about(Diagnosis {
                sentence: format!("{} is the agent under test; give another one", other.target.base),
                temporary: false,
            }));
        }
        found
            .warnings
            .extend(other.warnings.into_iter().map(|warning| format!("the second agent: {warning}")));
        found.evidence.extend(other.evidence);
        found.target.second =
            Some(Second { target: Arc::new(other.target), credentials: credentials.clone() });
    }
    Ok(found)
}

async fn look(url: &str, probe: &Probe, options: &Options) -> Result<Discovery, Diagnosis> {
    let base = base_of(url)?;
    let probe = probe.fresh();
    let Cards { card, older: older_card, legacy: legacy_card } = cards(&base, &probe, options.wait).await?;
    let main = card.or_else(|| older_card.clone().or_else(|| legacy_card.clone())).unwrap_or(Value::Null);
    let mut warnings = Vec::new();
    let mut interfaces = target::interfaces(&main);
    for (place, interface) in older_card.iter().flat_map(target::interfaces) {
        interfaces.entry(place).or_insert(interface);
    }
    add_legacy(&mut interfaces, legacy_card.as_ref(), &main, &probe, options).await;
    if interfaces.is_empty() {
        return Err(Diagnosis {
            temporary: false,
            sentence: format!(
                "The card at {base}{CARD} declares no interface that this program supports: `supportedInterfaces` needs entries \
                 with `url`, `protocolBinding` (JSONRPC or HTTP+JSON) and `protocolVersion`."
            ),
        });
    }
    for ((_, binding), interface) in &mut interfaces {
        interface.url = target::with_scheme(&base, std::mem::take(&mut interface.url), *binding);
    }
    for ((generation, binding), interface) in &interfaces {
        if let Some(warning) = odd_address(&base, &interface.url) {
            warnings.push(format!("{generation} {}: {warning}", binding.in_cards()));
        }
    }
    let mut target = Target {
        base,
        card: main,
        older_card,
        legacy_card,
        interfaces,
        behaviours: Behaviours::Examples(Vec::new()),
        refused: None,
        second: None,
    };
    (target.behaviours, target.refused) = behaviours(&target, &probe, options).await;
    Ok(Discovery { target, warnings, evidence: probe.exchanges() })
}

/// The base address.
pub fn base_of(url: &str) -> Result<String, Diagnosis> {
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let known = with_scheme.starts_with("http://") || with_scheme.starts_with("https://");
    let host = with_scheme.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    if !known || host.is_empty() || host.starts_with(['/', '?', '#']) {
        return Err(Diagnosis {
            temporary: false,
            sentence: format!("`{url}` is no address; give one such as http://127.0.0.1:3000"),
        });
    }
    let base = with_scheme.split(['?', '#']).next().unwrap_or_default();
    let base = base.split_once("/.well-known/").map_or(base, |(base, _)| base);
    Ok(base.trim_end_matches('/').to_owned())
}

/// The cards that an agent serves; at least one must exist.
struct Cards {
    /// The card for clients of 1.0, which send their version.
    card: Option<Value>,
    /// The card for clients that send no version.
    older: Option<Value>,
    /// The card at the path of 0.1.
    legacy: Option<Value>,
}

async fn cards(base: &str, probe: &Probe, wait: Duration) -> Result<Cards, Diagnosis> {
    let started = Instant::now();
    loop {
        let older = card(base, CARD, None, probe).await;
        let legacy = card(base, LEGACY_CARD, None, probe).await;
        match (older, legacy) {
            (Err(first), Err(_)) => {
                if !first.temporary || started.elapsed() >= wait {
                    return Err(first);
                }
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            (older, legacy) => {
                let card = card(base, CARD, Some(Generation::V1.version()), probe).await.ok();
                return Ok(Cards { card, older: older.ok(), legacy: legacy.ok() });
            }
        }
    }
}

async fn card(base: &str, path: &str, version: Option<&str>, probe: &Probe) -> Result<Value, Diagnosis> {
    let url = format!("{base}{path}");
    let say = |sentence: String| Diagnosis { sentence, temporary: false };
    let for_now = |sentence: String| Diagnosis { sentence, temporary: true };
    let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
    headers.extend(version.map(|version| ("A2A-Version".to_owned(), version.to_owned())));
    let request = Request { method: "GET".to_owned(), url: url.clone(), headers, body: None, streams: false };
    let mut open = probe.open(&request).await.map_err(|error| match error.kind {
        Kind::Untrusted => say(format!(
            "{base} cannot be tested: {error}. Give the certificate of its authority, or its own, with --ca FILE; with \
             --insecure it is not checked."
        )),
        Kind::NotTls => say(format!("{base} cannot be tested: {error}. Is its address http:// instead?")),
        Kind::CallerRefused => say(format!(
            "{base} cannot be tested: {error}. Give one with --client-cert FILE and --client-key FILE."
        )),
        Kind::Other => for_now(format!(
            "Nothing answers at {base}: {error}. Is the agent running, and is the address right?"
        )),
    })?;
    let body = open.rest().await.map_err(|error| say(format!("{url} broke off: {error}.")))?;
    let status = open.received.status;
    let header = |name: &str| {
        let found = open.received.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    match status {
        200..=299 => {}
        300..=399 => {
            let to = header("location");
            return Err(say(format!(
                "{url} redirects to {to} (HTTP {status}); not all clients follow redirects: give the target's \
                 address, or serve the card at this address."
            )));
        }
        401 | 403 => {
            return Err(say(format!(
                "{url} asks for credentials (HTTP {status}); the card must be public, so that clients can learn how to \
                 authenticate."
            )));
        }
        404 => {
            return Err(say(format!(
                "No agent card is at {url} (HTTP 404). An A2A agent serves it there; is the base path right?"
            )));
        }
        502..=504 => {
            return Err(for_now(format!("{url} answers HTTP {status}: the agent behind it is not there.")));
        }
        _ => return Err(say(format!("{url} answers HTTP {status} instead of the card."))),
    }
    let text = String::from_utf8_lossy(&body);
    let looks_like_html = text.trim_start().starts_with('<');
    let parsed: Value = match serde_json::from_slice(&body) {
        Ok(parsed) => parsed,
        Err(_) if looks_like_html => {
            return Err(say(format!(
                "{url} answers with a web page (HTML), not with a card: a proxy, a login page or a single-page \
                 application answers instead of the agent."
            )));
        }
        Err(error) => return Err(say(format!("{url} answers with something that is not JSON: {error}."))),
    };
    if !parsed.is_object() || parsed.get("name").is_none() {
        return Err(say(format!(
            "{url} answers with JSON that is no agent card (it has no `name`); is this an A2A agent?"
        )));
    }
    Ok(parsed)
}

/// Cards of 0.1, and early ones of 0.2, do not name their generation: they have no version and one address.
async fn add_legacy(
    interfaces: &mut BTreeMap<(Generation, Binding), Interface>,
    legacy_card: Option<&Value>,
    main: &Value,
    probe: &Probe,
    options: &Options,
) {
    let asked = options.generations.contains(&Generation::V0_1);
    let url = legacy_card.unwrap_or(main).get("url").and_then(Value::as_str).map(str::to_owned);
    let Some(url) = url.or_else(|| Some(interfaces.values().next()?.url.clone())) else { return };
    let interface = Interface { url, tenant: None };
    if asked || speaks(Generation::V0_1, &interface, probe).await {
        interfaces.insert((Generation::V0_1, Binding::Jsonrpc), interface.clone());
    }
    // Early cards of 0.2 look like those of 0.1.
    if interfaces.keys().all(|(generation, _)| *generation == Generation::V0_1)
        && speaks(Generation::V0_3, &interface, probe).await
    {
        interfaces.insert((Generation::V0_3, Binding::Jsonrpc), interface);
    }
}

/// True if the agent knows the generation's send method.
async fn speaks(generation: Generation, interface: &Interface, probe: &Probe) -> bool {
    let ask = |params: Value| async move {
        let built =
            request::operation(generation, Binding::Jsonrpc, interface, Operation::SendMessage, &params);
        probe.ask(generation, Binding::Jsonrpc, &built.ok()?).await.ok()
    };
    match generation {
        // A message to an unknown task has no effect.
        Generation::V1 | Generation::V0_3 => {
            let nobody = json!({"taskId": uuid::Uuid::new_v4().to_string()});
            is_known(ask(crate::speak::send_params(generation, "hello", nobody)).await.as_ref()) == Some(true)
        }
        // In 0.1 any id creates a task, so the first request has no params; but 0.1 servers answered missing params and
        // unknown methods with the same error.
        Generation::V0_1 => match is_known(ask(json!({})).await.as_ref()) {
            Some(known) => known,
            None => {
                let send = crate::speak::send_params(generation, "hello", json!({}));
                matches!(ask(send).await, Some(Answer::Reply { .. }))
            }
        },
    }
}

/// `None` if the answer could mean an unknown method or bad params.
fn is_known(answer: Option<&Answer>) -> Option<bool> {
    match answer {
        Some(Answer::Reply { .. }) => Some(true),
        Some(Answer::Error(error)) if matches!(error.status, 401 | 403) => None,
        Some(Answer::Error(error)) if error.status == 404 || error.status >= 500 => Some(false),
        Some(Answer::Error(error)) => match error.code {
            None | Some(-32601) => Some(false),
            Some(-32600) => None,
            // For a 1.0 server a request without a version is a 0.3 request, which it does not support.
            Some(-32009) => Some(false),
            Some(_) => Some(true),
        },
        Some(Answer::Stream { .. }) | None => Some(false),
    }
}

/// A warning if an address in the card has another host than the card itself.
fn odd_address(base: &str, url: &str) -> Option<String> {
    let host = |url: &str| {
        url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or_default().to_owned())
    };
    let (own, declared) = (host(base)?, host(url));
    let Some(declared) = declared else {
        return Some(format!(
            "the card's address `{url}` has no scheme; most clients need http:// or https://"
        ));
    };
    if declared == own {
        return None;
    }
    Some(format!(
        "the card was found at {own}, but gives clients the address {declared}; behind a proxy this is a common mistake \
         (set the agent's public URL)"
    ))
}

/// Whether the agent knows the `tck-` phrases: one that does asks a question for this phrase, others answer it. And the
/// status of an agent that refuses the caller.
async fn behaviours(target: &Target, probe: &Probe, options: &Options) -> (Behaviours, Option<u16>) {
    let chosen = |skill: &Value| {
        let id = skill["id"].as_str().unwrap_or_default();
        options.skills.is_empty() || options.skills.iter().any(|wanted| wanted == id)
    };
    let skills: Vec<Value> = target.skills().iter().filter(|skill| chosen(skill)).cloned().collect();
    let examples = target::examples(&json!({ "skills": skills }));
    for ((generation, binding), interface) in &target.interfaces {
        let params = crate::speak::send_params(*generation, "tck-multi-turn are you there?", json!({}));
        let built = request::operation(*generation, *binding, interface, Operation::SendMessage, &params);
        let Ok(mut request) = built else { continue };
        request.headers.extend(target::extensions_header(target.card_of(*generation), *generation));
        match probe.ask(*generation, *binding, &request).await {
            Ok(Answer::Reply { root: Some(root), .. }) => {
                let task = root.get("task").unwrap_or(&root).clone();
                if asks(task, *generation, *binding, interface, probe).await {
                    return (Behaviours::Prefixes, None);
                }
            }
            Ok(Answer::Error(error)) if matches!(error.status, 401 | 403) => {
                return (Behaviours::Examples(examples), Some(error.status));
            }
            _ => {}
        }
        break;
    }
    (Behaviours::Examples(examples), None)
}

/// True if the task asks for input. If the agent answers before that, the task is polled for a moment.
async fn asks(
    mut task: Value,
    generation: Generation,
    binding: Binding,
    interface: &Interface,
    probe: &Probe,
) -> bool {
    for _ in 0..10 {
        match state_of(&task).as_deref() {
            Some("INPUT_REQUIRED") => return true,
            Some("SUBMITTED" | "WORKING") => {}
            _ => return false,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let params = json!({ "id": task["id"] });
        let built = request::operation(generation, binding, interface, Operation::GetTask, &params);
        let Ok(request) = built else { return false };
        match probe.ask(generation, binding, &request).await {
            Ok(Answer::Reply { root: Some(root), .. }) => task = root,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_method_is_told_from_an_unknown_one() {
        let error = |status: u16, code: Option<i64>| {
            Answer::Error(crate::wire::WireError {
                status,
                headers: Vec::new(),
                code,
                name: None,
                message: None,
                details: Value::Null,
                body: None,
            })
        };
        let reply = Answer::Reply { status: 200, headers: Vec::new(), root: None, body: None };
        for (answer, known) in [
            (reply, Some(true)),
            (error(200, Some(-32602)), Some(true)),
            (error(200, Some(-32001)), Some(true)),
            (error(200, Some(-32601)), Some(false)),
            (error(200, Some(-32009)), Some(false)),
            (error(400, Some(-32600)), None),
            (error(401, Some(-32000)), None),
            (error(404, None), Some(false)),
            (error(405, None), Some(false)),
            (error(500, Some(-32603)), Some(false)),
        ] {
            assert_eq!(is_known(Some(&answer)), known, "{answer:?}");
        }
        assert_eq!(is_known(None), Some(false));
    }

    #[test]
    fn an_address_may_be_given_in_many_ways() {
        for (given, base) in [
            ("http://h:1", "http://h:1"),
            ("http://h:1/", "http://h:1"),
            ("h:1/a", "http://h:1/a"),
            ("https://h/a/.well-known/agent-card.json", "https://h/a"),
            ("https://h/?x=1", "https://h"),
        ] {
            assert_eq!(base_of(given).unwrap(), base);
        }
        for bad in ["", "ftp://h", "http://", "http:///x"] {
            base_of(bad).unwrap_err();
        }
    }
}
