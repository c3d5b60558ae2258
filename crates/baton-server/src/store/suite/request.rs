//! `request`: messages and cancellations for the task's holder.

use std::sync::Arc;

use baton_protocol::domain::TaskState;

use super::fixture::*;
use crate::store::{Appended, NewRequest, Requested, Store, Work};

async fn texts(store: &Arc<dyn Store>, task: &str) -> Vec<String> {
    let pending = store.requests(&scope(), &id(task)).await.unwrap();
    pending.iter().map(|pending| String::from_utf8(pending.event.json().to_vec()).unwrap()).collect()
}

fn json(message: &str) -> String {
    format!("{{\"messageId\":\"{message}\"}}")
}

pub(super) async fn requests_are_noted_oldest_first(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    written(store, birth("other")).await;
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(noted(store, "t", new_request(&format!("w{n}"), None)).await);
    }
    noted(store, "other", new_request("elsewhere", None)).await;
    let pending = store.requests(&scope(), &id("t")).await.unwrap();
    assert_eq!(pending.iter().map(|pending| pending.request).collect::<Vec<_>>(), ids);
    assert_eq!(texts(store, "t").await, (0..12).map(|n| json(&format!("w{n}"))).collect::<Vec<_>>());
    assert_eq!(texts(store, "unknown").await, [] as [String; 0]);
}

pub(super) async fn a_request_changes_no_state(store: &Arc<dyn Store>) {
    written(store, birth("t").work(Work::Idle).snapshot()).await;
    let before = load(store, "t").await;
    match store.request(&scope(), &id("t"), new_request("w", None)).await.unwrap() {
        Requested::Noted { head, .. } => assert_eq!(head, before.head),
        other => panic!("{other:?}"),
    }
    assert_eq!(load(store, "t").await, before);
    // The holder's next append is not disturbed.
    written(store, next("t", 1)).await;
}

pub(super) async fn request_ids_rise_even_after_settling(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let first = noted(store, "t", new_request("1", None)).await;
    let second = noted(store, "t", new_request("2", None)).await;
    written(store, next("t", 1).settling(first, None).settling(second, None)).await;
    let third = noted(store, "t", new_request("3", None)).await;
    assert!(first < second && second < third, "{first:?} {second:?} {third:?}");
}

pub(super) async fn an_unknown_task_is_not_found(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let answer =
        store.request(&scope(), &id("u"), new_request("w", Some(record("w", 1, "u")))).await.unwrap();
    assert_eq!(answer, Requested::NotFound);
    assert_eq!(recorded(store, "w", 1).await, None);
}

pub(super) async fn an_ended_task_takes_no_request(store: &Arc<dyn Store>) {
    for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
        let name = format!("{state:?}");
        written(store, birth(&name).state(state).work(Work::Idle)).await;
        let answer =
            store.request(&scope(), &id(&name), new_request("w", Some(record("w", 1, &name)))).await.unwrap();
        assert_eq!(answer, Requested::Ended(head(store, &name).await));
        assert_eq!(texts(store, &name).await, [] as [String; 0]);
        assert_eq!(recorded(store, "w", 1).await, None);
    }
}

pub(super) async fn a_full_task_takes_no_request(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let most =
        |message: &str| NewRequest { most_pending: 2, ..new_request(message, Some(record(message, 1, "t"))) };
    let first = noted(store, "t", most("a")).await;
    noted(store, "t", most("b")).await;
    assert_eq!(store.request(&scope(), &id("t"), most("c")).await.unwrap(), Requested::Full);
    assert_eq!(texts(store, "t").await, [json("a"), json("b")]);
    assert_eq!(recorded(store, "c", 1).await, None);
    // After settling one, the next is accepted. The bound is part of each call, not of the task.
    written(store, next("t", 1).settling(first, None)).await;
    noted(store, "t", most("c")).await;
    noted(store, "t", NewRequest { most_pending: 3, ..new_request("d", None) }).await;
    assert_eq!(texts(store, "t").await, [json("b"), json("c"), json("d")]);
}

pub(super) async fn settled_requests_are_removed_and_others_stay(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c", "d"] {
        ids.push(noted(store, "t", new_request(name, None)).await);
    }
    written(store, next("t", 1).settling(ids[2], Some(2)).settling(ids[0], None)).await;
    assert_eq!(texts(store, "t").await, [json("b"), json("d")]);
}

pub(super) async fn settling_writes_the_number_into_the_record(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let first = noted(store, "t", new_request("a", Some(record("a", 1, "t")))).await;
    noted(store, "t", new_request("a", Some(record("a", 2, "t")))).await;
    assert_eq!(recorded(store, "a", 1).await, Some(record("a", 1, "t")));
    written(store, next("t", 1).events(4).settling(first, Some(3))).await;
    let mut settled = record("a", 1, "t");
    settled.event = Some(3);
    assert_eq!(recorded(store, "a", 1).await, Some(settled.clone()));
    // The same id with another hash is another message.
    assert_eq!(recorded(store, "a", 2).await, Some(record("a", 2, "t")));
    let again = store.request(&scope(), &id("t"), new_request("a", Some(record("a", 1, "t")))).await.unwrap();
    assert_eq!(again, Requested::Duplicate(settled));
}

pub(super) async fn a_request_settled_into_nothing_leaves_its_record(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let request = noted(store, "t", new_request("a", Some(record("a", 1, "t")))).await;
    written(store, next("t", 1).settling(request, None)).await;
    assert_eq!(texts(store, "t").await, [] as [String; 0]);
    assert_eq!(recorded(store, "a", 1).await, Some(record("a", 1, "t")));
}

pub(super) async fn settling_what_is_not_pending_is_no_fault(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    written(store, birth("other")).await;
    let elsewhere = noted(store, "other", new_request("stays", None)).await;
    let mine = noted(store, "t", new_request("goes", None)).await;
    written(store, next("t", 1).settling(mine, Some(2))).await;
    written(store, next("t", 2).settling(mine, Some(3))).await;
    // Another task's request is not settled, whether ids are unique per task or per store.
    if elsewhere != mine {
        written(store, next("t", 3).settling(elsewhere, Some(4))).await;
    }
    assert_eq!(texts(store, "other").await, [json("stays")]);
}

pub(super) async fn the_same_message_is_noted_once(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    noted(store, "t", new_request("a", Some(record("a", 1, "t")))).await;
    let again = store.request(&scope(), &id("t"), new_request("a", Some(record("a", 1, "t")))).await.unwrap();
    assert_eq!(again, Requested::Duplicate(record("a", 1, "t")));
    assert_eq!(texts(store, "t").await, [json("a")]);
    // Requests without a record, such as cancels, are never duplicates.
    noted(store, "t", new_request("cancel", None)).await;
    noted(store, "t", new_request("cancel", None)).await;
    assert_eq!(texts(store, "t").await.len(), 3);
}

/// A repeated message must find its record whatever became of the task meanwhile.
pub(super) async fn a_duplicate_is_told_before_anything_else(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let request = noted(store, "t", new_request("a", Some(record("a", 1, "t")))).await;
    let again = |most_pending| NewRequest { most_pending, ..new_request("a", Some(record("a", 1, "t"))) };
    let duplicate = Requested::Duplicate(record("a", 1, "t"));
    let ask = async |most| store.request(&scope(), &id("t"), again(most)).await.unwrap();
    assert_eq!(ask(1).await, duplicate, "full");
    written(store, next("t", 1).settling(request, None)).await;
    written(store, next("t", 2).ended(5)).await;
    assert_eq!(ask(16).await, duplicate, "ended");
    assert_eq!(store.purge_ended(at(10), 10).await.unwrap(), 1);
    assert_eq!(ask(16).await, duplicate, "gone");
}

pub(super) async fn a_noted_event_enters_the_log_renumbered(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    noted(store, "t", new_request("a", None)).await;
    let pending = store.requests(&scope(), &id("t")).await.unwrap().remove(0);
    let append = next("t", 1).with(|append| append.events = vec![pending.event.renumbered(2)]);
    assert!(matches!(
        store.append(&scope(), append.settling(pending.request, Some(2))).await.unwrap(),
        Appended::Written(_)
    ));
    let events = store.events(&scope(), &id("t"), 1, 10).await.unwrap();
    assert_eq!(events, [user_event("a").renumbered(2)]);
    assert_eq!(texts(store, "t").await, [] as [String; 0]);
}

/// An acknowledged message is in the log at the latest when the task ends.
pub(super) async fn a_task_does_not_end_before_its_messages_are_written(store: &Arc<dyn Store>) {
    for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
        let name = &format!("{state:?}");
        let message = |text: &str| new_request(text, Some(record(&format!("{name} {text}"), 1, name)));
        written(store, birth(name)).await;
        let first = noted(store, name, message("a")).await;
        let cancel = noted(store, name, new_request("cancel", None)).await;
        let second = noted(store, name, message("b")).await;
        let end = |events| next(name, 1).events(events).state(state).work(Work::Idle).snapshot();
        let before = everything(store, &scope(), name).await;
        for refused in [
            end(1),
            end(1).settling(cancel, None),
            end(2).settling(first, Some(2)),
            // Settled without an event: the message would be lost.
            end(2).settling(first, Some(2)).settling(second, None),
            end(2).with_message("other", 1).settling(second, Some(2)),
        ] {
            assert_eq!(store.append(&scope(), refused).await.unwrap(), Appended::Conflict);
            assert_eq!(everything(store, &scope(), name).await, before);
        }
        assert_eq!(recorded(store, "other", 1).await, None);
        // An append that does not end the task may leave messages pending.
        written(store, next(name, 1)).await;
        let end = next(name, 2).events(3).state(state).work(Work::Idle).snapshot();
        written(store, end.settling(first, Some(3)).settling(second, Some(4))).await;
        for (text, event) in [("a", 3), ("b", 4)] {
            let kept = recorded(store, &format!("{name} {text}"), 1).await.unwrap();
            assert_eq!(kept.event, Some(event));
        }
        // A cancel request may stay pending: it is no message that could be lost.
        assert_eq!(texts(store, name).await, [json("cancel")]);
        written(store, next(name, 5).events(0).state(state).work(Work::Idle).settling(cancel, None)).await;
    }
}
