//! Path, query and body as one call, requests as clients build them, and error bodies.

use baton_protocol::domain::{
    Message, MessageId, Part, PushConfig, PushConfigId, Role, TaskId, TaskState, Timestamp,
};
use baton_protocol::generation::AskedVersion;
use baton_protocol::operation::{
    Call, CancelTask, GetTask, HistoryLength, ListTasks, SendMessage, SubscribeToTask,
};
use baton_protocol::wire::Decoded;
use baton_protocol::wire::dialect::Dialect;
use baton_protocol::wire::http_json::{self, HttpRequest};
use baton_protocol::wire::v0_3::proto_json;
use baton_protocol::{Error, ErrorKind, Generation};
use proptest::prelude::*;

use crate::strategies;

/// Routes a request and decodes its call.
fn call(method: &str, target: &str, body: Option<&str>) -> Result<Decoded, Error> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let route = http_json::route(method, path, &AskedVersion::Unsaid, |_| false).unwrap().expect(target);
    http_json::call_of(&route, query, body)
}

fn task_id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

#[test]
fn p03_query_parameters_in_both_spellings() {
    let get = |history_length| Call::GetTask(GetTask { id: task_id("t-1"), history_length });
    for (target, expected) in [
        ("/tasks/t-1", get(HistoryLength::All)),
        ("/tasks/t-1?historyLength=5", get(HistoryLength::Last(5))),
        ("/tasks/t-1?history_length=5&A2A-Version=1.0&x=%20", get(HistoryLength::Last(5))),
        ("/tasks/t-1?historyLength=0", get(HistoryLength::Last(0))),
        ("/tasks/t-1?historyLength=", get(HistoryLength::All)),
        ("/tasks/t-1?&&historyLength=7&", get(HistoryLength::Last(7))),
        ("/tasks/t-1?id=other", get(HistoryLength::All)),
        ("/v1/tasks/t-1?historyLength=5", get(HistoryLength::Last(5))),
        ("/v1/tasks/t-1?history_length=5", get(HistoryLength::Last(5))),
    ] {
        assert_eq!(call("GET", target, None).unwrap(), Decoded { tenant: None, call: expected }, "{target}");
    }
}

#[test]
fn p06_every_filter_of_a_list() {
    use TaskState::{Canceled, Completed, Working};
    let list = |target: &str| match call("GET", target, None) {
        Ok(Decoded { call: Call::ListTasks(list), .. }) => list,
        other => panic!("{target}: {other:?}"),
    };
    assert_eq!(list("/tasks"), ListTasks::default());
    let all = list(
        "/tasks?contextId=c%201&status=TASK_STATE_WORKING&pageSize=10&pageToken=a%2Bb+c&historyLength=2\
         &statusTimestampAfter=1970-01-01T00%3A00%3A01Z&includeArtifacts=true",
    );
    assert_eq!(all.filter.context_id.as_ref().map(|id| id.as_str()), Some("c 1"));
    assert_eq!(all.filter.states, [Working]);
    assert_eq!(all.filter.updated_since, Some(Timestamp::from_millis(1000)));
    assert_eq!((all.page_size, all.page_token.as_deref()), (Some(10), Some("a+b c")));
    assert_eq!((all.history_length, all.include_artifacts), (HistoryLength::Last(2), true));
    let snake = list(
        "/tasks?context_id=c+1&status=TASK_STATE_WORKING&page_size=10&page_token=a%2Bb%20c&history_length=2\
         &status_timestamp_after=1970-01-01T00:00:01.000Z&include_artifacts=true",
    );
    assert_eq!(snake, all);
    for (target, expected) in [
        ("/tasks?status=TASK_STATE_WORKING&status=TASK_STATE_COMPLETED", vec![Working, Completed]),
        ("/tasks?status=TASK_STATE_WORKING,TASK_STATE_COMPLETED", vec![Working, Completed]),
        ("/tasks?status=TASK_STATE_UNSPECIFIED", vec![]),
        ("/tasks?status=", vec![]),
        ("/v1/tasks?status=working&status=TASK_STATE_CANCELLED", vec![Working, Canceled]),
        ("/v1/tasks?status=cancelled&status=TASK_STATE_COMPLETED", vec![Canceled, Completed]),
    ] {
        assert_eq!(list(target).filter.states, expected, "{target}");
    }
    assert!(!list("/tasks?includeArtifacts=false").include_artifacts);
}

#[test]
fn p03_bad_queries_name_the_parameter() {
    for (target, field) in [
        ("/tasks/t-1?historyLength=-1", "historyLength"),
        ("/tasks/t-1?historyLength=x", "historyLength"),
        ("/tasks/t-1?historyLength=99999999999", "historyLength"),
        ("/tasks/t-1?historyLength=1&historyLength=2", "historyLength"),
        ("/tasks/t-1?historyLength=1&history_length=1", "historyLength"),
        ("/tasks?pageSize=1.5", "pageSize"),
        ("/tasks?includeArtifacts=maybe", "includeArtifacts"),
        ("/tasks?status=nonsense", "status"),
        ("/tasks?status=working", "status"),
        ("/tasks?status=TASK_STATE_WORKING,nonsense", "status[1]"),
        ("/tasks?statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ("/tasks?contextId=%00", "contextId"),
        ("/tasks?pageToken=%", "query"),
        ("/tasks?%zz=1", "query"),
        ("/tasks?contextId=%ff", "query"),
    ] {
        let error = call("GET", target, None).expect_err(target);
        assert_eq!(error.kind(), ErrorKind::InvalidParams, "{target}");
        assert_eq!(error.violations(Dialect::V1)[0].field, field, "{target}: {error}");
    }
}

#[test]
fn p03_cancel_takes_no_body_an_empty_one_or_metadata() {
    let cancel = |body| call("POST", "/tasks/a:b:cancel", body).unwrap().call;
    let expected = Call::CancelTask(CancelTask { id: task_id("a:b"), metadata: None });
    for body in [None, Some(""), Some("{}"), Some("null"), Some(" \n"), Some(r#"{"metadata":null}"#)] {
        assert_eq!(cancel(body), expected, "{body:?}");
    }
    for body in [r#"{"metadata":{"a":1}}"#, r#"{"id":"other","metadata":{"a":1}, "x":[]}"#] {
        let Call::CancelTask(CancelTask { id, metadata }) = cancel(Some(body)) else { panic!("{body}") };
        assert_eq!((id, metadata.unwrap().as_str()), (task_id("a:b"), r#"{"a":1}"#), "{body}");
    }
    for (body, kind) in [
        ("[]", ErrorKind::InvalidParams),
        ("\"x\"", ErrorKind::InvalidParams),
        (r#"{"metadata":[]}"#, ErrorKind::InvalidParams),
        (r#"{"metadata":{},"metadata":{}}"#, ErrorKind::InvalidParams),
        ("{", ErrorKind::ParseError),
        ("{} x", ErrorKind::ParseError),
    ] {
        assert_eq!(call("POST", "/tasks/t:cancel", Some(body)).unwrap_err().kind(), kind, "{body}");
    }
    let subscribe = Call::SubscribeToTask(SubscribeToTask { id: task_id("t") });
    for (method, body) in
        [("GET", None), ("POST", None), ("POST", Some("{}")), ("POST", Some(r#"{"id":"x"}"#))]
    {
        assert_eq!(call(method, "/tasks/t:subscribe", body).unwrap().call, subscribe);
    }
}

#[test]
fn p03_the_path_wins_over_query_and_body() {
    let push = |target: &str, body: &str| call("POST", target, Some(body)).unwrap();
    let config = |id: Option<&str>| {
        Call::CreatePushConfig(PushConfig {
            id: id.map(|id| PushConfigId::parse(id).unwrap()),
            task_id: Some(task_id("t-1")),
            ..PushConfig::new("https://example.org")
        })
    };
    for body in [
        r#"{"url":"https://example.org"}"#,
        r#"{"url":"https://example.org","taskId":"other"}"#,
        r#"{"task_id":"other","url":"https://example.org","t\u0061skId":"other"}"#,
    ] {
        assert_eq!(push("/tasks/t-1/pushNotificationConfigs", body).call, config(None), "{body}");
    }
    let named = push("/tasks/t-1/pushNotificationConfigs", r#"{"id":"c","url":"https://example.org"}"#);
    assert_eq!(named.call, config(Some("c")));
    for (target, body, tenant) in [
        ("/tasks/t:cancel", r#"{"tenant":"body"}"#, Some("body")),
        ("/acme/tasks/t:cancel", r#"{"tenant":"body"}"#, Some("acme")),
        ("/acme/tasks/t:cancel", "", Some("acme")),
        ("/v1/tasks/t:cancel", r#"{"tenant":"body"}"#, None),
    ] {
        assert_eq!(push(target, body).tenant.as_deref(), tenant, "{target} {body}");
    }
    for (target, tenant) in
        [("/tasks?tenant=query", Some("query")), ("/acme/tasks?tenant=query", Some("acme"))]
    {
        assert_eq!(call("GET", target, None).unwrap().tenant.as_deref(), tenant, "{target}");
    }
}

#[test]
fn p03_a_body_that_lacks_something_says_what() {
    for (target, body, message) in [
        ("/message:send", None, "Invalid parameters: message is required"),
        ("/message:send", Some("null"), "Invalid parameters: message is required"),
        ("/message:stream", Some("[1]"), "Invalid parameters: params must be an object"),
        ("/tasks/t/pushNotificationConfigs", Some("{}"), "Invalid parameters: url is required"),
        ("/tasks/t/pushNotificationConfigs", Some("[]"), "Invalid parameters: params must be an object"),
    ] {
        assert_eq!(call("POST", target, body).unwrap_err().to_string(), message, "{target}");
    }
}

#[test]
fn p03_requests_as_clients_send_them() {
    let request = |generation, tenant, call: &Call| {
        let HttpRequest { method, path_and_query, body } = http_json::path_of(generation, tenant, call)?;
        let body = body.map(|body| format!(" {}", String::from_utf8(body).unwrap())).unwrap_or_default();
        Some(format!("{method} {path_and_query}{body}"))
    };
    let message = Message::new(MessageId::parse("m").unwrap(), Role::User, vec![Part::text("hi")]);
    let send = Call::SendMessage(SendMessage::new(message));
    let get = |id: &str| Call::GetTask(GetTask { id: task_id(id), history_length: HistoryLength::Last(3) });
    let cancel = Call::CancelTask(CancelTask { id: task_id("t:1"), metadata: None });
    let (v1, v0_3) = (Generation::V1, Generation::V0_3);
    for (generation, tenant, call, expected) in [
        (
            v1,
            None,
            &send,
            r#"POST /message:send {"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#,
        ),
        (v1, Some("acme"), &cancel, "POST /acme/tasks/t%3A1:cancel {}"),
        (v1, Some("a b"), &get("t/1"), "GET /a%20b/tasks/t%2F1?historyLength=3"),
        (v0_3, None, &get("t-1"), "GET /v1/tasks/t-1?historyLength=3"),
        (v0_3, Some("dropped"), &Call::GetExtendedCard, "GET /v1/card"),
        (v1, None, &Call::GetExtendedCard, "GET /extendedAgentCard"),
    ] {
        assert_eq!(request(generation, tenant, call).as_deref(), Some(expected));
    }
    assert_eq!(request(Generation::V0_1, None, &send), None, "0.1 has no such binding");
    for id in ["..", ".", "a/../b", "a\\b", "%2e%2e"] {
        assert_eq!(request(v1, None, &get(id)), None, "{id} would not come back");
    }
}

#[test]
fn version_in_the_query() {
    for (query, version) in [
        ("A2A-Version=1.0", Some("1.0")),
        ("x=1&a2a-version=0.3&", Some("0.3")),
        ("A2A-Version=1%2E0", Some("1.0")),
        ("A2A-Version=", Some("")),
        ("version=1.0", None),
        ("%zz=1&A2A-Version=1.0", Some("1.0")),
        ("", None),
    ] {
        assert_eq!(http_json::version_in(query).as_deref(), version, "{query}");
    }
}

#[test]
fn p03_error_bodies_of_both_generations() {
    let body = |generation, error: &Error| {
        let mut out = Vec::new();
        http_json::write_error(&mut out, generation, error);
        String::from_utf8(out).unwrap()
    };
    let details = r#"[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org","metadata":{"taskId":"t-1"}}]"#;
    let error = Error::of(ErrorKind::TaskNotCancelable).with_info("taskId", "t-1");
    assert_eq!(
        body(Generation::V1, &error),
        format!(
            r#"{{"error":{{"code":400,"status":"FAILED_PRECONDITION","message":"Task cannot be canceled","details":{details}}}}}"#
        )
    );
    assert_eq!(
        body(Generation::V0_3, &error),
        format!(
            r#"{{"error":{{"code":409,"status":"FAILED_PRECONDITION","message":"Task cannot be canceled","details":{details}}},"code":-32002,"type":"TaskNotCancelableError","message":"Task cannot be canceled"}}"#
        )
    );
    for row in baton_protocol::error::TABLE {
        assert_eq!(http_json::http_status(Generation::V1, row.kind), row.http);
        assert_eq!(http_json::http_status(Generation::V0_3, row.kind), row.http_v0_3);
    }
}

proptest! {
    /// Whatever a client asks for, the server is asked the same.
    #[test]
    fn p03_a_1_0_request_routes_to_the_same_call(
        tenant in proptest::option::of("[a-zA-Z0-9][a-zA-Z0-9._~-]{0,63}"),
        call in strategies::call(),
    ) {
        let tenant = tenant.filter(|tenant| http_json::is_tenant(tenant) && tenant != "v1");
        let Some(request) = http_json::path_of(Generation::V1, tenant.as_deref(), &call) else { return Ok(()) };
        let decoded = sent(&request);
        prop_assert_eq!(decoded, Decoded { tenant, call }, "{}", request.path_and_query);
    }

    /// The same in 0.3, but for what its bodies cannot say.
    #[test]
    fn p03_a_0_3_request_routes_to_the_same_call(call in strategies::call()) {
        let Some(request) = http_json::path_of(Generation::V0_3, None, &call) else { return Ok(()) };
        let decoded = sent(&request);
        prop_assert_eq!(decoded, Decoded { tenant: None, call: after_v0_3(call) }, "{}", request.path_and_query);
    }

    /// What a path is, is found out without a panic.
    #[test]
    fn any_path_is_answered(method in "GET|POST|DELETE", path in "/[\\PC/:%.]{0,40}", query in "[\\PC&=%+]{0,40}") {
        if let Ok(Some(route)) = http_json::route(&method, &path, &AskedVersion::Unsaid, |_| false) {
            let _ = http_json::call_of(&route, Some(&query), None);
        }
    }
}

fn sent(request: &HttpRequest) -> Decoded {
    let body = request.body.as_ref().map(|body| std::str::from_utf8(body).unwrap());
    call(request.method, &request.path_and_query, body).unwrap()
}

/// Bodies are the codec's own business; in a query only the meaning of 0 differs.
fn after_v0_3(call: Call) -> Call {
    let unlimited = |length| if length == HistoryLength::Last(0) { HistoryLength::All } else { length };
    match call {
        Call::SendMessage(_) | Call::SendStreamingMessage(_) | Call::CreatePushConfig(_) => {
            let mut body = Vec::new();
            proto_json::write_call(&mut body, None, &call);
            let text = std::str::from_utf8(&body).unwrap();
            proto_json::decode_call(call.operation(), Some(text)).unwrap().call
        }
        Call::GetTask(get) => Call::GetTask(GetTask { history_length: unlimited(get.history_length), ..get }),
        Call::ListTasks(list) => {
            Call::ListTasks(ListTasks { history_length: unlimited(list.history_length), ..list })
        }
        other => other,
    }
}
