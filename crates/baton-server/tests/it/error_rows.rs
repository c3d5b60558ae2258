//! S-05, S-12, S-16, P-02. Spec 3.2, 3.3, 3.4 and rulings 3 and 4: a row for every error that can be provoked, with its
//! codes, statuses and JSON in each generation and binding.

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::{AgentCard, AgentExtension, AgentSkill, Part};
use baton_protocol::{Error, ErrorKind};
use baton_server::Options;
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal};
use baton_server::store::StoreError;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Asked, Server};
use http::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::asking::{
    ALL_BINDINGS, Ask, INTERFACES, Interface, Sending, answer, ask_with, events, get, sending, task_of,
};
use crate::callers::ByHeader;
use crate::faults::FaultyStore;
use crate::harness::{Answer, TestServer, all_bindings, serve, serve_agent, with_agent};
use crate::own_names;
use crate::speakers::{legacy, read, request, task, wait_for_state, with_card};

/// JSON-RPC codes of 1.0, 0.3 and 0.1; HTTP statuses of 1.0, of 0.3, and under JSON-RPC.
pub(crate) struct Row {
    reason: &'static str,
    codes: [i64; 3],
    http: [u16; 3],
    /// Whether 429 and 503 say when to try again.
    timed: bool,
}

const fn row(reason: &'static str, codes: [i64; 3], http: [u16; 3]) -> Row {
    Row { reason, codes, http, timed: true }
}

const NOT_FOUND: Row = row("TASK_NOT_FOUND", [-32001; 3], [404, 404, 200]);
const NOT_CANCELABLE: Row = row("TASK_NOT_CANCELABLE", [-32002; 3], [400, 409, 200]);
const NO_PUSH: Row = row("PUSH_NOTIFICATION_NOT_SUPPORTED", [-32003; 3], [400, 501, 200]);
const UNSUPPORTED: Row = row("UNSUPPORTED_OPERATION", [-32004; 3], [400, 501, 200]);
const ENDED: Row = row("UNSUPPORTED_OPERATION", [-32004, -32004, -32002], [400, 400, 200]);
const CONTENT_TYPE: Row = row("CONTENT_TYPE_NOT_SUPPORTED", [-32005; 3], [400, 415, 200]);
const BAD_AGENT: Row = row("INVALID_AGENT_RESPONSE", [-32006, -32006, -32603], [500, 502, 200]);
const NO_CARD: Row = row("EXTENDED_AGENT_CARD_NOT_CONFIGURED", [0, -32007, 0], [0, 404, 200]);
const EXTENSION: Row = row("EXTENSION_SUPPORT_REQUIRED", [-32008, -32008, -32004], [400, 400, 200]);
const VERSION: Row = row("VERSION_NOT_SUPPORTED", [-32009; 3], [400, 400, 200]);
const INVALID: Row = row("INVALID_PARAMS", [-32602; 3], [400, 400, 200]);
const UNKNOWN_CALLER: Row = row("UNAUTHENTICATED", [-32000; 3], [401; 3]);
const FORBIDDEN: Row = row("PERMISSION_DENIED", [-32000; 3], [403; 3]);
pub(crate) const QUOTA: Row = row("RESOURCE_EXHAUSTED", [-32050, -32050, -32003], [429; 3]);
/// Nobody knows when there is room again.
pub(crate) const NO_ROOM_OF_ONES_OWN: Row = Row { timed: false, ..QUOTA };
/// Told before the body is read, when the generation is not known: in the form of the newest.
pub(crate) const QUOTA_BEFORE_THE_BODY: Row = Row { codes: [-32050; 3], ..QUOTA };
pub(crate) const FULL: Row = row("RESOURCE_EXHAUSTED", [-32050, -32050, -32003], [503; 3]);
pub(crate) const AWAY: Row = row("UNAVAILABLE", [-32603; 3], [503; 3]);
const BROKEN: Row = row("INTERNAL_ERROR", [-32603; 3], [500, 500, 200]);
const TOO_LARGE: Row = row("PAYLOAD_TOO_LARGE", [-32600; 3], [413; 3]);
/// An error of HTTP and not of A2A: it has no reason.
const NO_JSON_TYPE: Row = row("", [-32600; 3], [415; 3]);
const NO_JSON: Row = row("PARSE_ERROR", [-32700; 3], [400; 3]);

const BAD_WEBHOOK: Row = row("INVALID_PARAMS", [-32602, -32602, -32004], [400, 400, 200]);
const NO_REQUEST: Row = row("INVALID_REQUEST", [-32600; 3], [400, 400, 200]);
const NO_METHOD: Row = row("METHOD_NOT_FOUND", [-32601; 3], [404, 404, 200]);
const WRONG_METHOD: Row = row("METHOD_NOT_ALLOWED", [-32600; 3], [405, 405, 200]);
const TOO_LATE: Row = row("DEADLINE_EXCEEDED", [-32603; 3], [504; 3]);

impl Row {
    pub(crate) fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::ParseError => NO_JSON,
            ErrorKind::InvalidRequest => NO_REQUEST,
            ErrorKind::MethodNotFound => NO_METHOD,
            ErrorKind::InvalidParams => INVALID,
            ErrorKind::Internal => BROKEN,
            ErrorKind::TaskNotFound => NOT_FOUND,
            ErrorKind::TaskNotCancelable => NOT_CANCELABLE,
            ErrorKind::PushNotSupported => NO_PUSH,
            ErrorKind::UnsupportedOperation => UNSUPPORTED,
            ErrorKind::ContentTypeNotSupported => CONTENT_TYPE,
            ErrorKind::InvalidAgentResponse => BAD_AGENT,
            ErrorKind::ExtendedCardNotConfigured => NO_CARD,
            ErrorKind::ExtensionSupportRequired => EXTENSION,
            ErrorKind::VersionNotSupported => VERSION,
            ErrorKind::TaskEnded => ENDED,
            ErrorKind::WebhookUrlRefused => BAD_WEBHOOK,
            ErrorKind::Unauthenticated => UNKNOWN_CALLER,
            ErrorKind::Forbidden => FORBIDDEN,
            ErrorKind::QuotaExceeded => QUOTA,
            ErrorKind::ResourceExhausted => FULL,
            ErrorKind::Unavailable => AWAY,
            ErrorKind::PayloadTooLarge => TOO_LARGE,
            ErrorKind::DeadlineExceeded => TOO_LATE,
            ErrorKind::MethodNotAllowed => WRONG_METHOD,
            ErrorKind::MediaTypeNotSupported => NO_JSON_TYPE,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }

    /// Whether the error names the member that is wrong.
    fn names_member(&self) -> bool {
        self.reason == INVALID.reason && self.codes == INVALID.codes
    }
}

const INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

/// The id of the request, if the request could be read.
pub(crate) const KNOWN: &str = "r";

#[track_caller]
pub(crate) fn check(interface: Interface, got: &Answer, row: &Row, id: Option<&str>, what: &str) {
    if interface.is_grpc() {
        return check_grpc(interface, got, row, what);
    }
    let generation = match interface {
        Interface::V1Rpc | Interface::V1Rest => 0,
        Interface::V03Rpc | Interface::V03Rest => 1,
        _ => 2,
    };
    let status = row.http[if interface.is_rest() { generation } else { 2 }];
    let body = &got.body;
    assert_eq!(got.status, status, "{interface:?} {what}: {body}");
    assert_eq!(got.header("content-type").map(|kind| kind.ends_with("json")), Some(true));
    let timed = row.timed && [429, 503].contains(&status);
    assert_eq!(got.header("retry-after").is_some(), timed, "{interface:?} {what}");
    let error = &body["error"];
    own_names::check(interface, error);
    assert!(
        error["message"].as_str().is_some_and(|message| !message.is_empty()),
        "{interface:?} {what}: {body}"
    );
    let details = if interface.is_rest() {
        assert_eq!(error["code"], status, "{interface:?} {what}");
        let name = error["status"].as_str().expect("the name of a gRPC code");
        assert!(name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{name}");
        // Clients of 0.3 look for the message at the top.
        let top = (interface == Interface::V03Rest).then_some(&error["message"]);
        assert_eq!(body.get("message"), top, "{interface:?} {what}");
        &error["details"]
    } else {
        assert_eq!(body["jsonrpc"], "2.0");
        assert_eq!(body["id"], json!(id), "{interface:?} {what}");
        assert_eq!(error["code"], row.codes[generation], "{interface:?} {what}: {body}");
        &error["data"]
    };
    if row.reason.is_empty() {
        let told = details.as_array().map_or(0, Vec::len);
        assert_eq!(told, 0, "{interface:?} {what}: a reason where A2A has none: {body}");
        return;
    }
    // Before the method is read the generation is unknown; the newest form is used.
    if interface == Interface::V01 && id.is_some() && row.reason != VERSION.reason {
        assert_eq!(*details, json!({"reason": row.reason}), "{what}");
        return;
    }
    let details = details.as_array().unwrap_or_else(|| panic!("{interface:?} {what}: no list: {body}"));
    assert!(details.iter().all(|detail| detail["@type"].is_string()));
    assert_eq!((&details[0]["@type"], &details[0]["domain"]), (&json!(INFO), &json!("a2a-protocol.org")));
    assert_eq!(details[0]["reason"], row.reason, "{interface:?} {what}");
    let has = |kind: &str| details.iter().any(|detail| detail["@type"].as_str().unwrap().ends_with(kind));
    assert_eq!(has("RetryInfo"), got.header("retry-after").is_some(), "{interface:?} {what}");
    assert_eq!(has("BadRequest"), row.names_member(), "{interface:?} {what}");
}

/// gRPC codes of 1.0 and of 0.3.
fn grpc_codes(row: &Row) -> [i64; 2] {
    match (row.reason, row.http[1]) {
        ("TASK_NOT_FOUND", _) => [5, 5],
        ("TASK_NOT_CANCELABLE" | "PUSH_NOTIFICATION_NOT_SUPPORTED", _) | ("UNSUPPORTED_OPERATION", 501) => {
            [9, 12]
        }
        ("CONTENT_TYPE_NOT_SUPPORTED", _) => [3, 12],
        ("INVALID_AGENT_RESPONSE" | "INTERNAL_ERROR", _) => [13, 13],
        ("UNSUPPORTED_OPERATION" | "EXTENDED_AGENT_CARD_NOT_CONFIGURED", _)
        | ("EXTENSION_SUPPORT_REQUIRED" | "VERSION_NOT_SUPPORTED", _) => [9, 9],
        ("INVALID_PARAMS" | "INVALID_REQUEST" | "PARSE_ERROR", _) => [3, 3],
        ("METHOD_NOT_FOUND", _) => [12, 12],
        ("DEADLINE_EXCEEDED", _) => [4, 4],
        ("UNAUTHENTICATED", _) => [16, 16],
        ("PERMISSION_DENIED", _) => [7, 7],
        ("RESOURCE_EXHAUSTED", 429) | ("PAYLOAD_TOO_LARGE", _) => [8, 8],
        ("RESOURCE_EXHAUSTED" | "UNAVAILABLE", _) => [14, 14],
        other => panic!("{other:?} has no code"),
    }
}

#[track_caller]
fn check_grpc(interface: Interface, got: &Answer, row: &Row, what: &str) {
    let error = &got.body["error"];
    let generation = usize::from(interface.in_json() == Interface::V03Rest);
    assert_eq!(error["grpc"], grpc_codes(row)[generation], "{interface:?} {what}: {}", got.body);
    own_names::check(interface, error);
    let details = error["details"].as_array().unwrap();
    let info = &details[0];
    assert_eq!((&info["@type"], &info["domain"]), (&json!(INFO), &json!("a2a-protocol.org")));
    assert_eq!(info["reason"], row.reason, "{interface:?} {what}");
    let has = |kind: &str| details.iter().any(|detail| detail["@type"].as_str().unwrap().ends_with(kind));
    let timed = row.timed && [429, 503].contains(&row.http[0]);
    assert_eq!(
        (has("RetryInfo"), got.header("retry-after").is_some()),
        (timed, timed),
        "{interface:?} {what}"
    );
    assert_eq!(has("BadRequest"), row.names_member(), "{interface:?} {what}");
}

async fn refused(server: &TestServer, interface: Interface, ask: &Ask, row: &Row) {
    let Some(response) = ask_with(server, interface, &[], ask).await else { return };
    check(interface, &read(response).await, row, Some(KNOWN), &format!("{ask:?}"));
}

fn id(task: &Value) -> String {
    task["id"].as_str().expect("a task has an id").to_owned()
}

/// A task of that interface which has come to rest.
pub(crate) async fn rested(server: &TestServer, interface: Interface, text: &str) -> String {
    let id = id(&task_of(server, interface, &Ask::Send(sending(text))).await);
    loop {
        let state = crate::asking::state(&task_of(server, interface, &get(&id)).await);
        if !["submitted", "working"].contains(&state.as_str()) {
            return id;
        }
    }
}

#[tokio::test]
async fn p02_errors_about_a_task() {
    let server = serve_agent(obedient).await;
    for interface in ALL_BINDINGS {
        let ended = rested(&server, interface, "hello").await;
        let to = |task: &str| Sending { task: Some(task.to_owned()), ..sending("more") };
        for (ask, row) in [
            (Ask::Cancel(ended.clone()), NOT_CANCELABLE),
            (Ask::Send(to(&ended)), ENDED),
            (Ask::Stream(to(&ended)), ENDED),
            (Ask::Subscribe(ended.clone()), UNSUPPORTED),
            (Ask::SetPush(ended.clone()), NO_PUSH),
            (Ask::GetPush(ended.clone()), NO_PUSH),
            (Ask::ListPush(ended.clone()), NO_PUSH),
            (Ask::DeletePush(ended.clone()), NO_PUSH),
            (Ask::Send(Sending { push: true, ..sending("hello") }), NO_PUSH),
            (Ask::Stream(Sending { push: true, ..sending("hello") }), NO_PUSH),
            (Ask::Send(Sending { history: Some(-1), ..sending("hello") }), INVALID),
        ] {
            refused(&server, interface, &ask, &row).await;
        }
        // An unknown task has no generation: 0.1 and 0.3 cannot be distinguished, and get the form of 0.3.
        let interface = if interface == Interface::V01 { Interface::V03Rpc } else { interface };
        for ask in
            [get("none"), Ask::Cancel("none".into()), Ask::Subscribe("none".into()), Ask::Send(to("none"))]
        {
            refused(&server, interface, &ask, &NOT_FOUND).await;
        }
    }
}

#[tokio::test]
async fn p02_errors_about_what_the_card_declares() {
    let uri = "https://a.example/needed";
    let text_only = serve(with_card(|_| (), obedient)).await;
    let silent = serve(with_card(|card| card.capabilities.streaming = Some(false), obedient)).await;
    let needs = |card: &mut AgentCard| {
        let extension =
            AgentExtension { uri: uri.to_owned(), description: None, required: true, params: None };
        card.capabilities.extensions = vec![extension];
    };
    let extended = serve(with_card(needs, obedient)).await;
    for interface in ALL_BINDINGS {
        let picture = Sending { picture: true, ..sending("") };
        refused(&text_only, interface, &Ask::Send(picture.clone()), &CONTENT_TYPE).await;
        refused(&text_only, interface, &Ask::Stream(picture), &CONTENT_TYPE).await;
        refused(&silent, interface, &Ask::Stream(sending("hello")), &UNSUPPORTED).await;
        let held =
            id(&task_of(&silent, interface, &Ask::Send(Sending { wait: Some(false), ..sending("hold") }))
                .await);
        refused(&silent, interface, &Ask::Subscribe(held), &UNSUPPORTED).await;
        refused(&extended, interface, &Ask::Send(sending("hello")), &EXTENSION).await;
        let [new, old] = ["a2a-extensions", "x-a2a-extensions"];
        for header in [new, old] {
            let headers = [(header, uri)];
            let told = ask_with(&extended, interface, &headers, &Ask::Send(sending("hello"))).await.unwrap();
            assert_eq!(told.status(), 200, "{interface:?} {header}");
            // What was activated is listed in the spelling of the answer's generation.
            let of_v0_3 = matches!(interface.in_json(), Interface::V03Rpc | Interface::V03Rest);
            let [ours, other] = if of_v0_3 { [old, new] } else { [new, old] };
            assert_eq!(told.headers().get(ours).unwrap(), uri, "{interface:?} {header}");
            assert!(!told.headers().contains_key(other), "{interface:?} {header}");
        }
        // 1.0 checks the capability first; 0.3 has one error for both, and 0.1 has no such method.
        let no_card = if matches!(interface.in_json(), Interface::V03Rpc | Interface::V03Rest) {
            NO_CARD
        } else {
            UNSUPPORTED
        };
        refused(&text_only, interface, &Ask::Card, &no_card).await;
    }
}

#[tokio::test]
async fn p07_errors_about_the_version() {
    let server = serve_agent(obedient).await;
    for (interface, versions) in [
        (Interface::V1Rpc, &["", "0.3", "0.1", "9.9"][..]),
        (Interface::V1Rest, &["", "0.3", "9.9"]),
        (Interface::V03Rpc, &["1.0", "9.9"]),
        (Interface::V03Rest, &["1.0", "0.1", "9.9"]),
        #[cfg(feature = "grpc")]
        (Interface::V1Grpc, &["", "0.3", "9.9"]),
        #[cfg(feature = "grpc")]
        (Interface::V03Grpc, &["1.0", "0.1", "9.9"]),
        (Interface::V01, &["1.0", "9.9"]),
    ] {
        for version in versions {
            let headers = [("a2a-version", *version)];
            for ask in [Ask::Send(sending("hello")), get("none")] {
                let got = read(ask_with(&server, interface, &headers, &ask).await.unwrap()).await;
                check(interface, &got, &VERSION, Some(KNOWN), version);
            }
        }
    }
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
}

#[tokio::test]
async fn p02_an_agent_that_answers_wrongly() {
    async fn mute(_asked: Asked) -> Result<Vec<Part>, AgentError> {
        Ok(Vec::new())
    }
    let card = AgentCard::new("test", "An agent for tests", "1.0.0");
    let server =
        serve(all_bindings(Server::builder(card).message_skill(AgentSkill::new("m", "m", "m"), mute))).await;
    for interface in ALL_BINDINGS.into_iter().filter(|interface| *interface != Interface::V01) {
        refused(&server, interface, &Ask::Send(sending("hello")), &BAD_AGENT).await;
    }
    // In 0.1 the answer is a task: it fails, and its status has the reason.
    legacy(&server, "tasks/send", task("t", "hello")).await.result();
    let failed = wait_for_state(&server, "t", "failed").await;
    assert_eq!(failed["status"]["message"]["parts"][0]["text"], "The agent answered with an empty message");
}

#[tokio::test]
async fn s16_callers_that_are_unknown_or_not_allowed() {
    #[derive(Debug)]
    struct Bouncer;
    #[async_trait]
    impl Authenticator for Bouncer {
        async fn authenticate(&self, _request: &AuthRequest<'_>) -> Result<Principal, Challenge> {
            Err(Error::of(ErrorKind::Forbidden).into())
        }
    }
    let asks = [
        Ask::Send(sending("hello")),
        Ask::Stream(sending("hello")),
        get("none"),
        Ask::Cancel("none".into()),
        Ask::Card,
    ];
    for (server, row) in [
        (serve(with_agent(obedient).authenticator(Arc::new(ByHeader))).await, UNKNOWN_CALLER),
        (serve(with_agent(obedient).authenticator(Arc::new(Bouncer))).await, FORBIDDEN),
    ] {
        for interface in ALL_BINDINGS {
            for ask in &asks {
                let Some(response) = ask_with(&server, interface, &[], ask).await else { continue };
                check(interface, &read(response).await, &row, None, &format!("{ask:?}"));
            }
        }
        // Only headers are checked: an invalid body is refused in the same way.
        for path in ["/", "/subscribe"] {
            let got = read(request(&server, Method::POST, path, &[], "no JSON").await).await;
            check(Interface::V1Rpc, &got, &row, None, path);
        }
        // Unknown paths are refused in the same way.
        for path in ["/nothing/here", "/tasks/%00", "/tenant/tasks"] {
            let got = read(request(&server, Method::DELETE, path, &[], "").await).await;
            check(Interface::V1Rest, &got, &row, None, path);
        }
    }
}

#[tokio::test]
async fn s12_no_room() {
    let mut options = Options::default();
    (options.max_running, options.max_queued, options.max_pending_messages) = (1, 0, 1);
    for interface in ALL_BINDINGS {
        let server = serve(with_agent(obedient).options(options.clone())).await;
        let now = |text: &str, task: Option<&String>| Sending {
            wait: Some(false),
            task: task.cloned(),
            ..sending(text)
        };
        let held = id(&task_of(&server, interface, &Ask::Send(now("hold", None))).await);
        for ask in [Ask::Send(now("hello", None)), Ask::Stream(sending("hello"))] {
            refused(&server, interface, &ask, &FULL).await;
        }
        task_of(&server, interface, &Ask::Send(now("first", Some(&held)))).await;
        for ask in [Ask::Send(now("second", Some(&held))), Ask::Stream(now("third", Some(&held)))] {
            refused(&server, interface, &ask, &QUOTA).await;
        }
    }
}

#[tokio::test]
async fn s12_a_store_that_fails() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let server = serve(with_agent(obedient).store(store.clone())).await;
    for (error, row) in [
        (StoreError::unavailable("secret words"), AWAY),
        (StoreError::full("secret words"), FULL),
        (StoreError::damaged("secret words"), BROKEN),
    ] {
        for interface in ALL_BINDINGS {
            let now = |text: &str| Sending { wait: Some(false), ..sending(text) };
            let busy = id(&task_of(&server, interface, &Ask::Send(now("hold"))).await);
            let asking = rested(&server, interface, "ask").await;
            let to = |task: &str| Sending { task: Some(task.to_owned()), ..now("more") };
            store.fail_writes(&error);
            // Every kind of write: a new task, a message to a busy one, an answer, and both kinds of cancel.
            for ask in [
                Ask::Send(sending("hello")),
                Ask::Stream(sending("hello")),
                Ask::Send(to(&busy)),
                Ask::Stream(to(&busy)),
                Ask::Send(to(&asking)),
                Ask::Stream(to(&asking)),
                Ask::Cancel(busy.clone()),
                Ask::Cancel(asking.clone()),
            ] {
                let got = answer(&server, interface, &ask).await;
                check(interface, &got, &row, Some(KNOWN), &format!("{ask:?}"));
                assert!(!got.body.to_string().contains("secret words"));
            }
            // Reads still work.
            for (task, state) in [(&busy, "working"), (&asking, "input-required")] {
                assert_eq!(crate::asking::state(&task_of(&server, interface, &get(task)).await), state);
            }
            let mut watched = events(&server, interface, &Ask::Subscribe(busy.clone())).await.ok().unwrap();
            assert!(watched.next().await.is_some(), "{interface:?}");
            store.recover();
        }
    }
}

#[tokio::test]
async fn p07_bodies_that_are_no_request() {
    let server = serve_agent(obedient).await;
    let large = " ".repeat(4 * 1024 * 1024 + 1);
    for interface in INTERFACES {
        let path = match interface {
            Interface::V1Rest => "/message:send",
            Interface::V03Rest => "/v1/message:send",
            _ => "/",
        };
        for (kind, body, row) in [
            ("application/json", large.as_str(), TOO_LARGE),
            ("text/plain", "{}", NO_JSON_TYPE),
            ("application/json", "{", NO_JSON),
        ] {
            let mut headers = vec![("content-type", kind)];
            headers.extend(interface.version());
            let got = read(request(&server, Method::POST, path, &headers, body.to_owned()).await).await;
            check(interface, &got, &row, None, row.reason);
        }
    }
}
