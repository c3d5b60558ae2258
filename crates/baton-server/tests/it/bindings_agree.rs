//! P-02, P-03. Every operation and every error, in every generation and binding. What one of them has not is listed with the
//! reason; a pair that is neither shown nor listed fails, and so does a reason that is not true any more. (That the results
//! are the same in every detail is shown by the tables of `scenario`, `error_rows`, `refusal_rows` and `lifecycle_rows`.)

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::{AgentCard, AgentExtension, AgentSkill, Part};
use baton_protocol::error::TABLE;
use baton_protocol::operation::{FACTS, Operation};
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal};
use baton_server::store::StoreError;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Asked, Builder, Limits, Options, PushOptions, Server};
use http::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::asking::{ALL_BINDINGS, Ask, HOOK, Interface, Sending, ask_with, get, sending, state};
use crate::callers::ByHeader;
use crate::error_rows::{KNOWN, Row, check};
use crate::faults::FaultyStore;
use crate::harness::{Answer, TestServer, all_bindings, serve, with_agent};
use crate::speakers::{Events, envelope, read, request, with_card};

use Interface::{V01, V1Rest, V1Rpc, V03Rest, V03Rpc};

/// The operations that a generation or binding has not.
const NO_OPERATION: &[(Interface, Operation, &str)] = &[
    (V01, Operation::ListTasks, "0.1 has no list"),
    (V01, Operation::ListPushConfigs, "a task of 0.1 has one webhook at most"),
    (V01, Operation::DeletePushConfig, "0.1 only replaces it"),
    (V01, Operation::GetExtendedCard, "0.1 has one card for everybody"),
    #[cfg(feature = "grpc")]
    (Interface::V03Grpc, Operation::ListTasks, "the service of 0.3 has no list"),
];

/// The errors that a generation or binding has not.
const NO_ERROR: &[(&[Interface], ErrorKind, &str)] = &[
    (
        &[V1Rest, V03Rest],
        ErrorKind::InvalidRequest,
        "HTTP+JSON has no envelope: a body is not JSON, or has wrong members",
    ),
    (&[V01], ErrorKind::InvalidAgentResponse, "every answer of 0.1 is a task, and this one fails"),
    (
        #[cfg(feature = "grpc")]
        &[V1Rpc, V1Rest, Interface::V1Grpc],
        #[cfg(not(feature = "grpc"))]
        &[V1Rpc, V1Rest],
        ErrorKind::ExtendedCardNotConfigured,
        "a server whose card declares an extended card has one; without it 1.0 says that the operation is unsupported",
    ),
    (&[V01], ErrorKind::ExtendedCardNotConfigured, "0.1 has one card for everybody"),
    (&[V1Rpc, V1Rest, V03Rpc, V03Rest, V01], ErrorKind::DeadlineExceeded, "only gRPC has deadlines"),
    (
        &[V1Rpc, V03Rpc, V01],
        ErrorKind::MethodNotAllowed,
        "JSON-RPC has one path; HTTP refuses what is not POST",
    ),
    #[cfg(feature = "grpc")]
    (&[Interface::V1Grpc, Interface::V03Grpc], ErrorKind::MethodNotAllowed, "what is not POST is no call"),
    #[cfg(feature = "grpc")]
    (
        &[Interface::V1Grpc, Interface::V03Grpc],
        ErrorKind::MediaTypeNotSupported,
        "the type tells that it is a call",
    ),
];

const OWNER: (&str, &str) = ("x-owner", "ann");

async fn answer(server: &TestServer, interface: Interface, ask: &Ask) -> Option<Answer> {
    Some(read(ask_with(server, interface, &[OWNER], ask).await?).await)
}

/// What a successful answer holds.
#[track_caller]
fn result(interface: Interface, answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{interface:?}: {}", answer.body);
    if interface.is_rest() { answer.body.clone() } else { answer.result().clone() }
}

fn task_in(interface: Interface, answer: &Answer) -> Value {
    let whole = result(interface, answer);
    whole.get("task").cloned().unwrap_or(whole)
}

async fn start(server: &TestServer, interface: Interface, text: &str) -> String {
    let ask = Ask::Send(Sending { wait: Some(false), ..sending(text) });
    let task = task_in(interface, &answer(server, interface, &ask).await.unwrap());
    task["id"].as_str().expect("a task has an id").to_owned()
}

/// The task once it has come to rest.
async fn rested(server: &TestServer, interface: Interface, id: &str) -> Value {
    loop {
        let task = task_in(interface, &answer(server, interface, &get(id)).await.unwrap());
        if !["submitted", "working"].contains(&state(&task).as_str()) {
            return task;
        }
    }
}

fn text_of(task: &Value) -> Value {
    task["artifacts"][0]["parts"][0]["text"].clone()
}

/// The last state that a stream shows.
fn last_state(events: &[Value]) -> String {
    let inner = |event: &Value| match ["task", "statusUpdate"].iter().find_map(|name| event.get(name)) {
        Some(inner) => inner.clone(),
        None => event.clone(),
    };
    let mut with_state = events.iter().map(inner).filter(|inner| inner["status"]["state"].is_string());
    with_state.next_back().map(|inner| state(&inner)).expect("a stream shows states")
}

/// Calls the operation, and says what came of it in words that are the same everywhere. `None`: the tables of requests have
/// no such call.
async fn perform(server: &TestServer, interface: Interface, operation: Operation) -> Option<Value> {
    let ok = async |ask: &Ask| Some(result(interface, &answer(server, interface, ask).await?));
    let tells_hook = |config: Value| json!(config.to_string().contains(HOOK));
    Some(match operation {
        Operation::SendMessage => {
            let sent = answer(server, interface, &Ask::Send(sending("hello"))).await?;
            let id = task_in(interface, &sent)["id"].as_str().unwrap().to_owned();
            let task = rested(server, interface, &id).await;
            json!([state(&task), text_of(&task)])
        }
        Operation::SendStreamingMessage => {
            let opened = ask_with(server, interface, &[OWNER], &Ask::Stream(sending("hello"))).await?;
            let events = Events::open(opened).await.ok().expect("a stream").rest().await;
            let events: Vec<_> = events.iter().map(|event| event.result().clone()).collect();
            json!(last_state(&events))
        }
        Operation::GetTask => {
            let id = start(server, interface, "ask").await;
            let task = rested(server, interface, &id).await;
            json!([state(&task), task["id"] == json!(id)])
        }
        Operation::ListTasks => {
            let id = start(server, interface, "ask").await;
            let listed = ok(&Ask::List { context: None, page_size: None, page_token: None }).await?;
            let tasks = listed["tasks"].as_array().unwrap();
            json!(tasks.iter().any(|task| task["id"] == json!(id)))
        }
        Operation::CancelTask => {
            let id = start(server, interface, "hold").await;
            json!(state(&ok(&Ask::Cancel(id)).await?))
        }
        Operation::SubscribeToTask => {
            let id = start(server, interface, "hold").await;
            let opened = ask_with(server, interface, &[OWNER], &Ask::Subscribe(id.clone())).await?;
            let mut events = Events::open(opened).await.ok().expect("a stream");
            let first = events.next().await.unwrap().result().clone();
            answer(server, interface, &Ask::Cancel(id)).await?;
            let mut all = vec![first];
            all.extend(events.rest().await.iter().map(|event| event.result().clone()));
            json!(last_state(&all))
        }
        Operation::CreatePushConfig => {
            let id = start(server, interface, "hold").await;
            tells_hook(ok(&Ask::SetPush(id)).await?)
        }
        Operation::GetPushConfig => {
            let id = start(server, interface, "hold").await;
            ok(&Ask::SetPush(id.clone())).await?;
            tells_hook(ok(&Ask::GetPush(id)).await?)
        }
        Operation::ListPushConfigs => {
            let id = start(server, interface, "hold").await;
            ok(&Ask::SetPush(id.clone())).await?;
            tells_hook(ok(&Ask::ListPush(id)).await?)
        }
        Operation::DeletePushConfig => {
            let id = start(server, interface, "hold").await;
            ok(&Ask::SetPush(id.clone())).await?;
            answer(server, interface, &Ask::DeletePush(id.clone())).await.filter(|it| it.status < 300)?;
            json!(reason(&answer(server, interface, &Ask::GetPush(id)).await?))
        }
        Operation::GetExtendedCard => json!(ok(&Ask::Card).await?["description"]),
    })
}

/// Whether a caller of this binding has words for the operation. The methods of gRPC are asked for.
async fn has_words(server: &TestServer, interface: Interface, operation: Operation) -> bool {
    #[cfg(feature = "grpc")]
    if let Some(package) = package(interface) {
        let path = format!("/{}/{}", package.service(), operation.facts().v1);
        let refused = read(crate::grpc_gateway::raw(server, package, &path, Vec::new()).await).await;
        return reason(&refused).as_deref() != Some("METHOD_NOT_FOUND");
    }
    let _ = server;
    interface != V01 || operation.facts().v0_1.is_some()
}

#[cfg(feature = "grpc")]
fn package(interface: Interface) -> Option<baton_protocol::wire::pb::Package> {
    use baton_protocol::wire::pb::Package;
    match interface {
        Interface::V1Grpc => Some(Package::V1),
        Interface::V03Grpc => Some(Package::V0_3),
        _ => None,
    }
}

fn with_everything() -> Builder {
    let mut push = PushOptions::default();
    push.development = true;
    let mut card = AgentCard::new("test", "for everybody", "1.0.0");
    card.capabilities.extended_agent_card = Some(true);
    let agent = Server::builder(card.clone()).task_skill(AgentSkill::new("test", "test", "test"), obedient);
    card.description = "for you alone".to_owned();
    all_bindings(agent).extended_card(card).push(push).authenticator(Arc::new(ByHeader))
}

#[tokio::test]
async fn p03_every_operation_in_every_binding_that_has_it() {
    let server = serve(with_everything()).await;
    for operation in FACTS.map(|facts| facts.operation) {
        let mut usual = None;
        for interface in ALL_BINDINGS {
            let listed = NO_OPERATION.iter().find(|it| (it.0, it.1) == (interface, operation));
            match (perform(&server, interface, operation).await, listed) {
                (Some(came), None) => {
                    let expected = usual.get_or_insert_with(|| came.clone());
                    assert_eq!(came, *expected, "{interface:?} {operation:?}");
                }
                (None, Some((.., why))) => {
                    let has_words = has_words(&server, interface, operation).await;
                    assert!(!has_words, "{interface:?} has {operation:?}, but: {why}");
                }
                (Some(_), Some((.., why))) => panic!("{interface:?} has {operation:?}, but: {why}"),
                (None, None) => panic!("{interface:?} has no {operation:?}, and no reason is listed"),
            }
        }
    }
}

/// The reason of an error; `None` for an answer that is no error of A2A.
fn reason(answer: &Answer) -> Option<String> {
    let error = answer.body.get("error")?;
    let details = error.get("details").or_else(|| error.get("data"))?;
    let info = details.get(0).unwrap_or(details);
    Some(info["reason"].as_str()?.to_owned())
}

/// Refuses everybody.
#[derive(Debug)]
struct Refusing(ErrorKind);

#[async_trait]
impl Authenticator for Refusing {
    async fn authenticate(&self, _request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
        Err(Error::of(self.0).into())
    }
}

/// What a server answers that is brought to this error, and whether the answer has the id of the request. `None`: the
/// binding has no such request.
async fn provoke(kind: ErrorKind, interface: Interface) -> Option<(Answer, Option<&'static str>)> {
    let plain = || with_agent(obedient);
    let known = |answer: Answer| Some((answer, Some(KNOWN)));
    let ask = async |builder: Builder, headers: &[(&str, &str)], asked: Ask| {
        Some(read(ask_with(&serve(builder).await, interface, headers, &asked).await?).await)
    };
    let hello = || Ask::Send(sending("hello"));
    let to = |task: String| Sending { task: Some(task), wait: Some(false), ..sending("more") };
    match kind {
        ErrorKind::ParseError => Some((raw(interface, "{", b"\xff").await, None)),
        ErrorKind::InvalidRequest => {
            // What is well-formed and no request: over gRPC a message with an unknown flag before it.
            let refused = refused_call(interface, ("te", "trailers"), 7).await;
            Some((if let Some(it) = refused { it } else { raw(interface, "[]", b"").await }, None))
        }
        ErrorKind::MethodNotFound => {
            let server = serve(plain()).await;
            #[cfg(feature = "grpc")]
            if let Some(package) = package(interface) {
                let path = format!("/{}/Nothing", package.service());
                return known(
                    read(crate::grpc_gateway::raw(&server, package, &path, Vec::new()).await).await,
                );
            }
            let mut headers = vec![("content-type", "application/json")];
            headers.extend(interface.version());
            let (path, body) = match interface {
                V1Rest => ("/nothing/at/all", String::new()),
                V03Rest => ("/v1/nothing/at/all", String::new()),
                _ => ("/", envelope("tasks/nothing", &json!({}))),
            };
            known(read(request(&server, Method::POST, path, &headers, body).await).await)
        }
        ErrorKind::InvalidParams => {
            let asked = Ask::Send(Sending { history: Some(-1), ..sending("hello") });
            known(ask(plain(), &[], asked).await?)
        }
        ErrorKind::Internal | ErrorKind::Unavailable => {
            let store = FaultyStore::over(Arc::new(MemoryStore::new()));
            let server = serve(plain().store(store.clone())).await;
            let error = match kind {
                ErrorKind::Internal => StoreError::damaged("bits rotted"),
                _ => StoreError::unavailable("gone for lunch"),
            };
            store.fail_writes(&error);
            known(read(ask_with(&server, interface, &[], &hello()).await?).await)
        }
        ErrorKind::TaskNotFound => known(ask(plain(), &[], get("none")).await?),
        ErrorKind::TaskNotCancelable | ErrorKind::TaskEnded | ErrorKind::UnsupportedOperation => {
            let server = serve(plain()).await;
            let ended = start(&server, interface, "hello").await;
            rested(&server, interface, &ended).await;
            let asked = match kind {
                ErrorKind::TaskNotCancelable => Ask::Cancel(ended),
                ErrorKind::TaskEnded => Ask::Send(to(ended)),
                _ => Ask::Subscribe(ended),
            };
            known(read(ask_with(&server, interface, &[], &asked).await?).await)
        }
        ErrorKind::PushNotSupported => {
            let server = serve(plain()).await;
            let task = start(&server, interface, "hold").await;
            known(read(ask_with(&server, interface, &[], &Ask::SetPush(task)).await?).await)
        }
        ErrorKind::WebhookUrlRefused => {
            let server = serve(plain().push(PushOptions::default())).await;
            let task = start(&server, interface, "hold").await;
            known(read(ask_with(&server, interface, &[], &Ask::SetBadPush(task)).await?).await)
        }
        ErrorKind::ContentTypeNotSupported => {
            let picture = Ask::Send(Sending { picture: true, ..sending("") });
            known(ask(with_card(|_| (), obedient), &[], picture).await?)
        }
        ErrorKind::InvalidAgentResponse => {
            async fn mute(_asked: Asked) -> Result<Vec<Part>, AgentError> {
                Ok(Vec::new())
            }
            let card = AgentCard::new("test", "An agent for tests", "1.0.0");
            let agent = Server::builder(card).message_skill(AgentSkill::new("m", "m", "m"), mute);
            known(ask(all_bindings(agent), &[], hello()).await?)
        }
        ErrorKind::ExtendedCardNotConfigured => known(ask(plain(), &[], Ask::Card).await?),
        ErrorKind::ExtensionSupportRequired => {
            let needs = |card: &mut AgentCard| {
                let uri = "https://a.example/needed".to_owned();
                let needed = AgentExtension { uri, description: None, required: true, params: None };
                card.capabilities.extensions = vec![needed];
            };
            known(ask(with_card(needs, obedient), &[], hello()).await?)
        }
        ErrorKind::VersionNotSupported => known(ask(plain(), &[("a2a-version", "9.9")], hello()).await?),
        ErrorKind::Unauthenticated | ErrorKind::Forbidden => {
            Some((ask(plain().authenticator(Arc::new(Refusing(kind))), &[], hello()).await?, None))
        }
        ErrorKind::QuotaExceeded => {
            let mut options = Options::default();
            options.max_pending_messages = 1;
            let server = serve(plain().options(options)).await;
            let held = start(&server, interface, "hold").await;
            ask_with(&server, interface, &[], &Ask::Send(to(held.clone()))).await?;
            let another = Sending { text: "and more".to_owned(), ..to(held) };
            known(read(ask_with(&server, interface, &[], &Ask::Send(another)).await?).await)
        }
        ErrorKind::ResourceExhausted => {
            let mut options = Options::default();
            (options.max_running, options.max_queued) = (1, 0);
            let server = serve(plain().options(options)).await;
            start(&server, interface, "hold").await;
            known(read(ask_with(&server, interface, &[], &hello()).await?).await)
        }
        ErrorKind::PayloadTooLarge => {
            let mut limits = Limits::default();
            limits.max_body_bytes = 1024;
            let large = Ask::Send(sending(&"x".repeat(2048)));
            Some((ask(plain().limits(limits), &[], large).await?, None))
        }
        ErrorKind::DeadlineExceeded => {
            // A client of gRPC would give up by itself.
            let late = ("grpc-timeout", "0n");
            let refused = refused_call(interface, late, 0).await;
            known(if let Some(it) = refused { it } else { ask(plain(), &[late], hello()).await? })
        }
        ErrorKind::MethodNotAllowed => {
            let server = serve(plain()).await;
            let headers = interface.is_grpc().then_some(("content-type", "application/grpc"));
            let path = sends_at(interface);
            known(read(request(&server, Method::PUT, &path, headers.as_slice(), "").await).await)
        }
        ErrorKind::MediaTypeNotSupported => {
            let server = serve(plain()).await;
            let mut headers = vec![("content-type", "text/plain")];
            headers.extend(interface.version());
            let answer = request(&server, Method::POST, &sends_at(interface), &headers, "{}").await;
            Some((read(answer).await, None))
        }
    }
}

/// The path at which messages are sent.
fn sends_at(interface: Interface) -> String {
    #[cfg(feature = "grpc")]
    if let Some(package) = package(interface) {
        return crate::grpc_client::path(package, "SendMessage");
    }
    match interface {
        V1Rest => "/message:send",
        V03Rest => "/v1/message:send",
        _ => "/",
    }
    .to_owned()
}

/// The answer to this body where a message is sent.
async fn raw(interface: Interface, json: &'static str, message: &[u8]) -> Answer {
    let server = serve(with_agent(obedient)).await;
    #[cfg(feature = "grpc")]
    if let Some(package) = package(interface) {
        let path = sends_at(interface);
        return read(crate::grpc_gateway::raw(&server, package, &path, message.to_vec()).await).await;
    }
    let _ = message;
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(interface.version());
    read(request(&server, Method::POST, &sends_at(interface), &headers, json).await).await
}

/// The refusal of a call of gRPC that no client would send in this way; `None` for the other bindings.
#[cfg(feature = "grpc")]
async fn refused_call(interface: Interface, header: (&str, &str), flag: u8) -> Option<Answer> {
    let package = package(interface)?;
    let server = serve(with_agent(obedient)).await;
    let path = sends_at(interface);
    let address = crate::socket::address(&server);
    let (io, origin) = (crate::socket::connect(&server).await, format!("http://{address}"));
    let version = if interface == Interface::V1Grpc { "1.0" } else { "0.3" };
    let body = crate::grpc_raw::framed(flag, b"");
    let got = crate::grpc_raw::over(io, &origin, &path, &[("a2a-version", version), header], body).await;
    let status = tonic::Status::from_header_map(&got.headers).expect("a status in the headers");
    Some(read(crate::grpc_gateway::refusal(package, &status)).await)
}

#[cfg(not(feature = "grpc"))]
async fn refused_call(_: Interface, _: (&str, &str), _: u8) -> Option<Answer> {
    None
}

#[tokio::test]
async fn p02_every_error_in_every_binding_that_has_it() {
    for kind in TABLE.iter().map(|row| row.kind) {
        let row = Row::of(kind);
        for interface in ALL_BINDINGS {
            let listed = NO_ERROR.iter().find(|it| it.0.contains(&interface) && it.1 == kind);
            let provoked = Box::pin(provoke(kind, interface)).await;
            match (provoked, listed) {
                (Some((answer, id)), None) => {
                    let form = match (interface, kind) {
                        // The method names the generation: an unknown one is refused in the form of the newest.
                        (V01, ErrorKind::MethodNotFound) => V1Rpc,
                        // An unknown task has no generation: 0.1 and 0.3 cannot be told apart, and get the form of 0.3.
                        (V01, ErrorKind::TaskNotFound) => V03Rpc,
                        _ => interface,
                    };
                    check(form, &answer, &row, id, &format!("{kind:?}"));
                }
                (None, Some(_)) => {}
                (Some((answer, _)), Some((.., why))) => {
                    let has = reason(&answer).is_some_and(|it| it == row.reason());
                    assert!(!has, "{interface:?} has {kind:?}, but: {why}: {}", answer.body);
                }
                (None, None) => panic!("{interface:?} has no {kind:?}, and no reason is listed"),
            }
        }
    }
}

#[test]
fn p03_nothing_is_listed_twice() {
    for (at, (interface, operation, why)) in NO_OPERATION.iter().enumerate() {
        assert!(ALL_BINDINGS.contains(interface) && !why.is_empty());
        assert!(
            NO_OPERATION[..at].iter().all(|it| (it.0, it.1) != (*interface, *operation)),
            "{operation:?}"
        );
    }
    for (at, (interfaces, kind, why)) in NO_ERROR.iter().enumerate() {
        assert!(!interfaces.is_empty() && !why.is_empty());
        let others = NO_ERROR[..at].iter().filter(|it| it.1 == *kind).flat_map(|it| it.0);
        assert!(others.into_iter().all(|other| !interfaces.contains(other)), "{kind:?}");
    }
}
