//! P-06. Pages: page size, page tokens, and that paging shows every task once whatever happens meanwhile.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use baton_protocol::domain::Timestamp;
use baton_server::Clock;
use baton_server::store::sqlite::{Options, SqliteStore};
use baton_server::{Builder, Turn};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::agents::obedient;
use crate::callers::{call_as, serve_owners};
use crate::fixtures::TestClock;
use crate::harness::{Answer, TestServer, id, message, serve, serve_agent, with_agent};

/// A clock that stands still, so that tasks are only ordered by id.
#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_773_302_400_000)
    }
}

async fn fill(server: &TestServer, count: usize) -> HashSet<String> {
    let sends = (0..count).map(|_| async { id(&server.send("a").await).to_owned() });
    futures_util::future::join_all(sends).await.into_iter().collect()
}

fn ids(page: &Value) -> Vec<String> {
    page["tasks"].as_array().unwrap().iter().map(|task| id(task).to_owned()).collect()
}

#[tokio::test]
async fn p06_a_page_holds_fifty_unless_told() {
    let server = serve_agent(obedient).await;
    let made = fill(&server, 101).await;
    for (asked, held) in
        [(Value::Null, 50), (json!(1), 1), (json!(50), 50), (json!(100), 100), (json!("7"), 7)]
    {
        let answer = server.call("ListTasks", json!({"pageSize": asked})).await;
        let page = answer.result();
        assert_eq!(ids(page).len(), held, "{asked}");
        assert_eq!(page["pageSize"], held, "{asked}");
        assert_eq!(page["totalSize"], made.len(), "{asked}");
        assert_ne!(page["nextPageToken"], "", "{asked}");
    }
}

/// Folding and encoding a large task is done on another thread, since it would delay other requests.
#[tokio::test]
async fn s12_a_page_with_a_large_task_is_made_apart_from_the_worker_threads() {
    let large = |turn: Turn| async move {
        let words = if turn.text() == "large" { 1_000_000 } else { 1 };
        turn.text_artifact("a", "w".repeat(words)).await
    };
    let server = with_agent(large).build().await.unwrap();
    for (text, apart) in [("small", false), ("large", true)] {
        server.send(text).await.unwrap();
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{"includeArtifacts":true}}"#;
        let request = http::Request::post("/")
            .header("content-type", "application/json")
            .header("A2A-Version", "1.0")
            .header("host", "localhost");
        let mut answer = pin!(server.router().oneshot(request.body(Body::from(body)).unwrap()));
        // If the first poll is ready, this thread made the whole answer.
        let at_once = matches!(futures_util::poll!(answer.as_mut()), Poll::Ready(_));
        assert_eq!(!at_once, apart, "{text}");
        if apart {
            let answer = answer.await.unwrap();
            let body = axum::body::to_bytes(answer.into_body(), 4_000_000).await.unwrap();
            assert!(body.len() > 1_000_000);
        }
    }
}

/// Pages through the list with several page sizes, with `meanwhile` after each page; every task of `made` is shown once.
async fn walk(server: &TestServer, made: &HashSet<String>, filter: Value, meanwhile: &str) {
    let (mut met, mut token, mut sizes) = (Vec::new(), String::new(), [3, 1, 7, 5].into_iter().cycle());
    let mut total = None;
    loop {
        let mut params = filter.clone();
        (params["pageSize"], params["pageToken"]) = (json!(sizes.next()), json!(token));
        let answer = server.call("ListTasks", params).await;
        let page = answer.result();
        met.extend(ids(page));
        assert_eq!(*total.get_or_insert_with(|| page["totalSize"].clone()), page["totalSize"], "it stays");
        token = page["nextPageToken"].as_str().expect("always there").to_owned();
        if token.is_empty() {
            break;
        }
        if !meanwhile.is_empty() {
            server.send(meanwhile).await;
        }
    }
    let unique: HashSet<String> = met.iter().cloned().collect();
    assert_eq!(unique.len(), met.len(), "no task twice");
    assert!(unique.is_superset(made), "no task is missed");
    assert_eq!(total.unwrap(), met.len());
}

async fn check_walks(builder: Builder) {
    let server = serve(builder).await;
    let mut made = fill(&server, 40).await;
    walk(&server, &made, json!({}), "").await;
    walk(&server, &made, json!({}), "b").await;
    made.extend(fill(&server, 1).await);
    walk(&server, &made, json!({"status": "TASK_STATE_COMPLETED"}), "fail").await;
    walk(&server, &made, json!({"statusTimestampAfter": "2020-01-01T00:00:00Z"}), "ask").await;
    // Even if the last page is full, its token is empty.
    let answer = server.call("ListTasks", json!({"contextId": "none"})).await;
    assert_eq!(answer.result()["nextPageToken"], "");
    let mut params = message("a");
    params["message"]["contextId"] = json!("one");
    server.call("SendMessage", params).await;
    let answer = server.call("ListTasks", json!({"contextId": "one", "pageSize": 1})).await;
    assert_eq!((ids(answer.result()).len(), &answer.result()["nextPageToken"]), (1, &json!("")));
}

#[tokio::test]
async fn p06_a_walk_meets_every_task_once_while_others_come() {
    check_walks(with_agent(obedient)).await;
}

#[tokio::test]
async fn p06_a_walk_meets_every_task_once_when_all_times_are_equal() {
    check_walks(with_agent(obedient).clock(Arc::new(Stopped))).await;
}

/// Tasks that changed while the clock was ahead are listed like the others.
#[tokio::test]
async fn p06_a_walk_meets_every_task_once_after_the_clock_was_set_back() {
    let clock = TestClock::new();
    let server = serve(with_agent(obedient).clock(Arc::clone(&clock) as _)).await;
    let mut made = fill(&server, 12).await;
    clock.set_back(Duration::from_secs(60 * 60));
    made.extend(fill(&server, 12).await);
    walk(&server, &made, json!({}), "").await;
    clock.set_back(Duration::from_secs(24 * 60 * 60));
    walk(&server, &made, json!({}), "").await;
}

#[tokio::test]
async fn p06_a_walk_meets_every_task_once_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("tasks.db"), Options::default()).unwrap();
    check_walks(with_agent(obedient).store(Arc::new(store))).await;
}

/// New tasks are added concurrently. Paging may show any number of them, but shows each old one once.
#[tokio::test(flavor = "multi_thread")]
async fn p06_a_walk_meets_every_task_once_in_a_crowd() {
    let server = serve_agent(obedient).await;
    let made = fill(&server, 60).await;
    let walks = async {
        for _ in 0..5 {
            let (mut met, mut token, mut totals) = (Vec::new(), String::new(), HashSet::new());
            loop {
                let answer = server.call("ListTasks", json!({"pageSize": 9, "pageToken": token})).await;
                met.extend(ids(answer.result()));
                totals.insert(answer.result()["totalSize"].as_u64());
                token = answer.result()["nextPageToken"].as_str().unwrap().to_owned();
                if token.is_empty() {
                    break;
                }
            }
            let unique: HashSet<String> = met.iter().cloned().collect();
            assert_eq!(unique.len(), met.len(), "no task twice");
            assert!(unique.is_superset(&made), "no task is missed");
            assert_eq!(totals.len(), 1, "the same total on every page");
        }
    };
    let crowd = async {
        loop {
            fill(&server, 8).await;
        }
    };
    tokio::select! {
        () = walks => {}
        () = crowd => {}
    }
}

#[track_caller]
fn refused(answer: &Answer, case: &str) {
    assert_eq!((answer.status, answer.error_code()), (200, -32602), "{case}");
    assert_eq!(answer.body["error"]["data"][1]["fieldViolations"][0]["field"], "pageToken", "{case}");
}

#[tokio::test]
async fn p06_a_token_is_good_for_its_own_listing_only() {
    let server = serve_owners().await;
    for owner in ["ann", "ann", "ann", "bob", "bob"] {
        let mut params = message("a");
        params["message"]["contextId"] = json!("shared");
        call_as(&server, owner, "SendMessage", params).await;
    }
    let listing = json!({"pageSize": 1, "contextId": "shared"});
    let answer = call_as(&server, "ann", "ListTasks", listing.clone()).await;
    let token = answer.result()["nextPageToken"].as_str().unwrap().to_owned();
    let ask = async |owner: &str, members: Value, token: &str| {
        let mut params = listing.clone();
        for (name, value) in members.as_object().unwrap() {
            params[name] = value.clone();
        }
        params["pageToken"] = json!(token);
        call_as(&server, owner, "ListTasks", params).await
    };
    // A token is valid several times, with another page size and with other members to show.
    for members in
        [json!({}), json!({}), json!({"pageSize": 2, "includeArtifacts": true, "historyLength": 0})]
    {
        assert_eq!(ask("ann", members, &token).await.result()["totalSize"], 3);
    }
    for (owner, members) in [
        ("bob", json!({})),
        ("ann", json!({"tenant": "t"})),
        ("ann", json!({"contextId": ""})),
        ("ann", json!({"contextId": "other"})),
        ("ann", json!({"status": "TASK_STATE_COMPLETED"})),
        ("ann", json!({"statusTimestampAfter": "2020-01-01T00:00:00Z"})),
    ] {
        refused(&ask(owner, members.clone(), &token).await, &format!("{owner} {members}"));
    }
    for end in 1..token.len() {
        refused(&ask("ann", json!({}), &token[..end]).await, &format!("cut to {end}"));
    }
    for garbage in [
        "x",
        " ",
        "0",
        "null",
        "%%%",
        "AAAA",
        "ünï",
        &format!("{token}A"),
        &format!("{token}="),
        &"A".repeat(10_000),
    ] {
        refused(&ask("ann", json!({}), garbage).await, garbage);
    }
    for at in 0..token.len() {
        let mut forged = token.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        refused(
            &ask("ann", json!({}), std::str::from_utf8(&forged).unwrap()).await,
            &format!("forged at {at}"),
        );
    }
}
