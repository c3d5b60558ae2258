//! Every row of the route tables of both generations, and what must never be taken for one.

use baton_protocol::Generation;
use baton_protocol::domain::{PushConfigId, TaskId};
use baton_protocol::generation::AskedVersion;
use baton_protocol::operation::Operation::{self, *};
use baton_protocol::wire::http_json::{Route, WrongMethod, is_tenant, route};

const METHODS: [&str; 8] = ["GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "get"];

/// Method, path, operation, task, config: the table of 1.0, section 5.3, both verbs of subscribe included.
const V1: &[(&str, &str, Operation, &str, &str)] = &[
    ("POST", "/message:send", SendMessage, "", ""),
    ("POST", "/message:stream", SendStreamingMessage, "", ""),
    ("GET", "/tasks/t-1", GetTask, "t-1", ""),
    ("GET", "/tasks", ListTasks, "", ""),
    ("POST", "/tasks/t-1:cancel", CancelTask, "t-1", ""),
    ("GET", "/tasks/t-1:subscribe", SubscribeToTask, "t-1", ""),
    ("POST", "/tasks/t-1:subscribe", SubscribeToTask, "t-1", ""),
    ("POST", "/tasks/t-1/pushNotificationConfigs", CreatePushConfig, "t-1", ""),
    ("GET", "/tasks/t-1/pushNotificationConfigs/c-1", GetPushConfig, "t-1", "c-1"),
    ("GET", "/tasks/t-1/pushNotificationConfigs", ListPushConfigs, "t-1", ""),
    ("DELETE", "/tasks/t-1/pushNotificationConfigs/c-1", DeletePushConfig, "t-1", "c-1"),
    ("GET", "/extendedAgentCard", GetExtendedCard, "", ""),
];

/// The table of 0.3, section 3.5.6, with the spellings of the protobuf annotations.
const V0_3: &[(&str, &str, Operation, &str, &str)] = &[
    ("POST", "/v1/message:send", SendMessage, "", ""),
    ("POST", "/v1/message:stream", SendStreamingMessage, "", ""),
    ("GET", "/v1/tasks/t-1", GetTask, "t-1", ""),
    ("GET", "/v1/tasks", ListTasks, "", ""),
    ("POST", "/v1/tasks/t-1:cancel", CancelTask, "t-1", ""),
    ("GET", "/v1/tasks/t-1:subscribe", SubscribeToTask, "t-1", ""),
    ("POST", "/v1/tasks/t-1:subscribe", SubscribeToTask, "t-1", ""),
    ("POST", "/v1/tasks/t-1/pushNotificationConfigs", CreatePushConfig, "t-1", ""),
    ("POST", "/v1/task/t-1/pushNotificationConfigs", CreatePushConfig, "t-1", ""),
    ("GET", "/v1/tasks/t-1/pushNotificationConfigs/c-1", GetPushConfig, "t-1", "c-1"),
    ("GET", "/v1/task/t-1/pushNotificationConfigs/c-1", GetPushConfig, "t-1", "c-1"),
    ("GET", "/v1/tasks/t-1/pushNotificationConfigs", ListPushConfigs, "t-1", ""),
    ("DELETE", "/v1/tasks/t-1/pushNotificationConfigs/c-1", DeletePushConfig, "t-1", "c-1"),
    ("GET", "/v1/card", GetExtendedCard, "", ""),
    ("GET", "/agent/authenticatedExtendedCard", GetExtendedCard, "", ""),
];

fn find(method: &str, path: &str) -> Result<Option<Route>, WrongMethod> {
    route(method, path, &AskedVersion::Unsaid, |_| false)
}

fn expected(
    generation: Generation,
    tenant: Option<&str>,
    operation: Operation,
    task: &str,
    config: &str,
) -> Route {
    Route {
        generation,
        tenant: tenant.map(str::to_owned),
        operation,
        task_id: TaskId::parse(task).ok(),
        config_id: PushConfigId::parse(config).ok(),
    }
}

#[test]
fn p03_every_route_of_1_0_with_and_without_tenant() {
    for (method, path, operation, task, config) in V1 {
        for tenant in [None, Some("acme"), Some("a.b_c~D-9"), Some("card"), Some("agent"), Some("v2")] {
            let expected = expected(Generation::V1, tenant, *operation, task, config);
            let prefix = tenant.map_or(String::new(), |tenant| format!("/{tenant}"));
            for path in [format!("{prefix}{path}"), format!("{prefix}{path}/")] {
                assert_eq!(find(method, &path), Ok(Some(expected.clone())), "{method} {path}");
            }
        }
    }
}

#[test]
fn p03_every_route_of_0_3() {
    for (method, path, operation, task, config) in V0_3 {
        let expected = expected(Generation::V0_3, None, *operation, task, config);
        for path in [(*path).to_owned(), format!("{path}/")] {
            assert_eq!(find(method, &path), Ok(Some(expected.clone())), "{method} {path}");
        }
    }
}

#[test]
fn p03_another_method_on_a_known_path_is_told_which_there_are() {
    for (_, path, operation, ..) in V1.iter().chain(V0_3) {
        let allow = match operation {
            SendMessage | SendStreamingMessage | CancelTask => "POST",
            GetTask | ListTasks | GetExtendedCard => "GET, HEAD",
            SubscribeToTask | CreatePushConfig | ListPushConfigs => "GET, HEAD, POST",
            GetPushConfig | DeletePushConfig => "GET, HEAD, DELETE",
        };
        for method in METHODS {
            let found = find(method, path);
            if allow.split(", ").any(|allowed| allowed == method) {
                assert!(matches!(found, Ok(Some(_))), "{method} {path}");
            } else {
                assert_eq!(found, Err(WrongMethod { allow }), "{method} {path}");
            }
        }
    }
}

/// `v1` is 0.3, unless the request says 1.0 and there is such a tenant.
#[test]
fn p07_v1_is_a_tenant_only_where_it_is_known() {
    let known = AskedVersion::Known;
    for (asked, is_known, generation) in [
        (AskedVersion::Unsaid, true, Generation::V0_3),
        (known(Generation::V0_3), true, Generation::V0_3),
        (AskedVersion::Unknown("1.5".to_owned()), true, Generation::V0_3),
        (known(Generation::V1), false, Generation::V0_3),
        (known(Generation::V1), true, Generation::V1),
    ] {
        let found = route("GET", "/v1/tasks/t-1", &asked, |name| name == "v1" && is_known).unwrap().unwrap();
        assert_eq!(found.generation, generation, "{asked:?} {is_known}");
        assert_eq!(found.tenant.as_deref(), (generation == Generation::V1).then_some("v1"));
    }
    let asked = known(Generation::V1);
    assert_eq!(route("GET", "/v1/card", &asked, |_| true), Ok(None), "1.0 has no such route");
    let card = route("GET", "/v1/extendedAgentCard", &asked, |_| true).unwrap().unwrap();
    assert_eq!(card.tenant.as_deref(), Some("v1"));
    // Other tenants need no asking: whether they exist is for the service to say.
    assert!(route("GET", "/acme/tasks", &asked, |_| false).unwrap().is_some());
}

#[test]
fn p03_ids_are_decoded_once_and_verbs_stand_behind_the_last_colon() {
    for (method, path, operation, task, config) in [
        ("GET", "/tasks/a:b", GetTask, "a:b", ""),
        ("GET", "/tasks/a:", GetTask, "a:", ""),
        ("POST", "/tasks/a:b:cancel", CancelTask, "a:b", ""),
        ("POST", "/tasks/a:cancel:cancel", CancelTask, "a:cancel", ""),
        ("GET", "/tasks/a:cancel:subscribe", SubscribeToTask, "a:cancel", ""),
        ("GET", "/tasks/a%3Acancel", GetTask, "a:cancel", ""),
        ("POST", "/tasks/a%3Acancel:cancel", CancelTask, "a:cancel", ""),
        ("GET", "/tasks/a%20b", GetTask, "a b", ""),
        ("GET", "/tasks/a+b", GetTask, "a+b", ""),
        ("GET", "/tasks/a%2Bb", GetTask, "a+b", ""),
        ("GET", "/tasks/a%2520b", GetTask, "a%20b", ""),
        ("GET", "/tasks/a%2Fb", GetTask, "a/b", ""),
        ("GET", "/tasks/%E2%82%AC", GetTask, "€", ""),
        ("GET", "/tasks/1.2..3", GetTask, "1.2..3", ""),
        ("GET", "/tasks/...", GetTask, "...", ""),
        ("GET", "/tasks/tasks", GetTask, "tasks", ""),
        ("GET", "/tasks/message:send", GetTask, "message:send", ""),
        ("GET", "/tasks/extendedAgentCard", GetTask, "extendedAgentCard", ""),
        ("GET", "/tasks/v1", GetTask, "v1", ""),
        (
            "GET",
            "/tasks/pushNotificationConfigs/pushNotificationConfigs",
            ListPushConfigs,
            "pushNotificationConfigs",
            "",
        ),
        ("GET", "/tasks/a:b/pushNotificationConfigs/c:d", GetPushConfig, "a:b", "c:d"),
        ("GET", "/tasks/a:cancel/pushNotificationConfigs/c%3Acancel", GetPushConfig, "a:cancel", "c:cancel"),
    ] {
        let expected = expected(Generation::V1, None, operation, task, config);
        assert_eq!(find(method, path), Ok(Some(expected)), "{method} {path}");
    }
}

#[test]
fn fixed_routes_win_over_tenants() {
    for path in ["/tasks/tasks", "/tasks/extendedAgentCard"] {
        assert_eq!(find("GET", path).unwrap().unwrap().tenant, None, "{path}");
    }
    assert_eq!(find("POST", "/tasks/message:send"), Err(WrongMethod { allow: "GET, HEAD" }));
    for name in [
        "",
        ".",
        "..",
        ".well-known",
        "tasks",
        "extendedAgentCard",
        "a b",
        "a:b",
        "a%41",
        "ä",
        "a/b",
        "*",
        "healthz",
        "readyz",
        "metrics",
    ] {
        assert!(!is_tenant(name), "{name:?}");
    }
    assert!(is_tenant(&"x".repeat(64)));
    assert!(!is_tenant(&"x".repeat(65)));
}

/// What stands where a segment should, to climb, to smuggle or to confuse.
const TRICKS: &[&str] = &[
    ".",
    "..",
    "%2e",
    "%2E",
    "%2e%2e",
    ".%2e",
    "%2e.",
    "..%2f",
    "..%2F..",
    "%2e%2e%2f",
    "..%5c",
    "..%5C..",
    "%5c",
    "a%5Cb",
    "%5c%2e%2e",
    "%252e",
    "%252e%252e",
    "%252e%252e%252f",
    "%25252e%25252e",
    "..%252f",
    "..%255c",
    "%255c",
    "%00",
    "a%00",
    "a%00.json",
    "%2500",
    "%0a",
    "%0d%0a",
    "a%0d%0ab",
    "%7f",
    "%c2%85",
    "%1b",
    "%09",
    "%c0%ae",
    "%c0%ae%c0%ae",
    "%c0%af",
    "%e0%80%ae",
    "%ff",
    "%fe%ff",
    "%ed%a0%80",
    "%",
    "%2",
    "%zz",
    "%g1",
    "a%",
    "a%4",
    "%u002e",
    "..;",
    "..;x",
    ".;",
    "%2e%2e;x",
    "a%2f..%2fb",
    "a%2f.",
    "%2f..",
    "a%2F%2E%2E%2Fb",
    "a%252f..%252fb",
];

/// Whole paths that are none of ours.
const STRANGE: &[&str] = &[
    "",
    "/",
    "//",
    "*",
    "tasks",
    "tasks/t-1",
    "http://host/tasks",
    "/ ",
    "/tasks /t-1",
    "/tasks/t 1",
    "/\\tasks",
    "/tasks\\t-1",
    "\\tasks",
    "/tasks\t",
    "/tasks/t\n",
    "/tasks/t\r\nX: y",
    "/tasks/t\0",
    "/tasks/t\u{7f}",
    "/tasks?x",
    "/tasks/t#x",
    "//tasks",
    "/tasks//",
    "/tasks//t-1",
    "/tasks/t-1//",
    "///tasks",
    "/./tasks",
    "/../tasks",
    "/tasks/../tasks",
    "/acme/../tasks",
    "/acme/./tasks",
    "/.well-known/tasks",
    "/.well-known/tasks/t-1",
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/%74asks",
    "/%74asks/t-1",
    "/tasks%2Ft-1",
    "/tasks%2ft-1",
    "/%2ftasks",
    "/tasks/:cancel",
    "/tasks/:subscribe",
    "/message",
    "/message:",
    "/message:sen",
    "/message:sendx",
    "/message:Send",
    "/message%3Asend",
    "/Message:send",
    "/message:send:stream",
    "/message:send/x",
    "/:send",
    "/messages:send",
    "/Tasks",
    "/TASKS/t-1",
    "/task/t-1",
    "/task",
    "/task/t-1/pushNotificationConfigs",
    "/tasks/t-1/x",
    "/tasks/t-1/pushNotificationConfig",
    "/tasks/t-1/pushNotificationConfigs/c/x",
    "/tasks/t-1/pushnotificationconfigs",
    "/tasks/t-1/pushNotificationConfigs:x",
    "/pushNotificationConfigs",
    "/extendedagentcard",
    "/extendedAgentCard/x",
    "/extendedAgentCard:x",
    "/card",
    "/v1",
    "/v1/",
    "/v1//tasks",
    "/v1/v1/tasks",
    "/v1/acme/tasks",
    "/acme/v1/tasks",
    "/v1/extendedAgentCard",
    "/v1/card/x",
    "/V1/card",
    "/v1/message",
    "/v1/task/t-1",
    "/v1/tasks/:cancel",
    "/v1/tasks/t-1/x",
    "/v1/agent/authenticatedExtendedCard",
    "/v1%2Ftasks",
    "/agent",
    "/agent/authenticatedExtendedCard/x",
    "/acme",
    "/acme/x",
    "/acme/acme/tasks",
    "/ac me/tasks",
    "/acme%20/tasks",
    "/ac%41me/tasks",
    "/ä/tasks",
    "/acme:x/tasks",
    "/acme@x/tasks",
    "/acme,x/tasks",
    "/acme;x/tasks",
    "/a/b/c/d/e/f",
    "/acme/tasks/t/pushNotificationConfigs/c/x",
    "/tasks/tasks/tasks",
    "/rpc",
    "/subscribe",
    "/healthz",
    "/index.html",
    "/favicon.ico",
];

#[test]
fn p03_hostile_paths_do_not_route() {
    let long = "x".repeat(257);
    let mut paths: Vec<String> = STRANGE.iter().map(|path| (*path).to_owned()).collect();
    for trick in TRICKS.iter().copied().chain([long.as_str()]) {
        paths.extend([
            format!("/{trick}"),
            format!("/{trick}/tasks"),
            format!("/{trick}/message:send"),
            format!("/tasks/{trick}"),
            format!("/tasks/{trick}:cancel"),
            format!("/tasks/{trick}/pushNotificationConfigs"),
            format!("/tasks/t-1/pushNotificationConfigs/{trick}"),
            format!("/acme/tasks/{trick}"),
            format!("/v1/tasks/{trick}"),
            format!("/v1/{trick}"),
        ]);
    }
    assert!(STRANGE.len() >= 100 && paths.len() >= 600, "{} {}", STRANGE.len(), paths.len());
    for path in &paths {
        for method in METHODS {
            for asked in [AskedVersion::Unsaid, AskedVersion::Known(Generation::V1)] {
                assert_eq!(route(method, path, &asked, |_| false), Ok(None), "{method} {path:?}");
            }
        }
    }
    let long_tenant = format!("/{}/tasks", "x".repeat(65));
    assert_eq!(find("GET", &long_tenant), Ok(None));
}
