//! Agents that are silent, refuse, fail for a while or never end: the commands end, and nothing is lost.

use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::User;
use super::scripted::{Answer, Heard, Scripted, card, task};

fn streaming(url: &str) -> Value {
    card(url, json!({"capabilities": {"streaming": true, "pushNotifications": true}}))
}

fn status(state: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": {"state": state}}})
}

/// Takes connections and says nothing, for as long as the test runs.
fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let _open: Vec<TcpStream> = listener.incoming().map_while(Result::ok).collect();
    });
    url
}

/// One time limit for everything that a command does: finding the card, sending, opening a stream, reading.
#[test]
fn p09_cli_task_poll_002_a_silent_agent_runs_into_the_timeout() {
    let (nothing, user) = (silent(), User::new());
    // With a card, and silent behind it.
    let silent_calls = nothing.clone();
    let after_the_card = Scripted::start(
        move |url| {
            let mut card = streaming(url);
            card["supportedInterfaces"][0]["url"] = json!(format!("{silent_calls}/rpc"));
            card
        },
        |_, _| Answer::Error(-32603, "not called"),
    );
    for agent in [&nothing, &after_the_card.url] {
        for args in [
            &["send", agent, "hi"][..],
            &["send", agent, "hi", "--stream"],
            &["send", agent, "hi", "--async"],
            &["task", "get", agent, "t-1"],
            &["task", "get", agent, "t-1", "--wait"],
            &["task", "list", agent, "--all"],
            &["task", "cancel", agent, "t-1"],
            &["task", "subscribe", agent, "t-1"],
            &["task", "push-config", "list", agent, "t-1"],
        ] {
            let said = user.run(&[args, &["--timeout", "300ms", "-o", "json"]].concat()).failed(5);
            assert_eq!(said.error().0, "A2ACLI_ERR_TIMEOUT", "{args:?}");
        }
    }
    let said = user.run(&["card", "get", &nothing, "--timeout", "300ms", "-o", "json"]).failed(5);
    assert_eq!(said.error().0, "A2ACLI_ERR_TIMEOUT");
    let said = user.run_with(&["chat", &nothing, "--timeout", "300ms", "-o", "json"], "hi\n").failed(5);
    assert_eq!(said.error().0, "A2ACLI_ERR_TIMEOUT");
}

/// The card says more than the agent can do.
#[test]
fn p09_cli_send_003_a_refused_stream_is_replaced_by_polling() {
    let user = User::new();
    for form in [&[][..], &["--stream"], &["-o", "json"], &["-o", "json", "--stream"]] {
        let agent = Scripted::start(streaming, |heard, before| match heard.rpc() {
            "SendStreamingMessage" => Answer::Error(-32004, "no streams here"),
            "SendMessage" => Answer::Result(json!({"task": task("TASK_STATE_WORKING")})),
            "GetTask" if before < 3 => Answer::Result(task("TASK_STATE_WORKING")),
            _ => Answer::Result(task("TASK_STATE_COMPLETED")),
        });
        let said = user.run(&[&["send", &agent.url, "hi", "--poll-interval", "20ms"], form].concat()).ok();
        assert!(said.out.contains("TASK_STATE_COMPLETED"), "{said:?}");
        let sent: Vec<String> = agent.calls().iter().map(|call| call.rpc().to_owned()).collect();
        assert_eq!(sent.iter().filter(|call| *call == "SendMessage").count(), 1, "{sent:?}");
    }
}

/// The agent has taken the task, and then it cannot be asked about it: the id must not be lost.
#[test]
fn p09_cli_task_poll_002_the_id_is_told_when_polling_fails() {
    let user = User::new();
    for (streams, form) in [
        (true, &[][..]),
        (true, &["--stream"]),
        (false, &["-o", "json"]),
        (false, &["-o", "json", "--stream"]),
    ] {
        let agent = Scripted::start(
            move |url| card(url, json!({"capabilities": {"streaming": streams}})),
            |heard, _| match heard.rpc() {
                "SendStreamingMessage" => Answer::Events(vec![json!({"task": task("TASK_STATE_WORKING")})]),
                "SendMessage" => Answer::Result(json!({"task": task("TASK_STATE_WORKING")})),
                "SubscribeToTask" => Answer::Error(-32004, "no subscriptions here"),
                _ => Answer::Plain(404, "text/plain", "gone".to_owned()),
            },
        );
        let said =
            user.run(&[&["send", &agent.url, "hi", "--poll-interval", "20ms"], form].concat()).failed(1);
        assert!(said.err.contains("Task: t-1\n"), "{said:?}");
        let hint = format!("baton task get -a {} --wait t-1", agent.url);
        assert!(said.out.contains(&hint) || said.err.contains(&hint), "{said:?}");
    }
}

/// Looking fails for a while, in every form of the result.
#[test]
fn p09_cli_task_poll_004_failing_looks_are_repeated_with_and_without_stream() {
    let user = User::new();
    for status in [500, 502, 503] {
        for form in [&[][..], &["--stream"], &["-o", "json", "--stream"]] {
            let agent = Scripted::start(
                |url| card(url, json!({})),
                move |heard, before| match heard.rpc() {
                    "SendMessage" => Answer::Result(json!({"task": task("TASK_STATE_WORKING")})),
                    _ if before < 3 => Answer::Plain(status, "text/plain", "restarting".to_owned()),
                    _ => Answer::Result(task("TASK_STATE_COMPLETED")),
                },
            );
            let args = [&["send", &agent.url, "hi", "--poll-interval", "20ms"], form].concat();
            assert!(user.run(&args).ok().out.contains("TASK_STATE_COMPLETED"), "{status} {form:?}");
        }
    }
}

/// A look that takes longer than the notice of the task's id is waited for, not begun again.
#[test]
fn p09_cli_task_poll_002_a_slow_look_is_not_repeated() {
    let agent = Scripted::start(
        |url| card(url, json!({})),
        |heard, _| match heard.rpc() {
            "SendMessage" => Answer::Result(json!({"task": task("TASK_STATE_WORKING")})),
            _ => {
                thread::sleep(Duration::from_millis(1500)); // tidy: allow-sleep longer than until the id is told
                Answer::Result(task("TASK_STATE_COMPLETED"))
            }
        },
    );
    let said = User::new().run(&["send", &agent.url, "hi", "--poll-interval", "20ms"]).ok();
    assert!(said.err.contains("Waiting for task t-1;"), "{said:?}");
    // The look that found the end, and the one for the whole task.
    assert_eq!(agent.calls().iter().filter(|call| call.rpc() == "GetTask").count(), 2);
}

/// The subscription shows only what happens from now on: what was missed is shown at the end.
#[test]
fn p09_cli_send_003_what_a_broken_stream_missed_is_shown() {
    let user = User::new();
    for state in ["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"] {
        let agent = Scripted::start(streaming, move |heard, _| {
            let mut whole = task(state);
            whole["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": "missed"}]}]);
            match heard.rpc() {
                "SendStreamingMessage" => Answer::Cut(vec![json!({"task": task("TASK_STATE_WORKING")})]),
                "SubscribeToTask" => Answer::Events(vec![status(state)]),
                _ => Answer::Result(whole),
            }
        });
        for form in [&[][..], &["--stream"], &["-o", "json", "--stream"]] {
            let said = user.run(&[&["send", &agent.url, "hi"], form].concat()).ok();
            assert!(said.out.contains("missed"), "{state} {form:?}: {said:?}");
        }
    }
}

/// A list that leads in a circle, or only on.
#[test]
fn p09_cli_task_list_001_lists_without_end_are_given_up() {
    let user = User::new();
    for circle in [true, false] {
        let page = move |heard: &Heard, before: usize| {
            let next = if circle { before % 3 } else { before };
            let items = if circle { json!([task("TASK_STATE_WORKING")]) } else { json!([]) };
            Answer::Result(match heard.rpc() {
                "ListTasks" => json!({"tasks": items, "nextPageToken": next.to_string()}),
                _ => json!({"configs": [], "nextPageToken": next.to_string()}),
            })
        };
        let agent = Scripted::start(streaming, page);
        for args in
            [&["task", "list", &agent.url, "--all"][..], &["task", "push-config", "list", &agent.url, "t-1"]]
        {
            let said = user.run(&[args, &["-o", "json"]].concat()).failed(1);
            assert_eq!(said.error().0, "InvalidAgentResponseError", "{said:?}");
        }
    }
}

#[test]
fn p09_cli_out_002_nesting_without_end_is_refused() {
    let deep = format!(r#"{{"id":"t-1","x":{}1{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    let interface = |url: &str| json!([{"url": format!("{url}/rest"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}]);
    let agent = Scripted::start(
        |url| card(url, json!({"supportedInterfaces": interface(url)})),
        move |_, _| Answer::Plain(200, "application/a2a+json", deep.clone()),
    );
    let said = User::new().run(&["task", "get", &agent.url, "t-1", "-o", "json"]).failed(1);
    assert_eq!(said.error().0, "InvalidAgentResponseError", "{said:?}");
}
