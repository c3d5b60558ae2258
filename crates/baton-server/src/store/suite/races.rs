//! Many callers at once. Every caller is a tokio task of its own, on a runtime with more than one thread.

use std::sync::Arc;

use baton_protocol::domain::Scope;
use tokio::task::JoinSet;

use super::fixture::*;
use crate::store::{Append, Appended, NewRequest, OwnerUsage, Requested, Store, Work};

/// Makes all appends at once; the answers are in no order.
async fn append_all(store: &Arc<dyn Store>, appends: Vec<Append>) -> Vec<Appended> {
    let mut callers = JoinSet::new();
    for append in appends {
        let store = store.clone();
        callers.spawn(async move { store.append(&scope(), append).await.unwrap() });
    }
    callers.join_all().await
}

fn count_written(answers: &[Appended]) -> usize {
    answers.iter().filter(|answer| matches!(answer, Appended::Written(_))).count()
}

pub(super) async fn one_of_64_appenders_wins(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    for round in 1..=5 {
        let answers = append_all(store, vec![next("t", round); 64]).await;
        assert_eq!(count_written(&answers), 1);
        assert_eq!(answers.iter().filter(|answer| **answer == Appended::Conflict).count(), 63);
    }
    assert_eq!(numbers(&load(store, "t").await.tail), [1, 2, 3, 4, 5, 6]);
}

/// In rounds: in the first one the callers may wait for the creation of the scope and never race.
pub(super) async fn one_of_64_births_of_one_id_wins(store: &Arc<dyn Store>) {
    for round in 1..=5 {
        let task = format!("t{round}");
        let message = |n| format!("{task}m{n}");
        let births =
            (0..64).map(|n| birth(&task).in_context(&format!("c{n}")).with_message(&message(n), 1)).collect();
        let answers = append_all(store, births).await;
        assert_eq!(count_written(&answers), 1);
        assert_eq!(store.task_count().await.unwrap(), round);
        let mut records = 0;
        for n in 0..64 {
            records += usize::from(recorded(store, &message(n), 1).await.is_some());
        }
        assert_eq!(records, 1);
    }
}

pub(super) async fn one_of_20_births_for_one_message_wins(store: &Arc<dyn Store>) {
    for round in 1..=5 {
        let message = format!("m{round}");
        let births = (0..20).map(|n| birth(&format!("t{round}-{n}")).with_message(&message, 1)).collect();
        let answers = append_all(store, births).await;
        assert_eq!(count_written(&answers), 1);
        let kept = recorded(store, &message, 1).await.unwrap();
        let duplicate = Appended::Duplicate(kept.clone());
        assert_eq!(answers.iter().filter(|answer| **answer == duplicate).count(), 19);
        let listed = listed(store, &query()).await;
        assert_eq!(listed.len(), round);
        assert!(listed.iter().any(|id| Some(id.as_str()) == kept.task.as_ref().map(|task| task.as_str())));
    }
}

pub(super) async fn one_of_20_requests_for_one_message_is_noted(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let mut callers = JoinSet::new();
    for _ in 0..20 {
        let store = store.clone();
        let request = new_request("m", Some(record("m", 1, "t")));
        callers.spawn(async move { store.request(&scope(), &id("t"), request).await.unwrap() });
    }
    let answers = callers.join_all().await;
    let duplicate = Requested::Duplicate(record("m", 1, "t"));
    assert_eq!(answers.iter().filter(|answer| **answer == duplicate).count(), 19);
    assert_eq!(store.requests(&scope(), &id("t")).await.unwrap().len(), 1);
}

pub(super) async fn requests_never_exceed_the_bound(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let mut callers = JoinSet::new();
    for n in 0..64 {
        let store = store.clone();
        let name = format!("m{n}");
        let request = NewRequest { most_pending: 16, ..new_request(&name, Some(record(&name, 1, "t"))) };
        callers.spawn(async move { store.request(&scope(), &id("t"), request).await.unwrap() });
    }
    let answers = callers.join_all().await;
    let noted = answers.iter().filter(|answer| matches!(answer, Requested::Noted { .. })).count();
    let full = answers.iter().filter(|answer| **answer == Requested::Full).count();
    assert_eq!((noted, full), (16, 48));
    let pending = store.requests(&scope(), &id("t")).await.unwrap();
    assert_eq!(pending.len(), 16);
    assert!(pending.windows(2).all(|pair| pair[0].request < pair[1].request));
}

/// After a conflict the callers read again and try again, as the engine does.
pub(super) async fn appenders_that_read_again_all_get_through(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let mut callers = JoinSet::new();
    for n in 0..16 {
        let store = store.clone();
        callers.spawn(async move {
            loop {
                let version = head(&store, "t").await.version;
                let append = next("t", version).with_message(&format!("m{n}"), 1);
                if let Appended::Written(_) = store.append(&scope(), append).await.unwrap() {
                    return;
                }
            }
        });
    }
    callers.join_all().await;
    assert_eq!(numbers(&load(store, "t").await.tail), (1..=17).collect::<Vec<_>>());
    for n in 0..16 {
        assert!(recorded(store, &format!("m{n}"), 1).await.is_some());
    }
}

pub(super) async fn a_load_between_appends_is_whole(store: &Arc<dyn Store>) {
    written(store, birth("t")).await;
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0..150 {
                let append = next("t", 1 + 2 * n).events(2);
                written(&store, if n % 5 == 0 { append.snapshot() } else { append }).await;
                tokio::task::yield_now().await;
            }
        })
    };
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let store = store.clone();
        callers.spawn(async move {
            loop {
                let loaded = load(&store, "t").await;
                let version = loaded.head.version;
                assert!(version % 2 == 1, "half an append at {version}");
                let from = loaded.snapshot.map_or(0, |snapshot| snapshot.version());
                assert_eq!(numbers(&loaded.tail), (from + 1..=version).collect::<Vec<_>>());
                let row = tasks(&store, &scope(), &query()).await.remove(0);
                let from = row.snapshot.map_or(0, |snapshot| snapshot.version());
                assert_eq!(numbers(&row.tail), (from + 1..=row.head.version).collect::<Vec<_>>());
                let events = store.events(&scope(), &id("t"), 0, 10_000).await.unwrap();
                assert_eq!(numbers(&events), (1..=events.len() as u64).collect::<Vec<_>>());
                assert!(events.len() as u64 >= version && events.len() % 2 == 1);
                if version == 301 {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    writer.await.unwrap();
    callers.join_all().await;
}

/// Many callers make requests while the holder settles them: every request is settled exactly once.
pub(super) async fn requests_and_settling_lose_none(store: &Arc<dyn Store>) {
    written(store, birth("t").work(Work::Idle)).await;
    let mut callers = JoinSet::new();
    for n in 0..40 {
        let store = store.clone();
        let name = format!("m{n}");
        callers.spawn(async move {
            let request =
                || NewRequest { most_pending: 4, ..new_request(&name, Some(record(&name, 1, "t"))) };
            while store.request(&scope(), &id("t"), request()).await.unwrap() == Requested::Full {
                tokio::task::yield_now().await;
            }
        });
    }
    let mut version = 1;
    while version < 41 {
        let pending = store.requests(&scope(), &id("t")).await.unwrap();
        let Some(first) = pending.first() else {
            tokio::task::yield_now().await;
            continue;
        };
        let append =
            next("t", version).with(|append| append.events = vec![first.event.renumbered(version + 1)]);
        written(store, append.settling(first.request, Some(version + 1))).await;
        version += 1;
    }
    callers.join_all().await;
    assert_eq!(store.requests(&scope(), &id("t")).await.unwrap(), []);
    let mut events = Vec::new();
    for n in 0..40 {
        events.push(recorded(store, &format!("m{n}"), 1).await.unwrap().event.unwrap());
    }
    events.sort();
    assert_eq!(events, (2..=41).collect::<Vec<_>>());
}

/// Messages are requested while the task ends: each one is in the log or was refused.
pub(super) async fn no_message_slips_in_beside_the_end(store: &Arc<dyn Store>) {
    for round in 0..10 {
        let task = &format!("t{round}");
        written(store, birth(task)).await;
        let mut callers = JoinSet::new();
        for n in 0..8 {
            let (store, task, name) = (store.clone(), task.clone(), format!("{task} m{n}"));
            callers.spawn(async move {
                let request = new_request(&name, Some(record(&name, 1, &task)));
                match store.request(&scope(), &id(&task), request).await.unwrap() {
                    Requested::Noted { .. } => Some(name),
                    Requested::Ended(_) => None,
                    other => panic!("{other:?}"),
                }
            });
        }
        loop {
            let pending = store.requests(&scope(), &id(task)).await.unwrap();
            let mut end = next(task, 1).events(pending.len() as u64 + 1).ended(5);
            for (number, pending) in (2..).zip(&pending) {
                end.events[number as usize - 2] = pending.event.renumbered(number);
                end = end.settling(pending.request, Some(number));
            }
            match store.append(&scope(), end).await.unwrap() {
                Appended::Written(_) => break,
                Appended::Conflict => tokio::task::yield_now().await,
                other => panic!("{other:?}"),
            }
        }
        for name in callers.join_all().await.into_iter().flatten() {
            assert!(recorded(store, &name, 1).await.unwrap().event.is_some(), "{name} was noted and is lost");
        }
        assert_eq!(store.requests(&scope(), &id(task)).await.unwrap(), []);
    }
}

/// Sweeps empty a scope while others write to it: what was written stays.
pub(super) async fn s12_a_task_is_found_however_often_its_scope_was_empty(store: &Arc<dyn Store>) {
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let store = store.clone();
        callers.spawn(async move {
            for round in 0..25 {
                let scope = Scope::new("agent", &format!("tenant {}", round % 2), "owner");
                let (task, message) = (format!("t {caller} {round}"), format!("m {caller} {round}"));
                written_in(&store, &scope, birth(&task).with_message(&message, 1)).await;
                tokio::task::yield_now().await;
                assert!(store.head(&scope, &id(&task)).await.unwrap().is_some(), "{task} is lost");
                written_in(&store, &scope, next(&task, 1).ended(1)).await;
                store.put_reply(&scope, reply(&format!("r {caller} {round}"), 1, "r")).await.unwrap();
                store.purge_ended(at(100), 20).await.unwrap();
                store.purge_records(at(100), 40).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    while store.purge_ended(at(100), 100).await.unwrap() > 0 {}
    while store.purge_records(at(100), 100).await.unwrap() > 0 {}
    assert_eq!(store.task_count().await.unwrap(), 0);
    assert_eq!(store.owner_usage("owner").await.unwrap(), OwnerUsage::default());
}

pub(super) async fn one_of_20_secrets_is_kept(store: &Arc<dyn Store>) {
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        callers.spawn(async move { store.secret("cursor", vec![n]).await.unwrap() });
    }
    let mut answers = callers.join_all().await;
    answers.dedup();
    assert_eq!(answers.len(), 1);
}

pub(super) async fn one_of_20_replaces_a_secret(store: &Arc<dyn Store>) {
    store.secret("cursor", vec![200]).await.unwrap();
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        callers.spawn(async move { (n, store.replace_secret("cursor", &[200], vec![n]).await.unwrap()) });
    }
    let winners: Vec<u8> =
        callers.join_all().await.into_iter().filter_map(|(n, won)| won.then_some(n)).collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(store.secret("cursor", Vec::new()).await.unwrap(), winners);
}

pub(super) async fn one_of_20_replies_is_kept(store: &Arc<dyn Store>) {
    let mut callers = JoinSet::new();
    for n in 0..20 {
        let store = store.clone();
        let reply = reply("m", 1, &format!("reply {n}"));
        callers.spawn(async move { store.put_reply(&scope(), reply).await.unwrap() });
    }
    let answers = callers.join_all().await;
    let kept = recorded(store, "m", 1).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_none()).count(), 1);
    assert_eq!(answers.iter().filter(|answer| **answer == kept).count(), 19);
}
