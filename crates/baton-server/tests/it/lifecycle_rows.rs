//! P-02, P-04. Spec 4.2, 4.3 and 9: how streams begin and close, what a send waits for, how much history, which
//! context, and what an ended task answers, in each generation and binding.

use baton_server::{AgentError, Turn};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::asking::{Ask, FACES, Face, Said, answer, events, get, said, state, task_of};
use crate::harness::{TestServer, serve_agent};
use crate::speakers::Told;
use crate::stage::{Gate, agent_with};

/// Asks, or asks for credentials, and is done at the second message.
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

/// `task submitted`, `status working`, `artifact`: whatever the spelling. The end marker is an exclamation mark.
fn line(told: &Told) -> String {
    let result = told.result();
    let inner =
        ["task", "statusUpdate", "artifactUpdate"].iter().find_map(|name| result.get(name)).unwrap_or(result);
    let last = if inner["final"] == true { "!" } else { "" };
    let whole = result.get("task").is_some() || result["kind"] == "task";
    match inner.get("status") {
        Some(_) => format!("{} {}{last}", if whole { "task" } else { "status" }, state(inner)),
        None => "artifact".to_owned(),
    }
}

async fn lines(server: &TestServer, face: Face, ask: &Ask) -> Vec<String> {
    let mut stream =
        events(server, face, ask).await.unwrap_or_else(|no| panic!("{face:?} {ask:?}: {}", no.body));
    stream.rest().await.iter().map(line).collect()
}

/// Asks until the task has come to rest.
async fn rested(server: &TestServer, face: Face, id: &str) -> Value {
    loop {
        let task = task_of(server, face, &get(id)).await;
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
    for face in FACES {
        let (first, mark) = match face {
            Face::V1Rpc | Face::V1Rest => ("task", ""),
            Face::V03Rpc | Face::V03Rest => ("task", "!"),
            Face::V01 => ("status", "!"),
        };
        for (text, last) in [
            ("ask", "input-required"),
            ("hello", "completed"),
            ("fail", "failed"),
            ("reject", if face == Face::V01 { "failed" } else { "rejected" }),
        ] {
            let all = lines(&server, face, &Ask::Stream(said(text))).await;
            let mut expected = vec![format!("{first} submitted"), "status working".to_owned()];
            expected.extend((text == "hello").then(|| "artifact".to_owned()));
            expected.push(format!("status {last}{mark}"));
            assert_eq!(all, expected, "{face:?} {text}");
        }
    }
}

/// Spec 4.2: what waits for credentials may go on by itself, so the stream stays open; 0.1 has no such state.
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
    for face in FACES {
        let mut stream = events(&server, face, &Ask::Stream(said("open"))).await.ok().unwrap();
        let mut all = Vec::new();
        while let Some(told) = stream.next().await {
            all.push(line(&told));
            if all.last().unwrap().contains("auth-required") {
                gate.let_pass(1);
            }
        }
        match face {
            Face::V01 => {
                assert_eq!(all.last().map(String::as_str), Some("status input-required!"));
                gate.let_pass(1);
            }
            Face::V1Rpc | Face::V1Rest => assert_eq!(
                all,
                [
                    "task submitted",
                    "status working",
                    "status auth-required",
                    "status working",
                    "status completed"
                ]
            ),
            Face::V03Rpc | Face::V03Rest => assert_eq!(
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
    for face in FACES {
        let task = id(&task_of(&server, face, &Ask::Send(said("ask"))).await);
        rested(&server, face, &task).await;
        let mut stream = events(&server, face, &Ask::Subscribe(task.clone())).await.ok().unwrap();
        let first = line(&stream.next().await.unwrap());
        let answer_it = Ask::Send(Said { task: Some(task.clone()), ..said("blue") });
        match face {
            Face::V1Rpc | Face::V1Rest => {
                assert_eq!(first, "task input-required");
                task_of(&server, face, &answer_it).await;
                let rest: Vec<_> = stream.rest().await.iter().map(line).collect();
                assert_eq!(rest, ["status working", "artifact", "status completed"]);
            }
            Face::V03Rpc | Face::V03Rest => assert_eq!(first, "task input-required"),
            Face::V01 => assert_eq!(first, "status input-required!"),
        }
        if !matches!(face, Face::V1Rpc | Face::V1Rest) {
            assert_eq!(stream.next().await, None, "{face:?}: nothing to wait for");
            task_of(&server, face, &answer_it).await;
        }
        rested(&server, face, &task).await;
        let refused = events(&server, face, &Ask::Subscribe(task)).await.err().expect("it has ended");
        assert!(refused.body["error"]["code"].is_i64(), "{face:?}");
    }
}

/// Spec 9.2: unsaid, a send waits in 1.0 and in 0.3's JSON-RPC; in the protobuf of 0.3 unsaid is no, and `tasks/send`
/// answers at once.
#[tokio::test]
async fn s09_what_a_send_waits_for() {
    let gate = Gate::new();
    let server = serve_agent(agent_with(&gate, |gate, turn| async move {
        gate.pass().await;
        turn.text_artifact("echo", turn.text()).await?;
        Ok(())
    }))
    .await;
    for (face, unsaid_waits) in [
        (Face::V1Rpc, true),
        (Face::V1Rest, true),
        (Face::V03Rpc, true),
        (Face::V03Rest, false),
        (Face::V01, false),
    ] {
        for (wait, waits) in [(None, unsaid_waits), (Some(true), face != Face::V01), (Some(false), false)] {
            let ask = Ask::Send(Said { wait, ..said("hello") });
            if waits {
                gate.let_pass(1);
                let task = task_of(&server, face, &ask).await;
                assert_eq!(state(&task), "completed", "{face:?} {wait:?}");
                assert_eq!(task["artifacts"].as_array().map(Vec::len), Some(1), "{face:?}: all artifacts");
            } else {
                let task = task_of(&server, face, &ask).await;
                assert!(
                    ["submitted", "working"].contains(&state(&task).as_str()),
                    "{face:?} {wait:?}: {task}"
                );
                gate.let_pass(1);
                rested(&server, face, &id(&task)).await;
            }
        }
    }
}

/// A question ends the wait, and an answer that does not wait finds the task at work.
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
    for face in FACES {
        let task = id(&task_of(&server, face, &Ask::Send(said("a shirt"))).await);
        assert_eq!(state(&rested(&server, face, &task).await), "input-required");
        let blue = Said { task: Some(task.clone()), wait: Some(false), ..said("blue") };
        let resumed = task_of(&server, face, &Ask::Send(blue)).await;
        assert_eq!(state(&resumed), "working", "{face:?}");
        gate.let_pass(1);
        assert_eq!(state(&rested(&server, face, &task).await), "completed");
    }
}

/// Spec 9.2 and ambiguity 11: 0 is none, but in the protobuf of 0.3, where it is what a client sends that says
/// nothing.
#[tokio::test]
async fn s10_how_much_history() {
    let server = serve_agent(asking).await;
    for face in FACES {
        let task = id(&task_of(&server, face, &Ask::Send(said("ask"))).await);
        rested(&server, face, &task).await;
        let blue = Said { task: Some(task.clone()), ..said("blue") };
        task_of(&server, face, &Ask::Send(blue)).await;
        rested(&server, face, &task).await;
        // Messages: ask, Which?, blue. States in 0.1: submitted, working, input-required, working, completed.
        let all = if face == Face::V01 { 5 } else { 3 };
        let none = if face == Face::V03Rest { Some(all) } else { None };
        for (history, expected) in [
            (None, Some(all)),
            (Some(0), none),
            (Some(1), Some(1)),
            (Some(2), Some(2)),
            (Some(99), Some(all)),
        ] {
            let shown = task_of(&server, face, &Ask::Get { id: task.clone(), history }).await;
            let length = shown.get("history").map(|history| history.as_array().unwrap().len());
            assert_eq!(length, expected, "{face:?} {history:?}");
        }
        let sent =
            task_of(&server, face, &Ask::Send(Said { history: Some(0), wait: Some(true), ..said("hello") }))
                .await;
        assert_eq!(sent.get("history").is_some(), face == Face::V03Rest, "{face:?}");
    }
}

/// Spec 9.2: a client's context is kept, one is made where there is none, and a task does not change its own.
#[tokio::test]
async fn p02_contexts() {
    let server = serve_agent(asking).await;
    for face in FACES {
        let member = if face == Face::V01 { "sessionId" } else { "contextId" };
        let named = Said { context: Some("mine".to_owned()), ..said("ask") };
        let task = task_of(&server, face, &Ask::Send(named)).await;
        assert_eq!(task[member], "mine", "{face:?}");
        let task = rested(&server, face, &id(&task)).await;
        let to = |context: Option<&str>| Said {
            task: Some(id(&task)),
            context: context.map(str::to_owned),
            ..said("blue")
        };
        let wrong = answer(&server, face, &Ask::Send(to(Some("other")))).await;
        if face == Face::V01 {
            // Ruling 3: the task's id decides, and the session that was sent is ignored.
            assert_eq!(wrong.result()[member], "mine", "{}", wrong.body);
        } else {
            let refused = if face.is_rest() { (400, 400) } else { (200, -32602) };
            assert_eq!((wrong.status, wrong.error_code()), refused);
            let task = task_of(&server, face, &get(&id(&task))).await;
            assert_eq!(state(&task), "input-required", "nothing happened");
            let inferred = task_of(&server, face, &Ask::Send(to(None))).await;
            assert_eq!(inferred[member], "mine", "{face:?}: inferred");
        }

        let [one, two] = [
            task_of(&server, face, &Ask::Send(said("hello"))).await,
            task_of(&server, face, &Ask::Send(said("hello"))).await,
        ];
        assert!(one[member].as_str().is_some_and(|made| !made.is_empty()), "{face:?}");
        assert_ne!(one[member], two[member], "{face:?}");
    }
}

/// Ruling 5, spec 3.2: a canceled task is canceled again in 1.0 alone; any other end is final.
#[tokio::test]
async fn s11_cancel_and_cancel_again() {
    let server = serve_agent(obedient).await;
    for face in FACES {
        let held = id(&task_of(&server, face, &Ask::Send(Said { wait: Some(false), ..said("hold") })).await);
        assert_eq!(state(&task_of(&server, face, &Ask::Cancel(held.clone())).await), "canceled", "{face:?}");
        let again = answer(&server, face, &Ask::Cancel(held.clone())).await;
        match face {
            Face::V1Rpc | Face::V1Rest => assert_eq!(again.status, 200, "{face:?}"),
            Face::V03Rpc | Face::V01 => assert_eq!(again.error_code(), -32002, "{face:?}"),
            Face::V03Rest => assert_eq!((again.status, again.error_code()), (409, 409), "{face:?}"),
        }
        assert_eq!(state(&task_of(&server, face, &get(&held)).await), "canceled", "{face:?}");
        let to = Said { task: Some(held), ..said("go on") };
        let refused = answer(&server, face, &Ask::Send(to)).await;
        let code = match face {
            Face::V1Rpc | Face::V03Rpc => -32004,
            Face::V01 => -32002,
            Face::V1Rest | Face::V03Rest => 400,
        };
        assert_eq!(refused.error_code(), code, "{face:?}");
    }
}

/// 0.1 alone lets the client name a task; elsewhere a name nobody knows is no task.
#[tokio::test]
async fn s17_who_names_a_task() {
    let server = serve_agent(obedient).await;
    for face in FACES {
        let named = Ask::Send(Said { task: Some(format!("named-{face:?}")), ..said("hello") });
        let got = answer(&server, face, &named).await;
        match face {
            Face::V01 => assert_eq!(got.result()["id"], "named-V01"),
            Face::V1Rpc | Face::V03Rpc => assert_eq!(got.error_code(), -32001),
            Face::V1Rest | Face::V03Rest => {
                assert_eq!((got.status, &got.body["error"]["code"]), (404, &json!(404)))
            }
        }
    }
}
