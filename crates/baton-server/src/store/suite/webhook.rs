//! Webhooks: where they begin, what moves them, what waits for them.

use std::sync::Arc;

use baton_protocol::domain::{PushConfigId, Scope, TaskState};
use bytes::Bytes;

use super::fixture::*;
use crate::store::{
    Append, Claim, FailedWebhook, NewWebhook, OpenWebhook, PutWebhook, ReplicaId, Store, StoredWebhook,
    TaskKey, WebhookCursor, WebhookState,
};

fn webhook_id(text: &str) -> PushConfigId {
    PushConfigId::parse(text).unwrap()
}

fn new(webhook: &str, record: &str) -> NewWebhook {
    NewWebhook { id: webhook_id(webhook), record: Bytes::copy_from_slice(record.as_bytes()), most: 3 }
}

fn with_webhook(append: Append, webhook: &str) -> Append {
    append.with(|append| append.webhook = Some(Box::new(new(webhook, "r"))))
}

async fn put(store: &Arc<dyn Store>, task: &str, new: NewWebhook) -> (TaskKey, StoredWebhook) {
    match store.put_webhook(&scope(), &id(task), new).await.unwrap() {
        PutWebhook::Stored { key, webhook } => (key, webhook),
        other => panic!("{other:?}"),
    }
}

async fn of(store: &Arc<dyn Store>, task: &str) -> Vec<StoredWebhook> {
    store.webhooks(&scope(), &id(task)).await.unwrap()
}

async fn open(store: &Arc<dyn Store>) -> Vec<OpenWebhook> {
    store.open_webhooks(None, 1_000).await.unwrap()
}

async fn ids_of_open(store: &Arc<dyn Store>) -> Vec<String> {
    open(store).await.iter().map(|open| format!("{} {}", open.task, open.webhook.id)).collect()
}

async fn usage(store: &Arc<dyn Store>) -> u64 {
    store.owner_usage("owner").await.unwrap().bytes
}

pub(super) async fn s14_a_webhook_begins_after_the_last_event(store: &Arc<dyn Store>) {
    let key = written(store, birth("t").events(3)).await;
    let (of_task, stored) = put(store, "t", new("w", "record")).await;
    let expected =
        StoredWebhook { id: webhook_id("w"), record: Bytes::from("record"), cursor: WebhookCursor::after(3) };
    assert_eq!((of_task, &stored), (key, &expected));
    assert_eq!(of(store, "t").await, std::slice::from_ref(&expected));
    let listed = OpenWebhook { key, scope: scope(), task: id("t"), version: 3, webhook: expected };
    assert_eq!(open(store).await, std::slice::from_ref(&listed));
    assert_eq!(store.open_webhooks_of(key).await.unwrap(), [listed]);
    written(store, next("t", 3).events(2)).await;
    assert_eq!(open(store).await[0].version, 5, "an append moves the task, not the webhook");
}

pub(super) async fn s14_a_webhook_that_comes_with_the_task_misses_nothing(store: &Arc<dyn Store>) {
    let append = with_webhook(birth("t").events(2), "w").with_message("m", 1);
    let key = written(store, append.clone()).await;
    let [stored] = &of(store, "t").await[..] else { panic!("one") };
    assert_eq!((stored.cursor, &stored.record[..]), (WebhookCursor::after(0), &b"r"[..]));
    // A repeat of the message stores nothing.
    let again = append.with(|append| append.task = id("other"));
    store.append(&scope(), again).await.unwrap();
    assert_eq!(of(store, "other").await, []);
    assert_eq!(store.open_webhooks_of(key).await.unwrap().len(), 1);
}

pub(super) async fn s14_a_task_has_several_webhooks_up_to_a_limit(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    for webhook in ["b", "a", "ü"] {
        put(store, "t", new(webhook, "r")).await;
    }
    assert_eq!(store.put_webhook(&scope(), &id("t"), new("c", "r")).await.unwrap(), PutWebhook::Full);
    let ids: Vec<_> = of(store, "t").await.into_iter().map(|webhook| webhook.id.to_string()).collect();
    assert_eq!(ids, ["a", "b", "ü"]);
    // One that is there can be replaced all the same.
    put(store, "t", new("b", "other")).await;
    assert_eq!(of(store, "t").await[1].record, "other");
    assert_eq!(store.put_webhook(&scope(), &id("x"), new("c", "r")).await.unwrap(), PutWebhook::NotFound);
}

pub(super) async fn s14_a_replaced_webhook_goes_on_where_it_was(store: &Arc<dyn Store>) {
    let key = written(store, with_webhook(birth("t").events(4), "w")).await;
    let failed = WebhookCursor {
        done: 2,
        failures: 5,
        due: at(9),
        state: WebhookState::Failed,
        ..WebhookCursor::after(0)
    };
    assert!(store.move_webhook(key, &webhook_id("w"), 1, failed).await.unwrap());
    assert_eq!(ids_of_open(store).await, [""; 0]);
    let (_, replaced) = put(store, "t", new("w", "new")).await;
    assert_eq!(replaced.cursor, WebhookCursor { revision: 3, ..WebhookCursor::after(2) });
    assert_eq!(ids_of_open(store).await, ["t w"]);
    assert!(!store.move_webhook(key, &webhook_id("w"), 2, failed).await.unwrap(), "an old revision");
}

pub(super) async fn s14_a_webhook_of_an_ended_task_is_finished(store: &Arc<dyn Store>) {
    written(store, birth("t").ended(1)).await;
    let (_, stored) = put(store, "t", new("w", "r")).await;
    assert_eq!(stored.cursor, WebhookCursor { state: WebhookState::Finished, ..WebhookCursor::after(1) });
    assert_eq!(ids_of_open(store).await, [""; 0]);
    // One that has something left to deliver is not.
    written(store, with_webhook(birth("behind").ended(1), "w")).await;
    assert_eq!(ids_of_open(store).await, ["behind w"]);
}

pub(super) async fn s14_whoever_knows_the_revision_moves_the_webhook(store: &Arc<dyn Store>) {
    let key = written(store, with_webhook(birth("t").events(4), "w")).await;
    let id = webhook_id("w");
    let moved = WebhookCursor {
        revision: 99,
        done: 3,
        task_as_of: Some(4),
        failures: u32::MAX,
        failing_since: Some(at(-7)),
        due: at(-5),
        claim: Some(Claim { by: ReplicaId(u64::MAX >> 1), until: at(70) }),
        state: WebhookState::Open,
    };
    assert!(store.move_webhook(key, &id, 1, moved).await.unwrap());
    assert_eq!(of(store, "t").await[0].cursor, WebhookCursor { revision: 2, ..moved });
    assert!(!store.move_webhook(key, &id, 1, WebhookCursor::after(0)).await.unwrap());
    assert!(!store.move_webhook(key, &webhook_id("x"), 2, WebhookCursor::after(0)).await.unwrap());
    assert!(!store.move_webhook(TaskKey(key.0 + 1000), &id, 2, WebhookCursor::after(0)).await.unwrap());
    assert_eq!(of(store, "t").await[0].cursor, WebhookCursor { revision: 2, ..moved });
    for (revision, state) in
        (2..).zip([WebhookState::Finished, WebhookState::Failed, WebhookState::Disabled, WebhookState::Open])
    {
        assert!(
            store
                .move_webhook(key, &id, revision, WebhookCursor { state, ..WebhookCursor::after(4) })
                .await
                .unwrap()
        );
        assert_eq!(of(store, "t").await[0].cursor.state, state);
        assert_eq!(open(store).await.len(), usize::from(state == WebhookState::Open));
    }
}

pub(super) async fn s14_a_removed_webhook_is_gone(store: &Arc<dyn Store>) {
    let key = written(store, with_webhook(birth("t"), "w")).await;
    let foreign = Scope::new("agent", "tenant", "other");
    assert!(!store.remove_webhook(&foreign, &id("t"), &webhook_id("w"), None).await.unwrap());
    assert!(store.remove_webhook(&scope(), &id("t"), &webhook_id("w"), None).await.unwrap());
    assert!(!store.remove_webhook(&scope(), &id("t"), &webhook_id("w"), None).await.unwrap());
    assert_eq!((of(store, "t").await, open(store).await), (vec![], vec![]));
    assert!(!store.move_webhook(key, &webhook_id("w"), 1, WebhookCursor::after(1)).await.unwrap());
    assert_eq!(store.webhooks(&foreign, &id("t")).await.unwrap(), []);
    let put = store.put_webhook(&foreign, &id("t"), new("w", "r")).await.unwrap();
    assert_eq!(put, PutWebhook::NotFound);
}

/// Whoever gives a webhook up does not remove the one that has replaced it.
pub(super) async fn s14_an_old_revision_removes_nothing(store: &Arc<dyn Store>) {
    let key = written(store, with_webhook(birth("t"), "w")).await;
    let before = usage(store).await;
    let remove = async |revision| {
        store.remove_webhook(&scope(), &id("t"), &webhook_id("w"), Some(revision)).await.unwrap()
    };
    put(store, "t", new("w", "n")).await;
    assert!(!remove(1).await && !remove(3).await);
    assert_eq!((of(store, "t").await.len(), usage(store).await), (1, before));
    assert!(remove(2).await && !remove(2).await);
    assert_eq!((of(store, "t").await, open(store).await, usage(store).await), (vec![], vec![], before - 1));
    assert_eq!(store.open_webhooks_of(key).await.unwrap(), []);
}

pub(super) async fn s14_open_webhooks_come_page_by_page(store: &Arc<dyn Store>) {
    for task in ["b", "a", "c"] {
        written(store, birth(task)).await;
        for webhook in ["2", "1"] {
            put(store, task, new(webhook, "r")).await;
        }
    }
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = store.open_webhooks(after.clone(), 4).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some((last.key, last.webhook.id.clone()));
        seen.extend(page.iter().map(|open| format!("{} {}", open.task, open.webhook.id)));
    }
    assert_eq!(seen, ["b 1", "b 2", "a 1", "a 2", "c 1", "c 2"], "in the order of keys");
}

pub(super) async fn s14_retention_waits_for_open_webhooks_within_a_bound(store: &Arc<dyn Store>) {
    let key = written(store, with_webhook(birth("t").events(3).ended(10), "w")).await;
    written(store, birth("other").ended(10)).await;
    assert_eq!(store.fold_ended(at(20), at(10), 10).await.unwrap(), 1);
    assert_eq!((head(store, "t").await.folded_through, head(store, "other").await.folded_through), (0, 1));
    assert_eq!(store.purge_ended(at(20), 1).await.unwrap(), 1, "the other does not count");
    assert!(exists(store, "t").await && !exists(store, "other").await);
    assert_eq!(store.fold_ended(at(20), at(11), 10).await.unwrap(), 1);
    assert_eq!(store.purge_ended(at(20), 10).await.unwrap(), 0);
    let done = WebhookCursor { state: WebhookState::Finished, ..WebhookCursor::after(3) };
    assert!(store.move_webhook(key, &webhook_id("w"), 1, done).await.unwrap());
    assert_eq!(store.purge_ended(at(20), 10).await.unwrap(), 1);
    assert_eq!(of(store, "t").await, []);
    // However long ago a task has ended, its webhooks are set aside before it is removed.
    let key = written(store, with_webhook(birth("t").ended(10), "w")).await;
    assert_eq!(store.purge_ended(at(i64::from(u32::MAX)), 10).await.unwrap(), 0);
    let failed = WebhookCursor { state: WebhookState::Failed, ..WebhookCursor::after(0) };
    assert!(store.set_aside_webhook(1, failed, kept(key, "w", 20), 5).await.unwrap());
    assert_eq!(store.purge_ended(at(20), 10).await.unwrap(), 1);
    assert_eq!(store.failed_webhooks(None, 10).await.unwrap(), [kept(key, "w", 20)]);
    written(store, birth("t")).await;
    assert_eq!(of(store, "t").await, [], "another task with the same id has none");
}

pub(super) async fn s14_webhooks_count_for_their_owner(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let before = usage(store).await;
    put(store, "t", new("w", &"x".repeat(100))).await;
    assert_eq!(usage(store).await, before + 100);
    put(store, "t", new("w", &"x".repeat(30))).await;
    assert_eq!(usage(store).await, before + 30);
    put(store, "t", new("v", &"x".repeat(7))).await;
    store.remove_webhook(&scope(), &id("t"), &webhook_id("w"), None).await.unwrap();
    assert_eq!(usage(store).await, before + 7);
    written(store, with_webhook(birth("u"), "w")).await;
    assert_eq!(usage(store).await, before + 7 + before + 1);
    for task in ["t", "u"] {
        written(store, next(task, 1).ended(1)).await;
    }
    for OpenWebhook { key, webhook, .. } in open(store).await {
        let finished = WebhookCursor { state: WebhookState::Finished, ..WebhookCursor::after(2) };
        assert!(store.move_webhook(key, &webhook.id, webhook.cursor.revision, finished).await.unwrap());
    }
    store.purge_ended(at(10), 10).await.unwrap();
    assert_eq!(usage(store).await, 0);
}

fn kept(key: TaskKey, webhook: &str, millis: i64) -> FailedWebhook {
    let record = Bytes::from((0..=255).collect::<Vec<u8>>());
    FailedWebhook { key, id: webhook_id(webhook), at: at(millis), record }
}

pub(super) async fn s14_failed_webhooks_outlive_their_task(store: &Arc<dyn Store>) {
    let mut keys = Vec::new();
    for task in ["t1", "t2", "t3", "t4", "t5"] {
        keys.push(written(store, birth(task)).await);
        for webhook in ["a", "b"] {
            put(store, task, new(webhook, "r")).await;
        }
    }
    let failed = |task: usize, webhook: &str, millis: i64| kept(keys[task - 1], webhook, millis);
    let set_aside = async |revision, failed| {
        let cursor = WebhookCursor { state: WebhookState::Failed, ..WebhookCursor::after(1) };
        store.set_aside_webhook(revision, cursor, failed, 5).await.unwrap()
    };
    let all =
        [failed(2, "b", 30), failed(4, "a", 20), failed(3, "b", 20), failed(3, "a", 20), failed(1, "a", 10)];
    for one in [3, 0, 4, 2, 1] {
        assert!(set_aside(1, all[one].clone()).await);
    }
    assert_eq!(ids_of_open(store).await, ["t1 b", "t2 a", "t4 b", "t5 a", "t5 b"]);
    assert_eq!(store.failed_webhooks(None, 10).await.unwrap(), all);
    let after = Some((at(20), keys[2], webhook_id("b")));
    assert_eq!(store.failed_webhooks(after, 1).await.unwrap(), all[3..4]);
    // Whoever does not know the revision changes nothing of what was kept.
    assert!(!set_aside(1, failed(3, "a", 90)).await && !set_aside(7, failed(5, "b", 90)).await);
    assert!(!set_aside(1, failed(5, "x", 90)).await && !set_aside(1, kept(TaskKey(1 << 40), "a", 90)).await);
    assert_eq!(store.failed_webhooks(None, 10).await.unwrap(), all);
    // The same one again replaces, another drops the oldest.
    assert!(set_aside(2, failed(3, "a", 40)).await);
    assert!(set_aside(1, failed(5, "b", 50)).await);
    let found = store.failed_webhooks(None, 10).await.unwrap();
    let found: Vec<_> = found.iter().map(|failed| (failed.key, failed.id.as_str())).collect();
    let expected = [(5, "b"), (3, "a"), (2, "b"), (4, "a"), (3, "b")];
    assert_eq!(found, expected.map(|(task, webhook): (usize, _)| (keys[task - 1], webhook)));
    assert!(store.remove_failed_webhook(keys[2], &webhook_id("a")).await.unwrap());
    assert!(!store.remove_failed_webhook(keys[2], &webhook_id("a")).await.unwrap());
    assert_eq!(store.failed_webhooks(None, 10).await.unwrap().len(), 4);
}

pub(super) async fn s14_webhooks_of_tasks_that_ended_are_found_oldest_first(store: &Arc<dyn Store>) {
    written(store, with_webhook(birth("running"), "w")).await;
    for (task, ended_at) in [("b", 30), ("a", 10), ("c", 20), ("later", 40)] {
        let key = written(store, with_webhook(birth(task).ended(ended_at), "w")).await;
        written(store, birth(&format!("{task}-without")).ended(ended_at)).await;
        assert!(store.move_webhook(key, &webhook_id("w"), 1, WebhookCursor::after(0)).await.unwrap());
    }
    let done = written(store, with_webhook(birth("done").ended(5), "w")).await;
    let finished = WebhookCursor { state: WebhookState::Finished, ..WebhookCursor::after(1) };
    assert!(store.move_webhook(done, &webhook_id("w"), 1, finished).await.unwrap());
    let overdue = async |before, limit| {
        let found = store.overdue_webhooks(at(before), limit).await.unwrap();
        found.iter().map(|open| open.task.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(overdue(40, 10).await, ["a", "c", "b"], "the bound is exclusive");
    assert_eq!(overdue(40, 2).await, ["a", "c"]);
    assert_eq!(overdue(10, 10).await, [""; 0]);
    let of_a = store.overdue_webhooks(at(40), 1).await.unwrap();
    assert_eq!(of_a, store.open_webhooks_of(of_a[0].key).await.unwrap());
}

/// Many processes want to deliver the same event.
pub(super) async fn s14_one_of_20_moves_wins(store: &Arc<dyn Store>) {
    let key = written(store, with_webhook(birth("t"), "w")).await;
    let movers = (0..20).map(|by| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let claim = Some(Claim { by: ReplicaId(by), until: at(1) });
            store
                .move_webhook(key, &webhook_id("w"), 1, WebhookCursor { claim, ..WebhookCursor::after(0) })
                .await
                .unwrap()
        })
    });
    let mut won = Vec::new();
    for (by, mover) in movers.collect::<Vec<_>>().into_iter().enumerate() {
        if mover.await.unwrap() {
            won.push(by as u64);
        }
    }
    let claim = of(store, "t").await[0].cursor.claim.unwrap();
    assert_eq!(won, [claim.by.0]);
}

/// A webhook is stored while its task ends: it is open if it has something left to deliver, and finished if not.
pub(super) async fn s14_no_webhook_stays_open_beside_the_end(store: &Arc<dyn Store>) {
    for round in 0..20 {
        let task = format!("t{round}");
        written(store, birth(&task)).await;
        let (ending, putting) = (Arc::clone(store), Arc::clone(store));
        let name = task.clone();
        let end = tokio::spawn(async move { written(&ending, next(&name, 1).ended(1)).await });
        let name = task.clone();
        let stored = tokio::spawn(async move { put(&putting, &name, new("w", "r")).await });
        end.await.unwrap();
        stored.await.unwrap();
        let cursor = of(store, &task).await[0].cursor;
        assert_eq!(cursor.state == WebhookState::Finished, cursor.done == 2, "{cursor:?}");
        assert_eq!(head(store, &task).await.current.state, TaskState::Completed);
    }
}
