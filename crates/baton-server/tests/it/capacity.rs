//! S-12 and ruling 4: a full server answers -32050 with a Retry-After: HTTP 503 when it is full for everybody, 429 when the
//! caller has used up its own quota.

use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::Limits;
use baton_server::Options;
use baton_server::{Mount, Server};
use serde_json::{Value, json};

use crate::agents::obedient;
use crate::harness::{Answer, TestServer, id, message, serve, state, with_agent};

async fn serve_with(change: impl FnOnce(&mut Options)) -> TestServer {
    let mut options = Options::default();
    change(&mut options);
    serve(with_agent(obedient).options(options)).await
}

#[track_caller]
fn check(answer: &Answer, status: u16) {
    assert_eq!((answer.status, answer.error_code()), (status, -32050), "{}", answer.body);
    assert_eq!(answer.body["id"], 1);
    let details = answer.body["error"]["data"].as_array().unwrap();
    assert_eq!(details[0]["reason"], "RESOURCE_EXHAUSTED");
    let seconds: u32 = answer.header("retry-after").unwrap().parse().expect("seconds");
    let retry = details.iter().find(|detail| detail["@type"] == "type.googleapis.com/google.rpc.RetryInfo");
    assert_eq!(retry.expect("a RetryInfo")["retryDelay"], format!("{seconds}s"));
}

#[tokio::test]
async fn s12_a_full_server_refuses_new_tasks_and_takes_them_again_later() {
    let server = serve_with(|options| (options.max_running, options.max_queued) = (1, 1)).await;
    let running = server.start("hold").await;
    let waiting = server.start("hold").await;
    assert_eq!(state(&waiting), "SUBMITTED");
    for method in ["SendMessage", "SendStreamingMessage"] {
        check(&server.call(method, message("more")).await, 503);
    }
    // Calls that need no turn still work.
    assert_eq!(state(&server.get(id(&running)).await), "WORKING");
    assert_eq!(server.call("ListTasks", json!({})).await.result()["totalSize"], 2);

    for task in [&running, &waiting] {
        let canceled = server.call("CancelTask", json!({"id": id(task)})).await;
        assert_eq!(state(canceled.result()), "CANCELED");
    }
    assert_eq!(state(&server.send("more").await), "COMPLETED");
}

#[tokio::test]
async fn s12_messages_that_wait_for_a_busy_task_are_bounded() {
    let server = serve_with(|options| options.max_pending_messages = 2).await;
    let task = server.start("hold").await;
    let follow_up = || {
        let mut params = message("more");
        params["message"]["taskId"] = json!(id(&task));
        params["configuration"] = json!({"returnImmediately": true});
        params
    };
    for _ in 0..2 {
        let noted = server.call("SendMessage", follow_up()).await;
        assert_eq!(noted.result()["task"]["id"], task["id"]);
    }
    let refused = server.call("SendMessage", follow_up()).await;
    check(&refused, 429);
    assert_ne!(refused.body["error"]["message"], Value::Null);
}

/// Two agents on one server. The first, which is also at the root path, may run one turn and queue one.
async fn one_small_agent() -> TestServer {
    let mount = |id: &str| {
        Mount::new(id, AgentCard::new(id, "One of two", "1.0.0"))
            .task_skill(AgentSkill::new(id, id, "Does what it is told"), obedient)
    };
    let small = mount("small").limits(places(Some(1), Some(1)));
    serve(Server::host().mount(small).mount(mount("other").tenant("other"))).await
}

fn places(running: Option<usize>, queued: Option<usize>) -> Limits {
    let mut limits = Limits::default();
    (limits.max_running, limits.max_queued) = (running, queued);
    limits
}

#[tokio::test]
async fn s12_an_agent_that_is_full_leaves_the_others_alone() {
    let server = one_small_agent().await;
    let running = server.start("hold").await;
    let waiting = server.start("more").await;
    server.eventually(id(&running), "WORKING").await;
    assert_eq!(state(&server.get(id(&waiting)).await), "SUBMITTED");
    check(&server.call("SendMessage", message("more")).await, 503);
    let mut other = message("more");
    other["tenant"] = json!("other");
    assert_eq!(state(&server.call("SendMessage", other).await.result()["task"]), "COMPLETED");

    server.call("CancelTask", json!({"id": id(&running)})).await.result();
    server.eventually(id(&waiting), "COMPLETED").await;
}

#[tokio::test]
async fn s12_more_places_are_taken_as_soon_as_they_are_there() {
    let server = one_small_agent().await;
    let running = server.start("hold").await;
    let waiting = server.start("hold").await;
    let control = server.server.control();
    control.set_limits("small", places(Some(2), Some(1))).unwrap();
    server.eventually(id(&waiting), "WORKING").await;
    // The limit can also be lowered: running turns continue, and no further one starts.
    let mut options = Options::default();
    (options.max_running, options.max_queued) = (1, 0);
    control.set_options(options);
    check(&server.call("SendMessage", message("more")).await, 503);
    assert_eq!(state(&server.get(id(&running)).await), "WORKING");
    for task in [&running, &waiting] {
        server.call("CancelTask", json!({"id": id(task)})).await.result();
    }
    assert_eq!(state(&server.send("more").await), "COMPLETED");
}
