//! P-02, P-03. gRPC: every operation of both services, on the port of everything else; what a call has to say of itself, and
//! how it is refused.

use std::sync::Arc;

use async_trait::async_trait;
use baton_protocol::domain::{AgentCard, AgentExtension, AgentSkill};
use baton_protocol::wire::pb::Package;
use baton_protocol::{Error, ErrorKind};
use baton_server::auth::{AuthRequest, Authenticator, Challenge, Principal};
use baton_server::card::GrpcAddress;
use baton_server::{Asked, Builder, Limits, Mount, PushOptions, Server};
use bytes::Bytes;
use serde_json::json;
use tonic::Code;

use crate::agents::obedient;
use crate::callers::ByHeader;
use crate::grpc_client::{Grpc, PACKAGES, kinds, message, message_of, path, state, told};
use crate::harness::{TestServer, serve, with_agent};
use crate::speakers::with_card;

/// With gRPC, as it is switched on.
pub(crate) fn speaking(builder: Builder) -> Builder {
    builder.grpc().grpc_address(GrpcAddress::default())
}

pub(crate) async fn serve_obedient() -> TestServer {
    serve(speaking(with_agent(obedient))).await
}

#[tokio::test]
async fn p03_messages_and_tasks_in_both_packages() {
    let server = serve_obedient().await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let sent = client.call("SendMessage", message(package, "hello", true)).await.unwrap().json;
        let task = &sent["task"];
        assert_eq!(state(task), "COMPLETED", "{sent}");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "hello");
        let id = task["id"].as_str().unwrap();
        assert_eq!(client.get(id).await, *task);

        let mut stream = client.stream("SendStreamingMessage", message(package, "hi", true)).await.unwrap();
        let shown = stream.rest().await.unwrap();
        assert_eq!(kinds(&shown), ["task", "working", "artifactUpdate", "completed"], "{shown:?}");

        let held = client.start("hold").await;
        let subscribe = if package == Package::V1 { "SubscribeToTask" } else { "TaskSubscription" };
        let mut watch = client.stream(subscribe, client.task(&held)).await.unwrap();
        assert_eq!(watch.next().await.unwrap().unwrap()["task"]["id"], held);
        let canceled = client.call("CancelTask", client.task(&held)).await.unwrap().json;
        assert_eq!(state(&canceled), "CANCELED");
        assert_eq!(kinds(&watch.rest().await.unwrap()).last().unwrap(), "canceled");
    }
    let mut client = Grpc::connect(&server, Package::V1).await;
    let page = client.call("ListTasks", json!({"pageSize": 4})).await.unwrap().json;
    assert_eq!((&page["totalSize"], &page["pageSize"]), (&json!(6), &json!(4)));
    let rest = json!({"pageSize": 4, "pageToken": page["nextPageToken"]});
    let rest = client.call("ListTasks", rest).await.unwrap().json;
    assert_eq!((rest["tasks"].as_array().unwrap().len(), &rest["nextPageToken"]), (2, &json!("")));
}

#[tokio::test]
async fn p03_webhooks_and_the_extended_card_in_both_packages() {
    let mut options = PushOptions::default();
    options.development = true;
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    card.capabilities.extended_agent_card = Some(true);
    let agent = Server::builder(card.clone()).task_skill(AgentSkill::new("test", "test", "test"), obedient);
    card.description = "for you alone".to_owned();
    let agent = agent.extended_card(card).push(options).authenticator(Arc::new(ByHeader));
    let server = serve(speaking(agent)).await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await.with("x-owner", "ann");
        let task = client.start("hold").await;
        let named = format!("tasks/{task}/pushNotificationConfigs/one");
        let (create, get, list, delete, all) = match package {
            Package::V1 => (
                json!({"taskId": task, "id": "one", "url": "http://127.0.0.1:9999/hook"}),
                json!({"taskId": task, "id": "one"}),
                ("ListTaskPushNotificationConfigs", json!({"taskId": task})),
                json!({"taskId": task, "id": "one"}),
                "GetExtendedAgentCard",
            ),
            Package::V0_3 => (
                json!({
                    "parent": format!("tasks/{task}"), "configId": "one",
                    "config": {"name": named, "pushNotificationConfig": {"url": "http://127.0.0.1:9999/hook"}},
                }),
                json!({"name": named}),
                ("ListTaskPushNotificationConfig", json!({"parent": format!("tasks/{task}")})),
                json!({"name": named}),
                "GetAgentCard",
            ),
        };
        let created = client.call("CreateTaskPushNotificationConfig", create).await.unwrap().json;
        let got = client.call("GetTaskPushNotificationConfig", get.clone()).await.unwrap().json;
        assert_eq!(created, got);
        let listed = client.call(list.0, list.1.clone()).await.unwrap().json;
        assert_eq!(listed["configs"], json!([got]));
        let deleted = client.call("DeleteTaskPushNotificationConfig", delete).await.unwrap().json;
        assert_eq!(deleted, json!({}));
        let gone = client.call("GetTaskPushNotificationConfig", get).await.unwrap_err();
        assert_eq!(told(&gone), (Code::NotFound, "TASK_NOT_FOUND".to_owned()));
        let card = client.call(all, json!({})).await.unwrap();
        assert_eq!(card.json["description"], "for you alone");
        assert_eq!(card.metadata.get("cache-control").unwrap(), "private, no-store");
    }
}

#[tokio::test]
async fn p07_the_package_and_the_version_have_to_agree() {
    let server = serve_obedient().await;
    for (package, good, bad) in [
        (Package::V1, &["1.0", "1.0.1"][..], &["", "0.3", "0.1", "2.0"][..]),
        (Package::V0_3, &["", "0.3", "0.3.0"], &["1.0", "0.1", "9.9"]),
    ] {
        for version in good {
            let mut client = Grpc::connect(&server, package).await.with("a2a-version", version);
            client.call("SendMessage", message(package, "hello", true)).await.unwrap();
        }
        for version in bad {
            let mut client = Grpc::connect(&server, package).await.with("a2a-version", version);
            let refused = client.call("SendMessage", message(package, "hello", true)).await.unwrap_err();
            let expected = (Code::FailedPrecondition, "VERSION_NOT_SUPPORTED".to_owned());
            assert_eq!(told(&refused), expected, "{package:?} {version}");
        }
    }
    let mut silent = Grpc::connect(&server, Package::V1).await.without("a2a-version");
    let refused = silent.call("SendMessage", message(Package::V1, "hello", true)).await.unwrap_err();
    let expected = "lf.a2a.v1.A2AService is of A2A 1.0: send the metadata `a2a-version: 1.0`; this call named none, \
                    which counts as 0.3";
    assert_eq!(refused.message(), expected);
}

#[tokio::test]
async fn s03_a_generation_that_the_card_leaves_out_is_refused() {
    let card = baton_server::card::read(
        r#"{"name": "n", "description": "d", "version": "1", "capabilities": {"streaming": true},
            "supportedInterfaces": [{"url": "", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]}"#,
    );
    let server = Server::builder(card.unwrap()).task_skill(AgentSkill::new("t", "t", "t"), obedient);
    let server = serve(speaking(server)).await;
    let mut client = Grpc::connect(&server, Package::V1).await;
    client.call("SendMessage", message(Package::V1, "hello", true)).await.unwrap();
    let mut older = Grpc::connect(&server, Package::V0_3).await;
    let refused = older.call("SendMessage", message(Package::V0_3, "hello", true)).await.unwrap_err();
    assert_eq!(told(&refused), (Code::FailedPrecondition, "VERSION_NOT_SUPPORTED".to_owned()));
}

#[tokio::test]
async fn p02_extensions_are_named_in_metadata_of_both_spellings() {
    let uri = "https://a.example/needed";
    let extension = AgentExtension { uri: uri.to_owned(), description: None, required: true, params: None };
    let server = with_card(|card| card.capabilities.extensions = vec![extension], obedient);
    let server = serve(speaking(server)).await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let refused = client.call("SendMessage", message(package, "hello", true)).await.unwrap_err();
        assert_eq!(told(&refused), (Code::FailedPrecondition, "EXTENSION_SUPPORT_REQUIRED".to_owned()));
        let names = ["a2a-extensions", "x-a2a-extensions"];
        for name in names {
            let mut client = Grpc::connect(&server, package).await.with(name, &format!("urn:other, {uri}"));
            let reply = client.call("SendMessage", message(package, "hello", true)).await.unwrap();
            // The answer has the spelling of its generation.
            let expected = if package == Package::V1 { [true, false] } else { [false, true] };
            let listed = names.map(|name| reply.metadata.get(name).is_some_and(|value| value == uri));
            assert_eq!(listed, expected, "{package:?} {name}");
        }
    }
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
    let unknown = serve(speaking(with_agent(obedient)).authenticator(Arc::new(ByHeader))).await;
    let forbidden = serve(speaking(with_agent(obedient)).authenticator(Arc::new(Bouncer))).await;
    for (server, code, reason) in [
        (&unknown, Code::Unauthenticated, "UNAUTHENTICATED"),
        (&forbidden, Code::PermissionDenied, "PERMISSION_DENIED"),
    ] {
        for package in PACKAGES {
            let mut client = Grpc::connect(server, package).await;
            let refused = client.call("SendMessage", message(package, "hello", true)).await.unwrap_err();
            assert_eq!(told(&refused), (code, reason.to_owned()));
            let refused = client.stream("SendStreamingMessage", message(package, "hello", true)).await;
            assert_eq!(told(&refused.err().unwrap()), (code, reason.to_owned()));
            // Methods and messages are not looked at before that.
            for (method, bytes) in [("Nothing", &b""[..]), ("SendMessage", b"\xff\xff")] {
                let called = client.call_raw(&path(package, method), Bytes::from_static(bytes)).await;
                assert_eq!(called.unwrap_err().code(), code);
            }
        }
    }
    // What one owner has, another does not find.
    for package in PACKAGES {
        let mut ann = Grpc::connect(&unknown, package).await.with("x-owner", "ann");
        let task = ann.start("hold").await;
        let mut bob = Grpc::connect(&unknown, package).await.with("x-owner", "bob");
        let refused = bob.call("GetTask", bob.task(&task)).await.unwrap_err();
        assert_eq!(told(&refused), (Code::NotFound, "TASK_NOT_FOUND".to_owned()));
        assert_eq!(ann.get(&task).await["id"], task);
    }
}

#[tokio::test]
async fn p03_paths_that_call_nothing() {
    let server = serve_obedient().await;
    let mut client = Grpc::connect(&server, Package::V1).await;
    for path in [
        "/lf.a2a.v1.A2AService/Nothing",
        "/lf.a2a.v1.A2AService/TaskSubscription",
        "/a2a.v1.A2AService/ListTasks",
        "/a2a.v1.A2AService",
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/",
        "/message:send",
    ] {
        let refused = client.call_raw(path, Bytes::new()).await.unwrap_err();
        assert_eq!(told(&refused), (Code::Unimplemented, "METHOD_NOT_FOUND".to_owned()), "{path}");
    }
}

/// As a proxy makes it that speaks HTTP/1.1 to the server.
#[tokio::test]
async fn p03_a_call_that_comes_by_http_1_is_told_what_is_missing() {
    let server = serve_obedient().await;
    let call = server.http.post(format!("{}{}", server.url, path(Package::V1, "GetTask")));
    let answer = call.header("content-type", "application/grpc").body(vec![0; 5]).send().await.unwrap();
    assert_eq!((answer.version(), answer.status().as_u16()), (http::Version::HTTP_11, 505));
    let text = answer.text().await.unwrap();
    assert!(text.contains("gRPC needs HTTP/2"), "{text}");
}

#[tokio::test]
async fn p03_grpc_is_off_unless_it_is_switched_on() {
    let server = serve(Server::agent("test", "An agent for tests", obedient)).await;
    let mut client = Grpc::connect(&server, Package::V1).await;
    let refused = client.call("GetTask", json!({"id": "t"})).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().contains("gRPC is off on this server; `grpc = true`"), "{refused}");
    let card = server.http.get(format!("{}/.well-known/agent-card.json", server.url)).send().await.unwrap();
    let card = card.text().await.unwrap();
    assert!(!card.contains("GRPC") && !card.contains("urn:baton:resume"), "{card}");
}

/// Only who may call is told what is served.
#[tokio::test]
async fn s16_that_grpc_is_off_is_told_to_callers_who_are_known() {
    let off = Server::agent("test", "An agent for tests", obedient).authenticator(Arc::new(ByHeader));
    let off = serve(off).await;
    let on = serve(speaking(with_agent(obedient)).authenticator(Arc::new(ByHeader))).await;
    for package in PACKAGES {
        let get = |mut client: Grpc| async move {
            let task = client.task("none");
            client.call("GetTask", task).await.unwrap_err()
        };
        let unknown = get(Grpc::connect(&off, package).await).await;
        assert_eq!(told(&unknown), (Code::Unauthenticated, "UNAUTHENTICATED".to_owned()));
        let known = get(Grpc::connect(&off, package).await.with("x-owner", "ann")).await;
        assert_eq!(known.code(), Code::Unimplemented, "{known}");
        assert!(known.message().contains("gRPC is off"), "{known}");
        for (server, owner, status) in [(&on, None, 401), (&on, Some("ann"), 505), (&off, None, 401)] {
            let call = server.http.post(format!("{}{}", server.url, path(package, "GetTask")));
            let mut call = call.header("content-type", "application/grpc").body(vec![0; 5]);
            if let Some(owner) = owner {
                call = call.header("x-owner", owner);
            }
            assert_eq!(call.send().await.unwrap().status(), status, "{owner:?}");
        }
    }
}

#[tokio::test]
async fn p03_the_card_gives_the_address_of_grpc_in_the_form_that_is_wanted() {
    for (form, expected) in
        [(GrpcAddress::HostPort, Some("")), (GrpcAddress::Url, Some("http://")), (GrpcAddress::Hidden, None)]
    {
        let server = serve(speaking(with_agent(obedient)).grpc_address(form)).await;
        let card = server.http.get(format!("{}/.well-known/agent-card.json", server.url));
        let card: serde_json::Value = card.send().await.unwrap().json().await.unwrap();
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        let grpc: Vec<_> = interfaces.iter().filter(|it| it["protocolBinding"] == "GRPC").collect();
        let Some(scheme) = expected else {
            assert_eq!((grpc.len(), interfaces.len()), (0, 4), "{card}");
            // It is spoken all the same.
            Grpc::connect(&server, Package::V1).await.start("hello").await;
            continue;
        };
        let url = server.url.replace("http://", scheme);
        let versions: Vec<_> = grpc.iter().map(|it| it["protocolVersion"].as_str().unwrap()).collect();
        assert_eq!(versions, ["1.0", "0.3"]);
        assert!(grpc.iter().all(|it| it["url"] == *url), "{card}");
        assert_eq!(interfaces[4..], grpc.into_iter().cloned().collect::<Vec<_>>(), "after the others");
        let older = card["additionalInterfaces"].as_array().unwrap();
        assert!(older.contains(&json!({"url": url, "transport": "GRPC"})), "{card}");
        let channel = crate::grpc_client::channel(&server.url).await;
        Grpc::over(channel, Package::V0_3).start("hello").await;
    }
}

#[tokio::test]
async fn p03_a_tenant_is_named_in_the_message() {
    let agent = |id: &str| {
        let card = AgentCard::new(id, "An agent for tests", "1.0.0");
        Mount::new(id, card).message_skill(AgentSkill::new(id, id, id), {
            let id = id.to_owned();
            move |_: Asked| {
                let id = id.clone();
                async move { Ok(id) }
            }
        })
    };
    let host = Server::host().mount(agent("root")).mount(agent("one").tenant("acme"));
    let server = serve(speaking(host.mount(agent("two").path("/weather")))).await;
    let mut client = Grpc::connect(&server, Package::V1).await;
    for (tenant, answers) in [("", "root"), ("acme", "one")] {
        let mut params = message(Package::V1, "who?", true);
        params["tenant"] = json!(tenant);
        let reply = client.call("SendMessage", params).await.unwrap().json;
        assert_eq!(reply["message"]["parts"][0]["text"], answers);
    }
    let mut params = message(Package::V1, "who?", true);
    params["tenant"] = json!("nobody");
    let refused = client.call("SendMessage", params).await.unwrap_err();
    assert_eq!(told(&refused), (Code::InvalidArgument, "INVALID_PARAMS".to_owned()));
    // Only what a client can reach is on a card: calls of 0.3 name no tenant, and none names a path.
    for (path, grpc) in [("", vec!["1.0", "0.3"]), ("/acme", vec!["1.0"]), ("/weather", vec![])] {
        let card = server.http.get(format!("{}{path}/.well-known/agent-card.json", server.url));
        let card: serde_json::Value = card.send().await.unwrap().json().await.unwrap();
        let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
        let of_grpc = interfaces.filter(|it| it["protocolBinding"] == "GRPC");
        let versions: Vec<_> = of_grpc.map(|it| it["protocolVersion"].as_str().unwrap()).collect();
        assert_eq!(versions, grpc, "{path}");
    }
}

/// Calls of gRPC reach an agent with a tenant only by the name of the tenant: nothing that the agent at the root has or has not
/// may be in the way.
#[tokio::test]
async fn p03_a_tenants_agent_has_its_own_generations_and_limits() {
    let agent = |id: &str, version: &str, most: usize| {
        let card = format!(
            r#"{{"name": "{id}", "description": "d", "version": "1", "capabilities": {{}},
                "supportedInterfaces": [{{"url": "", "protocolBinding": "GRPC", "protocolVersion": "{version}"}}]}}"#
        );
        let mut limits = Limits::default();
        limits.max_body_bytes = most;
        let card = baton_server::card::read(&card).unwrap();
        Mount::new(id, card).task_skill(AgentSkill::new(id, id, id), obedient).limits(limits)
    };
    let host = Server::host().mount(agent("root", "0.3", 2000));
    let host = host.mount(agent("small", "1.0", 1000).tenant("small"));
    let server = serve(speaking(host.mount(agent("large", "1.0", 4000).tenant("large")))).await;
    let mut client = Grpc::connect(&server, Package::V1).await;
    for (tenant, length, refused) in [
        ("small", 100, None),
        ("small", 1500, Some("PAYLOAD_TOO_LARGE")),
        ("large", 3000, None),
        ("large", 4500, Some("PAYLOAD_TOO_LARGE")),
        ("", 100, Some("VERSION_NOT_SUPPORTED")),
    ] {
        let mut params = message(Package::V1, &"x".repeat(length), true);
        params["tenant"] = json!(tenant);
        let answered = client.call("SendMessage", params).await;
        assert_eq!(answered.err().map(|it| told(&it).1).as_deref(), refused, "{tenant} {length}");
    }
    let mut older = Grpc::connect(&server, Package::V0_3).await;
    older.call("SendMessage", message(Package::V0_3, "hello", true)).await.unwrap();
    let large = message(Package::V0_3, &"x".repeat(3000), true);
    let refused = older.call("SendMessage", large).await.unwrap_err();
    assert_eq!(told(&refused), (Code::ResourceExhausted, "PAYLOAD_TOO_LARGE".to_owned()));
}

#[tokio::test]
async fn p03_the_message_again_is_answered_again() {
    let server = serve_obedient().await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let params = message(package, "hello", true);
        let first = client.call("SendMessage", params.clone()).await.unwrap();
        assert!(first.metadata.get("a2a-idempotent-replay").is_none());
        let again = client.call("SendMessage", params).await.unwrap();
        assert_eq!(again.metadata.get("a2a-idempotent-replay").unwrap(), "true");
        assert_eq!(again.json["task"]["id"], first.json["task"]["id"]);
    }
}

#[tokio::test]
async fn p02_requests_that_cannot_be_read() {
    let server = serve_obedient().await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        let send = path(package, "SendMessage");
        for (bytes, reason) in [
            (&b"\xff\xff\xff"[..], "PARSE_ERROR"),
            // A message that ends within a field.
            (b"\x12\x7f\x00", "PARSE_ERROR"),
            (b"", "INVALID_PARAMS"),
        ] {
            let refused = client.call_raw(&send, Bytes::from_static(bytes)).await.unwrap_err();
            assert_eq!(told(&refused), (Code::InvalidArgument, reason.to_owned()), "{package:?} {bytes:?}");
        }
    }
    // The violation names the member as the package does.
    let mut client = Grpc::connect(&server, Package::V0_3).await;
    let no_parts = json!({"message": {"messageId": "m", "role": "ROLE_USER"}});
    let bytes = message_of(Package::V0_3, "SendMessage", &no_parts).unwrap();
    let refused = client.call_raw(&path(Package::V0_3, "SendMessage"), bytes).await.unwrap_err();
    let details = crate::grpc_client::details(&refused);
    assert_eq!(details[1]["fieldViolations"][0]["field"], "message.content", "{details:?}");
}

#[tokio::test]
async fn o02_calls_are_counted_by_binding() {
    let server = serve_obedient().await;
    for package in PACKAGES {
        let mut client = Grpc::connect(&server, package).await;
        client.start("hello").await;
        client.call("GetTask", client.task("none")).await.unwrap_err();
    }
    let numbers = server.server.metrics().await;
    for (generation, operation, outcome) in [
        ("1.0", "SendMessage", "ok"),
        ("0.3", "SendMessage", "ok"),
        ("1.0", "GetTask", "TASK_NOT_FOUND"),
        ("0.3", "GetTask", "TASK_NOT_FOUND"),
    ] {
        let found = numbers.lines().any(|line| {
            [("binding", "grpc"), ("generation", generation), ("operation", operation), ("outcome", outcome)]
                .iter()
                .all(|(label, value)| line.contains(&format!("{label}=\"{value}\"")))
        });
        assert!(found, "{generation} {operation} {outcome}: {numbers}");
    }
}
