//! One task watched in several generations at once, and tasks of every generation after a restart.

use serde_json::{Value, json};

use crate::actors::{actors, actors_builder};
use crate::faces::{Client, CommonEvent, FACES, Face, Say, shown};
use crate::fixtures::{Backend, Gate};
use crate::harness::{TestServer, serve};

/// The faces that share a scope: all but the one with a tenant.
const TOGETHER: [Face; 5] = [Face::V1Rpc, Face::V1Http, Face::V03Rpc, Face::V03Http, Face::V01Rpc];

/// 0.3 in JSON-RPC sends its version for tasks of 0.1, since both have the same method names.
fn client(server: &TestServer, face: Face, born: Face) -> Client<'_> {
    let sends_version = face == Face::V03Rpc && born == Face::V01Rpc;
    Client { sends_version, ..Client::new(server, face) }
}

/// 0.1 can only address its own tasks.
fn speaks_of(face: Face, born: Face) -> bool {
    face != Face::V01Rpc || born == Face::V01Rpc
}

fn numbers(events: &[CommonEvent]) -> Vec<u64> {
    events.iter().map(|event| event.number.expect("every event has its number")).collect()
}

#[tokio::test]
async fn p04_watchers_of_every_generation_see_the_same_events_under_the_same_ids() {
    for born in TOGETHER {
        let gate = Gate::new();
        let server = actors(&gate).await;
        let task = client(&server, born, born).send(&Say::text("m", "gated").at_once()).await.id;
        let mut watches = Vec::new();
        for face in TOGETHER.into_iter().filter(|face| speaks_of(*face, born)) {
            // Several streams per face: events are encoded once and shared.
            for _ in 0..3 {
                let mut watch = client(&server, face, born).subscribe(&task, None).await.unwrap();
                let first = watch.next().await.unwrap();
                watches.push((face, first, watch));
            }
        }
        gate.let_pass(1);
        let mut usual = None;
        for (face, first, mut watch) in watches {
            let mut all = vec![first];
            all.extend(watch.rest().await);
            assert_eq!(numbers(&all), [3, 4, 5, 6, 7, 8], "{face:?} of {born:?}");
            assert_eq!(&all, usual.get_or_insert_with(|| all.clone()), "{face:?} of {born:?}");
        }
    }
}

#[tokio::test]
async fn p04_a_stream_left_in_one_generation_goes_on_in_another() {
    for born in TOGETHER {
        let server = actors(&Gate::new()).await;
        let all =
            client(&server, born, born).stream(&Say::text("m", "work"), None).await.unwrap().rest().await;
        let task = client(&server, born, born).send(&Say::text("m", "work")).await.id;
        for face in TOGETHER.into_iter().filter(|face| speaks_of(*face, born)) {
            for seen in 0..all.len() - 1 {
                let after = all[seen].number;
                let rest = client(&server, face, born).subscribe(&task, after).await.unwrap().rest().await;
                assert_eq!(rest, all[seen + 1..], "{born:?}, then {face:?}");
            }
        }
    }
}

#[tokio::test]
async fn p03_a_message_repeated_in_another_generation_is_the_same_message() {
    let later = [Face::V1Rpc, Face::V1Http, Face::V03Rpc, Face::V03Http];
    for first in later {
        let server = actors(&Gate::new()).await;
        let mut say = Say::text("m", "parts");
        say.parts = json!([
            {"text": "parts", "metadata": {"a": 1}},
            {"raw": "AAEC", "mediaType": "image/png", "filename": "a.png"},
            {"url": "https://example.com/"},
            {"data": {"a": [1, 2.5, null]}},
        ]);
        let sent = Client::new(&server, first).send(&say).await;
        for again in later {
            let heard = Client::new(&server, again).send(&say).await;
            assert!(heard.replayed, "{first:?}, then {again:?}");
            assert_eq!((heard.id, heard.shape), (sent.id.clone(), sent.shape.clone()), "{again:?}");
        }
        let mut other = say.clone();
        other.parts[0]["text"] = json!("parts, but others");
        assert!(!Client::new(&server, first).send(&other).await.replayed, "another text is another message");
    }
}

#[tokio::test]
async fn p03_cancel_and_lists_reach_across_generations() {
    for born in TOGETHER {
        for face in TOGETHER.into_iter().filter(|face| speaks_of(*face, born)) {
            let server = actors(&Gate::new()).await;
            let task = client(&server, born, born).send(&Say::text("m", "hold").at_once()).await.id;
            let mut watch = client(&server, born, born).subscribe(&task, None).await.unwrap();
            let canceled = client(&server, face, born).cancel(&task).await;
            assert_eq!(canceled.shape["task"]["state"], "canceled", "{face:?} of {born:?}");
            let last = shown(&watch.rest().await).pop();
            assert_eq!(last.expect("its end")["state"], "canceled", "{born:?}");
            for lister in [Face::V1Rpc, Face::V1Http, Face::V03Rpc, Face::V03Http] {
                let page = Client::new(&server, lister).list("pageSize=5").await;
                assert_eq!(page["totalSize"], 1, "{lister:?} of {born:?}");
                assert_eq!(page["tasks"][0]["state"], "canceled", "{lister:?} of {born:?}");
            }
        }
    }
}

/// What a face shows of a finished task: its stream from every event number, a repeated send, the task, the list.
async fn recall(client: &Client<'_>, say: &Say, task: &str, all: &[CommonEvent]) -> Value {
    let mut seen = vec![client.get(task, None).await.shape, client.get(task, Some(1)).await.shape];
    for event in &all[..all.len() - 1] {
        let resumed = client.subscribe(task, event.number).await.unwrap().rest().await;
        assert!(all.ends_with(&resumed) && !resumed.is_empty(), "{:?}", client.face);
        let mut again = client.stream(say, event.number).await.unwrap();
        assert!(again.replayed, "{:?}", client.face);
        assert_eq!(again.rest().await, resumed, "{:?}", client.face);
    }
    let mut again = client.stream(say, None).await.unwrap();
    assert!(again.replayed, "{:?}", client.face);
    assert_eq!(again.rest().await, all, "{:?}", client.face);
    let heard = client.send(say).await;
    assert!(heard.replayed && heard.id == task, "{:?}", client.face);
    seen.push(heard.shape);
    seen.push(client.subscribe(task, None).await.err().expect("it has ended"));
    seen.push(client.cancel(task).await.shape);
    if client.face.lists() {
        seen.push(client.list("pageSize=1").await["tasks"].clone());
    }
    json!(seen)
}

#[tokio::test]
async fn p04_every_generation_finds_its_tasks_again_after_a_restart() {
    for face in FACES {
        let backend = Backend::Sqlite(tempfile::tempdir().unwrap());
        let gate = Gate::new();
        let server = serve(actors_builder(&gate).store(backend.open().await)).await;
        let client = Client::new(&server, face);
        let (work, ask) = (Say::text("m", "work"), Say::text("n", "ask"));
        let asked = client.send(&ask).await;
        let canceled = client.send(&Say::text("o", "ask")).await.id;
        let all = client.stream(&work, None).await.unwrap().rest().await;
        let task = client.send(&work).await.id;
        let before = recall(&client, &work, &task, &all).await;
        server.stop().await;

        let server = serve(actors_builder(&gate).store(backend.open().await)).await;
        let client = Client::new(&server, face);
        assert_eq!(recall(&client, &work, &task, &all).await, before, "{face:?}");
        assert_eq!(client.get(&asked.id, None).await.shape, asked.shape, "{face:?}");
        let told = client.send(&Say::text("p", "work").to(&asked.id)).await;
        assert_eq!(told.shape["task"]["state"], "completed", "{face:?}: the conversation goes on");
        assert_eq!(client.cancel(&canceled).await.shape["task"]["state"], "canceled", "{face:?}");
        server.stop().await;
    }
}
