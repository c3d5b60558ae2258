//! Logging in with OAuth, and the tokens that are kept.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

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
    // It is a credential as any other.
    let said = user.run(&["send", &agent.url, "hi", "--async", "--insecure"]).ok();
    assert!(said.err.contains("CREDENTIALS ARE SENT"), "{said:?}");
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

/// A card file with a login at this authorization server, whose agent is there.
fn card_file(url: &str, authorization: &str) -> String {
    let flow = json!({"deviceAuthorizationUrl": format!("{authorization}/device"), "tokenUrl": format!("{authorization}/token"), "scopes": {}});
    let scheme = json!({"oauth2SecurityScheme": {"flows": {"deviceCode": flow}}});
    let requirements = json!([{"schemes": {"people": {"list": []}}}]);
    card(url, json!({"securitySchemes": {"people": scheme}, "securityRequirements": requirements}))
        .to_string()
}

/// A file of the same name in another folder, and a file that was changed after the login.
#[test]
fn p09_cli_auth_007_the_token_of_a_card_file_is_for_its_own_agents() {
    let ours = Scripted::start(|_| json!({}), |heard, before| answer(heard, before + 2));
    let theirs =
        Scripted::start(|_| json!({}), |_, _| Answer::Plain(401, "application/json", "{}".to_owned()));
    let user = User::new();
    let other = user.folder().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(user.folder().join("card.json"), card_file(&ours.url, &ours.url)).unwrap();
    std::fs::write(other.join("card.json"), card_file(&theirs.url, &ours.url)).unwrap();
    user.run(&["auth", "login", "-a", "card.json", "--client-id", "me"]).ok();
    let send = ["send", "-a", "card.json", "hi", "--async"];
    user.run(&send).ok();
    Said::of(user.command(&send).current_dir(&other)).failed(4);
    // The same file by another name has the token.
    let absolute = user.folder().join("other/../card.json").display().to_string();
    user.run(&["send", "-a", &absolute, "hi", "--async"]).ok();
    // The file leads elsewhere now.
    std::fs::write(user.folder().join("card.json"), card_file(&theirs.url, &ours.url)).unwrap();
    let said = user.run(&send).failed(4);
    assert!(said.err.contains("log in again"), "{said:?}");
    for heard in theirs.heard() {
        assert_eq!(heard.header("authorization"), None, "{heard:?}");
    }
}

/// A server accepts a refresh token once. Both processes have the old token, and both are refused with it at the same time.
#[test]
fn p09_cli_auth_007_two_processes_renew_a_token_once() {
    let both = std::sync::Barrier::new(2);
    let agent = Scripted::start(login_card, move |heard, before| {
        let json = |status: u16, body: Value| Answer::Plain(status, "application/json", body.to_string());
        let refreshed = heard.text.contains("grant_type=refresh_token");
        match (heard.target.as_str(), heard.header("authorization")) {
            ("/token", _) if refreshed && !heard.text.contains("refresh_token=first") => {
                json(400, json!({"error": "invalid_grant"}))
            }
            ("/token", _) => {
                let (access, refresh) = if refreshed { ("second", "of-second") } else { ("first", "first") };
                json(
                    200,
                    json!({"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh}),
                )
            }
            ("/rpc", Some("Bearer first")) => {
                tokio::task::block_in_place(|| both.wait());
                json(401, json!({}))
            }
            ("/rpc", Some("Bearer second")) => Answer::Result(json!({"task": task("TASK_STATE_COMPLETED")})),
            _ => answer(heard, before),
        }
    });
    let user = User::new();
    user.run(&["auth", "login", &agent.url, "--client-id", "me"]).ok();
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| user.run(&["send", &agent.url, "hi", "--async"]).ok());
        }
    });
    let renewals = agent.calls().iter().filter(|call| call.text.contains("grant_type=refresh_token")).count();
    assert_eq!(renewals, 1);
}

fn login_card(url: &str) -> Value {
    serde_json::from_str(&card_file(url, url)).unwrap()
}

/// The command gives up waiting while the server has replaced the token already.
#[test]
fn p09_cli_auth_007_a_command_that_gives_up_keeps_the_renewed_token() {
    let agent = Scripted::start(login_card, |heard, before| {
        if heard.text.contains("grant_type=refresh_token") {
            std::thread::sleep(Duration::from_secs(1)); // tidy: allow-sleep longer than the command waits
        }
        answer(heard, before + 2)
    });
    let user = User::new();
    let said = user.run(&["auth", "login", &agent.url, "--client-id", "me"]).ok();
    let stored = said.field("Stored").strip_suffix(" (mode 0600)").unwrap().to_owned();
    user.run(&["task", "get", &agent.url, "t-1", "--wait", "--timeout", "100ms"]).failed(5);
    assert!(std::fs::read_to_string(stored).unwrap().contains("renewed-s3cret"));
}

/// What was asked for at the login is asked for again when a program renews its token.
#[test]
fn p09_cli_auth_007_a_renewal_asks_for_the_scopes_of_the_login() {
    let agent = Scripted::start(
        |url| {
            let flow = json!({"clientCredentials": {"tokenUrl": format!("{url}/token"), "scopes": {}}});
            let scheme = json!({"oauth2SecurityScheme": {"flows": flow}});
            let requirements = json!([{"schemes": {"programs": {"list": ["everything"]}}}]);
            card(url, json!({"securitySchemes": {"programs": scheme}, "securityRequirements": requirements}))
        },
        |heard, before| match heard.target.as_str() {
            "/token" => {
                let token = json!({"access_token": "s3cret", "token_type": "Bearer", "expires_in": 1});
                Answer::Plain(200, "application/json", token.to_string())
            }
            _ => answer(heard, before),
        },
    );
    let user = User::new();
    let login =
        ["auth", "login", &agent.url, "--client-id", "me", "--client-secret-env", "MINE", "--scope", "read"];
    Said::of(user.command(&login).env("MINE", "cl1ent")).ok();
    Said::of(user.command(&["send", &agent.url, "hi", "--async"]).env("MINE", "cl1ent")).ok();
    let asked: Vec<_> =
        agent.calls().into_iter().filter(|call| call.target == "/token").map(|call| call.text).collect();
    assert_eq!(asked, ["grant_type=client_credentials&scope=read"; 2]);
}

/// The card sends the user to the real server, and would have the code sent to the agent.
#[test]
fn p09_cli_auth_005_the_code_of_a_login_goes_to_the_server_that_issued_it() {
    let (real, user) = (agent(), User::new());
    let device = format!("{}/device", real.url);
    let thief = Scripted::start(
        |url| {
            let flow =
                json!({"deviceAuthorizationUrl": device, "tokenUrl": format!("{url}/token"), "scopes": {}});
            let scheme = json!({"oauth2SecurityScheme": {"flows": {"deviceCode": flow}}});
            card(url, json!({"securitySchemes": {"people": scheme}}))
        },
        |heard, before| answer(heard, before + 2),
    );
    let login = ["auth", "login", thief.url.as_str(), "--client-id", "me", "-o", "json"];
    let said = user.run(&login).failed(4);
    assert!(said.error().1.contains("--issuer"), "{said:?}");
    assert!(thief.calls().is_empty() && real.calls().is_empty(), "nothing was sent");
    // A user who knows both says so.
    user.run(&[&login[..], &["--issuer", &real.url, "--issuer", &thief.url]].concat()).ok();
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
