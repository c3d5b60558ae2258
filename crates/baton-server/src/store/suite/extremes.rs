//! Unusual names, extreme times, large numbers and large records.

use std::sync::Arc;

use baton_protocol::domain::{ListFilter, Scope, Timestamp};
use bytes::Bytes;

use super::fixture::*;
use crate::store::{
    HeadState, ListPosition, ListQuery, MessageRecord, NewRequest, ReplicaId, Store, TaskKey,
};

fn odd_names() -> Vec<String> {
    let mut names: Vec<String> = [
        "'",
        "\"",
        "''; DROP TABLE tasks; --",
        "%",
        "_",
        "a%b_c",
        "\\",
        "a\\'b",
        "{a}",
        "{}",
        "*",
        "[a-z]",
        "?",
        "$1",
        ":a",
        "a b",
        " ",
        "..",
        "/",
        "a/b",
        "ünï",
        "日本",
        "🦀",
        "e\u{301}",
        "é",
        "\u{200b}",
        "\u{feff}x",
        "\u{fffd}",
        "NULL",
        "0",
        "-1",
        "1e3",
        "true",
        "\u{202e}x",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(256));
    names.push("🦀".repeat(64));
    names
}

/// Ids are kept byte for byte: not case-folded, trimmed, normalized or taken as a pattern.
pub(super) async fn ids_with_odd_characters(store: &Arc<dyn Store>) {
    let names = odd_names();
    for (n, name) in (0..).zip(&names) {
        written(store, birth(name).in_context(name).with_message(name, 1).at(n)).await;
        noted(store, name, new_request("w", None)).await;
    }
    for name in &names {
        assert_eq!(load(store, name).await.id.as_str(), name);
        assert_eq!(head(store, name).await.context_id.as_str(), name);
        assert_eq!(recorded(store, name, 1).await, Some(record(name, 1, name)));
        let filter = ListFilter { context_id: Some(context(name)), ..ListFilter::default() };
        assert_eq!(listed(store, &ListQuery { filter, ..query() }).await, [name.as_str()]);
    }
    let mut backwards = names.clone();
    backwards.reverse();
    assert_eq!(listed(store, &query()).await, backwards);
    let open = store.open_tasks(TaskKey(0), 1_000).await.unwrap();
    assert_eq!(open.len(), names.len());
    assert!(open.iter().all(|open| names.iter().any(|name| name == open.id.as_str())));
}

pub(super) async fn scopes_with_odd_characters(store: &Arc<dyn Store>) {
    let names = odd_names();
    let scopes: Vec<Scope> = names.iter().map(|name| Scope::new(name, "", name)).collect();
    for (n, scope) in (1..).zip(&scopes) {
        written_in(store, scope, birth("t").events(n)).await;
    }
    for (n, scope) in (1..).zip(&scopes) {
        assert_eq!(store.head(scope, &id("t")).await.unwrap().unwrap().version, n, "{scope:?}");
    }
    let open = store.open_tasks(TaskKey(0), 1_000).await.unwrap();
    assert!(scopes.iter().all(|scope| open.iter().any(|open| open.scope == *scope)));
}

pub(super) async fn times_far_away(store: &Arc<dyn Store>) {
    let times =
        [Timestamp::MIN, Timestamp::from_millis(-1), Timestamp::from_millis(0), at(0), Timestamp::MAX];
    for (n, time) in (0..).zip(times) {
        let append = birth(&format!("t{n}")).ended(0).with(|append| {
            append.head.status_at = time;
            append.birth.as_mut().unwrap().created_at = time;
            append.message =
                Some(MessageRecord { at: time, ..record(&format!("m{n}"), 1, &append.task.to_string()) });
        });
        written(store, append).await;
        let head = head(store, &format!("t{n}")).await;
        assert_eq!((head.created_at, head.current.status_at), (time, time));
        assert_eq!(recorded(store, &format!("m{n}"), 1).await.unwrap().at, time);
    }
    assert_eq!(listed(store, &query()).await, ["t4", "t3", "t2", "t1", "t0"]);
    let oldest = ListQuery { not_after: Timestamp::MIN, ..query() };
    assert_eq!(listed(store, &oldest).await, ["t0"]);
    let after = Some(ListPosition { status_at: Timestamp::from_millis(0), id: id("t2") });
    assert_eq!(listed(store, &ListQuery { after, ..query() }).await, ["t1", "t0"]);
    let newest = ListFilter { updated_since: Some(Timestamp::MAX), ..ListFilter::default() };
    assert_eq!(total(store, &newest).await, 1);
    assert_eq!(store.purge_ended(Timestamp::MIN, 10).await.unwrap(), 0);
    assert_eq!(store.purge_ended(Timestamp::from_millis(0), 10).await.unwrap(), 2);
    assert_eq!(listed(store, &query()).await, ["t4", "t3", "t2"]);
}

/// Replica ids are random; half of them have the top bit set.
pub(super) async fn numbers_of_64_bits(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let mut fence = 0;
    for holder in [u64::MAX, 1 << 63, (1 << 63) - 1, (1 << 53) + 1] {
        let head_state = HeadState {
            holder: Some(ReplicaId(holder)),
            fence: fence + (1 << 40) + 1,
            attempts: u32::MAX,
            ..birth("t").head
        };
        let append = next("t", 1).events(0).with(|append| (append.fence, append.head) = (fence, head_state));
        written(store, append).await;
        assert_eq!(head(store, "t").await.current, head_state);
        fence = head_state.fence;
    }
}

pub(super) async fn an_event_of_one_mebibyte(store: &Arc<dyn Store>) {
    let large = large_event(2, 1 << 20);
    written(store, birth("t")).await;
    let append = next("t", 1).with(|append| append.events = vec![large.clone(), status_event(3, "small")]);
    written(store, append).await;
    assert_eq!(store.events(&scope(), &id("t"), 1, 1).await.unwrap(), std::slice::from_ref(&large));
    assert_eq!(store.events(&scope(), &id("t"), 1, 10).await.unwrap()[0], large);
    assert_eq!(load(store, "t").await.tail[1], large);
    let request = NewRequest { event: large.renumbered(0), ..new_request("w", None) };
    noted(store, "t", request).await;
    assert_eq!(store.requests(&scope(), &id("t")).await.unwrap()[0].event.record(), large.record());
}

pub(super) async fn a_snapshot_and_a_reply_of_one_mebibyte(store: &Arc<dyn Store>) {
    let large = snapshot(1, &"y".repeat(1 << 20));
    written(store, birth("t").with(|append| append.snapshot = Some(large.clone()))).await;
    assert_eq!(load(store, "t").await.snapshot, Some(large));
    let large = MessageRecord { reply: Some(Bytes::from(vec![0xA5; 1 << 20])), ..reply("m", 1, "") };
    store.put_reply(&scope(), large.clone()).await.unwrap();
    assert_eq!(recorded(store, "m", 1).await, Some(large));
}
