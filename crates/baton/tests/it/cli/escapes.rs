//! What an agent says is shown, and not obeyed: nothing in it drives the terminal or passes for a line of ours.

use serde_json::{Value, json};

use super::User;
use super::scripted::{Answer, Heard, Scripted, card};

/// Clears the screen, sets the title, rings the bell, asks the terminal for an answer, reverses the reading direction, hides
/// text, and pretends to be a field.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;pwned\u{7}\u{9b}31m\u{90}q\u{9c}\u{8}\u{0}\u{7f}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\u{2028}\
                    \r\nState: TASK_STATE_FORGED\n\nTask: forged\rError: forged";

/// An object of every kind, with that text wherever text may stand.
fn evil_task() -> Value {
    let parts = json!([{"text": EVIL, "metadata": {EVIL: EVIL}}, {"data": {EVIL: [EVIL]}}, {"url": EVIL, "filename": EVIL},
                       {"raw": "AA==", "filename": EVIL, "mediaType": EVIL}, {"raw": EVIL}, {EVIL: EVIL}]);
    let message = json!({"messageId": format!("m{EVIL}"), "role": format!("ROLE_{EVIL}"), "parts": parts, "metadata": {"k": EVIL}});
    json!({"id": "t-1", "contextId": format!("c{EVIL}"),
        "status": {"state": "TASK_STATE_COMPLETED", "timestamp": EVIL, "message": message},
        "artifacts": [{"artifactId": format!("a{EVIL}"), "name": EVIL, "description": EVIL, "parts": parts,
                       "metadata": {EVIL: EVIL}}],
        "history": [message], "metadata": {EVIL: EVIL}})
}

fn evil_card(url: &str) -> Value {
    let skill = json!({"id": EVIL, "name": EVIL, "description": EVIL, "tags": [EVIL], "examples": [EVIL],
                       "inputModes": [EVIL], "outputModes": [EVIL]});
    let schemes = json!({EVIL: {"apiKeySecurityScheme": {"location": "header", "name": EVIL}},
                         "o": {"oauth2SecurityScheme": {"flows": {"deviceCode": {
                            "deviceAuthorizationUrl": format!("{url}/device"), "tokenUrl": format!("{url}/token"), "scopes": {}}}}}});
    card(
        url,
        json!({"name": EVIL, "description": EVIL, "version": EVIL, "documentationUrl": EVIL, "skills": [skill],
               "provider": {"organization": EVIL, "url": EVIL}, "defaultInputModes": [EVIL], "defaultOutputModes": [EVIL],
               "capabilities": {"streaming": true, "pushNotifications": true, "extendedAgentCard": true,
                                "extensions": [{"uri": EVIL}]},
               "securitySchemes": schemes, "signatures": [{"protected": EVIL, "signature": EVIL}]}),
    )
}

fn answer(heard: &Heard, refuses: bool) -> Answer {
    let json = |status: u16, body: Value| Answer::Plain(status, "application/json", body.to_string());
    match (heard.target.as_str(), heard.rpc()) {
        ("/device", _) => json(
            200,
            json!({"device_code": "d", "user_code": EVIL, "expires_in": 60, "interval": 0, "verification_uri": EVIL}),
        ),
        ("/token", _) => json(400, json!({"error": EVIL, "error_description": EVIL})),
        _ if refuses => Answer::Error(-32001, EVIL),
        (_, "SendMessage") => Answer::Result(json!({"task": evil_task()})),
        (_, "SendStreamingMessage" | "SubscribeToTask") => {
            let mut working = evil_task();
            working["status"]["state"] = json!(format!("TASK_STATE_{EVIL}"));
            let ids = json!({"taskId": "t-1", "contextId": working["contextId"]});
            let event = |kind: &str, member: &str, value: &Value| {
                let mut event = ids.clone();
                event[member] = value.clone();
                json!({kind: event})
            };
            Answer::Events(vec![
                json!({"task": working}),
                event("statusUpdate", "status", &working["status"]),
                event("artifactUpdate", "artifact", &working["artifacts"][0]),
                event("statusUpdate", "status", &evil_task()["status"]),
            ])
        }
        (_, "ListTasks") => Answer::Result(
            json!({"tasks": [evil_task()], "nextPageToken": EVIL, "pageSize": 1, "totalSize": 2}),
        ),
        (_, "GetExtendedAgentCard") => Answer::Result(evil_card("http://h.example")),
        (_, name) if name.contains("PushNotificationConfig") => {
            let config = json!({"id": EVIL, "taskId": "t-1", "url": EVIL, "token": EVIL});
            Answer::Result(if name.starts_with("List") { json!({"configs": [config]}) } else { config })
        }
        _ => Answer::Result(evil_task()),
    }
}

/// Every command, in every form, with an agent that answers and with one that refuses.
#[test]
fn p09_cli_out_005_nothing_that_an_agent_sends_is_obeyed() {
    let user = User::new();
    for refuses in [false, true] {
        let agent = Scripted::start(evil_card, move |heard, _| answer(heard, refuses));
        let url = agent.url.as_str();
        let commands: &[&[&str]] = &[
            &["card", "get", url],
            &["card", "get", url, "--validate"],
            &["card", "get", url, "--extended"],
            &["send", url, "hi"],
            &["send", url, "hi", "--async"],
            &["send", url, "hi", "--stream"],
            &["task", "get", url, "t-1", "--history", "5"],
            &["task", "list", url, "--include-artifacts", "--history", "1"],
            &["task", "cancel", url, "t-1"],
            &["task", "subscribe", url, "t-1"],
            &["task", "download", url, "t-1", "--dir", "out", "--force"],
            &["task", "push-config", "create", url, "t-1", "--url", "https://h.example"],
            &["task", "push-config", "get", url, "t-1", "p-1"],
            &["task", "push-config", "list", url, "t-1"],
            &["task", "push-config", "delete", url, "t-1", "p-1"],
            &["auth", "login", url, "--client-id", "me"],
            &["conformance", url, "--select", "agent-card"],
            &["chat", url],
            &["config", "show", "-a", url],
        ];
        for command in commands {
            for form in [&[][..], &["--verbose"], &["--debug"], &["-o", "json"], &["-o", "json", "--stream"]]
            {
                let said = user.run_with(&[*command, form].concat(), "hello\n");
                assert!(said.code.is_some(), "{command:?}: it ends");
                for text in [&said.out, &said.err] {
                    let obeyed = |c: char| {
                        (c.is_control() && c != '\n')
                            || "\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\u{2028}".contains(c)
                    };
                    let found = text.chars().find(|c| obeyed(*c));
                    assert_eq!(found, None, "{command:?} {form:?}: {text}");
                    if !form.contains(&"json") {
                        let forged = text.lines().find(|line| {
                            ["State: TASK_STATE_FORGED", "Task: forged", "Error: forged"].contains(line)
                        });
                        assert_eq!(forged, None, "{command:?} {form:?}: {text}");
                    }
                }
            }
        }
    }
}
