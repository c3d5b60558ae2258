//! Several agents on one server, by path and by tenant, each with its own card, limits and tasks.

use baton_protocol::domain::{AgentCard, AgentInterface, AgentSkill};
use baton_server::Limits;
use baton_server::{AgentError, Builder, Mount, Server, StartError, Turn};
use serde_json::{Value, json};

use crate::harness::{TestServer, id, message, serve, state};

fn mount(id: &'static str) -> Mount {
    mount_of(id, AgentCard::new(id, "One of several", "1.0.0"))
}

fn mount_of(id: &'static str, card: AgentCard) -> Mount {
    let agent = move |turn: Turn| async move {
        turn.text_artifact("who", format!("{id}: {}", turn.text())).await?;
        Ok::<(), AgentError>(())
    };
    Mount::new(id, card).task_skill(AgentSkill::new(id, id, "Says who it is"), agent)
}

fn site() -> Builder {
    let mut small = Limits::default();
    small.max_body_bytes = 2048;
    Server::host()
        .mount(mount("weather").path("/agents/weather"))
        .mount(mount("acme").tenant("acme").limits(small))
        .mount(mount("root"))
}

async fn get(server: &TestServer, path: &str) -> (u16, String) {
    let response = server.http.get(format!("{}{path}", server.url)).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn card(server: &TestServer, prefix: &str) -> Value {
    let (status, body) = get(server, &format!("{prefix}/.well-known/agent-card.json")).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// A POST of JSON; answers status and body.
async fn post(server: &TestServer, path: &str, version: Option<&str>, body: &Value) -> (u16, Value) {
    let mut request = server.http.post(format!("{}{path}", server.url)).body(body.to_string());
    request = request.header("content-type", "application/json");
    if let Some(version) = version {
        request = request.header("a2a-version", version);
    }
    let response = request.send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}")))
}

fn rpc(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn with_tenant(mut params: Value, tenant: &str) -> Value {
    params["tenant"] = json!(tenant);
    params
}

#[track_caller]
fn who(task: &Value) -> &str {
    let text = task["artifacts"][0]["parts"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no artifact: {task}")).split(':').next().unwrap()
}

#[tokio::test]
async fn every_agent_is_found_by_all_its_ways_and_no_other_answers() {
    let server = serve(site()).await;
    let v0_3 = |text: &str| {
        let message = json!({"kind": "message", "messageId": text, "role": "user",
            "parts": [{"kind": "text", "text": text}]});
        rpc("message/send", &json!({"message": message, "configuration": {"blocking": true}}))
    };
    let acme = || with_tenant(message("x"), "acme");
    for (path, version, body, expected) in [
        ("/", Some("1.0"), rpc("SendMessage", &message("x")), "root"),
        ("/", Some("1.0"), rpc("SendMessage", &acme()), "acme"),
        ("/acme", Some("1.0"), rpc("SendMessage", &message("x")), "acme"),
        ("/acme/", Some("1.0"), rpc("SendMessage", &acme()), "acme"),
        ("/agents/weather", Some("1.0"), rpc("SendMessage", &message("x")), "weather"),
        ("/agents/weather/", Some("1.0"), rpc("SendMessage", &message("x")), "weather"),
        ("/", None, v0_3("a"), "root"),
        ("/acme/", None, v0_3("b"), "acme"),
        ("/agents/weather/", None, v0_3("c"), "weather"),
        ("/message:send", Some("1.0"), message("x"), "root"),
        ("/message:send", Some("1.0"), acme(), "acme"),
        ("/acme/message:send", Some("1.0"), message("x"), "acme"),
        ("/agents/weather/message:send", Some("1.0"), message("x"), "weather"),
    ] {
        let (status, answer) = post(&server, path, version, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        let result = answer.get("result").unwrap_or(&answer);
        let task = result.get("task").unwrap_or(result);
        assert_eq!(who(task), expected, "{path} {body}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_card_leads_to_its_own_agent() {
    let server = serve(site()).await;
    for (prefix, name) in [("", "root"), ("/acme", "acme"), ("/agents/weather", "weather")] {
        let card = card(&server, prefix).await;
        assert_eq!(card["name"], name);
        let interfaces = card["supportedInterfaces"].as_array().unwrap();
        assert_eq!(interfaces.len(), 4);
        for interface in interfaces {
            // As a client of that generation and binding would, from the card alone.
            let url = interface["url"].as_str().unwrap();
            let path = url.strip_prefix(&server.url).unwrap_or_else(|| panic!("{url}"));
            let tenant = interface["tenant"].as_str();
            let binding = interface["protocolBinding"].as_str().unwrap();
            let version = interface["protocolVersion"].as_str().unwrap();
            assert_eq!(tenant.is_some(), name == "acme" && version == "1.0", "{interface}");
            let mut params = message("x");
            if let Some(tenant) = tenant {
                params["tenant"] = json!(tenant);
            }
            let (path, body) = match (binding, version) {
                ("JSONRPC", "1.0") => (path.to_owned(), rpc("SendMessage", &params)),
                ("HTTP+JSON", "1.0") => {
                    let tenant = tenant.map(|tenant| format!("/{tenant}")).unwrap_or_default();
                    (format!("{path}{tenant}/message:send"), message("x"))
                }
                ("JSONRPC", _) => (path.to_owned(), rpc("tasks/get", &json!({"id": "none"}))),
                _ => (format!("{path}/v1/tasks/none"), Value::Null),
            };
            if body.is_null() {
                let (status, body) = get(&server, &path).await;
                assert_eq!(status, 404, "{interface}: {body}");
                assert!(body.contains("TASK_NOT_FOUND") || body.contains("not found"), "{interface}: {body}");
                continue;
            }
            let (status, answer) = post(&server, &path, Some(version), &body).await;
            assert_eq!(status, 200, "{interface}: {answer}");
            if version == "1.0" {
                let result = answer.get("result").unwrap_or(&answer);
                assert_eq!(who(&result["task"]), name, "{interface}");
            } else {
                assert_eq!(answer["error"]["code"], -32001, "{interface}: {answer}");
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn agents_share_no_tasks_no_lists_and_no_message_ids() {
    let server = serve(site()).await;
    let same = message("x");
    let mut tasks = Vec::new();
    for path in ["/", "/acme/", "/agents/weather/"] {
        let (_, answer) = post(&server, path, Some("1.0"), &rpc("SendMessage", &same)).await;
        tasks.push(answer["result"]["task"].clone());
    }
    assert_eq!(tasks.iter().map(who).collect::<Vec<_>>(), ["root", "acme", "weather"]);
    for (path, own) in ["/", "/acme/", "/agents/weather/"].into_iter().zip(&tasks) {
        for task in &tasks {
            let asked = rpc("GetTask", &json!({"id": task["id"]}));
            let (_, answer) = post(&server, path, Some("1.0"), &asked).await;
            if task == own {
                assert_eq!(state(&answer["result"]), "COMPLETED");
            } else {
                assert_eq!(answer["error"]["code"], -32001, "{path} shows {}", id(task));
            }
        }
        let (_, answer) = post(&server, path, Some("1.0"), &rpc("ListTasks", &json!({}))).await;
        assert_eq!(answer["result"]["totalSize"], 1, "{path}");
        assert_eq!(answer["result"]["tasks"][0]["id"], own["id"], "{path}");
    }
    // The tenant's path and the tenant's name mean the same agent.
    let (_, answer) = post(&server, "/", Some("1.0"), &rpc("ListTasks", &json!({"tenant": "acme"}))).await;
    assert_eq!(answer["result"]["tasks"][0]["id"], tasks[1]["id"]);
    server.stop().await;
}

/// However a tenant's agent is named: the agent whose path it is may take less, or more.
#[tokio::test]
async fn each_agent_has_its_own_limits() {
    let mut roomy = Limits::default();
    roomy.max_body_bytes = 6 * 1024 * 1024;
    let server = serve(site().mount(mount("big").tenant("big").limits(roomy))).await;
    let most = Limits::default().max_body_bytes;
    for (length, path, tenant, status) in [
        (3000, "", "", 200),
        (3000, "/agents/weather", "", 200),
        (3000, "/acme", "", 413),
        (3000, "", "acme", 413),
        (1000, "", "acme", 200),
        (most, "", "", 413),
        (most, "", "big", 200),
        (most, "/big", "", 200),
        (most + 2 * 1024 * 1024, "", "big", 413),
    ] {
        // What is too large for a message is not too large for a request.
        let mut asked = message("x");
        asked["unknown"] = json!("x".repeat(length));
        if !tenant.is_empty() {
            asked = with_tenant(asked, tenant);
        }
        let (rpc_path, rest_path) = (format!("{path}/"), format!("{path}/message:send"));
        let of_rpc = post(&server, &rpc_path, Some("1.0"), &rpc("SendMessage", &asked)).await;
        assert_eq!(of_rpc.0, status, "{path} {tenant} {length}: {}", of_rpc.1);
        let of_rest = post(&server, &rest_path, Some("1.0"), &asked).await;
        assert_eq!(of_rest.0, status, "{path} {tenant} {length}: {}", of_rest.1);
    }
    server.stop().await;
}

/// The card of the agent at the root says nothing about the generations of another, whose tenant a request names.
#[tokio::test]
async fn a_tenants_agent_speaks_what_its_own_card_says() {
    let speaking = |id: &'static str, version: &str| {
        let mut card = AgentCard::new(id, "One of several", "1.0.0");
        card.interfaces = ["JSONRPC", "HTTP+JSON"]
            .map(|binding| AgentInterface {
                url: String::new(),
                protocol_binding: binding.to_owned(),
                protocol_version: version.to_owned(),
                tenant: None,
            })
            .to_vec();
        mount_of(id, card)
    };
    let acme = || with_tenant(message("x"), "acme");
    for (root, acmes, expected) in [("0.3", "1.0", "acme"), ("1.0", "0.3", "VERSION_NOT_SUPPORTED")] {
        let host = Server::host().mount(speaking("root", root)).mount(speaking("acme", acmes).tenant("acme"));
        let server = serve(host).await;
        for (path, body) in [("/", rpc("SendMessage", &acme())), ("/message:send", acme())] {
            let (_, answer) = post(&server, path, Some("1.0"), &body).await;
            assert!(answer.to_string().contains(expected), "{path}: {answer}");
        }
        // And the agent at the root speaks no more than before.
        for (path, body) in [("/", rpc("SendMessage", &message("x"))), ("/message:send", message("x"))] {
            let (_, answer) = post(&server, path, Some("1.0"), &body).await;
            assert_eq!(
                answer.to_string().contains("VERSION_NOT_SUPPORTED"),
                root == "0.3",
                "{path}: {answer}"
            );
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn a_tenant_nobody_has_is_refused_where_tenants_are_declared() {
    let server = serve(site()).await;
    for (path, tenant) in [("/", "nobody"), ("/acme", "other")] {
        let body = rpc("SendMessage", &with_tenant(message("x"), tenant));
        let (_, answer) = post(&server, path, Some("1.0"), &body).await;
        assert_eq!(answer["error"]["code"], -32602, "{path}: {answer}");
    }
    let (status, answer) = post(&server, "/nobody/message:send", Some("1.0"), &message("x")).await;
    assert_eq!(status, 400, "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn without_an_agent_at_the_root_it_says_where_they_are() {
    let server = serve(Server::host().mount(mount("a").path("/a")).mount(mount("b").tenant("b"))).await;
    let (status, text) = get(&server, "/.well-known/agent-card.json").await;
    assert_eq!(status, 404);
    assert!(text.contains("/a/.well-known/agent-card.json") && text.contains("/b/.well-known"), "{text}");
    let (_, answer) = post(&server, "/", Some("1.0"), &rpc("SendMessage", &message("x"))).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let body = rpc("SendMessage", &with_tenant(message("x"), "b"));
    let (_, answer) = post(&server, "/", Some("1.0"), &body).await;
    assert_eq!(who(&answer["result"]["task"]), "b");
    server.stop().await;
}

#[tokio::test]
async fn below_a_public_url_with_a_path_every_agent_is_there_once_more() {
    let server = serve(site().public_url("https://a.example/base")).await;
    for (prefix, url) in [
        ("", "https://a.example/base"),
        ("/acme", "https://a.example/base"),
        ("/agents/weather", "https://a.example/base/agents/weather/"),
    ] {
        let direct = card(&server, prefix).await;
        assert_eq!(direct["supportedInterfaces"][0]["url"], url);
        assert_eq!(direct, card(&server, &format!("/base{prefix}")).await);
    }
    server.stop().await;
}

#[tokio::test]
async fn agents_that_would_stand_in_one_place_are_refused() {
    for (builder, named) in [
        (Server::host(), "no agent"),
        (Server::host().mount(mount("a")).mount(mount("b")), "`a` and `b` are both at `/`"),
        (Server::host().mount(mount("a").path("/x")).mount(mount("b").tenant("x")), "both at `/x/`"),
        (Server::host().mount(mount("a").path("/x")).mount(mount("a").path("/y")), "`a` is there twice"),
        (Server::host().mount(mount("a").path("/tasks")), "path `/tasks`"),
    ] {
        match builder.build().await {
            Err(StartError::Mount(refused)) => assert!(refused.to_string().contains(named), "{refused}"),
            other => panic!("{named}: {other:?}"),
        }
    }
}

/// `GET /` on a server with several agents lists their cards.
#[tokio::test]
async fn the_root_names_the_cards_of_all_agents() {
    let below =
        Server::host().mount(mount("weather").path("/agents/weather")).mount(mount("acme").tenant("acme"));
    for (builder, root) in [(below, false), (site(), true)] {
        let server = serve(builder).await;
        let mut cards = vec![("acme", "/acme"), ("weather", "/agents/weather")];
        if root {
            cards.insert(0, ("root", ""));
        }
        let place = |prefix: &str| format!("{}{prefix}/.well-known/agent-card.json", server.url);
        let (status, text) = get(&server, "/").await;
        assert_eq!(status, 200, "{text}");
        let request = server.http.get(&server.url).header("accept", "application/json");
        let json: Value = request.send().await.unwrap().json().await.unwrap();
        let cards_listed: Vec<_> =
            json["agents"].as_array().unwrap().iter().map(|agent| agent["card"].clone()).collect();
        let mut expected: Vec<_> = cards.iter().map(|(_, prefix)| place(prefix)).collect();
        expected.sort();
        assert_eq!(cards_listed, expected);
        for (name, prefix) in cards {
            assert!(text.contains(&format!("  {name}: {}\n", place(prefix))), "{text}");
            assert_eq!(card(&server, prefix).await["name"], name);
        }
        let (status, text) = get(&server, "/agents/weather").await;
        assert_eq!(status, 405);
        assert!(text.contains("/agents/weather/.well-known/agent-card.json"), "{text}");
    }
}
