//! P-02, P-04. Spec 4.2, 4.3 and 9: how streams begin and close, what a send waits for, how much history, which
//! context, and what an ended task answers, in each generation and binding.

use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::asking::{ALL_BINDINGS, Ask, Interface, Sending, answer, events, get, sending, state, task_of};
use crate::fixtures::{Gate, agent_with};
use crate::harness::{TestServer, serve_agent};
use crate::speakers::StreamEvent;

/// Asks a question or for credentials, and completes at the second message.
async fn asking(turn: Turn) -> Result<(), AgentError> {
    match (turn.is_first(), turn.text().as_str()) {
        (true, "ask") => drop(turn.ask("Which?")),
        (true, "auth") => drop(turn.require_auth("Sign in")),
        (true, "fail") => turn.fail("as asked").await?,
        (true, "reject") => turn.reject("as asked").await?,
        _ => turn.text_artifact("echo", turn.text()).await?,
    }
    Ok(())
}

fn id(task: &Value) -> String {
    task["id"].as_str().expect("a task has an id").to_owned()
}

/// `task submitted`, `status working`, `artifact`, in every generation. A final event ends with an exclamation mark.
fn line(event: &StreamEvent) -> String {
    let result = event.result();
    let inner =
        ["task", "statusUpdate", "artifactUpdate"].iter().find_map(|name| result.get(name)).unwrap_or(result);
    let last = if inner["final"] == true { "!" } else { "" };
    let whole = result.get("task").is_some() || result["kind"] == "task";
    match inner.get("status") {
        Some(_) => format!("{} {}{last}", if whole { "task" } else { "status" }, state(inner)),
        None => "artifact".to_owned(),
    }
}

async fn lines(server: &TestServer, interface: Interface, ask: &Ask) -> Vec<String> {
    let mut stream = events(server, interface, ask)
        .await
        .unwrap_or_else(|no| panic!("{interface:?} {ask:?}: {}", no.body));
    stream.rest().await.iter().map(line).collect()
}

/// Polls until the task has ended or waits.
async fn rested(server: &TestServer, interface: Interface, id: &str) -> Value {
    loop {
        let task = task_of(server, interface, &get(id)).await;
        if !["submitted", "working"].contains(&state(&task).as_str()) {
            return task;
        }
    }
}

/// Spec 4.2: first a task (0.1: a status), then updates, closed at an end and at input-required; `final` where
/// the generation has it.
#[tokio::test]
async fn p04_how_a_stream_begins_and_closes() {
    let server = serve_agent(asking).await;
    for interface in ALL_BINDINGS {
        let (first, mark) = match interface.in_json() {
            Interface::V1Rpc | Interface::V1Rest => ("task", ""),
            Interface::V03Rpc | Interface::V03Rest => ("task", "!"),
            _ => ("status", "!"),
        };
        for (text, last) in [
            ("ask", "input-required"),
            ("hello", "completed"),
            ("fail", "failed"),
            ("reject", if interface == Interface::V01 { "failed" } else { "rejected" }),
        ] {
            let all = lines(&server, interface, &Ask::Stream(sending(text))).await;
            let mut expected = vec![format!("{first} submitted"), "status working".to_owned()];
            expected.extend((text == "hello").then(|| "artifact".to_owned()));
            expected.push(format!("status {last}{mark}"));
            assert_eq!(all, expected, "{interface:?} {text}");
        }
    }
}

/// Spec 4.2: a task that waits for credentials may continue by itself, so the stream stays open; 0.1 has no such state.
#[tokio::test]
async fn p04_a_stream_stays_open_while_credentials_are_awaited() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        let question = turn.require_auth("Sign in");
        gate.pass().await;
        drop(question);
        turn.resume().await?;
        Ok(())
    }))
    .await;
    for interface in ALL_BINDINGS {
        let mut stream = events(&server, interface, &Ask::Stream(sending("open"))).await.ok().unwrap();
        let mut all = Vec::new();
        while let Some(event) = stream.next().await {
            all.push(line(&event));
            if all.last().unwrap().contains("auth-required") {
                gate.let_pass(1);
            }
        }
        match interface.in_json() {
            Interface::V01 => {
                assert_eq!(all.last().map(String::as_str), Some("status input-required!"));
                gate.let_pass(1);
            }
            Interface::V1Rpc | Interface::V1Rest => assert_eq!(
                all,
                [
                    "task submitted",
                    "status working",
                    "status auth-required",
                    "status working",
                    "status completed"
                ]
            ),
            _ => assert_eq!(
                all,
                [
                    "task submitted",
                    "status working",
                    "status auth-required",
                    "status working",
                    "status completed!"
                ]
            ),
        }
    }
}

/// Spec 4.3: the task first; an ended task is refused; a waiting one stays open in 1.0 and closes in the others.
#[tokio::test]
async fn p02_subscribing_to_a_task() {
    let server = serve_agent(asking).await;
    for interface in ALL_BINDINGS {
        let task = id(&task_of(&server, interface, &Ask::Send(sending("ask"))).await);
        rested(&server, interface, &task).await;
        let mut stream = events(&server, interface, &Ask::Subscribe(task.clone())).await.ok().unwrap();
        let first = line(&stream.next().await.unwrap());
        let answer_it = Ask::Send(Sending { task: Some(task.clone()), ..sending("blue") });
        match interface.in_json() {
            Interface::V1Rpc | Interface::V1Rest => {
                assert_eq!(first, "task input-required");
                task_of(&server, interface, &answer_it).await;
                let rest: Vec<_> = stream.rest().await.iter().map(line).collect();
                assert_eq!(rest, ["status working", "artifact", "status completed"]);
            }
            Interface::V03Rpc | Interface::V03Rest => assert_eq!(first, "task input-required"),
            _ => assert_eq!(first, "status input-required!"),
        }
        if !matches!(interface.in_json(), Interface::V1Rpc | Interface::V1Rest) {
            assert_eq!(stream.next().await, None, "{interface:?}: nothing to wait for");
            task_of(&server, interface, &answer_it).await;
        }
        rested(&server, interface, &task).await;
        let refused = events(&server, interface, &Ask::Subscribe(task)).await.err().expect("it has ended");
        assert!(refused.body["error"]["code"].is_i64(), "{interface:?}");
    }
}

/// Spec 9.2: by default a send waits in 1.0 and in 0.3's JSON-RPC; in the protobuf of 0.3 an absent member means false, and
/// `tasks/send` does not wait.
#[tokio::test]
async fn s09_what_a_send_waits_for() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("echo", turn.text()).await?;
        Ok(())
    }))
    .await;
    for (interface, unsaid_waits) in [
        (Interface::V1Rpc, true),
        (Interface::V1Rest, true),
        (Interface::V03Rpc, true),
        (Interface::V03Rest, false),
        (Interface::V01, false),
        #[cfg(feature = "grpc")]
        (Interface::V1Grpc, true),
        #[cfg(feature = "grpc")]
        (Interface::V03Grpc, false),
    ] {
        for (wait, waits) in
            [(None, unsaid_waits), (Some(true), interface != Interface::V01), (Some(false), false)]
        {
            let ask = Ask::Send(Sending { wait, ..sending("hello") });
            if waits {
                gate.let_pass(1);
                let task = task_of(&server, interface, &ask).await;
                assert_eq!(state(&task), "completed", "{interface:?} {wait:?}");
                assert_eq!(
                    task["artifacts"].as_array().map(Vec::len),
                    Some(1),
                    "{interface:?}: all artifacts"
                );
            } else {
                let task = task_of(&server, interface, &ask).await;
                assert!(
                    ["submitted", "working"].contains(&state(&task).as_str()),
                    "{interface:?} {wait:?}: {task}"
                );
                gate.let_pass(1);
                rested(&server, interface, &id(&task)).await;
            }
        }
    }
}

/// A question ends the wait, and an answer that does not wait gets the task as working.
#[tokio::test]
async fn s08_an_answer_resumes_the_task() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        if turn.is_first() {
            drop(turn.ask("Which?"));
            return Ok(());
        }
        gate.pass().await;
        Ok(())
    }))
    .await;
    for interface in ALL_BINDINGS {
        let task = id(&task_of(&server, interface, &Ask::Send(sending("a shirt"))).await);
        assert_eq!(state(&rested(&server, interface, &task).await), "input-required");
        let blue = Sending { task: Some(task.clone()), wait: Some(false), ..sending("blue") };
        let resumed = task_of(&server, interface, &Ask::Send(blue)).await;
        assert_eq!(state(&resumed), "working", "{interface:?}");
        gate.let_pass(1);
        assert_eq!(state(&rested(&server, interface, &task).await), "completed");
    }
}

/// Spec 9.2 and ambiguity 11: a history length of 0 means no history, except in the protobuf of 0.3, where 0 is the same as
/// absent.
#[tokio::test]
async fn s10_how_much_history() {
    let server = serve_agent(asking).await;
    for interface in ALL_BINDINGS {
        let task = id(&task_of(&server, interface, &Ask::Send(sending("ask"))).await);
        rested(&server, interface, &task).await;
        let blue = Sending { task: Some(task.clone()), ..sending("blue") };
        task_of(&server, interface, &Ask::Send(blue)).await;
        rested(&server, interface, &task).await;
        // Messages: ask, Which?, blue. States in 0.1: submitted, working, input-required, working, completed.
        let all = if interface == Interface::V01 { 5 } else { 3 };
        let none = if interface.in_json() == Interface::V03Rest { Some(all) } else { None };
        for (history, expected) in [
            (None, Some(all)),
            (Some(0), none),
            (Some(1), Some(1)),
            (Some(2), Some(2)),
            (Some(99), Some(all)),
        ] {
            let shown = task_of(&server, interface, &Ask::Get { id: task.clone(), history }).await;
            let length = shown.get("history").map(|history| history.as_array().unwrap().len());
            assert_eq!(length, expected, "{interface:?} {history:?}");
        }
        let sent = task_of(
            &server,
            interface,
            &Ask::Send(Sending { history: Some(0), wait: Some(true), ..sending("hello") }),
        )
        .await;
        assert_eq!(sent.get("history").is_some(), interface.in_json() == Interface::V03Rest, "{interface:?}");
    }
}

/// Spec 9.2: a client's context is kept, a new one is made without one, and a task's context does not change.
#[tokio::test]
async fn p02_contexts() {
    let server = serve_agent(asking).await;
    for interface in ALL_BINDINGS {
        let member = if interface == Interface::V01 { "sessionId" } else { "contextId" };
        let named = Sending { context: Some("mine".to_owned()), ..sending("ask") };
        let task = task_of(&server, interface, &Ask::Send(named)).await;
        assert_eq!(task[member], "mine", "{interface:?}");
        let task = rested(&server, interface, &id(&task)).await;
        let to = |context: Option<&str>| Sending {
            task: Some(id(&task)),
            context: context.map(str::to_owned),
            ..sending("blue")
        };
        let wrong = answer(&server, interface, &Ask::Send(to(Some("other")))).await;
        if interface == Interface::V01 {
            // Ruling 3: the task's id decides, and the session that was sent is ignored.
            assert_eq!(wrong.result()[member], "mine", "{}", wrong.body);
        } else {
            let refused = if interface.is_rest() { (400, 400) } else { (200, -32602) };
            assert_eq!((wrong.status, wrong.error_code()), refused);
            let task = task_of(&server, interface, &get(&id(&task))).await;
            assert_eq!(state(&task), "input-required", "nothing happened");
            let inferred = task_of(&server, interface, &Ask::Send(to(None))).await;
            assert_eq!(inferred[member], "mine", "{interface:?}: inferred");
        }

        let [one, two] = [
            task_of(&server, interface, &Ask::Send(sending("hello"))).await,
            task_of(&server, interface, &Ask::Send(sending("hello"))).await,
        ];
        assert!(one[member].as_str().is_some_and(|made| !made.is_empty()), "{interface:?}");
        assert_ne!(one[member], two[member], "{interface:?}");
    }
}

/// Ruling 5, spec 3.2: only 1.0 accepts the cancel of a canceled task; tasks that ended otherwise cannot be canceled.
#[tokio::test]
async fn s11_cancel_and_cancel_again() {
    let server = serve_agent(obedient).await;
    for interface in ALL_BINDINGS {
        let held =
            id(&task_of(&server, interface, &Ask::Send(Sending { wait: Some(false), ..sending("hold") }))
                .await);
        assert_eq!(
            state(&task_of(&server, interface, &Ask::Cancel(held.clone())).await),
            "canceled",
            "{interface:?}"
        );
        let again = answer(&server, interface, &Ask::Cancel(held.clone())).await;
        match interface.in_json() {
            Interface::V1Rpc | Interface::V1Rest => assert_eq!(again.status, 200, "{interface:?}"),
            Interface::V03Rpc | Interface::V01 => assert_eq!(again.error_code(), -32002, "{interface:?}"),
            _ => assert_eq!((again.status, again.error_code()), (409, 409), "{interface:?}"),
        }
        assert_eq!(state(&task_of(&server, interface, &get(&held)).await), "canceled", "{interface:?}");
        let to = Sending { task: Some(held), ..sending("go on") };
        let refused = answer(&server, interface, &Ask::Send(to)).await;
        let code = match interface.in_json() {
            Interface::V1Rpc | Interface::V03Rpc => -32004,
            Interface::V01 => -32002,
            _ => 400,
        };
        assert_eq!(refused.error_code(), code, "{interface:?}");
    }
}

/// Only 0.1 lets the client choose a task's id; elsewhere an unknown id is an error.
#[tokio::test]
async fn s17_who_names_a_task() {
    let server = serve_agent(obedient).await;
    for interface in ALL_BINDINGS {
        let named = Ask::Send(Sending { task: Some(format!("named-{interface:?}")), ..sending("hello") });
        let got = answer(&server, interface, &named).await;
        match interface.in_json() {
            Interface::V01 => assert_eq!(got.result()["id"], "named-V01"),
            Interface::V1Rpc | Interface::V03Rpc => assert_eq!(got.error_code(), -32001),
            _ => {
                assert_eq!((got.status, &got.body["error"]["code"]), (404, &json!(404)))
            }
        }
    }
}
