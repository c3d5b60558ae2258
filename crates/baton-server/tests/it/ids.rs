//! S-17, P-02. Spec 3.4 and 9.2 of our reference: the server chooses task ids, contexts group tasks, and a message's task
//! and context must belong together.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::agents::obedient;
use crate::callers::{call_as, serve_owners};
use crate::harness::{Answer, TestServer, id, message, serve_agent, state};

async fn send(server: &TestServer, text: &str, members: Value) -> Answer {
    server.call("SendMessage", with_members(text, members)).await
}

fn with_members(text: &str, members: Value) -> Value {
    let mut params = message(text);
    for (name, value) in members.as_object().unwrap() {
        params["message"][name] = value.clone();
    }
    params
}

#[track_caller]
fn refused(answer: &Answer, code: i64, expected_text: &str) {
    assert_eq!((answer.status, answer.error_code()), (200, code), "{}", answer.body);
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains(expected_text), "{message}");
}

#[tokio::test]
async fn s17_the_server_makes_task_and_context_ids() {
    let server = serve_agent(obedient).await;
    let (one, two) = (server.send("a").await, server.send("a").await);
    for task in [&one, &two] {
        for member in ["id", "contextId"] {
            let id = task[member].as_str().unwrap();
            assert!(Uuid::try_parse(id).is_ok_and(|uuid| uuid.to_string() == id), "{member} {id}");
        }
        // The message in the history has them, too.
        assert_eq!(task["history"][0]["taskId"], task["id"]);
        assert_eq!(task["history"][0]["contextId"], task["contextId"]);
    }
    assert_ne!(one["id"], two["id"]);
    assert_ne!(one["contextId"], two["contextId"]);
}

#[tokio::test]
async fn p02_a_context_of_the_clients_own_is_kept_and_groups_tasks() {
    let server = serve_agent(obedient).await;
    for context in ["mine", "c:1/2 %20", "ünï 😀", &"x".repeat(256)] {
        let one = send(&server, "a", json!({"contextId": context})).await.result()["task"].clone();
        let two = send(&server, "b", json!({"contextId": context})).await.result()["task"].clone();
        assert_eq!(one["contextId"], context);
        assert_eq!(two["contextId"], context);
        assert_ne!(one["id"], two["id"], "a context alone starts a new task");
        let listed = server.call("ListTasks", json!({"contextId": context})).await;
        assert_eq!(listed.result()["totalSize"], 2, "{context}");
    }
    // An ended task's context can be used for new tasks.
    let first = server.send("a").await;
    let next = send(&server, "b", json!({"contextId": first["contextId"]})).await;
    assert_eq!(next.result()["task"]["contextId"], first["contextId"]);
}

#[tokio::test]
async fn p02_a_task_alone_tells_its_context() {
    let server = serve_agent(obedient).await;
    let task = send(&server, "ask", json!({"contextId": "mine"})).await.result()["task"].clone();
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let next = send(&server, "ask", json!({"taskId": task["id"]})).await.result()["task"].clone();
    assert_eq!((&next["id"], &next["contextId"]), (&task["id"], &task["contextId"]));
    // Both ids are accepted if they belong together; an empty context counts as none.
    for context in ["mine", ""] {
        let next = send(&server, "ask", json!({"taskId": task["id"], "contextId": context})).await;
        let history = next.result()["task"]["history"].as_array().unwrap().clone();
        let last = history.iter().rfind(|message| message["role"] == "ROLE_USER").unwrap();
        assert_eq!((&last["taskId"], &last["contextId"]), (&task["id"], &json!("mine")));
    }
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 1);
}

#[tokio::test]
async fn p02_a_context_that_is_not_the_tasks_is_refused() {
    let server = serve_agent(obedient).await;
    let waiting = server.send("ask").await;
    let busy = server.start("hold").await;
    let ended = server.send("a").await;
    for task in [&waiting, &busy, &ended] {
        let answer = send(&server, "b", json!({"taskId": task["id"], "contextId": "another"})).await;
        refused(&answer, -32602, "message.contextId");
        assert_eq!(answer.body["error"]["data"][1]["fieldViolations"][0]["field"], "message.contextId");
        assert_eq!(server.get(id(task)).await["history"], task["history"], "nothing was added");
    }
}

/// Spec 3.1.1: an ended task accepts no message; its context can continue with a new task.
#[tokio::test]
async fn p02_a_message_to_an_ended_task_is_refused() {
    let server = serve_agent(obedient).await;
    let held = server.start("hold").await;
    server.call("CancelTask", json!({"id": id(&held)})).await;
    let tasks = [server.send("a").await, server.send("fail").await, server.send("reject").await, held];
    for (task, expected) in tasks.iter().zip(["COMPLETED", "FAILED", "REJECTED", "CANCELED"]) {
        let before = server.get(id(task)).await;
        assert_eq!(state(&before), expected);
        for method in ["SendMessage", "SendStreamingMessage"] {
            let params = with_members("b", json!({"taskId": task["id"], "contextId": task["contextId"]}));
            let answer = server.call(method, params).await;
            refused(&answer, -32004, "has ended");
            assert_eq!(answer.body["error"]["data"][0]["reason"], "UNSUPPORTED_OPERATION");
            assert_eq!(answer.body["error"]["data"][0]["metadata"]["taskId"], task["id"]);
        }
        assert_eq!(server.get(id(task)).await, before);
    }
}

#[tokio::test]
async fn s17_a_task_id_of_the_clients_own_is_unknown() {
    let server = serve_agent(obedient).await;
    for task in ["mine", "00000000-0000-7000-8000-000000000000", "ünï"] {
        for method in ["SendMessage", "SendStreamingMessage"] {
            let answer = server.call(method, with_members("a", json!({"taskId": task}))).await;
            refused(&answer, -32001, "not found");
            assert_eq!(answer.body["error"]["data"][0]["metadata"]["taskId"], task);
        }
    }
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 0);
}

#[tokio::test]
async fn p02_referenced_tasks_reach_the_agent_if_they_are_the_callers_own() {
    let server = serve_owners().await;
    let made = async |owner: &str| {
        let answer = call_as(&server, owner, "SendMessage", message("a")).await;
        id(&answer.result()["task"]).to_owned()
    };
    let (one, two, foreign) = (made("ann").await, made("ann").await, made("bob").await);
    for (references, reached) in [
        (json!([]), String::new()),
        (json!([one]), one.clone()),
        (json!([one, two]), format!("{one} {two}")),
        (json!(["unknown"]), String::new()),
        (json!([foreign]), String::new()),
        (json!([foreign, one, "unknown", two]), format!("{one} {two}")),
    ] {
        let params = with_members("references", json!({"referenceTaskIds": references}));
        let answer = call_as(&server, "ann", "SendMessage", params).await;
        let task = &answer.result()["task"];
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], reached, "{references}");
    }
}

/// Ids are used as keys in stores and appear in logs: not empty, not long, no invisible characters.
#[tokio::test]
async fn p02_ids_are_bounded_and_printable() {
    let server = serve_agent(obedient).await;
    let long = "x".repeat(257);
    // The limit is in bytes, not characters.
    let long_in_bytes = "é".repeat(129);
    for bad in [long.as_str(), &long_in_bytes, "a\nb", "a\u{0}", "\u{7f}", "a\u{85}b"] {
        for member in ["messageId", "taskId", "contextId"] {
            let answer = send(&server, "a", json!({member: bad})).await;
            refused(&answer, -32602, &format!("message.{member}"));
        }
        let answer = send(&server, "a", json!({"referenceTaskIds": ["fine", bad]})).await;
        refused(&answer, -32602, "message.referenceTaskIds[1]");
        for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
            refused(&server.call(method, json!({"id": bad})).await, -32602, "id");
        }
        refused(&server.call("ListTasks", json!({"contextId": bad})).await, -32602, "contextId");
    }
    // An empty required id counts as missing, an empty optional one as not given.
    refused(&send(&server, "a", json!({"messageId": ""})).await, -32602, "message.messageId");
    refused(&server.call("GetTask", json!({"id": ""})).await, -32602, "id");
    assert_eq!(server.call("ListTasks", json!({"contextId": ""})).await.result()["totalSize"], 0);
    let task = send(&server, "a", json!({"taskId": "", "contextId": ""})).await.result()["task"].clone();
    assert_eq!(state(&task), "COMPLETED");
}
