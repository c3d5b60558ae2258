//! S-16 and P-05: schemes in a chain, what cards require of them, and extended cards.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use async_trait::async_trait;
use axum::body::Body;
use baton_protocol::domain::security::{ApiKeyLocation, SchemeKind, SecurityRequirement, SecurityScheme};
use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::auth::{AuthRequest, Chain, CredentialRecord, Identity, Refusal, Scheme, Scopes, Verdict};
use baton_server::store::Store;
use baton_server::{Builder, Mount, Options, Server, StartError, Turn};
use http::{HeaderValue, Request};
use serde_json::{Value, json};
use tower::Service as _;

use crate::agents::obedient;
use crate::fixtures::{Backend, Gate, agent_with};
use crate::harness::{Answer, TEST_TIMEOUT, TestServer, message, serve, with_agent};

/// A credential is `owner` or `owner:scope,scope` in a header; `bad` is refused, `down` cannot be verified.
#[derive(Debug)]
struct InHeader(&'static str);

#[async_trait]
impl Scheme for InHeader {
    fn declared(&self) -> SecurityScheme {
        let kind = SchemeKind::ApiKey { location: ApiKeyLocation::Header, name: self.0.to_owned() };
        SecurityScheme { description: None, kind }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        match request.headers.get(self.0).map(|value| value.to_str().unwrap()) {
            None => Verdict::Absent,
            Some("bad") => Verdict::Refused(Refusal::new("unknown").of("bad")),
            Some("down") => Verdict::Unavailable("no answer".to_owned()),
            Some(said) => {
                let (owner, scopes) = said.split_once(':').unwrap_or((said, ""));
                let scopes = scopes.split(',').filter(|scope| !scope.is_empty());
                Verdict::Verified(Identity::new(owner, Scopes::of(scopes), owner))
            }
        }
    }

    fn challenge(&self, refused: Option<&Refusal>) -> Option<HeaderValue> {
        let error = if refused.is_some() { ", error=\"invalid\"" } else { "" };
        HeaderValue::from_str(&format!("Header realm=\"{}\"{error}", self.0)).ok()
    }
}

fn chain() -> Chain {
    Chain::new().scheme("one", InHeader("x-one")).scheme("two", InHeader("x-two"))
}

fn requirement(schemes: &[(&str, &[&str])]) -> SecurityRequirement {
    let owned = |(scheme, scopes): &(&str, &[&str])| {
        ((*scheme).to_owned(), scopes.iter().map(|scope| (*scope).to_owned()).collect())
    };
    SecurityRequirement { schemes: schemes.iter().map(owned).collect() }
}

fn card(requirements: Vec<SecurityRequirement>) -> AgentCard {
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    card.security_requirements = requirements;
    card
}

fn skill(id: &str) -> AgentSkill {
    AgentSkill::new(id, id, id)
}

fn server_of(card: AgentCard) -> Builder {
    Server::builder(card).task_skill(skill("test"), obedient)
}

async fn get(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
    let mut request = server.http.get(format!("{}{path}", server.url));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn s16_a_card_without_a_security_section_gets_it_from_what_is_enforced() {
    let server = serve(with_agent(obedient).auth(chain())).await;
    let card: Value =
        get(&server, "/.well-known/agent-card.json", &[("a2a-version", "1.0")]).await.json().await.unwrap();
    let declared = json!({"apiKeySecurityScheme": {"location": "header", "name": "x-one"}});
    assert_eq!(card["securitySchemes"]["one"], declared);
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"one": {}}}, {"schemes": {"two": {}}}]));
    let old: Value = get(&server, "/.well-known/agent.json", &[]).await.json().await.unwrap();
    assert_eq!(old["securitySchemes"]["two"], json!({"type": "apiKey", "in": "header", "name": "x-two"}));
    assert_eq!(old["security"], json!([{"one": []}, {"two": []}]));
}

#[tokio::test]
async fn s16_card_and_server_agree_on_what_is_enforced_or_the_server_does_not_start() {
    let scheme = |kind| SecurityScheme { description: None, kind };
    let header =
        |name: &str| scheme(SchemeKind::ApiKey { location: ApiKeyLocation::Header, name: name.to_owned() });
    let with = |schemes: Vec<(&str, SecurityScheme)>, requirements| {
        let mut card = card(requirements);
        card.security_schemes = schemes.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
        card
    };
    let one = || ("one", header("X-One"));
    let two = || ("two", header("x-two"));
    for (card, problem) in [
        (
            with(vec![one(), two(), ("mtls", scheme(SchemeKind::MutualTls))], vec![]),
            "`mtls` is declared, but nothing",
        ),
        (with(vec![("one", header("x-other")), two()], vec![]), "`one` is declared in another way"),
        (
            with(vec![("one", scheme(SchemeKind::MutualTls)), two()], vec![]),
            "`one` is declared in another way",
        ),
        (with(vec![one()], vec![]), "`two` is configured, but no card declares it"),
        (with(vec![], vec![requirement(&[("three", &[])])]), "requires `three`, which is not among"),
    ] {
        let Err(StartError::Card(lines)) = server_of(card).auth(chain()).build().await else {
            panic!("started: {problem}")
        };
        assert!(lines.iter().any(|line| line.contains(problem)), "{problem}: {lines:?}");
    }
    server_of(with(vec![one(), two()], vec![requirement(&[("two", &["a"])])]))
        .auth(chain())
        .build()
        .await
        .unwrap();

    let mut strict = skill("strict");
    strict.security_requirements = vec![requirement(&[("one", &[])])];
    let without = Server::builder(card(vec![])).task_skill(strict, obedient).build().await;
    assert!(without.unwrap_err().to_string().contains("this server authenticates nobody"));
    let extended = server_of(card(vec![])).extended_card(card(vec![])).build().await;
    assert!(extended.unwrap_err().to_string().contains("this server authenticates nobody"));
}

/// The status, and the challenges in order.
fn told(answer: &Answer) -> (u16, Vec<&str>) {
    let challenges = answer.headers.get_all("www-authenticate").iter();
    (answer.status, challenges.map(|value| value.to_str().unwrap()).collect())
}

const ONE: &str = "Header realm=\"x-one\"";
const TWO: &str = "Header realm=\"x-two\"";

#[tokio::test]
async fn p05_requirements_of_the_card_decide_who_gets_in() {
    let requirements = vec![requirement(&[("one", &["read"])]), requirement(&[("one", &[]), ("two", &[])])];
    let server = serve(server_of(card(requirements)).auth(chain())).await;
    for (headers, expected) in [
        (&[][..], (401, vec![ONE, TWO])),
        (&[("x-one", "ann:read")], (200, vec![])),
        (&[("x-one", "ann:write")], (403, vec![])),
        (&[("x-one", "ann")], (403, vec![])),
        (&[("x-two", "ann:read")], (401, vec![ONE, TWO])),
        (&[("x-one", "ann"), ("x-two", "bob")], (200, vec![])),
        (&[("x-one", "bad")], (401, vec!["Header realm=\"x-one\", error=\"invalid\"", TWO])),
        (&[("x-one", "ann:read"), ("x-two", "bad")], (200, vec![])),
        (&[("x-one", "down")], (503, vec![])),
        (&[("x-one", "ann:read"), ("x-two", "down")], (200, vec![])),
    ] {
        let answer = server.call_with("ListTasks", json!({}), headers).await;
        assert_eq!(told(&answer), expected, "{headers:?}");
        let rest = get(&server, "/tasks", &[&[("a2a-version", "1.0")], headers].concat()).await;
        assert_eq!(rest.status(), expected.0, "{headers:?}");
        let nothing = get(&server, "/no/such/path", headers).await;
        let status = if expected.0 == 200 { 404 } else { expected.0 };
        assert_eq!(nothing.status(), status, "{headers:?}: the path does not matter");
    }
    let down = server.call_with("ListTasks", json!({}), &[("x-one", "down")]).await;
    assert!(down.header("retry-after").is_some() && !down.body.to_string().contains("no answer"));
}

#[tokio::test]
async fn s16_several_valid_credentials_name_one_owner() {
    let server = serve(with_agent(obedient).auth(chain())).await;
    let total = async |headers: &[(&str, &str)]| {
        server.call_with("ListTasks", json!({}), headers).await.result()["totalSize"].clone()
    };
    let mixed = [("x-two", "bob"), ("x-one", "ann")];
    let refused = server.call_with("SendMessage", message("a"), &mixed).await;
    assert_eq!((refused.status, server.task_count().await), (401, 0));
    server.call_with("SendMessage", message("a"), &[("x-two", "ann"), ("x-one", "ann")]).await.result();
    assert_eq!(total(&[("x-one", "ann")]).await, 1);
    assert_eq!(total(&[("x-two", "ann")]).await, 1, "the name is the same in both schemes");

    // Where schemes are required together, the first in the chain's order names the owner.
    let together = vec![requirement(&[("two", &[]), ("one", &[])])];
    let server = serve(server_of(card(together)).auth(chain())).await;
    server.call_with("SendMessage", message("a"), &mixed).await.result();
    let of = async |one: &str, two: &str| {
        let headers = [("x-one", one), ("x-two", two)];
        server.call_with("ListTasks", json!({}), &headers).await.result()["totalSize"].clone()
    };
    assert_eq!((of("ann", "eve").await, of("bob", "ann").await), (json!(1), json!(0)));
}

/// A credential that browsers send by themselves, valid as long as the record exists.
#[derive(Debug)]
struct Revocable(Mutex<Option<CredentialRecord>>);

#[async_trait]
impl Scheme for &'static Revocable {
    fn declared(&self) -> SecurityScheme {
        let kind = SchemeKind::ApiKey { location: ApiKeyLocation::Header, name: "x-key".to_owned() };
        SecurityScheme { description: None, kind }
    }

    async fn verify(&self, request: &AuthRequest<'_>) -> Verdict {
        match (request.headers.get("x-key"), &*self.0.lock().unwrap()) {
            (None, _) => Verdict::Absent,
            (Some(_), None) => Verdict::Refused(Refusal::new("revoked")),
            (Some(_), Some(record)) => {
                Verdict::Verified(Identity::new("ann", Scopes::default(), "key").while_exists(record))
            }
        }
    }

    fn challenge(&self, _refused: Option<&Refusal>) -> Option<HeaderValue> {
        None
    }

    fn is_sent_by_browsers(&self) -> bool {
        true
    }
}

/// A `ListTasks` whose caller has been authenticated, and whose body has not come to its end.
struct LateBody {
    rest: tokio::sync::mpsc::Sender<Result<String, std::io::Error>>,
    answer: tokio::task::JoinHandle<Result<reqwest::Response, reqwest::Error>>,
}

impl LateBody {
    async fn begin(server: &TestServer, credential: (&str, &str)) -> Self {
        let json = [("content-type", "application/json"), ("a2a-version", "1.0"), credential];
        let (rest, parts) = tokio::sync::mpsc::channel::<Result<String, std::io::Error>>(1);
        let parts =
            futures_util::stream::unfold(
                parts,
                |mut parts| async move { Some((parts.recv().await?, parts)) },
            );
        let mut request =
            server.http.post(format!("{}/", server.url)).body(reqwest::Body::wrap_stream(parts));
        for (name, value) in json {
            request = request.header(name, value);
        }
        let answer = tokio::spawn(request.send());
        rest.send(Ok(r#"{"jsonrpc":"2.0","id":1,"#.to_owned())).await.unwrap();
        // It has been authenticated once a later one, on another connection, has been answered a few times.
        for _ in 0..20 {
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks"}"#;
            assert_eq!(server.post(&json, body).await.status, 200);
        }
        LateBody { rest, answer }
    }

    /// The status of the answer.
    async fn end(self) -> u16 {
        self.rest.send(Ok(r#""method":"ListTasks"}"#.to_owned())).await.unwrap();
        drop(self.rest);
        self.answer.await.unwrap().unwrap().status().as_u16()
    }
}

#[tokio::test]
async fn s16_a_card_that_is_replaced_before_the_body_ends_counts() {
    let requires = |scopes: &[&str]| card(vec![requirement(&[("one", scopes)])]);
    let chain = Chain::new().scheme("one", InHeader("x-one"));
    let server = serve(server_of(requires(&[])).auth(chain)).await;
    let may_not = LateBody::begin(&server, ("x-one", "ann")).await;
    let may = LateBody::begin(&server, ("x-one", "ann:read")).await;
    server.server.control().replace_card("default", requires(&["read"])).unwrap();
    assert_eq!((may_not.end().await, may.end().await), (403, 200));
}

#[tokio::test]
async fn s16_a_chain_is_replaced_by_one_with_the_same_schemes_only() {
    let first = Arc::new(chain());
    let server = serve(with_agent(obedient).auth(Arc::clone(&first))).await;
    let one = || Chain::new().scheme("one", InHeader("x-one"));
    for other in [
        one(),
        one().scheme("other", InHeader("x-two")),
        one().scheme("two", InHeader("x-other")),
        Chain::new().scheme("two", InHeader("x-two")).scheme("one", InHeader("x-one")),
    ] {
        let names = format!("{other:?}");
        assert!(first.replace(other).is_err(), "{names}");
    }
    let revocable: &'static Revocable = Box::leak(Box::new(Revocable(Mutex::new(None))));
    let serving = Arc::new(Chain::new().scheme("key", InHeader("x-key")));
    let other = serve(with_agent(obedient).auth(Arc::clone(&serving))).await;
    let status = async |server: &TestServer, name: &'static str| {
        get(server, "/tasks", &[("a2a-version", "1.0"), (name, "ann")]).await.status().as_u16()
    };
    assert_eq!((status(&server, "x-one").await, status(&other, "x-key").await), (200, 200));
    let late = LateBody::begin(&other, ("x-key", "ann")).await;
    serving.replace(Chain::new().scheme("key", revocable)).unwrap();
    assert_eq!(status(&other, "x-key").await, 401, "refused by the new scheme");
    assert_eq!(late.end().await, 401, "what the old scheme verified is not valid any more");
}

#[tokio::test]
async fn s16_a_revoked_credential_gets_nothing_more_from_what_it_began() {
    let scheme: &'static Revocable =
        Box::leak(Box::new(Revocable(Mutex::new(Some(CredentialRecord::new())))));
    let server = serve(with_agent(obedient).auth(Chain::new().scheme("key", scheme))).await;
    let key = ("x-key", "1");
    let json = [("content-type", "application/json"), ("a2a-version", "1.0"), key];
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": message("hold")});
    let mut stream = server.send_raw(&json, body.to_string()).await;
    let first = stream.chunk().await.unwrap().unwrap();
    let late = LateBody::begin(&server, key).await;

    let record = scheme.0.lock().unwrap().take();
    drop(record);
    assert_eq!(late.end().await, 401);
    // The task goes on, and its stream tells nothing more of it.
    let tasks = server.server.client().as_owner("ann").unwrap();
    let id = String::from_utf8_lossy(&first)
        .split("\"id\":\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    tasks.cancel(&baton_protocol::domain::TaskId::parse(&id).unwrap()).await.unwrap();
    let mut rest = String::new();
    while let Some(chunk) = stream.chunk().await.unwrap() {
        rest += &String::from_utf8_lossy(&chunk);
    }
    assert!(rest.contains("-32000") && !rest.contains("CANCELED"), "{rest}");
}

#[tokio::test]
async fn s16_a_page_of_another_origin_cannot_use_what_a_browser_sends_by_itself() {
    let scheme: &'static Revocable =
        Box::leak(Box::new(Revocable(Mutex::new(Some(CredentialRecord::new())))));
    let chain = Chain::new().scheme("key", scheme).scheme("one", InHeader("x-one"));
    // Behind another listener: ours refuses such pages on loopback before that.
    let mut app = with_agent(obedient).auth(chain).build().await.unwrap().router();
    let mut status = async |more: &[(&str, &str)]| {
        let mut request = Request::get("/tasks").header("host", "agent.example").header("a2a-version", "1.0");
        for (name, value) in [&[("x-key", "1")], more].concat() {
            request = request.header(name, value);
        }
        app.call(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    };
    let own = ("origin", "https://agent.example");
    let cross = ("sec-fetch-site", "cross-site");
    for (more, expected) in [
        (&[][..], 200),
        (&[("sec-fetch-site", "same-origin")], 200),
        (&[("sec-fetch-site", "none")], 200),
        (&[cross], 401),
        (&[("sec-fetch-site", "same-site")], 401),
        (&[own], 200),
        (&[("origin", "https://AGENT.example")], 200),
        (&[("origin", "https://agent.example.evil.test")], 401),
        (&[("origin", "https://evil.test")], 401),
        (&[("origin", "null")], 401),
        (&[own, cross], 401),
        (&[("origin", "https://evil.test"), ("x-one", "ann")], 200),
    ] {
        assert_eq!(status(more).await, expected, "{more:?}");
    }
}

#[tokio::test]
async fn s16_an_open_agent_beside_a_protected_one_lets_everybody_in_and_nobody_into_the_other() {
    let mount = |id: &str, requirements| {
        Mount::new(id, card(requirements)).task_skill(skill("test"), obedient).path(&format!("/{id}"))
    };
    let open = mount("open", vec![requirement(&[])]).extended_card(card(vec![]));
    let host = Server::host().mount(open).mount(mount("closed", vec![])).auth(chain());
    let server = serve(host).await;
    let version = ("a2a-version", "1.0");
    for (path, headers, status) in [
        ("/open/tasks", &[version][..], 200),
        ("/open/tasks", &[version, ("x-one", "ann")], 200),
        ("/open/tasks", &[version, ("x-one", "bad")], 401),
        ("/open/extendedAgentCard", &[version], 401),
        ("/open/extendedAgentCard", &[version, ("x-one", "ann")], 200),
        ("/closed/tasks", &[version], 401),
        ("/", &[], 401),
        ("/", &[("x-one", "ann")], 200),
        ("/none", &[], 401),
        ("/none", &[("x-one", "ann")], 404),
        ("/open/.well-known/agent-card.json", &[], 200),
        ("/closed/.well-known/agent.json", &[], 200),
        ("/healthz", &[], 200),
        ("/closed/tasks", &[version, ("x-two", "ann")], 200),
    ] {
        let answer = get(&server, path, headers).await;
        assert_eq!(answer.status(), status, "{path} {headers:?}");
        assert_eq!(answer.headers().contains_key("www-authenticate"), status == 401, "{path} {headers:?}");
    }
}

#[tokio::test]
async fn p05_a_skill_may_require_more_than_its_agent() {
    let mut strict = skill("strict");
    strict.security_requirements = vec![requirement(&[("one", &["admin"])])];
    let builder =
        Server::builder(card(vec![])).task_skill(skill("plain"), obedient).task_skill(strict, obedient);
    let server = serve(builder.auth(chain())).await;
    let to = |skill: &str, text: &str| {
        let mut params = message(text);
        params["message"]["metadata"] = json!({"skillId": skill});
        params["configuration"] = json!({"returnImmediately": true});
        params
    };
    let (user, admin) = (("x-one", "ann"), ("x-one", "ann:admin"));
    let stream = ("accept", "text/event-stream");
    for method in ["SendMessage", "SendStreamingMessage"] {
        let refused = server.call_with(method, to("strict", "a"), &[user, stream]).await;
        assert_eq!(told(&refused), (403, vec![]), "{method}");
        let other = server.call_with(method, to("strict", "a"), &[("x-two", "ann:admin"), stream]).await;
        assert_eq!(told(&other), (401, vec![ONE]), "{method}");
    }
    assert_eq!(server.task_count().await, 0, "nothing is stored for a message that was refused");
    server.call_with("SendMessage", to("plain", "a"), &[user]).await.result();

    // A follow-up to a task of that skill, whether it waits for input or works.
    for text in ["ask", "hold"] {
        let task =
            server.call_with("SendMessage", to("strict", text), &[admin]).await.result()["task"].clone();
        let mut more = message("more");
        more["message"]["taskId"] = task["id"].clone();
        more["configuration"] = json!({"returnImmediately": true});
        assert_eq!(server.call_with("SendMessage", more.clone(), &[user]).await.status, 403, "{text}");
        let read = server.call_with("GetTask", json!({"id": task["id"]}), &[user]).await;
        assert_eq!(
            read.result()["history"].as_array().map(Vec::len),
            Some(1),
            "{text}: reading is the agent's matter"
        );
        server.call_with("SendMessage", more, &[admin]).await.result();
    }
}

/// A card whose skill `free` takes what the other asks for, and `strict` requires a scope.
fn routed_card(free: &str, strict: &str) -> AgentCard {
    let mut card = card(vec![]);
    let mut needs_scope = AgentSkill::new("strict", strict, strict);
    needs_scope.security_requirements = vec![requirement(&[("one", &["admin"])])];
    card.skills = vec![AgentSkill::new("free", free, free), needs_scope];
    card
}

fn routed(backend: Arc<dyn Store>, gate: &Gate, card: AgentCard) -> Builder {
    let agent = || {
        agent_with(gate, |gate: Gate, turn: Turn| async move {
            tokio::select! {
                () = gate.pass() => {}
                // The server stops.
                _ = turn.cancellation().cancelled() => {}
            }
            let skill = turn.skill().to_owned();
            turn.text_artifact("skill", skill).await.map(|_| ())
        })
    };
    let [free, strict] = <[AgentSkill; 2]>::try_from(card.skills.clone()).unwrap();
    let card = AgentCard { skills: vec![], ..card };
    let mut one = Options::default();
    (one.max_running, one.owners.max_running) = (1, 0);
    let builder = Server::builder(card).task_skill(free, agent()).task_skill(strict, agent());
    builder.auth(chain()).options(one).store(backend)
}

/// While it waits for a slot, the card changes, so that its words mean a skill that its sender may not use. Also if the server
/// is started again meanwhile.
#[tokio::test]
async fn s16_a_queued_task_runs_with_the_skill_that_its_sender_was_allowed() {
    let (before, after) = (routed_card("translate", "deploy"), routed_card("deploy", "translate"));
    let user = [("x-one", "ann")];
    let [memory, sqlite] = Backend::each();
    for (backend, restarts) in [(&memory, false), (&sqlite, false), (&memory, true), (&sqlite, true)] {
        let gate = Gate::new();
        let mut server = serve(routed(backend.open().await, &gate, before.clone())).await;
        let mut params = message("translate");
        params["configuration"] = json!({"returnImmediately": true});
        let mut tasks = Vec::new();
        for _ in 0..2 {
            params["message"]["messageId"] = json!(format!("{restarts}-{}", tasks.len()));
            tasks.push(server.call_with("SendMessage", params.clone(), &user).await.result()["task"].clone());
        }
        if restarts {
            server.stop().await;
            server = serve(routed(backend.open().await, &gate, after.clone())).await;
        } else {
            server.server.control().replace_card("default", after.clone()).unwrap();
        }
        params["message"]["messageId"] = json!(format!("{restarts}-another"));
        let refused = server.call_with("SendMessage", params.clone(), &user).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        gate.let_pass(10);
        let give_up = Instant::now() + TEST_TIMEOUT;
        let ended = loop {
            let task =
                server.call_with("GetTask", json!({"id": tasks[1]["id"]}), &user).await.result().clone();
            if task["status"]["state"] == "TASK_STATE_COMPLETED" {
                break task;
            }
            assert!(Instant::now() < give_up, "{task}");
        };
        assert_eq!(ended["artifacts"][0]["parts"][0]["text"], "free", "restarts: {restarts}");
        server.stop().await;
    }
}

#[tokio::test]
async fn s16_the_extended_card_is_for_authenticated_callers_and_may_differ() {
    let mount = Mount::new("a", card(vec![])).task_skill(skill("test"), obedient);
    let mount = mount.extended_card_for(|caller, public| {
        let mut card = public.clone();
        card.description = format!("for {}", caller.owner());
        if caller.scopes().has("secret") {
            card.skills.push(skill("hidden"));
        }
        card.security_schemes.clear();
        card
    });
    let server = serve(Server::host().mount(mount).auth(chain())).await;
    let public: Value =
        get(&server, "/.well-known/agent-card.json", &[("a2a-version", "1.0")]).await.json().await.unwrap();
    assert_eq!(public["capabilities"]["extendedAgentCard"], true);
    assert!(!public.to_string().contains("hidden"));
    let legacy: Value = get(&server, "/.well-known/agent.json", &[]).await.json().await.unwrap();
    assert_eq!(legacy["supportsAuthenticatedExtendedCard"], true);

    let of = async |method: &str, version: &str, credential: &[(&str, &str)]| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method}).to_string();
        let headers =
            [&[("content-type", "application/json"), ("a2a-version", version)], credential].concat();
        server.post(&headers, body).await
    };
    for (method, version) in [("GetExtendedAgentCard", "1.0"), ("agent/getAuthenticatedExtendedCard", "0.3")]
    {
        assert_eq!(of(method, version, &[]).await.status, 401, "{method}");
        let answer = of(method, version, &[("x-one", "ann:secret")]).await;
        let card = answer.result();
        assert_eq!(card["description"], "for ann", "{method}");
        assert_eq!(card["skills"][1]["id"], "hidden", "{method}");
        assert!(card["securitySchemes"]["one"].is_object(), "what is enforced is declared: {card}");
        let url = card["supportedInterfaces"][0]["url"].as_str().or(card["url"].as_str());
        assert_eq!(url, Some(format!("{}/", server.url).as_str()), "{method}");
        assert_eq!(answer.header("cache-control"), Some("private, no-store"));
        assert_eq!(answer.header("vary"), Some("Authorization"));
        let other = of(method, version, &[("x-two", "bob")]).await;
        assert_eq!(other.result()["description"], "for bob");
        assert!(!other.body.to_string().contains("hidden"), "{method}");
    }
    for path in ["/extendedAgentCard", "/v1/card"] {
        let version = ("a2a-version", if path == "/v1/card" { "0.3" } else { "1.0" });
        let answer = get(&server, path, &[version, ("x-one", "ann")]).await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["cache-control"], "private, no-store", "{path}");
        assert_eq!(answer.json::<Value>().await.unwrap()["description"], "for ann", "{path}");
        assert_eq!(get(&server, path, &[version]).await.status(), 401, "{path}");
    }
    // SDKs of 0.3 name no version and read the schema's form; later ones name it and read ProtoJSON.
    for (headers, security) in [
        (&[("x-one", "ann")][..], json!({"one": []})),
        (&[("x-one", "ann"), ("a2a-version", "0.3")], json!({"schemes": {"one": {}}})),
    ] {
        let card: Value = get(&server, "/v1/card", headers).await.json().await.unwrap();
        assert_eq!(card["security"][0], security, "{card}");
    }
}
