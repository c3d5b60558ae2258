//! S-02, S-03. Spec 7.1 and 11.2: one card in the form of the caller's generation, with the headers that caches and browsers
//! need, and URLs that work.

use std::time::{Duration, SystemTime};

use baton_protocol::domain::security::{SchemeKind, SecurityRequirement, SecurityScheme};
use baton_protocol::domain::{AgentCard, AgentExtension, AgentInterface, AgentSkill};
use baton_server::Server;
use http::Method;
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::callers::ByHeader;
use crate::harness::{Answer, TestServer, message, serve, serve_agent, with_agent};
use crate::speakers::{message_03, proto_message_03, read, request, rpc, task, with_card};

const NEW: &str = "/.well-known/agent-card.json";
const OLD: &str = "/.well-known/agent.json";

async fn ask(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Answer {
    read(request(server, Method::GET, path, headers, "").await).await
}

#[track_caller]
fn has(card: &Value, members: &[&str]) {
    for member in members {
        assert!(card.get(member).is_some(), "{member} is missing: {card}");
    }
}

#[track_caller]
fn has_not(card: &Value, members: &[&str]) {
    for member in members {
        assert_eq!(card.get(member), None, "{member} must not be there");
    }
}

const ALL: &[&str] =
    &["name", "description", "version", "capabilities", "defaultInputModes", "defaultOutputModes", "skills"];
const OF_03: &[&str] = &["protocolVersion", "url", "preferredTransport", "additionalInterfaces"];

#[tokio::test]
async fn s02_the_card_is_spelled_for_the_generation_that_asks() {
    let server = serve_agent(obedient).await;
    for (path, version, has_03, has_10) in [
        (NEW, None, true, true),
        (NEW, Some(""), true, true),
        (NEW, Some("0.3"), true, true),
        (NEW, Some("nonsense"), true, true),
        (NEW, Some("1.0"), false, true),
        (NEW, Some("1.0.1"), false, true),
        (NEW, Some("1.7"), false, true),
        (OLD, None, true, false),
        (OLD, Some("0.3"), true, false),
        (OLD, Some("1.0"), true, false),
    ] {
        let headers: Vec<_> = version.map(|version| ("a2a-version", version)).into_iter().collect();
        let answer = ask(&server, path, &headers).await;
        assert_eq!(answer.status, 200);
        let card = &answer.body;
        has(card, ALL);
        if has_03 {
            has(card, OF_03)
        } else {
            has_not(card, OF_03)
        }
        assert_eq!(card.get("supportedInterfaces").is_some(), has_10, "{path} {version:?}");
    }
    let by_query = ask(&server, &format!("{NEW}?A2A-Version=1.0"), &[]).await;
    has_not(&by_query.body, OF_03);
}

/// The card has what 0.1 readers require (three flags, a `url`, modes on every skill) and what 0.2 and 0.3 readers require.
#[tokio::test]
async fn s02_the_old_place_has_one_document_for_0x() {
    let server = serve_agent(obedient).await;
    let card = ask(&server, OLD, &[]).await.body;
    let url = format!("{}/", server.url);
    assert_eq!((&card["url"], &card["preferredTransport"]), (&json!(url), &json!("JSONRPC")));
    assert_eq!(card["protocolVersion"], "0.3.0");
    assert_eq!(
        card["additionalInterfaces"],
        json!([{"url": url, "transport": "JSONRPC"}, {"url": server.url, "transport": "HTTP+JSON"}])
    );
    let capabilities = &card["capabilities"];
    for (flag, expected) in
        [("streaming", true), ("pushNotifications", false), ("stateTransitionHistory", true)]
    {
        assert_eq!(capabilities[flag], expected, "{flag}");
    }
    let skill = json!({"id": "test", "name": "test", "description": "test", "tags": [], "inputModes": ["*/*"], "outputModes": ["text/plain"]});
    assert_eq!(card["skills"], json!([skill]));
}

#[tokio::test]
async fn s02_security_and_extensions_are_said_in_the_words_of_each_generation() {
    let mut card = AgentCard::new("test", "An agent for tests", "1.0.0");
    let kind = SchemeKind::Http { scheme: "bearer".to_owned(), bearer_format: None };
    card.security_schemes = vec![("sign-in".to_owned(), SecurityScheme { description: None, kind })];
    card.security_requirements = vec![SecurityRequirement { schemes: vec![("sign-in".to_owned(), vec![])] }];
    let uri = "https://a.example/ext".to_owned();
    card.capabilities.extensions =
        vec![AgentExtension { uri, description: None, required: false, params: None }];
    let skill = AgentSkill::new("test", "test", "test");
    let builder = Server::builder(card).task_skill(skill, obedient);
    let server = serve(builder.authenticator(std::sync::Arc::new(ByHeader))).await;

    let pure = ask(&server, NEW, &[("a2a-version", "1.0")]).await.body;
    assert_eq!(pure["securitySchemes"]["sign-in"], json!({"httpAuthSecurityScheme": {"scheme": "bearer"}}));
    has(&pure, &["securityRequirements"]);
    has_not(&pure, &["security", "authentication"]);
    let superset = ask(&server, NEW, &[]).await.body;
    let scheme = &superset["securitySchemes"]["sign-in"];
    assert_eq!((&scheme["type"], &scheme["scheme"]), (&json!("http"), &json!("bearer")));
    assert_eq!(scheme["httpAuthSecurityScheme"], json!({"scheme": "bearer"}));
    assert_eq!(superset["security"], json!([{"sign-in": []}]));
    has(&superset, &["securityRequirements"]);
    let union = ask(&server, OLD, &[]).await.body;
    assert_eq!(union["authentication"], json!({"schemes": ["bearer"]}));
    assert_eq!(union["security"], json!([{"sign-in": []}]));
    assert_eq!(union["securitySchemes"]["sign-in"], json!({"type": "http", "scheme": "bearer"}));
    has_not(&union, &["securityRequirements"]);
    for card in [&pure, &superset, &union] {
        assert_eq!(card["capabilities"]["extensions"][0]["uri"], "https://a.example/ext");
    }
}

#[tokio::test]
async fn s03_what_the_card_leaves_out_is_off_in_every_spelling() {
    let off = with_card(
        |card| {
            card.capabilities.streaming = Some(false);
            card.capabilities.state_transition_history = Some(false);
        },
        obedient,
    );
    let server = serve(off).await;
    for (path, version) in [(NEW, ""), (NEW, "1.0"), (OLD, "")] {
        let card = ask(&server, path, &[("a2a-version", version)]).await.body;
        assert_eq!(card["capabilities"]["streaming"], false, "{path} {version}");
        assert_eq!(card["capabilities"]["pushNotifications"], false, "{path} {version}");
        assert_ne!(card["capabilities"]["stateTransitionHistory"], true, "{path} {version}");
        assert_ne!(card["supportsAuthenticatedExtendedCard"], true, "{path} {version}");
    }
}

#[tokio::test]
async fn s02_a_card_in_the_cache_is_revalidated() {
    let server = serve_agent(obedient).await;
    let mut tags = Vec::new();
    for (path, version) in [(NEW, ""), (NEW, "1.0"), (OLD, "")] {
        let fresh = ask(&server, path, &[("a2a-version", version)]).await;
        let (tag, date) = (fresh.header("etag").unwrap(), fresh.header("last-modified").unwrap());
        assert!(fresh.header("cache-control").unwrap().contains("max-age="), "{path}");
        assert_eq!(fresh.header("vary").map(str::to_ascii_lowercase).as_deref(), Some("a2a-version"));
        let made = httpdate::parse_http_date(date).unwrap();
        let day = Duration::from_secs(24 * 60 * 60);
        let (before, after) = (httpdate::fmt_http_date(made - day), httpdate::fmt_http_date(made + day));
        assert!(made <= SystemTime::now());
        let (weak, several) = (format!("W/{tag}"), format!("\"other\", {tag}"));
        for (headers, status) in [
            (vec![("if-none-match", tag)], 304),
            (vec![("if-none-match", &weak)], 304),
            (vec![("if-none-match", &several)], 304),
            (vec![("if-none-match", "*")], 304),
            (vec![("if-none-match", "\"other\"")], 200),
            (vec![("if-modified-since", date)], 304),
            (vec![("if-modified-since", &after)], 304),
            (vec![("if-modified-since", &before)], 200),
            (vec![("if-modified-since", "yesterday")], 200),
            // The ETag takes precedence over the date.
            (vec![("if-none-match", "\"other\""), ("if-modified-since", date)], 200),
            (vec![("if-none-match", tag), ("if-modified-since", &before)], 304),
        ] {
            let mut all = vec![("a2a-version", version)];
            all.extend(&headers);
            let answer = ask(&server, path, &all).await;
            assert_eq!(answer.status, status, "{path} {version} {headers:?}");
            for name in ["etag", "last-modified", "cache-control", "vary", "access-control-allow-origin"] {
                assert_eq!(answer.header(name), fresh.header(name), "{name} with {headers:?}");
            }
            assert_eq!(answer.body == json!(""), status == 304, "a 304 has no body");
        }
        tags.push(tag.to_owned());
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 3, "every form of the card has its own ETag");
}

#[tokio::test]
async fn s02_methods_and_origins_at_both_places() {
    let server = serve_agent(obedient).await;
    for path in [NEW, OLD, "/.well-known/agent-card.json/"] {
        let origin = [("origin", "https://a.example"), ("access-control-request-method", "GET")];
        for (method, status) in [
            (Method::GET, 200),
            (Method::HEAD, 200),
            (Method::OPTIONS, 204),
            (Method::POST, 405),
            (Method::PUT, 405),
            (Method::DELETE, 405),
        ] {
            let answer = read(request(&server, method.clone(), path, &origin, "").await).await;
            assert_eq!(answer.status, status, "{method} {path}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{method} {path}");
            match status {
                204 => {
                    let methods = answer.header("access-control-allow-methods").unwrap();
                    assert!(methods.contains("GET") && methods.contains("OPTIONS"), "{methods}");
                }
                405 => assert_eq!(answer.header("allow"), Some("GET, HEAD, OPTIONS")),
                _ => assert_eq!(answer.header("content-type"), Some("application/json")),
            }
            if method == Method::HEAD {
                assert!(answer.header("etag").is_some() && answer.body == json!(""), "{path}");
            }
        }
    }
}

fn urls(card: &Value) -> Vec<String> {
    let interfaces = card["supportedInterfaces"].as_array().into_iter().flatten();
    let additional = card["additionalInterfaces"].as_array().into_iter().flatten();
    let mut all: Vec<_> =
        interfaces.chain(additional).map(|it| it["url"].as_str().unwrap().to_owned()).collect();
    all.extend(card["url"].as_str().map(str::to_owned));
    all
}

#[tokio::test]
async fn s02_only_trusted_proxies_say_where_the_agent_is() {
    let forwarded =
        [("x-forwarded-host", "agent.example"), ("x-forwarded-proto", "https"), ("x-forwarded-prefix", "/a")];
    let standard = [("forwarded", "for=1.2.3.4;host=agent.example;proto=https")];
    let trusting = |range: &str| with_agent(obedient).trusted_proxies(vec![range.parse().unwrap()]);
    let here = None;
    for (server, headers, base) in [
        (serve(with_agent(obedient)).await, &forwarded[..], here),
        (serve(trusting("10.0.0.0/8")).await, &forwarded, here),
        (serve(trusting("127.0.0.0/8")).await, &forwarded, Some("https://agent.example/a")),
        (serve(trusting("127.0.0.1")).await, &standard, Some("https://agent.example")),
        (serve(trusting("127.0.0.1")).await, &[], here),
        (serve(trusting("127.0.0.1")).await, &[("x-forwarded-host", "evil/\"x")], here),
        // A configured public URL takes precedence over request headers.
        (
            serve(trusting("127.0.0.1").public_url("https://set.example/")).await,
            &forwarded,
            Some("https://set.example"),
        ),
    ] {
        let base = base.unwrap_or(&server.url).to_owned();
        for path in [NEW, OLD] {
            let card = ask(&server, path, headers).await.body;
            let all = urls(&card);
            assert!(all.len() >= 3, "{card}");
            for url in all {
                assert!(url == base || url == format!("{base}/"), "{url} is not {base} with {headers:?}");
            }
        }
    }
}

async fn post(server: &TestServer, url: &str, version: Option<&str>, body: &Value) -> Answer {
    let mut request = server.http.post(url).header("content-type", "application/json");
    if let Some(version) = version {
        request = request.header("a2a-version", version);
    }
    read(request.body(body.to_string()).send().await.unwrap()).await
}

/// A client calls each interface as its generation requires, and must be answered in that generation.
#[tokio::test]
async fn s02_every_url_on_the_card_answers() {
    let server = serve_agent(obedient).await;
    let rpc =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let card = ask(&server, NEW, &[]).await.body;
    for interface in card["supportedInterfaces"].as_array().unwrap() {
        let url = interface["url"].as_str().unwrap();
        let (binding, version) =
            (interface["protocolBinding"].as_str().unwrap(), interface["protocolVersion"].as_str().unwrap());
        let said = Some(version);
        let answer =
            match (binding, version) {
                ("JSONRPC", "1.0") => post(&server, url, said, &rpc("SendMessage", message("a"))).await.body
                    ["result"]["task"]
                    .clone(),
                ("JSONRPC", "0.3") => {
                    post(&server, url, said, &rpc("message/send", message_03("a"))).await.body["result"]
                        .clone()
                }
                ("HTTP+JSON", "1.0") => {
                    post(&server, &format!("{url}/message:send"), said, &message("a")).await.body["task"]
                        .clone()
                }
                ("HTTP+JSON", "0.3") => {
                    post(&server, &format!("{url}/v1/message:send"), said, &proto_message_03("a")).await.body
                        ["task"]
                        .clone()
                }
                other => panic!("an interface nobody asked for: {other:?}"),
            };
        assert!(answer["status"]["state"].is_string(), "{interface}: {answer}");
        assert_eq!(answer.get("kind").is_some(), (binding, version) == ("JSONRPC", "0.3"));
    }
    let card = ask(&server, OLD, &[]).await.body;
    let url = card["url"].as_str().unwrap();
    let oldest = post(&server, url, None, &rpc("tasks/send", task("t", "a"))).await;
    assert_eq!(oldest.result()["id"], "t");
    let older = post(&server, url, None, &rpc("message/send", message_03("a"))).await;
    assert_eq!(older.result()["kind"], "task");
    for interface in card["additionalInterfaces"].as_array().unwrap() {
        let url = interface["url"].as_str().unwrap();
        let answer = match interface["transport"].as_str().unwrap() {
            "JSONRPC" => post(&server, url, None, &rpc("message/send", message_03("a"))).await,
            _ => post(&server, &format!("{url}/v1/message:send"), None, &proto_message_03("a")).await,
        };
        assert_eq!(answer.status, 200, "{interface}: {}", answer.body);
    }
}

/// Spec 4.4.6: all that is served, the preferred first; gRPC last, so that clients of several bindings go on as before.
#[tokio::test]
async fn s02_the_interfaces_are_all_there_in_their_order() {
    let builder = with_agent(obedient);
    #[cfg(feature = "grpc")]
    let builder = builder.grpc_address(baton_server::card::GrpcAddress::HostPort);
    let server = serve(builder).await;
    let card = ask(&server, NEW, &[]).await.body;
    let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
    let named: Vec<_> = interfaces
        .map(|it| (it["protocolBinding"].as_str().unwrap(), it["protocolVersion"].as_str().unwrap()))
        .collect();
    let mut expected =
        vec![("JSONRPC", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "1.0"), ("HTTP+JSON", "0.3")];
    if cfg!(feature = "grpc") {
        expected.extend([("GRPC", "1.0"), ("GRPC", "0.3")]);
    }
    assert_eq!(named, expected);
}

/// A path before the server's own makes no difference to gRPC, whoever tells of it: a call names the method and no path.
#[cfg(feature = "grpc")]
#[tokio::test]
async fn s02_a_proxys_path_does_not_take_grpc_off_the_card() {
    let builder = || {
        let builder = with_agent(obedient).grpc_address(baton_server::card::GrpcAddress::HostPort);
        builder.trusted_proxies(vec!["127.0.0.0/8".parse().unwrap()])
    };
    let forwarded =
        [("x-forwarded-host", "agent.example"), ("x-forwarded-proto", "https"), ("x-forwarded-prefix", "/a")];
    for (server, headers) in [
        (serve(builder()).await, &forwarded[..]),
        (serve(builder().public_url("https://agent.example/a")).await, &[]),
    ] {
        let card = ask(&server, NEW, headers).await.body;
        let interfaces = card["supportedInterfaces"].as_array().unwrap().iter();
        let grpc: Vec<_> =
            interfaces.filter(|it| it["protocolBinding"] == "GRPC").map(|it| &it["url"]).collect();
        assert_eq!(grpc, ["agent.example:443", "agent.example:443"], "{card}");
    }
}

#[tokio::test]
async fn s02_everything_is_below_the_path_of_the_public_url_too() {
    let server = serve(with_agent(obedient).public_url("https://host.example/agents/x")).await;
    let sent = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_03("a")});
    for prefix in ["", "/agents/x"] {
        let at = |path: &str| format!("{}{prefix}{path}", server.url);
        for place in [NEW, OLD] {
            let card = ask(&server, &format!("{prefix}{place}"), &[]).await.body;
            assert_eq!(card["url"], "https://host.example/agents/x", "{prefix}{place}");
        }
        for slash in ["", "/"] {
            let answer = post(&server, &at(slash), None, &sent).await;
            assert_eq!(answer.result()["kind"], "task");
            let url = at(&format!("/message:send{slash}"));
            let answer = post(&server, &url, Some("1.0"), &message("a")).await;
            assert!(answer.body["task"].is_object(), "{}", answer.body);
            let url = at(&format!("/v1/message:send{slash}"));
            let answer = post(&server, &url, None, &proto_message_03("a")).await;
            assert!(answer.body["task"].is_object(), "{}", answer.body);
        }
    }
    // A path that only starts with the same letters is not the agent's.
    let neighbour = format!("{}/agents/xyz/v1/message:send", server.url);
    assert_eq!(post(&server, &neighbour, None, &proto_message_03("a")).await.status, 404);
}

/// Ruling 11: only the versions in the card's interfaces are served, and cards list only those.
#[tokio::test]
async fn s03_only_the_generations_a_card_names_are_served() {
    let spoken =
        [("1.0", &["1.0"][..]), ("0.3", &["0.3"]), ("0.1", &["0.1"]), ("1.0 and 0.3", &["1.0", "0.3.0"])];
    for (listed, versions) in spoken {
        let interfaces = versions.iter().map(|version| AgentInterface {
            url: "https://elsewhere.example".to_owned(),
            protocol_binding: "JSONRPC".to_owned(),
            protocol_version: (*version).to_owned(),
            tenant: None,
        });
        let interfaces: Vec<_> = interfaces.collect();
        let server = serve(with_card(|card| card.interfaces = interfaces, obedient)).await;
        let on = |version: &str| listed.contains(version);
        let v1 = ("a2a-version", "1.0");
        for (version, method, params) in [
            ("1.0", "SendMessage", message("hello")),
            ("0.3", "message/send", message_03("hello")),
            ("0.1", "tasks/send", task("t", "hello")),
        ] {
            let headers = if version == "1.0" { &[v1][..] } else { &[] };
            let answer = rpc(&server, headers, method, params).await;
            assert_eq!(
                answer.body.get("result").is_some(),
                on(version),
                "{listed} {method}: {}",
                answer.body
            );
            if !on(version) {
                assert_eq!(answer.error_code(), -32009, "{listed} {method}");
                let told = answer.body["error"]["message"].as_str().unwrap();
                assert!(told.ends_with(&format!("this agent speaks {listed}")), "{told}");
            }
        }
        for (version, path, headers) in
            [("1.0", "/tasks", &[v1, ("content-type", "application/json")][..]), ("0.3", "/v1/tasks", &[])]
        {
            let answer = read(request(&server, Method::GET, path, headers, "").await).await;
            assert_eq!(
                answer.status,
                if on(version) { 200 } else { 400 },
                "{listed} {path}: {}",
                answer.body
            );
        }
        // Method names that 0.1 and 0.3 share mean the enabled generation.
        let shared = rpc(&server, &[], "tasks/get", json!({"id": "none"})).await;
        assert_eq!(shared.error_code(), if on("0.3") || on("0.1") { -32001 } else { -32009 }, "{listed}");
        // Cards list only enabled generations.
        let card = ask(&server, NEW, &[]).await;
        assert_eq!(card.status, 200, "{listed}");
        let named = card.body["supportedInterfaces"].as_array().into_iter().flatten();
        let named: Vec<_> = named.map(|it| it["protocolVersion"].as_str().unwrap()).collect();
        assert!(named.iter().all(|version| on(version)), "{listed}: {named:?}");
        assert_eq!(card.body.get("supportedInterfaces").is_some(), on("1.0"), "{listed}");
        assert_eq!(card.body.get("protocolVersion").is_some(), on("0.3"), "{listed}");
        let old = ask(&server, OLD, &[]).await;
        assert_eq!(old.status, if on("0.3") || on("0.1") { 200 } else { 404 }, "{listed}");
        if old.status == 200 {
            assert_eq!(old.body["url"], format!("{}/", server.url), "{listed}");
        }
    }
    let all = serve_agent(obedient).await;
    assert_eq!(ask(&all, NEW, &[]).await.body["supportedInterfaces"].as_array().unwrap().len(), 4);
}
