//! Message records: the same message has one effect, however often it is sent.

use std::sync::Arc;

use bytes::Bytes;

use super::fixture::*;
use crate::store::{Appended, HASH_DIGEST, MessageRecord, Requested, Store};

pub(super) async fn a_record_is_kept_as_told(store: &Arc<dyn Store>) {
    let mut hash = [0; 32];
    hash.iter_mut().zip(0..).for_each(|(byte, n)| *byte = 255 - n * 7);
    let sent = MessageRecord { hash, event: Some(1), at: at(-77), ..record("m", 0, "t") };
    written(store, birth("t").with(|append| append.message = Some(sent.clone()))).await;
    assert_eq!(store.message(&scope(), &message_id("m"), &hash).await.unwrap(), Some(sent));
    let reply = MessageRecord { reply: Some(Bytes::from_static(b"1\n\x00\xff{}")), ..reply("r", 9, "") };
    assert_eq!(store.put_reply(&scope(), reply.clone()).await.unwrap(), None);
    assert_eq!(recorded(store, "r", 9).await, Some(reply));
}

pub(super) async fn an_unknown_message_has_no_record(store: &Arc<dyn Store>) {
    assert_eq!(recorded(store, "m", 1).await, None);
    written(store, birth("t").with_message("m", 1)).await;
    assert_eq!(recorded(store, "m", 2).await, None);
    assert_eq!(recorded(store, "n", 1).await, None);
}

pub(super) async fn a_duplicate_writes_nothing(store: &Arc<dyn Store>) {
    written(store, birth("first").with_message("m", 1)).await;
    written(store, birth("t").snapshot()).await;
    let request = noted(store, "t", new_request("w", Some(record("w", 1, "t")))).await;
    let before = everything(store, &scope(), "t").await;
    let append = next("t", 1).events(3).with_message("m", 1).settling(request, Some(2)).ended(700);
    let answer = store.append(&scope(), append).await.unwrap();
    assert_eq!(answer, Appended::Duplicate(record("m", 1, "first")));
    assert_eq!(everything(store, &scope(), "t").await, before);
    assert_eq!(recorded(store, "w", 1).await.unwrap().event, None);
    assert_eq!(recorded(store, "m", 1).await, Some(record("m", 1, "first")));
}

pub(super) async fn a_duplicate_birth_makes_no_task(store: &Arc<dyn Store>) {
    written(store, birth("first").with_message("m", 1)).await;
    let answer = store.append(&scope(), birth("second").with_message("m", 1)).await.unwrap();
    assert_eq!(answer, Appended::Duplicate(record("m", 1, "first")));
    assert!(!exists(store, "second").await);
    assert_eq!(listed(store, &query()).await, ["first"]);
    assert_eq!(store.task_count().await.unwrap(), 1);
}

/// A repeated send must find the first one even if its append would conflict; a conflict would make the engine try again.
pub(super) async fn a_duplicate_is_told_before_a_conflict(store: &Arc<dyn Store>) {
    written(store, birth("t").with_message("m", 1)).await;
    let duplicate = Appended::Duplicate(record("m", 1, "t"));
    for append in [birth("t"), next("t", 7), next("t", 1).with(|append| append.fence = 9), next("unknown", 1)]
    {
        let append = append.with(|append| append.message = Some(record("m", 1, "t")));
        assert_eq!(store.append(&scope(), append).await.unwrap(), duplicate);
    }
}

pub(super) async fn a_duplicate_of_a_noted_request_is_told(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let request = noted(store, "t", new_request("w", Some(record("w", 1, "t")))).await;
    let append = next("t", 1).with_message("w", 1);
    assert_eq!(
        store.append(&scope(), append.clone()).await.unwrap(),
        Appended::Duplicate(record("w", 1, "t"))
    );
    written(store, next("t", 1).settling(request, Some(2))).await;
    let settled = MessageRecord { event: Some(2), ..record("w", 1, "t") };
    assert_eq!(store.append(&scope(), append).await.unwrap(), Appended::Duplicate(settled));
}

pub(super) async fn the_same_id_with_another_hash_is_another_message(store: &Arc<dyn Store>) {
    written(store, birth("a").with_message("m", 1)).await;
    written(store, birth("b").with_message("m", 2)).await;
    noted(store, "a", new_request("m", Some(record("m", 3, "a")))).await;
    assert_eq!(store.put_reply(&scope(), reply("m", 4, "r")).await.unwrap(), None);
    assert_eq!(recorded(store, "m", 1).await, Some(record("m", 1, "a")));
    assert_eq!(recorded(store, "m", 2).await, Some(record("m", 2, "b")));
    assert_eq!(recorded(store, "m", 3).await, Some(record("m", 3, "a")));
    assert_eq!(recorded(store, "m", 4).await, Some(reply("m", 4, "r")));
}

pub(super) async fn the_first_reply_is_kept(store: &Arc<dyn Store>) {
    assert_eq!(store.put_reply(&scope(), reply("m", 1, "one")).await.unwrap(), None);
    let first = Some(reply("m", 1, "one"));
    assert_eq!(store.put_reply(&scope(), reply("m", 1, "two")).await.unwrap(), first);
    assert_eq!(recorded(store, "m", 1).await, first);
    assert_eq!(store.task_count().await.unwrap(), 0);
}

pub(super) async fn a_reply_and_a_task_share_one_record(store: &Arc<dyn Store>) {
    store.put_reply(&scope(), reply("r", 1, "one")).await.unwrap();
    let answer = store.append(&scope(), birth("t").with_message("r", 1)).await.unwrap();
    assert_eq!(answer, Appended::Duplicate(reply("r", 1, "one")));
    assert!(!exists(store, "t").await);
    written(store, birth("t").with_message("m", 1)).await;
    let answer = store.put_reply(&scope(), reply("m", 1, "late")).await.unwrap();
    assert_eq!(answer, Some(record("m", 1, "t")));
}

/// After an upgrade that changes how hashes are computed, repeated messages still find their first send.
pub(super) async fn s12_a_record_is_found_under_any_version_of_its_hash(store: &Arc<dyn Store>) {
    let under = |version: u8, record: MessageRecord| {
        let mut hash = record.hash;
        hash[HASH_DIGEST] = version;
        MessageRecord { hash, ..record }
    };
    let is = |found: &MessageRecord, first: &MessageRecord| {
        assert_eq!(under(0, found.clone()), under(0, first.clone()));
    };
    let (said, noted_one, answered) = (record("m", 1, "t"), record("w", 1, "t"), reply("r", 1, "r"));
    written(store, birth("t").with(|append| append.message = Some(under(200, said.clone())))).await;
    let request = noted(store, "t", new_request("w", Some(under(201, noted_one.clone())))).await;
    assert_eq!(store.put_reply(&scope(), under(202, answered.clone())).await.unwrap(), None);
    for first in [&said, &noted_one, &answered] {
        let asked = under(2, first.clone());
        let found = store.message(&scope(), &asked.message_id, &asked.hash).await.unwrap();
        is(&found.expect("it is on record"), first);
        let append = birth("again").with(|append| append.message = Some(asked.clone()));
        let appended = store.append(&scope(), append).await.unwrap();
        assert!(
            matches!(&appended, Appended::Duplicate(found) if { is(found, first); true }),
            "{appended:?}"
        );
        let requested =
            store.request(&scope(), &id("t"), new_request("w", Some(asked.clone()))).await.unwrap();
        assert!(
            matches!(&requested, Requested::Duplicate(found) if { is(found, first); true }),
            "{requested:?}"
        );
        is(&store.put_reply(&scope(), asked).await.unwrap().expect("it is on record"), first);
    }
    assert!(!exists(store, "again").await);
    written(store, next("t", 1).settling(request, Some(2)).ended(1)).await;
    let noted_one = MessageRecord { event: Some(2), ..noted_one };
    is(&recorded(store, "w", 1).await.expect("it is on record"), &noted_one);
    store.purge_ended(at(10), 10).await.unwrap();
    is(&recorded(store, "m", 1).await.expect("it outlives its task"), &said);
    assert_eq!(store.purge_records(at(10), 10).await.unwrap(), 3);
}
