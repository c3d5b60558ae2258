//! S-14: what an operator sees of webhooks and does about them, on a server and on a store without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_protocol::domain::TaskId;
use baton_server::store::memory::MemoryStore;
use baton_server::store::{StoreError, WebhookState};
use baton_server::{
    Builder, Options, Replayed, SwitchedOff, Turn, WebhookError, WebhookFilter, WebhookGroup, WebhookName,
    WebhookStatus, Webhooks,
};
use serde_json::{Value, json};

use crate::callers::{ByHeader, call_as};
use crate::faults::FaultyStore;
use crate::fixtures::{Backend, Gate, TestClock, agent_with};
use crate::harness::{TEST_TIMEOUT, TestServer, id, message, serve, with_agent};
use crate::push::{Got, Receiver, busy, options, with_webhook};

const HOUR: Duration = Duration::from_secs(60 * 60);

fn pushing() -> Builder {
    with_agent(busy).push(options())
}

fn filter(change: impl FnOnce(&mut WebhookFilter)) -> WebhookFilter {
    let mut filter = WebhookFilter::default();
    change(&mut filter);
    filter
}

fn group(group: WebhookGroup) -> WebhookFilter {
    filter(|filter| filter.group = group)
}

async fn listed(webhooks: &Webhooks, filter: &WebhookFilter) -> Vec<WebhookStatus> {
    let page = webhooks.list(filter, None, 1000).await.unwrap();
    assert_eq!(page.next, None);
    page.webhooks
}

/// Waits until so many webhooks have failed.
pub(crate) async fn failed(webhooks: &Webhooks, count: usize) -> Vec<WebhookStatus> {
    until(async || {
        let failed = listed(webhooks, &group(WebhookGroup::Failed)).await;
        (failed.len() == count).then_some(failed)
    })
    .await
}

/// Waits until this has an answer.
pub(crate) async fn until<T>(mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, looking).await.expect("it is seen")
}

/// Starts a task that calls this webhook.
async fn start(server: &TestServer, webhook: Value) -> String {
    let started = server.call("SendMessage", with_webhook("go", webhook)).await;
    id(&started.result()["task"]).to_owned()
}

fn name(name: &str) -> WebhookName {
    WebhookName::new(name)
}

fn same(call: &Got) -> (String, Vec<u8>) {
    (call.header("webhook-id").to_owned(), call.body.to_vec())
}

/// What a stream of the task shows from its beginning.
async fn streamed(server: &TestServer, task: &str) -> Vec<Value> {
    let mut stream = server.stream("SubscribeToTask", json!({"id": task}), Some("0")).await.ok().unwrap();
    stream.rest().await.iter().map(|event| event.result().clone()).collect()
}

#[tokio::test]
async fn s14_a_failed_webhook_is_found_after_a_restart_and_its_replay_sends_what_was_not_delivered() {
    for backend in Backend::each() {
        let receiver = Receiver::start(&[410]).await;
        let server = serve(pushing().store(backend.open().await)).await;
        let url = format!("{}?key=canary-query", receiver.url);
        let secret = json!({"url": url, "id": "mine", "token": "canary-token",
            "authentication": {"scheme": "Bearer", "credentials": "canary-credentials"}});
        let task = start(&server, secret).await;
        failed(&server.server.webhooks(), 1).await;
        server.eventually(&task, "COMPLETED").await;
        server.stop().await;

        let server = serve(pushing().store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        assert!(webhooks.is_delivering());
        let found = webhooks.find(&name(&task)).await.unwrap();
        assert_eq!(
            (found.state, found.off, found.is_busy),
            (WebhookState::Disabled, Some(SwitchedOff::Receiver), false)
        );
        assert_eq!(
            (found.agent.as_str(), found.owner.as_str(), found.id.as_str()),
            ("default", "anonymous", "mine")
        );
        assert_eq!(found.reason.as_deref(), Some("the webhook answered with status 410"));
        assert_eq!((found.next, found.version, found.has_last_task), (1, Some(7), true));
        let host = receiver.url.strip_prefix("http://").unwrap().strip_suffix("/hook").unwrap();
        assert_eq!((&*found.host, &*found.url), (host, &*format!("{}?***", receiver.url)));
        assert!(found.failed_at.is_some() && found.due.is_none() && found.created_at.is_some());
        assert!(!format!("{found:?} {webhooks:?}").contains("canary"), "{found:?}");
        assert_eq!(listed(&webhooks, &group(WebhookGroup::All)).await, std::slice::from_ref(&found));
        assert_eq!(listed(&webhooks, &group(WebhookGroup::Open)).await, []);

        assert_eq!(webhooks.replay(&found.name()).await, Ok(Replayed::Reopened));
        let got = receiver.wait_for_end().await;
        assert!(same(&got[0]) == same(&got[1]), "the one that failed, again");
        let bodies: Vec<Value> = got[2..].iter().map(Got::json).collect();
        assert_eq!(bodies, streamed(&server, &task).await);
        // What is delivered is in no list.
        until(async || listed(&webhooks, &WebhookFilter::default()).await.is_empty().then_some(())).await;
        let unknown = WebhookError::Unknown(task.clone());
        assert_eq!(webhooks.replay(&name(&task)).await, Err(unknown.clone()));
        assert_eq!(webhooks.disable(&name(&task)).await, Err(unknown));
        server.stop().await;
    }
}

/// The tenth attempt sent the whole task, and so does the replay: its receiver may have got it.
#[tokio::test]
async fn s14_a_replay_begins_with_the_bytes_of_the_last_attempt() {
    for backend in Backend::each() {
        let receiver = Receiver::start(&[500; 10]).await;
        let mut quick = options();
        quick.pace = 1e-7;
        let server = serve(with_agent(busy).push(quick).store(backend.open().await)).await;
        let task = start(&server, json!({"url": receiver.url})).await;
        let webhooks = server.server.webhooks();
        let found = failed(&webhooks, 1).await.remove(0);
        assert_eq!((found.state, found.attempts, found.version), (WebhookState::Failed, 10, Some(7)));
        assert!(found.next > 1 && found.failing_since.is_some(), "{found:?}");
        assert_eq!(found.task.as_str(), task);
        assert_eq!(webhooks.replay(&name(&task)).await, Ok(Replayed::Reopened));
        let got = receiver.wait_for(11).await;
        assert!(same(&got[9]) == same(&got[10]));
        server.stop().await;
    }
}

/// Why a call has failed is kept in memory: a restart forgets it until the next one.
#[tokio::test]
async fn s14_an_open_webhook_says_why_its_last_call_has_failed() {
    for backend in Backend::each() {
        let receiver = Receiver::start(&[500, 302, 503]).await;
        let mut slow = options();
        slow.pace = 1000.0;
        let builder = async || with_agent(busy).push(slow.clone()).store(backend.open().await);
        let server = serve(builder().await).await;
        let webhooks = server.server.webhooks();
        let task = start(&server, json!({"url": receiver.url})).await;
        let why = async |webhooks: &Webhooks, attempts: u32| {
            let failed = async || {
                let found = webhooks.find(&name(&task)).await.unwrap();
                (found.attempts == attempts && !found.is_busy).then_some(found)
            };
            let found = until(failed).await;
            assert!(found.due.is_some() && found.off.is_none(), "{found:?}");
            found.reason
        };
        let status = |status: u16| Some(format!("the webhook answered with status {status}"));
        assert_eq!(why(&webhooks, 1).await, status(500));
        server.eventually(&task, "COMPLETED").await;
        assert_eq!(webhooks.replay(&name(&task)).await, Ok(Replayed::Due));
        let redirect = "the webhook answered with a redirect (status 302), which is not followed";
        assert_eq!(why(&webhooks, 2).await.as_deref(), Some(redirect));
        drop(webhooks);
        server.stop().await;

        let server = serve(builder().await).await;
        let webhooks = server.server.webhooks();
        assert_eq!(why(&webhooks, 2).await, None);
        assert_eq!(webhooks.replay(&name(&task)).await, Ok(Replayed::Due));
        assert_eq!(why(&webhooks, 3).await, status(503));
        server.stop().await;
    }
}

#[tokio::test]
async fn s14_a_replay_of_an_open_webhook_makes_it_due() {
    for backend in Backend::each() {
        let mut slow = options();
        slow.pace = 1000.0;
        let gate = Gate::new();
        let agent = agent_with(&gate, |gate: Gate, turn: Turn| async move {
            gate.pass().await;
            busy(turn).await
        });
        let receiver = Receiver::start(&[500, 200]).await;
        let server = serve(with_agent(agent).push(slow).store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        let task = start(&server, json!({"url": receiver.url})).await;
        let failing = filter(|filter| filter.failing = true);
        let found = until(async || listed(&webhooks, &failing).await.pop()).await;
        assert_eq!((found.state, found.attempts, found.next), (WebhookState::Open, 1, 1));
        assert!(found.due > found.failing_since && found.failing_since.is_some(), "{found:?}");
        // Its call may still be counted as under way.
        let replay = async || match webhooks.replay(&name(&task)).await.unwrap() {
            Replayed::UnderWay => None,
            done => Some(done),
        };
        assert_eq!(until(replay).await, Replayed::Due);
        assert!(listed(&webhooks, &failing).await.iter().all(|found| found.due.is_none()));
        let all_so_far = until(async || match webhooks.replay(&name(&task)).await.unwrap() {
            Replayed::NothingLeft => Some(webhooks.find(&name(&task)).await.unwrap()),
            _ => None,
        });
        assert_eq!(all_so_far.await.attempts, 0);
        gate.let_pass(1);
        let got = receiver.wait_for_end().await;
        assert!(same(&got[0]) == same(&got[1]));
        server.stop().await;
    }
}

#[tokio::test]
async fn s14_what_was_kept_of_a_task_that_is_gone_is_sent_once() {
    for backend in Backend::each() {
        let (clock, receiver) =
            (TestClock::new(), Receiver::start(&[200, 200, 200, 200, 200, 410, 500]).await);
        let server = serve(pushing().store(backend.open().await).clock(clock.clone())).await;
        let webhooks = server.server.webhooks();
        let task = start(&server, json!({"url": receiver.url, "token": "t0k"})).await;
        let whole = server.eventually(&task, "COMPLETED").await;
        failed(&webhooks, 1).await;
        clock.advance(40 * 24 * HOUR);
        assert_eq!(server.server.sweep().await.unwrap().removed, 1);
        let found = webhooks.find(&name(&task)).await.unwrap();
        assert_eq!((found.version, found.next, found.has_last_task), (None, 7, true));

        let not_delivered = "the webhook answered with status 500".to_owned();
        assert_eq!(webhooks.replay(&name(&task)).await, Err(WebhookError::NotDelivered(not_delivered)));
        // Also if two ask at the same time.
        let named = name(&task);
        let (one, other) = tokio::join!(webhooks.replay(&named), webhooks.replay(&named));
        let sent = |replayed: &Result<Replayed, _>| *replayed == Ok(Replayed::LastTaskSent);
        assert!(sent(&one) != sent(&other), "{one:?} {other:?}");
        let got = receiver.all();
        assert!(got.len() == 8 && same(&got[6]) == same(&got[7]), "the same id at every attempt");
        let sent = got[7].json()["task"].clone();
        assert_eq!((&sent["artifacts"], &sent["status"]), (&whole["artifacts"], &whole["status"]));
        assert_eq!(got[7].header("x-a2a-notification-token"), "t0k");
        assert_eq!(webhooks.replay(&name(&task)).await, Err(WebhookError::Unknown(task)));
        server.stop().await;
    }
}

#[tokio::test]
async fn s14_a_disabled_webhook_is_not_called_again_unless_it_is_replayed() {
    for backend in Backend::each() {
        let gate = Gate::new();
        let agent = agent_with(&gate, |gate: Gate, turn: Turn| async move {
            turn.progress("before").await?;
            gate.pass().await;
            turn.progress("after").await
        });
        let receiver = Receiver::start(&[]).await;
        let server = serve(with_agent(agent).push(options()).store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        let task = start(&server, json!({"url": receiver.url})).await;
        receiver.wait_for(3).await;
        // Else the call under way would be repeated by the replay.
        until(async || (!webhooks.find(&name(&task)).await.unwrap().is_busy).then_some(())).await;
        let disabled = webhooks.disable(&name(&task)).await.unwrap();
        assert_eq!(
            (disabled.state, disabled.off, disabled.reason.as_deref()),
            (WebhookState::Disabled, Some(SwitchedOff::Operator), Some("disabled by the operator"))
        );
        let again = WebhookError::NotOpen("disabled by the operator".to_owned());
        assert_eq!(webhooks.disable(&name(&task)).await, Err(again));
        gate.let_pass(2);
        server.eventually(&task, "COMPLETED").await;
        start(&server, json!({"url": receiver.url})).await;
        receiver.wait_for_end().await;
        let of_it = || receiver.all().iter().filter(|got| got.json().to_string().contains(&task)).count();
        assert_eq!(of_it(), 3);
        let none_is_open = "\nbaton_webhooks_open 0.0\n";
        until(async || server.server.metrics().await.contains(none_is_open).then_some(())).await;

        assert_eq!(webhooks.replay(&name(&task)).await, Ok(Replayed::Reopened));
        let expected = 1 + streamed(&server, &task).await.len();
        until(async || (of_it() == expected).then_some(())).await;
        server.stop().await;
    }
}

#[tokio::test]
async fn s14_without_a_server_the_next_one_goes_on_with_what_was_changed() {
    for backend in Backend::each() {
        let receiver = Receiver::start(&[410, 500]).await;
        let mut slow = options();
        slow.pace = 1000.0;
        let server = serve(with_agent(busy).push(slow).store(backend.open().await)).await;
        let gone = start(&server, json!({"url": receiver.url})).await;
        failed(&server.server.webhooks(), 1).await;
        let open = start(&server, json!({"url": receiver.url})).await;
        receiver.wait_for(2).await;
        server.eventually(&open, "COMPLETED").await;
        server.eventually(&gone, "COMPLETED").await;
        server.stop().await;

        let store = backend.open().await;
        let webhooks = Webhooks::in_store(Arc::clone(&store), 100);
        assert!(!webhooks.is_delivering());
        assert_eq!(listed(&webhooks, &WebhookFilter::default()).await.len(), 2);
        assert_eq!(webhooks.replay(&name(&gone)).await, Ok(Replayed::Reopened));
        assert_eq!(webhooks.disable(&name(&open)).await.unwrap().state, WebhookState::Disabled);
        drop((webhooks, store));

        // A server without webhooks sends nothing, and says so.
        let server = serve(with_agent(busy).store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        assert_eq!(listed(&webhooks, &WebhookFilter::default()).await.len(), 2);
        assert_eq!(webhooks.replay(&name(&open)).await, Err(WebhookError::Off));
        drop(webhooks);
        server.stop().await;

        let server = serve(pushing().store(backend.open().await)).await;
        let got = receiver.wait_for_end().await;
        let of = |task: &str| got.iter().filter(|got| got.json().to_string().contains(task)).count();
        assert_eq!((of(&gone), of(&open)), (1 + 1 + streamed(&server, &gone).await.len(), 1));
        assert_eq!(failed(&server.server.webhooks(), 1).await[0].task.as_str(), open);
        server.stop().await;
    }
}

/// A failed webhook is kept as long as a repeat of its task's message is recognised, and in any case as long as the task.
#[tokio::test]
async fn s14_what_was_kept_of_a_task_that_is_gone_goes_with_its_message_records() {
    for backend in Backend::each() {
        let (clock, gate) = (TestClock::new(), Gate::new());
        let agent = agent_with(&gate, |gate: Gate, turn: Turn| async move {
            turn.progress("working").await?;
            gate.pass().await;
            Ok(())
        });
        let receiver = Receiver::start(&[410; 2]).await;
        let builder = with_agent(agent).push(options()).clock(clock.clone());
        let server = serve(builder.store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        let ended = start(&server, json!({"url": receiver.url})).await;
        failed(&webhooks, 1).await;
        gate.let_pass(1);
        server.eventually(&ended, "COMPLETED").await;
        let open = start(&server, json!({"url": receiver.url})).await;
        failed(&webhooks, 2).await;
        clock.advance(66 * 24 * HOUR);
        let swept = server.server.sweep().await.unwrap();
        assert_eq!((swept.removed, swept.webhooks), (1, 0));
        failed(&webhooks, 2).await;
        clock.advance(2 * 24 * HOUR);
        assert_eq!(server.server.sweep().await.unwrap().webhooks, 1);
        assert_eq!(failed(&webhooks, 1).await[0].task.as_str(), open);
        gate.let_pass(1);
        server.stop().await;
    }
}

/// Only a server can call: what is kept of a task stays until there is one.
#[tokio::test]
async fn s14_what_was_kept_of_a_task_waits_for_a_server() {
    for backend in Backend::each() {
        let (clock, receiver) = (TestClock::new(), Receiver::start(&[410]).await);
        let server = serve(pushing().store(backend.open().await).clock(clock.clone())).await;
        let task = start(&server, json!({"url": receiver.url})).await;
        server.eventually(&task, "COMPLETED").await;
        failed(&server.server.webhooks(), 1).await;
        clock.advance(40 * 24 * HOUR);
        server.server.sweep().await.unwrap();
        server.stop().await;
        let webhooks = Webhooks::in_store(backend.open().await, 100);
        assert_eq!(webhooks.replay(&name(&task)).await, Err(WebhookError::NoServer));
        assert_eq!(failed(&webhooks, 1).await[0].version, None);
    }
}

/// Clients of 0.1 choose the ids of tasks.
#[tokio::test]
async fn s14_owners_may_have_tasks_with_the_same_id_and_each_page_has_others() {
    for backend in Backend::each() {
        let receiver = Receiver::start(&[]).await;
        let gate = Gate::new();
        let agent = agent_with(&gate, |gate: Gate, _: Turn| async move {
            gate.pass().await;
            Ok(())
        });
        let builder = with_agent(agent).authenticator(Arc::new(ByHeader)).push(options());
        let server = serve(builder.store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        for owner in ["alice", "bob"] {
            let said = json!({"role": "user", "parts": [{"type": "text", "text": "go"}]});
            let sent = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/send",
                "params": {"id": "task/1", "message": said, "pushNotification": {"url": receiver.url}}});
            let headers = [("content-type", "application/json"), ("x-owner", owner)];
            server.post(&headers, sent.to_string()).await.result();
            let of_owner = filter(|filter| filter.owner = Some(owner.to_owned()));
            assert_eq!(listed(&webhooks, &of_owner).await.len(), 1);
        }
        let Err(WebhookError::Ambiguous { among, .. }) = webhooks.find(&name("task/1")).await else {
            panic!("it is one of two")
        };
        assert_eq!(among.len(), 2);
        assert!(among.iter().any(|one| one == "task/1/task/1 (owner bob, agent default)"), "{among:?}");
        let of_bob = filter(|filter| {
            filter.owner = Some("bob".to_owned());
            filter.task = Some("task/1".to_owned());
        });
        let of_bob = listed(&webhooks, &of_bob).await.remove(0);
        assert_eq!(webhooks.find(&of_bob.name()).await.unwrap().owner, "bob");
        webhooks.disable(&of_bob.name()).await.unwrap();

        for _ in 0..5 {
            call_as(&server, "carol", "SendMessage", {
                let mut params = message("go");
                params["configuration"] =
                    json!({"taskPushNotificationConfig": {"url": receiver.url}, "returnImmediately": true});
                params
            })
            .await
            .result();
        }
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page = webhooks.list(&WebhookFilter::default(), after.as_deref(), 3).await.unwrap();
            assert!(page.webhooks.len() <= 3);
            names.extend(page.webhooks.iter().map(|found| (found.task.to_string(), found.owner.clone())));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(names.len(), 7);
        assert_eq!(names.last().unwrap().1, "bob", "those that failed come last");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 7, "each once");
        let bad = webhooks.list(&WebhookFilter::default(), Some("x"), 3).await;
        assert_eq!(bad.err(), Some(WebhookError::BadPosition));
        gate.let_pass(10);
        server.stop().await;
    }
}

/// Whoever removes a webhook wants no more of it, and whoever replaces it wants the rest.
#[tokio::test]
async fn s14_a_failed_webhook_that_its_owner_removes_or_replaces_is_failed_no_more() {
    for backend in Backend::each() {
        let receiver = Receiver::start(&[410, 410]).await;
        let server = serve(pushing().store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        let mut tasks = Vec::new();
        for _ in 0..2 {
            tasks.push(start(&server, json!({"url": receiver.url, "id": "mine"})).await);
        }
        failed(&webhooks, 2).await;
        for task in &tasks {
            server.eventually(task, "COMPLETED").await;
        }
        let params = json!({"taskId": tasks[0], "id": "mine"});
        server.call("DeleteTaskPushNotificationConfig", params).await.result();
        assert_eq!(failed(&webhooks, 1).await[0].task.as_str(), tasks[1]);
        let params = json!({"taskId": tasks[1], "id": "mine", "url": receiver.url});
        server.call("CreateTaskPushNotificationConfig", params).await.result();
        receiver.wait_for_end().await;
        until(async || listed(&webhooks, &WebhookFilter::default()).await.is_empty().then_some(())).await;
        drop(webhooks);
        server.stop().await;
        let kept = backend.open().await.failed_webhooks(None, 10).await.unwrap();
        assert_eq!(kept, [], "nor is anything kept of it");
    }
}

#[tokio::test]
async fn s14_all_failed_webhooks_of_a_host_are_replayed_at_once() {
    for backend in Backend::each() {
        let (mended, other) = (Receiver::start(&[410; 25]).await, Receiver::start(&[410]).await);
        let server = serve(pushing().store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        for _ in 0..25 {
            start(&server, json!({"url": mended.url})).await;
        }
        start(&server, json!({"url": other.url})).await;
        let host = failed(&webhooks, 26).await.iter().find(|found| mended.url.contains(&found.host)).cloned();
        let of_host = filter(|filter| filter.host = host.map(|found| found.host));
        let (mut replayed, mut after) = (0, None);
        loop {
            let page = webhooks.replay_failed(&of_host, after.as_deref()).await.unwrap();
            assert!(page.results.iter().all(|(_, result)| *result == Ok(Replayed::Reopened)), "{page:?}");
            replayed += page.results.len();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(replayed, 25);
        assert!(other.url.contains(&failed(&webhooks, 1).await[0].host));
        until(async || listed(&webhooks, &group(WebhookGroup::Open)).await.is_empty().then_some(())).await;
        assert_eq!(other.all().len(), 1);
        // What the operator has switched off stays off.
        let failing = Receiver::start(&[500; 100]).await;
        let disabled = name(&start(&server, json!({"url": failing.url})).await);
        webhooks.disable(&disabled).await.unwrap();
        let page = webhooks.replay_failed(&WebhookFilter::default(), None).await.unwrap();
        let hosts: Vec<&str> = page.results.iter().map(|(found, _)| &*found.host).collect();
        assert!(hosts.len() == 1 && other.url.contains(hosts[0]), "{hosts:?}");
        assert_eq!(webhooks.find(&disabled).await.unwrap().state, WebhookState::Disabled);
        server.stop().await;
    }
}

/// A task may be removed before everything was delivered, 80 hours after its end, by its age or because there are too many. That
/// is not silent, and what was not delivered can still be sent.
#[tokio::test]
async fn s14_a_task_that_is_removed_too_early_leaves_its_webhook_among_the_failed() {
    for (backend, by_age) in Backend::each().into_iter().zip([true, false]) {
        let (clock, receiver) = (TestClock::new(), Receiver::start(&[500]).await);
        let mut short = Options::default();
        (short.retention.webhooks, short.retention.min_age) = (HOUR, HOUR);
        if by_age {
            short.retention.ended = HOUR;
        } else {
            short.retention.max_tasks = 0;
        }
        let mut slow = options();
        slow.pace = 1000.0;
        let builder = with_agent(busy).push(slow).options(short).clock(clock.clone());
        let server = serve(builder.store(backend.open().await)).await;
        let webhooks = server.server.webhooks();
        let task = start(&server, json!({"url": receiver.url})).await;
        let failing = filter(|filter| filter.failing = true);
        until(async || listed(&webhooks, &failing).await.pop().filter(|found| !found.is_busy)).await;
        server.eventually(&task, "COMPLETED").await;
        assert_eq!(server.server.sweep().await.unwrap().removed, 0, "it is too young");
        clock.advance(3 * HOUR);
        assert_eq!(server.server.sweep().await.unwrap().removed, 1);
        let found = failed(&webhooks, 1).await.remove(0);
        assert_eq!(found.task, TaskId::parse(&task).unwrap());
        let reason = "its task was removed before everything was delivered";
        assert_eq!((found.reason.as_deref(), found.version, found.attempts), (Some(reason), None, 1));
        assert_eq!(listed(&webhooks, &group(WebhookGroup::Open)).await.len(), 0);
        assert_eq!(webhooks.replay(&name(&task)).await, Ok(Replayed::LastTaskSent));
        let last = receiver.wait_for(2).await.remove(1);
        assert_eq!(last.json()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
        server.stop().await;
    }
}

/// Nor does a server without webhooks drop those that wait; and if they cannot be kept, their tasks stay.
#[tokio::test]
async fn s14_where_webhooks_are_off_those_of_old_tasks_are_set_aside_before_these_go() {
    let (clock, inner) = (TestClock::new(), Arc::new(MemoryStore::new()));
    let server = serve(pushing().clock(clock.clone()).store(inner.clone())).await;
    let receiver = Receiver::start(&[500; 100]).await;
    let task = start(&server, json!({"url": receiver.url})).await;
    server.eventually(&task, "COMPLETED").await;
    server.stop().await;

    let store = FaultyStore::over(inner.clone());
    let is_full = Arc::new(AtomicBool::new(true));
    let fails = Arc::clone(&is_full);
    store.fail(move |call, _| {
        let is_kept = call == "set_aside_webhook" && fails.load(Ordering::SeqCst);
        is_kept.then(|| StoreError::full("no space left"))
    });
    let server = serve(with_agent(busy).clock(clock.clone()).store(store)).await;
    let other = id(&server.send("go").await).to_owned();
    server.eventually(&other, "COMPLETED").await;
    clock.advance(10_000 * HOUR);
    assert_eq!(server.server.sweep().await.unwrap().removed, 1, "the other task");
    is_full.store(false, Ordering::SeqCst);
    assert_eq!(server.server.sweep().await.unwrap().removed, 1);
    assert_eq!(server.task_count().await, 0);
    let found = failed(&server.server.webhooks(), 1).await.remove(0);
    assert_eq!((found.task.as_str(), found.has_last_task), (task.as_str(), true));
    server.stop().await;
}
