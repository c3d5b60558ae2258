//! Cards: references, validation, versions and interfaces.

use serde_json::json;

use super::scripted::{Answer, Scripted, all_bindings, both_bindings, card, task};
use super::{Said, User};
use crate::served::Served;

fn done() -> Answer {
    Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")}))
}

#[test]
fn p09_cli_card_get_002_a_card_is_checked_against_the_schema() {
    let (served, user) = (Served::start(), User::new());
    assert_eq!(user.run(&["card", "get", &served.url, "--validate"]).ok().field("Valid"), "true");
    let wrong = Scripted::start(
        |url| {
            let interface =
                json!({"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
            card(
                url,
                json!({"supportedInterfaces": [interface], "skills": [{"id": "s", "name": "S", "description": "", "tags": []}]}),
            )
        },
        |_, _| done(),
    );
    let said = user.run(&["card", "get", &wrong.url, "--validate"]).failed(1);
    assert_eq!(said.field("Valid"), "false");
    assert!(said.field("Problem").contains("skills[0].description"), "{said:?}");
    assert!(said.err.contains("Error: A2ACLI_ERR_CARD_INVALID"), "{said:?}");
    let said = user.run(&["card", "get", &wrong.url, "--validate", "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "A2ACLI_ERR_CARD_INVALID");
}

#[test]
fn p09_cli_tx_001_002_003_the_card_s_order_a_preference_and_the_tenant() {
    let agent = Scripted::start(
        |url| {
            let interface = |binding: &str, path: &str| json!({"url": format!("{url}{path}"), "protocolBinding": binding, "protocolVersion": "1.0"});
            let mut rpc = interface("JSONRPC", "/rpc");
            rpc["tenant"] = json!("acme");
            card(
                url,
                json!({"supportedInterfaces": [interface("GRPC", ":1"), rpc, interface("HTTP+JSON", "/rest")]}),
            )
        },
        |heard, _| match heard.target.starts_with("/rpc") {
            true => done(),
            false => Answer::Plain(
                200,
                "application/json",
                json!({"task": task("TASK_STATE_COMPLETED")}).to_string(),
            ),
        },
    );
    let user = User::new();
    for (flags, path) in [
        (&[][..], "/rpc"),
        (&["--transport", "rest"], "/rest/message:send"),
        (&["--transport", "HTTP+JSON", "--transport", "jsonrpc"], "/rest/message:send"),
        (&["--transport", "grpc"], "/rpc"),
    ] {
        user.run(&[&["send", &agent.url, "hi", "--async"], flags].concat()).ok();
        let call = agent.calls().pop().unwrap();
        assert_eq!(call.target, path, "{flags:?}");
        assert_eq!(call.header("a2a-version"), Some("1.0"));
        let tenant = if path == "/rpc" { &call.body["params"]["tenant"] } else { &call.body["tenant"] };
        assert_eq!(*tenant, if path == "/rpc" { json!("acme") } else { json!(null) });
    }
    let mut command = user.command(&["send", &agent.url, "hi", "--async"]);
    Said::of(command.env("A2ACLI_TRANSPORT", "grpc,rest")).ok();
    assert_eq!(agent.calls().pop().unwrap().target, "/rest/message:send");
    user.run(&["send", &agent.url, "hi", "--transport", "carrier-pigeon"]).failed(2);
}

/// Every operation that a command has.
fn every_call(user: &User, agent: &Scripted, flags: &[&str]) {
    let url = agent.url.as_str();
    for args in [
        &["send", url, "hi", "--async"][..],
        &["send", url, "hi", "--stream"],
        &["task", "get", url, "t-1"],
        &["task", "list", url],
        &["task", "cancel", url, "t-1"],
        &["task", "subscribe", url, "t-1"],
        &["task", "push-config", "create", url, "t-1", "--url", "https://h.example"],
        &["task", "push-config", "get", url, "t-1", "p-1"],
        &["task", "push-config", "list", url, "t-1"],
        &["task", "push-config", "delete", url, "t-1", "p-1"],
        &["card", "get", url, "--extended"],
    ] {
        user.run(&[args, flags].concat()).ok();
    }
}

/// An agent that has everything, with this tenant.
fn has_everything(tenant: Option<&'static str>) -> Scripted {
    Scripted::start(
        move |url| {
            let mut interfaces = all_bindings(url);
            for interface in interfaces.as_array_mut().unwrap() {
                if let Some(tenant) = tenant {
                    interface["tenant"] = tenant.into();
                }
            }
            let capabilities =
                json!({"streaming": true, "pushNotifications": true, "extendedAgentCard": true});
            card(url, json!({"supportedInterfaces": interfaces, "capabilities": capabilities}))
        },
        |heard, _| {
            let path = heard.target.split('?').next().unwrap_or_default();
            let what = if heard.rpc().is_empty() { path } else { heard.rpc() };
            let config = json!({"id": "p-1", "taskId": "t-1", "url": "https://h.example"});
            let done = json!({"task": task("TASK_STATE_COMPLETED")});
            match what {
                it if it.ends_with("ExtendedAgentCard") || it.ends_with("extendedAgentCard") => {
                    Answer::Result(card("http://h.example", json!({})))
                }
                it if it.contains("ListTaskPush")
                    || it.ends_with("/pushNotificationConfigs") && heard.method == "GET" =>
                {
                    Answer::Result(json!({"configs": [config]}))
                }
                it if it.contains("DeleteTaskPush") || heard.method == "DELETE" => Answer::Result(json!({})),
                it if it.contains("ushNotificationConfig") => Answer::Result(config),
                it if it.contains("tream") || it.contains("ubscribe") => Answer::Events(vec![done]),
                it if it.contains("SendMessage") || it.ends_with(":send") => Answer::Result(done),
                it if it.contains("ListTasks") || it.ends_with("/tasks") => {
                    Answer::Result(json!({"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}))
                }
                _ => Answer::Result(task("TASK_STATE_COMPLETED")),
            }
        },
    )
}

/// The tenant of the interface is in every request, in the place that the binding has for it; without one there is no such
/// member at all.
#[test]
fn p09_cli_tx_003_ver_001_tenant_and_version_are_in_every_request() {
    let user = User::new();
    for tenant in [Some("acme"), None] {
        for binding in ["jsonrpc", "rest", "grpc"] {
            let agent = has_everything(tenant);
            every_call(&user, &agent, &["--transport", binding]);
            let calls = agent.calls();
            // Those about webhooks look at the task, too.
            assert_eq!(calls.len(), 15, "{calls:?}");
            for call in calls {
                assert_eq!(call.header("a2a-version"), Some("1.0"), "{call:?}");
                match (binding, tenant) {
                    ("jsonrpc", Some(tenant)) => {
                        assert_eq!(call.body["params"]["tenant"], tenant, "{call:?}")
                    }
                    ("grpc", Some(tenant)) => assert_eq!(call.body["tenant"], tenant, "{call:?}"),
                    ("jsonrpc", None) => assert_eq!(call.body["params"].get("tenant"), None, "{call:?}"),
                    (_, Some(tenant)) => {
                        assert!(call.target.starts_with(&format!("/rest/{tenant}/")), "{call:?}")
                    }
                    (_, None) => {
                        assert!(
                            !call.target.contains("tenant") && call.body.get("tenant").is_none(),
                            "{call:?}"
                        );
                    }
                }
            }
        }
    }
}

/// A version that the tool does not know is passed over for one that both know.
#[test]
fn p09_cli_ver_001_the_highest_version_that_both_know() {
    let agent = Scripted::start(
        |url| {
            let mut interfaces = both_bindings(url);
            interfaces[0]["protocolVersion"] = "1.7".into();
            card(url, json!({"supportedInterfaces": interfaces}))
        },
        |_, _| done(),
    );
    User::new().run(&["send", &agent.url, "hi", "--async"]).ok();
    let call = agent.calls().pop().unwrap();
    assert_eq!((call.target.as_str(), call.header("a2a-version")), ("/rest/message:send", Some("1.0")));
}

/// The agent refuses the version: that is told, and no older one is tried.
#[test]
fn p09_cli_ver_001_a_refused_version_is_told_and_nothing_older_is_tried() {
    let agent = Scripted::start(
        |url| {
            let mut interfaces = both_bindings(url);
            interfaces[1]["protocolVersion"] = "0.3".into();
            card(url, json!({"supportedInterfaces": interfaces}))
        },
        |_, _| Answer::Error(-32009, "not this version"),
    );
    let said = User::new().run(&["task", "get", &agent.url, "t-1", "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "VersionNotSupportedError");
    assert_eq!(agent.calls().len(), 1, "{:?}", agent.calls());
}

#[test]
fn p09_cli_ver_001_no_version_below_1_0_unless_it_is_asked_for() {
    let old = Scripted::start(
        |url| {
            let interface =
                json!({"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "0.3"});
            card(url, json!({"supportedInterfaces": [interface]}))
        },
        |_, _| done(),
    );
    let user = User::new();
    let said = user.run(&["send", &old.url, "hi", "-o", "json"]).failed(1);
    let (code, hint) = said.error();
    assert!(
        code == "VersionNotSupportedError" && hint.contains("0.3") && hint.contains("--a2a-version"),
        "{said:?}"
    );
    let said = user.run(&["send", &old.url, "hi", "--a2a-version", "2.7", "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "VersionNotSupportedError");
    assert!(old.calls().is_empty(), "nothing is called");
    // Asked for, an older version is spoken.
    let served = Served::start();
    for version in ["1.0", "0.3"] {
        let said = user.run(&["send", &served.url, "hello", "--a2a-version", version]).ok();
        assert_eq!(said.field("State"), "TASK_STATE_COMPLETED", "{version}");
    }
}

#[test]
fn p09_cli_ver_002_required_extensions_are_declared() {
    let agent = Scripted::start(
        |url| {
            let extensions = json!([{"uri": "urn:needed", "required": true}, {"uri": "urn:optional"}]);
            card(url, json!({"capabilities": {"extensions": extensions}}))
        },
        |_, _| done(),
    );
    User::new().run(&["send", &agent.url, "hi", "--async"]).ok();
    assert_eq!(agent.calls()[0].header("a2a-extensions"), Some("urn:needed"));
}

#[test]
fn p09_cli_card_get_003_the_extended_card_by_a_scheme_of_the_card() {
    let agent = Scripted::start(
        |url| {
            let schemes = json!({"main": {"httpAuthSecurityScheme": {"scheme": "bearer"}}});
            let requirements = json!([{"schemes": {"main": {"list": []}}}]);
            let capabilities = json!({"extendedAgentCard": true});
            card(
                url,
                json!({"securitySchemes": schemes, "securityRequirements": requirements, "capabilities": capabilities}),
            )
        },
        |heard, _| match heard.header("authorization") {
            Some("Bearer s3cret") => {
                Answer::Result(card("http://h", json!({"name": "Scripted, for friends"})))
            }
            _ => Answer::Plain(401, "application/json", "{}".to_owned()),
        },
    );
    let user = User::new();
    let said = user.run(&["card", "get", &agent.url, "--extended", "--bearer", "s3cret"]).ok();
    assert_eq!(said.field("Agent"), "Scripted, for friends");
    user.run(&["card", "get", &agent.url, "--extended"]).failed(4);
    let hint = user.run(&["card", "get", &agent.url, "--extended", "-o", "json"]).error().1;
    assert_eq!(hint, "set A2ACLI_BEARER");
}

#[test]
fn p09_cli_card_get_004_a_signature_is_verified_with_a_trusted_key_only() {
    let user = User::new();
    let plain = Scripted::start(|url| card(url, json!({})), |_, _| done());
    assert_eq!(user.run(&["card", "get", &plain.url]).ok().field("Signature"), "absent");
    // {"alg":"ES256","kid":"k1","typ":"JOSE"}
    let protected = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIiwidHlwIjoiSk9TRSJ9";
    let signed = Scripted::start(
        move |url| card(url, json!({"signatures": [{"protected": protected, "signature": "AAAA"}]})),
        |_, _| done(),
    );
    let said = user.run(&["card", "get", &signed.url]).ok();
    assert!(said.field("Signature").starts_with("unverifiable"), "{said:?}");
    std::fs::write(user.folder().join("keys.json"), "{\"keys\":[]}").unwrap();
    let said = user.run(&["card", "get", &signed.url, "--card-keys", "keys.json"]).ok();
    assert!(said.field("Signature").starts_with("unverifiable"), "{said:?}");
    user.run(&["card", "get", &signed.url, "--card-keys", "missing.json"]).failed(2);
    // Signed by another SDK.
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/cards/signed");
    let (file, keys) =
        (format!("{fixtures}/python-1.3.0.json"), format!("{fixtures}/python-1.3.0.keys.json"));
    let said = user.run(&["card", "get", "-a", &file, "--card-keys", &keys]).ok();
    assert!(said.field("Signature").starts_with("verified kid="), "{said:?}");
    let changed = std::fs::read_to_string(&file).unwrap().replace("Signed by the SDK", "Changed later");
    std::fs::write(user.folder().join("changed.json"), changed).unwrap();
    let said = user.run(&["card", "get", "-a", "changed.json", "--card-keys", &keys]).ok();
    assert!(said.field("Signature").starts_with("unverifiable"), "{said:?}");
}

#[test]
fn p09_cli_card_get_005_an_entry_of_a_catalog_stands_for_a_card() {
    let (served, user) = (Served::start(), User::new());
    let entry =
        json!({"name": "Demo", "agentCardUrl": format!("{}/.well-known/agent-card.json", served.url)});
    let listed = json!({"agents": [{"name": "Other"}, entry]}).to_string();
    let text = listed.clone();
    let registry =
        Scripted::start(|_| json!({}), move |_, _| Answer::Plain(200, "application/json", text.clone()));
    std::fs::write(user.folder().join("agents.json"), listed).unwrap();
    for catalog in [format!("{}/agents", registry.url), "./agents.json".to_owned()] {
        let reference = format!("{catalog}#demo");
        assert_eq!(user.run(&["card", "get", "-a", &reference]).ok().field("Agent"), "Baton demo agent");
        assert_eq!(
            user.run(&["send", "-a", &reference, "hello"]).ok().field("State"),
            "TASK_STATE_COMPLETED"
        );
        let said = user.run(&["card", "get", "-a", &format!("{catalog}#nobody")]).failed(3);
        assert!(said.err.contains("it has Other, Demo"), "{said:?}");
        // A catalog cannot send the user's credentials to a host of its choice.
        user.run(&["send", "-a", &reference, "hello", "--bearer", "s3cret"]).failed(2);
        user.run(&["send", "-a", &reference, "hello", "--svc-param", "X-Api-Key: s3cret"]).failed(2);
        let trusted = ["--svc-param", "X-Api-Key: s3cret", "--trust-origin", &served.url];
        user.run(&[&["send", "-a", &reference, "hello"], &trusted[..]].concat()).ok();
    }
    assert!(registry.heard().iter().all(|heard| !format!("{:?}", heard.headers).contains("s3cret")));
}

/// A file of this machine is the user's own word, and a catalog on the web cannot speak it.
#[test]
fn p09_cli_card_get_005_a_catalog_on_the_web_leads_to_the_web() {
    let user = User::new();
    let file = user.folder().join("card.json");
    std::fs::write(&file, card("http://127.0.0.1:1", json!({"name": "A local file"})).to_string()).unwrap();
    let entries = json!([
        {"name": "relative", "url": "card.json"},
        {"name": "file", "url": format!("file://{}", file.display())},
        {"name": "path", "url": file.display().to_string()},
    ]);
    let listed = json!({"agents": entries}).to_string();
    let registry = Scripted::start(
        |_| json!({}),
        move |heard, _| match heard.target.as_str() {
            "/agents" => Answer::Plain(200, "application/json", listed.clone()),
            "/card.json" => Answer::Plain(
                200,
                "application/json",
                card("http://127.0.0.1:1", json!({"name": "On the web"})).to_string(),
            ),
            _ => Answer::Plain(404, "text/plain", String::new()),
        },
    );
    let host = registry.url.trim_start_matches("http://");
    for catalog in [format!("{}/agents", registry.url), format!("{host}/agents")] {
        let get = |entry: &str| {
            user.run(&["card", "get", "-a", &format!("{catalog}#{entry}"), "--bearer", "s3cret"])
        };
        // At its own host, also with credentials.
        assert_eq!(get("relative").ok().field("Agent"), "On the web");
        for entry in ["file", "path"] {
            let said = get(entry).failed(3);
            assert!(!said.out.contains("A local file"), "{said:?}");
        }
    }
    // In a file of the user's own, a relative entry is beside it.
    std::fs::create_dir(user.folder().join("agents")).unwrap();
    std::fs::rename(&file, user.folder().join("agents/card.json")).unwrap();
    let own = json!([{"name": "relative", "url": "card.json"}]).to_string();
    std::fs::write(user.folder().join("agents/list.json"), own).unwrap();
    let said = user.run(&["card", "get", "-a", "agents/list.json#relative"]).ok();
    assert_eq!(said.field("Agent"), "A local file");
}

/// The card is checked as it came, not as we would write it.
#[test]
fn p09_cli_card_get_002_003_the_extended_card_is_checked_as_it_was_sent() {
    let user = User::new();
    for (extended, valid) in [
        (json!({"more": {"x": [1.0]}}), true),
        (json!({"skills": [{"id": "s", "name": "S", "description": "d"}]}), false),
    ] {
        let sent = extended.clone();
        let agent = Scripted::start(
            |url| card(url, json!({"capabilities": {"extendedAgentCard": true}})),
            move |_, _| Answer::Result(card("http://127.0.0.1:1", sent.clone())),
        );
        let get = ["card", "get", &agent.url, "--extended"];
        let said = user.run(&[&get[..], &["--validate"]].concat());
        assert_eq!(said.field("Valid"), valid.to_string(), "{said:?}");
        let said = user.run(&[&get[..], &["-o", "json"]].concat()).ok();
        for (name, value) in extended.as_object().unwrap() {
            assert_eq!(said.json()[name], *value, "as it was sent");
        }
        assert!(said.err.contains("Signature: absent"), "{said:?}");
    }
}

/// Connecting costs more than a small request, so it is done once.
#[test]
fn a_card_and_the_calls_after_it_need_one_connection() {
    let user = User::new();
    for args in [&["--async"][..], &["--stream"], &[]] {
        let agent = has_everything(None);
        user.run(&[&["send", &agent.url, "hi"], args].concat()).ok();
        let heard = agent.heard();
        assert!(heard.len() >= 2 && heard.iter().all(|it| it.from == heard[0].from), "{heard:?}");
    }
}
