use bytes::Bytes;

use super::*;

const KEY: TaskKey = TaskKey(7);

fn id(text: &str) -> PushConfigId {
    PushConfigId::parse(text).unwrap()
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn open(webhook: &str, version: u64, cursor: WebhookCursor) -> OpenWebhook {
    OpenWebhook {
        key: KEY,
        scope: Scope::new("a", "", "owner"),
        task: TaskId::parse("t").unwrap(),
        version,
        webhook: moved(webhook, cursor),
    }
}

fn moved(webhook: &str, cursor: WebhookCursor) -> StoredWebhook {
    StoredWebhook { id: id(webhook), record: Bytes::from_static(b"first"), cursor }
}

fn taken(registry: &Registry, now: i64) -> Vec<String> {
    std::iter::from_fn(|| registry.take(at(now))).map(|job| job.webhook.id.to_string()).collect()
}

#[test]
fn s14_a_webhook_is_given_out_when_its_task_has_moved() {
    let registry = Registry::default();
    registry.ring(KEY, 5);
    registry.put(open("w", 3, WebhookCursor::after(3)));
    assert_eq!(taken(&registry, 0), [""; 0]);
    registry.ring(KEY, 4);
    registry.ring(KEY, 5);
    assert_eq!(taken(&registry, 0), ["w"], "once");
    // While it is under way, rings are noticed at its end.
    registry.ring(KEY, 6);
    assert_eq!(taken(&registry, 0), [""; 0]);
    registry.done(KEY, moved("w", WebhookCursor::after(5)));
    assert_eq!(taken(&registry, 0), ["w"]);
    registry.done(KEY, moved("w", WebhookCursor::after(6)));
    assert_eq!(taken(&registry, 0), [""; 0]);
}

#[test]
fn s14_what_was_left_behind_is_ready_at_once_and_a_retry_when_it_is_due() {
    let registry = Registry::default();
    registry.put(open("behind", 3, WebhookCursor::after(1)));
    let retry = WebhookCursor { failures: 1, due: at(10), ..WebhookCursor::after(1) };
    registry.put(open("retry", 3, retry));
    let jump = WebhookCursor { task_as_of: Some(3), ..WebhookCursor::after(3) };
    registry.put(open("jump", 3, jump));
    assert_eq!(taken(&registry, 9), ["behind", "jump"]);
    assert_eq!(registry.next_due(), Some(at(10)));
    assert_eq!(taken(&registry, 10), ["retry"]);
    assert_eq!(registry.next_due(), None);
}

/// The clock was years ahead when the webhook was put off.
#[test]
fn s14_nothing_waits_for_a_clock_that_was_wrong() {
    let registry = Registry::default();
    for (webhook, due) in [("far", i64::MAX), ("further", i64::MAX - 1), ("near", 50)] {
        registry.put(open(
            webhook,
            3,
            WebhookCursor { failures: 1, due: at(due), ..WebhookCursor::after(1) },
        ));
    }
    registry.bring_forward(at(100));
    registry.bring_forward(at(200));
    assert_eq!(taken(&registry, 99), ["near"]);
    assert_eq!(registry.next_due(), Some(at(100)));
    // One that is replaced meanwhile is found where it waits now.
    registry.remove(KEY, &id("further"));
    assert_eq!((taken(&registry, 100), registry.next_due()), (vec!["far".to_owned()], None));
}

/// Whoever was first at the store may be last here.
#[test]
fn s14_an_older_revision_takes_the_place_of_no_newer_one() {
    let registry = Registry::default();
    let with = |revision: u64, record: &'static [u8]| {
        let mut open = open("w", 3, WebhookCursor { revision, ..WebhookCursor::after(1) });
        open.webhook.record = Bytes::from_static(record);
        open
    };
    registry.put(with(3, b"new"));
    registry.put(with(2, b"old"));
    let job = registry.take(at(0)).unwrap();
    assert_eq!((job.webhook.cursor.revision, &job.webhook.record[..]), (3, &b"new"[..]));
    // Also while it is being delivered to.
    registry.put(with(2, b"old"));
    assert!(registry.is_current(KEY, &id("w")));
    registry.put(with(5, b"newest"));
    registry.put(with(4, b"newer"));
    registry.done(KEY, job.webhook);
    let job = registry.take(at(0)).unwrap();
    assert_eq!((job.webhook.cursor.revision, &job.webhook.record[..]), (5, &b"newest"[..]));
    // One that was removed and created again begins with the first revision.
    registry.remove(KEY, &id("w"));
    registry.put(with(1, b"again"));
    registry.done(KEY, job.webhook);
    assert_eq!(&registry.take(at(0)).unwrap().webhook.record[..], b"again");
}

/// What a job has read again at its end is what the next job gets.
#[test]
fn s14_a_delivery_that_lost_its_webhook_hands_back_the_new_record() {
    let registry = Registry::default();
    registry.put(open("w", 3, WebhookCursor::after(1)));
    let job = registry.take(at(0)).unwrap();
    let cursor = WebhookCursor { revision: 2, ..job.webhook.cursor };
    registry.done(KEY, StoredWebhook { cursor, record: Bytes::from_static(b"second"), ..job.webhook });
    let job = registry.take(at(0)).unwrap();
    assert_eq!((job.webhook.cursor.revision, &job.webhook.record[..]), (2, &b"second"[..]));
}

#[test]
fn s14_there_is_one_delivery_at_a_time_even_if_a_webhook_is_replaced() {
    let registry = Registry::default();
    registry.put(open("w", 3, WebhookCursor::after(1)));
    let job = registry.take(at(0)).unwrap();
    let mut replaced = open("w", 3, WebhookCursor { revision: 2, ..WebhookCursor::after(1) });
    replaced.webhook.record = Bytes::from_static(b"second");
    registry.put(replaced);
    assert!(registry.take(at(0)).is_none());
    registry.done(KEY, moved("w", job.webhook.cursor));
    let job = registry.take(at(0)).unwrap();
    assert_eq!((job.webhook.cursor.revision, &job.webhook.record[..]), (2, &b"second"[..]));
    registry.remove(KEY, &id("w"));
    assert_eq!(registry.len(), 1, "until the delivery has ended");
    registry.done(KEY, moved("w", job.webhook.cursor));
    assert_eq!((registry.len(), taken(&registry, 0)), (0, vec![]));
}

/// Each is given out once, however often it changed while it was in the line, and takes one place in it.
#[test]
fn s14_a_webhook_that_changes_in_the_line_stays_there_once() {
    let registry = Registry::default();
    let ready = |revision| open("w", 3, WebhookCursor { revision, ..WebhookCursor::after(1) });
    for revision in 1..100 {
        registry.put(ready(revision));
        registry.ring(KEY, 3);
    }
    registry.put(open("other", 3, WebhookCursor::after(1)));
    assert_eq!(registry.state().ready.len(), 2);
    // Put off while it is in the line.
    registry.put(open("w", 3, WebhookCursor { revision: 100, due: at(5), ..WebhookCursor::after(1) }));
    assert_eq!(taken(&registry, 4), ["other"]);
    registry.remove(KEY, &id("w"));
    registry.put(ready(1));
    assert_eq!(taken(&registry, 9), ["w"]);
}

#[test]
fn s12_owners_and_the_server_have_limits() {
    let registry = Arc::new(Registry::default());
    let reserve = |owner: &str, per_owner, in_all| registry.reserve(&Arc::from(owner), per_owner, in_all);
    for webhook in ["a", "b"] {
        registry.put(open(webhook, 3, WebhookCursor::after(3)));
    }
    registry.put(open("a", 3, WebhookCursor::after(3)));
    assert_eq!(registry.len(), 2, "a replaced one counts once");
    let one_more = reserve("owner", 3, 3).unwrap();
    assert_eq!(reserve("owner", 3, 4).unwrap_err(), TooMany::OfOwner, "those being stored count");
    assert_eq!(reserve("other", 3, 3).unwrap_err(), TooMany::OfServer);
    drop(one_more);
    reserve("owner", 3, 3).unwrap();
    assert_eq!(reserve("owner", 2, 3).unwrap_err(), TooMany::OfOwner);
    reserve("other", 2, 3).unwrap();
    registry.remove(KEY, &id("a"));
    registry.ring(KEY, 9);
    registry.take(at(0)).unwrap();
    let ended = WebhookCursor { state: WebhookState::Finished, ..WebhookCursor::after(9) };
    registry.done(KEY, moved("b", ended));
    assert_eq!(registry.len(), 0);
    reserve("owner", 1, 1).unwrap();
    assert!(registry.state().owners.is_empty());
    // The place of one that is removed during a call is free at once, and taken again if it comes back meanwhile.
    registry.put(open("c", 9, WebhookCursor::after(3)));
    let job = registry.take(at(0)).unwrap();
    registry.remove(KEY, &id("c"));
    registry.remove(KEY, &id("c"));
    reserve("owner", 1, 9).unwrap();
    registry.put(open("c", 9, WebhookCursor::after(3)));
    assert_eq!(reserve("owner", 1, 9).unwrap_err(), TooMany::OfOwner);
    registry.remove(KEY, &id("c"));
    registry.done(KEY, moved("c", job.webhook.cursor));
    assert!(registry.state().owners.is_empty() && registry.len() == 0);
}
