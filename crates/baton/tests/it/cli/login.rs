//! Logging in with OAuth, and the tokens that are kept.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::scripted::{Answer, Heard, Scripted, card, task};
use super::{Said, User};

/// An agent and its authorization server at one address.
fn agent() -> Scripted {
    Scripted::start(
        |url| {
            let token = format!("{url}/token");
            let device = json!({"deviceCode": {"deviceAuthorizationUrl": format!("{url}/device"), "tokenUrl": token, "scopes": {}}});
            let program = json!({"clientCredentials": {"tokenUrl": token, "scopes": {}}});
            let schemes = json!({
                "people": {"oauth2SecurityScheme": {"flows": device}},
                "programs": {"oauth2SecurityScheme": {"flows": program}},
            });
            let requirements =
                json!([{"schemes": {"people": {"list": []}}}, {"schemes": {"programs": {"list": []}}}]);
            card(url, json!({"securitySchemes": schemes, "securityRequirements": requirements}))
        },
        answer,
    )
}

fn answer(heard: &Heard, before: usize) -> Answer {
    let json = |status: u16, body: Value| Answer::Plain(status, "application/json", body.to_string());
    match heard.target.as_str() {
        "/device" => json(
            200,
            json!({"device_code": "d", "user_code": "WXYZ-1234", "expires_in": 60, "interval": 0,
                                      "verification_uri": "https://id.example/device"}),
        ),
        // The user takes a moment.
        "/token" if heard.text.contains("device_code") && before < 2 => {
            json(400, json!({"error": "authorization_pending"}))
        }
        "/token" if heard.text.contains("refresh_token") => {
            json(200, json!({"access_token": "renewed-s3cret", "token_type": "Bearer", "expires_in": 3600}))
        }
        "/token" => json(
            200,
            json!({"access_token": "s3cret", "token_type": "Bearer", "expires_in": 1, "refresh_token": "r3fresh"}),
        ),
        _ => match heard.header("authorization") {
            Some("Bearer s3cret" | "Bearer renewed-s3cret") => {
                Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")}))
            }
            _ => json(401, json!({})),
        },
    }
}

#[test]
fn p09_cli_auth_005_007_a_device_code_login_is_kept_used_and_renewed() {
    let (agent, user) = (agent(), User::new());
    user.run(&["send", &agent.url, "hi", "--async"]).failed(4);
    let said = user
        .run(&["auth", "login", &agent.url, "--client-id", "me", "--scheme", "people", "--flow", "device"])
        .ok();
    assert_eq!(said.field("Security scheme"), "people");
    assert!(said.err.contains("Open https://id.example/device and enter WXYZ-1234"), "{said:?}");
    let stored = said.field("Stored").strip_suffix(" (mode 0600)").unwrap();
    assert!(stored.starts_with(user.home().to_str().unwrap()), "{stored}");
    assert_eq!(std::fs::metadata(stored).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!said.out.contains("s3cret") && !said.err.contains("s3cret"));
    // The token has expired already, so it is renewed; the new one is kept.
    for _ in 0..2 {
        let said = user.run(&["send", &agent.url, "hi", "--async", "--debug"]).ok();
        assert!(!said.err.contains("s3cret"), "{said:?}");
        assert_eq!(agent.calls().last().unwrap().header("authorization"), Some("Bearer renewed-s3cret"));
    }
    assert_eq!(agent.calls().iter().filter(|call| call.text.contains("refresh_token")).count(), 1);
    // A credential that is given goes before it.
    user.run(&["send", &agent.url, "hi", "--async", "--bearer", "s3cret"]).ok();
    assert_eq!(agent.calls().last().unwrap().header("authorization"), Some("Bearer s3cret"));
    // Another user has nothing.
    User::new().run(&["send", &agent.url, "hi", "--async"]).failed(4);
}

#[test]
fn p09_cli_auth_006_a_program_logs_in_with_its_secret() {
    let (agent, user) = (agent(), User::new());
    let args = [
        "auth",
        "login",
        &agent.url,
        "--client-id",
        "me",
        "--scheme",
        "programs",
        "--client-secret-env",
        "MINE",
        "-o",
        "json",
    ];
    user.run(&args).failed(2);
    let said = Said::of(user.command(&args).env("MINE", "cl1ent")).ok();
    assert_eq!(said.json()["scheme"], "programs");
    let kept = std::fs::read_to_string(said.json()["stored"].as_str().unwrap()).unwrap();
    assert!(!kept.contains("cl1ent"), "the client's secret is not kept");
    user.run(&["send", &agent.url, "hi", "--async"]).ok();
    let said = user.run(&["auth", "login", &agent.url, "--client-id", "me", "--scheme", "nobody"]).failed(2);
    assert!(said.err.contains("people, programs"), "{said:?}");
}

/// The authorization server describes itself, as OpenID Connect has it.
#[test]
fn p09_cli_auth_010_a_login_at_an_openid_provider() {
    let place = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let known = std::sync::Arc::clone(&place);
    let agent = Scripted::start(
        move |url| {
            *known.lock().unwrap() = url.to_owned();
            let scheme = json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": format!("{url}/.well-known/openid-configuration")}});
            card(
                url,
                json!({"securitySchemes": {"corp": scheme}, "securityRequirements": [{"schemes": {"corp": {"list": []}}}]}),
            )
        },
        move |heard, before| match heard.target.as_str() {
            "/.well-known/openid-configuration" => {
                let url = place.lock().unwrap().clone();
                let described = json!({"issuer": url, "token_endpoint": format!("{url}/token"),
                    "authorization_endpoint": format!("{url}/authorize"),
                    "device_authorization_endpoint": format!("{url}/device")});
                Answer::Plain(200, "application/json", described.to_string())
            }
            _ => answer(heard, before + 2),
        },
    );
    let user = User::new();
    let said = user.run(&["auth", "login", &agent.url, "--client-id", "me"]).ok();
    assert_eq!(said.field("Security scheme"), "corp");
    user.run(&["send", &agent.url, "hi", "--async"]).ok();
}
