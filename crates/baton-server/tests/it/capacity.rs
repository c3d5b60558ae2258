//! S-12 and ruling 4: a server without room answers -32050 with a time to come back; HTTP 503 when it is
//! full for everybody, 429 when the caller has used up what is its own.

use baton_server::engine::options::Options;
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
    // What does not need a place still works.
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
