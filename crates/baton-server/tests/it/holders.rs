//! Two processes on one store: a task is left to its holder as long as that process is alive.

use std::sync::Arc;

use baton_protocol::domain::{Scope, TaskId};
use baton_server::store::Store;
use baton_server::store::memory::MemoryStore;
use baton_server::{AgentError, Turn};
use serde_json::json;

use crate::faults::FaultyStore;
use crate::harness::{id, message, message_to, serve, state, with_agent};

async fn works_for_ever(turn: Turn) -> Result<(), AgentError> {
    turn.progress("begun").await?;
    std::future::pending().await
}

#[tokio::test]
async fn s15_a_task_whose_holder_is_alive_is_left_to_it() {
    let store = FaultyStore::over(Arc::new(MemoryStore::new()));
    let first = serve(with_agent(works_for_ever).store(store.clone())).await;
    let mut params = message("work");
    params["configuration"] = json!({"returnImmediately": true});
    let task = first.call("SendMessage", params).await.result()["task"].clone();
    let (scope, task_id) = (Scope::new("default", "", "anonymous"), TaskId::parse(id(&task)).unwrap());
    let head = store.head(&scope, &task_id).await.unwrap().unwrap();
    store.set_live_processes(vec![head.current.holder.expect("a turn runs")]);

    // Neither the start of another process, nor a message or a cancel sent to it, takes the task away.
    let second = serve(with_agent(works_for_ever).store(store.clone())).await;
    let mut more = message_to(&task, "more");
    more["configuration"] = json!({"returnImmediately": true});
    second.call("SendMessage", more).await.result();
    let cancel = second.server.client();
    let canceled = tokio::spawn(async move { cancel.cancel(&task_id).await });
    let noted = async {
        let task_id = TaskId::parse(id(&task)).unwrap();
        while store.requests(&scope, &task_id).await.unwrap().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::harness::TEST_TIMEOUT, noted).await.expect("both are noted for the holder");
    canceled.abort();
    assert_eq!(state(&second.get(id(&task)).await), "WORKING");
    let now = store.head(&scope, &TaskId::parse(id(&task)).unwrap()).await.unwrap().unwrap();
    assert_eq!((now.current.holder, now.current.fence), (head.current.holder, head.current.fence));

    // When the holder is gone, the next process answers the requests.
    store.set_live_processes(Vec::new());
    let third = serve(with_agent(works_for_ever).store(store.clone())).await;
    third.eventually(id(&task), "CANCELED").await;
}
