//! Errors and exit statuses.

use serde_json::{Value, json};

use super::User;
use super::scripted::{Answer, Scripted, all_bindings, always, card, task};
use crate::served::Served;

/// The names of the protocol with the reason of 1.0, the JSON-RPC code, and the HTTP status.
const NAMES: &[(&str, &str, i32, u16)] = &[
    ("TaskNotFoundError", "TASK_NOT_FOUND", -32001, 404),
    ("TaskNotCancelableError", "TASK_NOT_CANCELABLE", -32002, 400),
    ("PushNotificationNotSupportedError", "PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400),
    ("UnsupportedOperationError", "UNSUPPORTED_OPERATION", -32004, 400),
    ("ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED", -32005, 400),
    ("InvalidAgentResponseError", "INVALID_AGENT_RESPONSE", -32006, 500),
    ("ExtendedAgentCardNotConfiguredError", "EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400),
    ("ExtensionSupportRequiredError", "EXTENSION_SUPPORT_REQUIRED", -32008, 400),
    ("VersionNotSupportedError", "VERSION_NOT_SUPPORTED", -32009, 400),
];

/// The same error is told in the same words whichever binding it came by; only the binding's own code differs.
#[test]
fn p09_cli_out_004_every_error_of_the_protocol_keeps_its_name_in_every_binding() {
    let user = User::new();
    for (name, reason, code, status) in NAMES {
        let agent = Scripted::start(
            |url| card(url, json!({"supportedInterfaces": all_bindings(url)})),
            move |heard, _| match heard.rpc() {
                "" if heard.is_grpc() => Answer::Refused(reason, "because"),
                "" => {
                    let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org"});
                    let error = json!({"error": {"code": status, "message": "because", "details": [info]}});
                    Answer::Plain(*status, "application/json", error.to_string())
                }
                _ => Answer::Error(*code, "because"),
            },
        );
        let told = ["jsonrpc", "rest", "grpc"].map(|binding| {
            let args = ["task", "get", &agent.url, "t-1", "-o", "json", "--transport", binding];
            let said = user.run(&args).failed(1);
            assert!(said.err.is_empty(), "{said:?}");
            let mut error = said.json()["error"].take();
            assert!(error["hint"].is_string(), "{error}");
            let code = error["a2aCode"].take();
            error["hint"] = error["hint"].as_str().unwrap().replace(binding, "B").into();
            (code, error)
        });
        assert_eq!((&told[0].0, &told[1].0), (&json!(code), &json!(status)), "{name}");
        assert!(told[2].0.is_number(), "{name}");
        assert_eq!((&told[0].1, &told[0].1), (&told[1].1, &told[2].1));
        assert_eq!((&told[0].1["code"], &told[0].1["message"]), (&json!(name), &json!("because")));
    }
    for (name, code) in [
        ("JSONParseError", -32700),
        ("InvalidRequestError", -32600),
        ("MethodNotFoundError", -32601),
        ("InvalidParamsError", -32602),
        ("InternalError", -32603),
    ] {
        let agent = Scripted::start(|url| card(url, json!({})), move |_, _| Answer::Error(code, "because"));
        let said = user.run(&["task", "get", &agent.url, "t-1", "-o", "json"]).failed(1);
        assert_eq!((said.error().0.as_str(), &said.json()["error"]["a2aCode"]), (name, &json!(code)));
    }
}

/// The members, their order, and no others.
#[test]
fn p09_cli_out_004_the_envelope_has_four_members() {
    let (served, user) = (Served::start(), User::new());
    for args in
        [&["task", "get", &served.url, "nobody"][..], &["card", "get", "-a", "./missing.json"], &["send"]]
    {
        let said = user.run(&[args, &["-o", "json"]].concat());
        let envelope: Value = said.json();
        let members: Vec<&String> = envelope["error"].as_object().unwrap().keys().collect();
        let mut members: Vec<&str> = members.into_iter().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, ["a2aCode", "code", "hint", "message"]);
        assert_eq!(envelope.as_object().unwrap().len(), 1);
        assert_eq!(said.out.matches("\"error\"").count(), 1);
    }
}

/// Agents refuse with statuses and codes of their own: what was given is not missing.
#[test]
fn p09_cli_exit_001_a_credential_that_is_refused_is_not_missing() {
    let user = User::new();
    for status in [401, 403] {
        let agent = Scripted::start(
            |url| card(url, json!({})),
            move |heard, _| {
                let error = json!({"jsonrpc": "2.0", "id": heard.body["id"], "error": {"code": -32603, "message": "no"}});
                Answer::Plain(status, "application/json", error.to_string())
            },
        );
        for given in [&["--bearer", "s3cret"][..], &["--svc-param", "Authorization: Basic s3cret"]] {
            let said = user.run(&[&["send", &agent.url, "x", "-o", "json"], given].concat()).failed(4);
            assert_eq!(said.error().0, "A2ACLI_ERR_AUTH_FAILED", "{status} {given:?}");
        }
    }
}

/// Runs the commands, each of which must fail with the code and its exit status, in both forms.
fn check(status: i32, code: &str, lines: &[&[&str]]) {
    let user = User::new();
    std::fs::write(user.folder().join("wrong.json"), r#"{"name": 7}"#).unwrap();
    for args in lines {
        let said = user.run(&[args, &["-o", "json"][..]].concat()).failed(status);
        assert_eq!(said.error().0, code, "{args:?}: {said:?}");
        let said = user.run(args).failed(status);
        assert!(said.out.is_empty() && said.err.contains(&format!("Error: {code}\n")), "{args:?}: {said:?}");
    }
}

#[test]
fn p09_cli_exit_001_a2acli_err_usage() {
    let agent = always(json!({"task": task("TASK_STATE_COMPLETED")}));
    check(
        2,
        "A2ACLI_ERR_USAGE",
        &[
            &["send"],
            &["send", "no agent is named"],
            &["send", &agent.url, "x", "--no-such-flag"],
            &["send", &agent.url, "x", "--wait", "--async"],
            &["send", &agent.url, "x", "--stream", "--async"],
            &["send", &agent.url, "x", "--timeout", "soon"],
            &["send", &agent.url, "x", "--file", "./missing"],
            &["task", "get", &agent.url],
            &["task", "polish", &agent.url],
            &["send", &agent.url, "x", "--api-key", "k"],
        ],
    );
    assert!(agent.calls().is_empty(), "{:?}", agent.calls());
}

#[test]
fn p09_cli_exit_001_a2acli_err_card_not_found() {
    let page =
        Scripted::start(|_| json!({}), |_, _| Answer::Plain(200, "text/html", "<p>welcome</p>".to_owned()));
    let nothing = Scripted::start(|_| json!({}), |_, _| Answer::Plain(404, "text/plain", String::new()));
    let (page, nothing) = (format!("{}/page.json", page.url), format!("{}/card.json", nothing.url));
    check(
        3,
        "A2ACLI_ERR_CARD_NOT_FOUND",
        &[&["card", "get", "-a", "./missing.json"], &["card", "get", &page], &["send", &nothing, "x"]],
    );
}

#[test]
fn p09_cli_exit_001_a2acli_err_card_invalid() {
    let empty = Scripted::start(|_| json!({}), |_, _| Answer::Result(json!({})));
    check(
        1,
        "A2ACLI_ERR_CARD_INVALID",
        &[&["card", "get", "-a", "./wrong.json"], &["card", "get", &empty.url], &["send", &empty.url, "x"]],
    );
}

#[test]
fn p09_cli_exit_001_a2acli_err_unreachable() {
    let away = Scripted::start(
        |url| {
            let interface =
                json!({"url": "http://127.0.0.1:1/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
            card(url, json!({"supportedInterfaces": [interface]}))
        },
        |_, _| Answer::Result(json!({})),
    );
    let nobody = "http://127.0.0.1:1";
    check(
        3,
        "A2ACLI_ERR_UNREACHABLE",
        &[&["card", "get", nobody], &["send", nobody, "x"], &["task", "get", &away.url, "t-1"]],
    );
}

/// Asks for an API key, and refuses every one.
fn closed(status: u16) -> Scripted {
    Scripted::start(
        |url| {
            let schemes = json!({"k": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}});
            let requirements = json!([{"schemes": {"k": {"list": []}}}]);
            card(url, json!({"securitySchemes": schemes, "securityRequirements": requirements}))
        },
        move |_, _| Answer::Plain(status, "application/json", "{}".to_owned()),
    )
}

#[test]
fn p09_cli_exit_001_a2acli_err_credentials_missing() {
    let agent = closed(401);
    check(
        4,
        "A2ACLI_ERR_CREDENTIALS_MISSING",
        &[&["send", &agent.url, "x"], &["task", "get", &agent.url, "t-1"]],
    );
}

#[test]
fn p09_cli_exit_001_a2acli_err_auth_failed() {
    let (refused, forbidden) = (closed(401), closed(403));
    check(
        4,
        "A2ACLI_ERR_AUTH_FAILED",
        &[
            &["send", &refused.url, "x", "--api-key", "k"],
            &["task", "get", &forbidden.url, "t-1", "--api-key", "k"],
        ],
    );
}

#[test]
fn p09_cli_exit_001_a2acli_err_timeout() {
    let (served, agent) = (Served::start(), always(task("TASK_STATE_WORKING")));
    check(
        5,
        "A2ACLI_ERR_TIMEOUT",
        &[
            &["send", &served.url, "wait until I cancel", "--timeout", "300ms"],
            &["task", "get", &agent.url, "t-1", "--wait", "--timeout", "300ms"],
        ],
    );
}

#[test]
fn p09_cli_exit_001_a2acli_err_internal() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |_, _| Answer::Plain(500, "text/html", "<p>oops</p>".to_owned()),
    );
    check(1, "A2ACLI_ERR_INTERNAL", &[&["task", "list", &agent.url], &["task", "get", &agent.url, "t-1"]]);
}
