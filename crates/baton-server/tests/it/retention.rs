use std::sync::Arc;
use std::time::Duration;

use baton_server::Options;
use baton_server::{AgentError, Turn};
use serde_json::json;

use crate::fixtures::{Backend, TestClock};
use crate::harness::{TestServer, id, message, serve, state, with_agent};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// "ask" waits for an answer, "work" never ends, anything else completes.
async fn worker(turn: Turn) -> Result<(), AgentError> {
    match turn.text().as_str() {
        "ask" => drop(turn.ask("which?")),
        "work" => turn.cancellation().cancelled().await,
        _ => turn.text_artifact("done", turn.text()).await?,
    }
    Ok(())
}

async fn total(server: &TestServer) -> u64 {
    server.call("ListTasks", json!({})).await.result()["totalSize"].as_u64().unwrap()
}

async fn each_store(options: Options, check: impl AsyncFn(&TestServer, &TestClock)) {
    for backend in Backend::each() {
        let clock = TestClock::new();
        let builder = with_agent(worker).options(options.clone()).clock(Arc::clone(&clock) as _);
        let server = serve(builder.store(backend.open().await)).await;
        check(&server, &clock).await;
    }
}

#[tokio::test]
async fn ended_tasks_stay_thirty_days_and_others_as_long_as_they_need() {
    each_store(Options::default(), async |server, clock| {
        let ended = server.send("quick").await;
        let open = [server.start("work").await, server.send("ask").await];
        clock.advance(30 * DAY - HOUR);
        assert_eq!(server.server.sweep().await.unwrap().removed, 0);
        assert_eq!(server.get(id(&ended)).await, ended);
        clock.advance(2 * HOUR);
        assert_eq!(server.server.sweep().await.unwrap().removed, 1);
        assert_eq!(server.call("GetTask", json!({"id": id(&ended)})).await.error_code(), -32001);
        clock.advance(3650 * DAY);
        assert_eq!(server.server.sweep().await.unwrap().removed, 0);
        assert_eq!(state(&server.get(id(&open[0])).await), "WORKING");
        assert_eq!(state(&server.get(id(&open[1])).await), "INPUT_REQUIRED");
        assert_eq!(total(server).await, 2);
    })
    .await;
}

#[tokio::test]
async fn over_the_cap_the_oldest_ended_go_first_and_none_younger_than_an_hour() {
    let mut options = Options::default();
    options.retention.max_tasks = 3;
    each_store(options, async |server, clock| {
        let open = server.send("ask").await;
        let mut ended = Vec::new();
        for n in 0..5 {
            ended.push(server.send(&n.to_string()).await);
            clock.advance(Duration::from_secs(60));
        }
        assert_eq!(server.server.sweep().await.unwrap().removed, 0, "all of them are too young");
        clock.advance(HOUR - Duration::from_secs(3 * 60));
        // The first two ended over an hour ago; three exceed the limit.
        assert_eq!(server.server.sweep().await.unwrap().removed, 2);
        clock.advance(HOUR);
        assert_eq!(server.server.sweep().await.unwrap().removed, 1);
        assert_eq!(total(server).await, 3);
        for (n, task) in ended.iter().enumerate() {
            let found = server.call("GetTask", json!({"id": id(task)})).await;
            assert_eq!(found.body.get("result").is_some(), n >= 3, "{n}");
        }
        assert_eq!(state(&server.get(id(&open)).await), "INPUT_REQUIRED");
        assert_eq!(server.server.sweep().await.unwrap().removed, 0);
    })
    .await;
}

#[tokio::test]
async fn the_log_of_an_ended_task_is_folded_after_a_day() {
    each_store(Options::default(), async |server, clock| {
        let (ended, open) = (server.send("quick").await, server.send("ask").await);
        clock.advance(DAY - HOUR);
        assert_eq!(server.server.sweep().await.unwrap().folded, 0);
        let stream = server.stream("SubscribeToTask", json!({"id": id(&ended)}), Some("2")).await;
        assert_eq!(stream.ok().unwrap().rest().await.len(), 3, "the log is whole");
        clock.advance(2 * HOUR);
        assert_eq!(server.server.sweep().await.unwrap().folded, 1, "only the one that has ended");
        assert_eq!(server.server.sweep().await.unwrap().folded, 0, "once");
        assert_eq!(server.get(id(&ended)).await, ended, "the task is the same");
        let mut stream =
            server.stream("SubscribeToTask", json!({"id": id(&open)}), Some("2")).await.ok().unwrap();
        assert_eq!(stream.next().await.unwrap().kind(), "working", "an open task keeps its log");
    })
    .await;
}

/// A caller who names another tenant with every call: nothing is left of those that stored something once their tasks and
/// records are removed, and calls that are refused or only read store nothing of the tenant at all.
#[tokio::test]
async fn s12_invented_tenants_do_not_grow_the_store() {
    for backend in Backend::each() {
        let (clock, store) = (TestClock::new(), backend.open().await);
        let builder = with_agent(worker).clock(Arc::clone(&clock) as _).store(Arc::clone(&store));
        let server = serve(builder).await;
        let rows = async || store.row_count().await.unwrap().expect("our stores can tell");
        let mut left = Vec::new();
        for round in 0..2 {
            for n in 0..20 {
                let mut params = message("quick");
                params["tenant"] = json!(format!("invented-{round}-{n}"));
                assert_eq!(server.call("SendMessage", params).await.status, 200);
            }
            clock.advance(3650 * DAY);
            let swept = server.server.sweep().await.unwrap();
            assert_eq!((swept.removed, swept.records), (20, 20));
            left.push(rows().await);
        }
        assert_eq!(left[0], left[1]);

        let mut unknown = message("more");
        unknown["message"]["taskId"] = json!("unknown");
        let mut no_parts = message("hello");
        no_parts["message"]["parts"] = json!([]);
        let asked = [
            ("GetTask", json!({"id": "unknown"}), Some(-32001)),
            ("CancelTask", json!({"id": "unknown"}), Some(-32001)),
            ("SubscribeToTask", json!({"id": "unknown"}), Some(-32001)),
            ("SendMessage", unknown.clone(), Some(-32001)),
            ("SendStreamingMessage", unknown, Some(-32001)),
            ("SendMessage", no_parts, Some(-32602)),
            ("ListTasks", json!({}), None),
            ("ListTasks", json!({"pageToken": "no such"}), Some(-32602)),
        ];
        for (n, (method, mut params, code)) in asked.into_iter().enumerate() {
            params["tenant"] = json!(format!("refused-{n}"));
            let answer = server.call(method, params).await;
            assert_eq!(answer.body["error"]["code"].as_i64(), code, "{method}: {}", answer.body);
        }
        assert_eq!(rows().await, left[1]);
    }
}
