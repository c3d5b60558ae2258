//! `open_tasks`, `secret` and `note`: what a restart needs.

use std::sync::Arc;

use baton_protocol::domain::{Scope, TaskState};

use super::fixture::*;
use crate::store::{OpenTask, Store, TaskKey, Work};

async fn open(store: &Arc<dyn Store>) -> Vec<String> {
    let open = store.open_tasks(TaskKey(0), 1_000).await.unwrap();
    let mut names: Vec<_> = open.iter().map(|open| open.id.as_str().to_owned()).collect();
    names.sort();
    names
}

pub(super) async fn queued_and_running_tasks_are_open(store: &Arc<dyn Store>) {
    for (name, work) in [("idle", Work::Idle), ("queued", Work::Queued), ("running", Work::Running)] {
        written(store, birth(name).work(work)).await;
    }
    assert_eq!(open(store).await, ["queued", "running"]);
    written(store, next("running", 1).state(TaskState::InputRequired).work(Work::Idle)).await;
    written(store, next("queued", 1).ended(5)).await;
    written(store, next("idle", 1).work(Work::Queued)).await;
    assert_eq!(open(store).await, ["idle"]);
}

pub(super) async fn a_pending_request_keeps_an_idle_task_open(store: &Arc<dyn Store>) {
    written(store, birth("t").work(Work::Idle)).await;
    assert_eq!(open(store).await, [] as [&str; 0]);
    let first = noted(store, "t", new_request("a", None)).await;
    let second = noted(store, "t", new_request("b", None)).await;
    assert_eq!(open(store).await, ["t"]);
    written(store, next("t", 1).work(Work::Idle).settling(first, None)).await;
    assert_eq!(open(store).await, ["t"], "one is left");
    // A task that ended with a pending request is open: the request must be answered.
    written(store, next("t", 2).ended(5)).await;
    assert_eq!(open(store).await, ["t"]);
    written(store, next("t", 3).events(0).ended(5).settling(second, None)).await;
    assert_eq!(open(store).await, [] as [&str; 0]);
}

pub(super) async fn open_tasks_come_page_by_page_by_key(store: &Arc<dyn Store>) {
    let mut born = Vec::new();
    for n in 0..25 {
        let scope = Scope::new("agent", &format!("tenant{}", n % 3), "owner");
        let task = id(&format!("t{n}"));
        let key = written_in(store, &scope, birth(task.as_str()).at(-n)).await;
        born.push(OpenTask { key, scope, id: task });
    }
    born.sort_by_key(|open| open.key);
    let mut seen: Vec<OpenTask> = Vec::new();
    loop {
        let after = seen.last().map_or(TaskKey(0), |open| open.key);
        let page = store.open_tasks(after, 4).await.unwrap();
        assert!(page.len() <= 4);
        if page.is_empty() {
            break;
        }
        seen.extend(page);
    }
    assert_eq!(seen, born);
}

pub(super) async fn the_first_secret_is_kept(store: &Arc<dyn Store>) {
    assert_eq!(store.find_secret("cursor").await.unwrap(), None);
    assert_eq!(store.secret("cursor", vec![1, 2, 3]).await.unwrap(), [1, 2, 3]);
    assert_eq!(store.secret("cursor", vec![4, 5, 6]).await.unwrap(), [1, 2, 3]);
    assert_eq!(store.find_secret("webhook").await.unwrap(), None, "to look for it does not make it");
    assert_eq!(store.secret("webhook", vec![7]).await.unwrap(), [7]);
    assert_eq!(store.find_secret("cursor").await.unwrap(), Some(vec![1, 2, 3]));
    assert_eq!(store.secret("cursor", vec![]).await.unwrap(), [1, 2, 3]);
}

pub(super) async fn secrets_are_any_bytes_under_any_name(store: &Arc<dyn Store>) {
    let bytes: Vec<u8> = (0..=255).collect();
    for name in ["'; --", "%", "schlüssel", "a b", "{a}"] {
        store.secret(name, bytes.clone()).await.unwrap();
        assert_eq!(store.secret(name, Vec::new()).await.unwrap(), bytes, "{name}");
        assert_eq!(store.find_secret(name).await.unwrap().as_ref(), Some(&bytes), "{name}");
    }
}

pub(super) async fn a_secret_is_replaced_by_whoever_knows_it(store: &Arc<dyn Store>) {
    let bytes: Vec<u8> = (0..=255).collect();
    assert!(!store.replace_secret("a", &[], vec![1]).await.unwrap(), "there is none");
    assert_eq!(store.secret("a", vec![2]).await.unwrap(), [2], "and none was made");
    store.secret("b", vec![2]).await.unwrap();
    assert!(!store.replace_secret("a", &[3], bytes.clone()).await.unwrap());
    assert!(store.replace_secret("a", &[2], bytes.clone()).await.unwrap());
    assert!(!store.replace_secret("a", &[2], vec![4]).await.unwrap(), "it is another one now");
    assert_eq!(store.secret("a", vec![5]).await.unwrap(), bytes);
    assert_eq!(store.secret("b", vec![5]).await.unwrap(), [2], "the other one stays");
    assert!(store.replace_secret("a", &bytes, bytes.clone()).await.unwrap(), "by itself");
}

pub(super) async fn the_last_note_is_kept(store: &Arc<dyn Store>) {
    let put = |text: &str| Some(text.to_owned());
    assert_eq!(store.note("clock", None).await.unwrap(), None);
    assert_eq!(store.note("clock", put("1 it's ☀")).await.unwrap(), put("1 it's ☀"));
    assert_eq!(store.note("clock", put("2")).await.unwrap(), put("2"));
    assert_eq!(store.note("other", put("")).await.unwrap(), put(""));
    assert_eq!(store.note("clock", None).await.unwrap(), put("2"));
    // Names that a store may use internally.
    for name in ["last_key", "format", "check"] {
        assert_eq!(store.note(name, None).await.unwrap(), None, "{name}");
        store.note(name, put("mine")).await.unwrap();
    }
    store.check().await.unwrap();
    assert_eq!(store.secret("clock", vec![1]).await.unwrap(), [1], "secrets and notes are separate");
}
