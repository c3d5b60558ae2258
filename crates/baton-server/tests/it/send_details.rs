//! P-01, P-08. `acceptedOutputModes` and the request's `metadata`: both reach the agent, in every generation and after a
//! crash. A caller that accepts none of the skill's output modes is refused before a task is created.

use std::sync::{Arc, Mutex};

use baton_protocol::domain::{ActiveExtension, AgentCard, AgentExtension, AgentSkill, JsonObject};
use baton_server::Options;
use baton_server::{Agent, AgentError, Asked, Builder, Content, MessageAgent, Server, Turn};
use http::Method;
use serde_json::{Value, json};

use crate::asking::{ALL_BINDINGS, Ask, Sending, ask_with, sending};
use crate::fixtures::{Backend, Gate};
use crate::harness::{
    TEST_TIMEOUT, TestServer, id, message, message_to, resumable, serve, serve_agent, with_agent,
};
use crate::speakers::{message_03, proto_message_03, read, request, rpc, task, wait_for_state, with_card};

/// Accepted modes, and the request's metadata.
type Details = (Vec<String>, Option<Value>);

/// An agent that records the details of each turn.
#[derive(Clone)]
struct Notes {
    details: Arc<Mutex<Vec<Details>>>,
    gate: Gate,
}

impl Notes {
    fn new() -> Self {
        Notes { details: Arc::default(), gate: Gate::new() }
    }

    fn keep(&self, modes: &[String], metadata: Option<&JsonObject>) {
        let metadata = metadata.map(|it| serde_json::from_str(it.as_str()).unwrap());
        self.details.lock().unwrap().push((modes.to_vec(), metadata));
    }

    fn all(&self) -> Vec<Details> {
        self.details.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Agent for Notes {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        self.keep(turn.accepted_output_modes(), turn.request_metadata());
        match turn.text().as_str() {
            "ask" => drop(turn.ask("which?")),
            "wait" => {
                turn.progress("begun").await?;
                self.gate.pass().await;
                turn.complete().await?;
            }
            _ => turn.complete().await?,
        }
        Ok(())
    }

    fn rerunnable(&self) -> bool {
        true
    }
}

#[async_trait::async_trait]
impl MessageAgent for Notes {
    async fn reply(&self, asked: Asked) -> Result<Content, AgentError> {
        self.keep(&asked.accepted_output_modes, asked.request_metadata.as_ref());
        Ok("noted".into())
    }
}

/// A send in every generation and binding, with and without details.
async fn sends(server: &TestServer, tag: &str) {
    let (modes, metadata) = (json!(["text/plain", "image/*"]), json!({"tag": tag, "n": [1, null]}));
    let configured = |mut params: Value, configuration: Value| {
        params["configuration"] = configuration;
        params["configuration"]["acceptedOutputModes"] = modes.clone();
        params["metadata"] = metadata.clone();
        params
    };
    let v1 = [("a2a-version", "1.0")];
    rpc(server, &v1, "SendMessage", configured(message("go"), json!({}))).await.result();
    rpc(server, &[], "message/send", configured(message_03("go"), json!({"blocking": true}))).await.result();
    let mut legacy = task(&format!("t-{tag}"), "go");
    (legacy["acceptedOutputModes"], legacy["metadata"]) = (modes.clone(), metadata.clone());
    rpc(server, &[], "tasks/send", legacy).await.result();
    wait_for_state(server, &format!("t-{tag}"), "completed").await;
    for (path, params, headers) in [
        ("/message:send", message("go"), &[("content-type", "application/json"), v1[0]][..]),
        ("/v1/message:send", proto_message_03("go"), &[("content-type", "application/json")]),
    ] {
        let body = configured(params, json!({})).to_string();
        let answer = read(request(server, Method::POST, path, headers, body).await).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn p08_what_is_said_beside_a_message_reaches_the_agent() {
    let expected = |tag: &str| {
        let modes = vec!["text/plain".to_owned(), "image/*".to_owned()];
        (modes, Some(json!({"tag": tag, "n": [1, null]})))
    };
    let notes = Notes::new();
    let server = serve_agent(notes.clone()).await;
    sends(&server, "task").await;
    server.call("SendMessage", message("go")).await.result();
    let details = notes.all();
    assert_eq!(details[..5], vec![expected("task"); 5]);
    assert_eq!(details[5..], [(Vec::new(), None)], "no details were sent");

    let notes = Notes::new();
    let card = AgentCard::new("notes", "Notes", "1.0.0");
    let builder = Server::builder(card).message_skill(AgentSkill::new("n", "n", "n"), notes.clone());
    let server = serve(builder).await;
    sends(&server, "message").await;
    assert_eq!(notes.all(), vec![expected("message"); 5]);
}

/// Each turn has the details of its own message, not of an earlier one.
#[tokio::test]
async fn p08_a_later_turn_has_its_own_details() {
    let notes = Notes::new();
    let server = serve_agent(notes.clone()).await;
    let mut first = message("ask");
    first["metadata"] = json!({"turn": 1});
    let task = server.call("SendMessage", first).await.result()["task"].clone();
    let mut second = message_to(&task, "ask");
    second["configuration"] = json!({"acceptedOutputModes": ["text"]});
    server.call("SendMessage", second).await.result();
    server.call("SendMessage", message_to(&task, "done")).await.result();
    let details = notes.all();
    assert_eq!(details[0], (Vec::new(), Some(json!({"turn": 1}))));
    assert_eq!(details[1..], [(vec!["text".to_owned()], None), (Vec::new(), None)]);
}

/// A message that is taken within a turn has its own details, too.
#[tokio::test]
async fn p08_an_answer_within_the_turn_has_its_own_details() {
    let notes = Notes::new();
    let seen = notes.clone();
    let server = serve_agent(move |turn: Turn| {
        let notes = seen.clone();
        async move {
            for _ in 0..2 {
                let answer = turn.ask("which?").await?;
                let details = turn.sent_with(&answer);
                notes.keep(&details.accepted_output_modes, details.metadata.as_ref());
            }
            let details = turn.sent_with(turn.message());
            notes.keep(&details.accepted_output_modes, details.metadata.as_ref());
            turn.complete().await
        }
    })
    .await;
    let mut first = message("go");
    first["metadata"] = json!({"turn": 1});
    let task = server.call("SendMessage", first).await.result()["task"].clone();
    let mut answer = message_to(&task, "this");
    answer["configuration"] = json!({"acceptedOutputModes": ["text"]});
    answer["metadata"] = json!({"answer": 1});
    server.call("SendMessage", answer).await.result();
    server.call("SendMessage", message_to(&task, "that")).await.result();
    let expected = [
        (vec!["text".to_owned()], Some(json!({"answer": 1}))),
        (Vec::new(), None),
        (Vec::new(), Some(json!({"turn": 1}))),
    ];
    assert_eq!(notes.all(), expected);
}

/// Even if another message with the same id was sent with other details.
#[tokio::test]
async fn p08_messages_of_one_id_have_their_own_details() {
    let notes = Notes::new();
    let seen = notes.clone();
    let server = serve_agent(move |turn: Turn| {
        let notes = seen.clone();
        async move {
            let answers = [turn.ask("which?").await?, turn.ask("which?").await?, turn.ask("which?").await?];
            for message in answers.iter().chain([turn.message()]) {
                let details = turn.sent_with(message);
                notes.keep(&details.accepted_output_modes, details.metadata.as_ref());
            }
            turn.complete().await
        }
    })
    .await;
    let mut first = message("go");
    first["metadata"] = json!({"n": 0});
    let message_id = first["message"]["messageId"].clone();
    let task = server.call("SendMessage", first).await.result()["task"].clone();
    for (n, text) in ["this", "that", "neither"].into_iter().enumerate() {
        let mut answer = message_to(&task, text);
        answer["message"]["messageId"] = message_id.clone();
        if n < 2 {
            answer["metadata"] = json!({"n": n + 1});
        }
        server.call("SendMessage", answer).await.result();
    }
    let details = notes.all().into_iter().map(|(_, metadata)| metadata);
    let expected = [Some(json!({"n": 1})), Some(json!({"n": 2})), None, Some(json!({"n": 0}))];
    assert_eq!(details.collect::<Vec<_>>(), expected);
}

/// A turn that a crash interrupted has the same details when it is run again.
#[test]
fn s15_a_turn_that_is_run_again_sees_the_same() {
    for backend in Backend::each() {
        let notes = Notes::new();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut begun = Value::Null;
        runtime.block_on(async {
            let server =
                serve(with_agent(notes.clone()).store(backend.open().await).options(Options::default()))
                    .await;
            let mut params = message("wait");
            params["configuration"] = json!({"acceptedOutputModes": ["text/plain"]});
            params["metadata"] = json!({"kept": true});
            let mut stream = server.stream("SendStreamingMessage", params, None).await.ok().unwrap();
            begun = stream.next().await.unwrap().result()["task"].clone();
            while notes.all().is_empty() {
                tokio::task::yield_now().await;
            }
        });
        runtime.shutdown_timeout(TEST_TIMEOUT);
        notes.gate.let_pass(10);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = serve(with_agent(notes.clone()).store(backend.open().await)).await;
            server.eventually(id(&begun), "COMPLETED").await;
            server.stop().await;
        });
        let details = notes.all();
        assert_eq!(details.len(), 2);
        assert_eq!(details[0], (vec!["text/plain".to_owned()], Some(json!({"kept": true}))));
        assert_eq!(details[1], details[0]);
    }
}

/// Two task skills with different output modes, and a message skill.
fn makers() -> Builder {
    async fn make(turn: Turn) -> Result<(), AgentError> {
        turn.complete().await?;
        Ok(())
    }
    let mut card = AgentCard::new("makers", "They make things", "1.0.0");
    card.default_output_modes = vec!["text/plain".to_owned()];
    let skill = |id: &str, modes: &[&str]| AgentSkill {
        output_modes: modes.iter().map(|mode| (*mode).to_owned()).collect(),
        ..AgentSkill::new(id, id, id)
    };
    Server::builder(card)
        .task_skill(skill("write", &[]), make)
        .task_skill(skill("draw", &["image/png", "image/svg+xml"]), make)
        .message_skill(skill("talk", &["text/plain"]), Notes::new())
        .default_skill("write")
}

/// The same rule for messages to waiting and to working tasks.
#[tokio::test]
async fn p01_a_message_to_a_busy_task_is_refused_alike() {
    let mut card = AgentCard::new("makers", "They make things", "1.0.0");
    card.default_output_modes = vec!["text/plain".to_owned()];
    let mut draw = AgentSkill::new("draw", "draw", "draw");
    draw.output_modes = vec!["image/png".to_owned()];
    let notes = Notes::new();
    let builder = Server::builder(card)
        .task_skill(AgentSkill::new("write", "write", "write"), notes.clone())
        .task_skill(draw, notes.clone());
    let mut options = Options::default();
    options.max_running = 1;
    let server = serve(builder.options(options)).await;
    let mut tasks = Vec::new();
    // A running task, and a queued one, whose skill is not chosen yet.
    for _ in 0..2 {
        let mut params = message("wait");
        params["message"]["metadata"] = json!({"skillId": "draw"});
        params["configuration"] = json!({"returnImmediately": true});
        tasks.push(server.call("SendMessage", params).await.result()["task"].clone());
    }
    let sends = [("text/plain", false), ("video/mp4", false), ("image/*", true)];
    for (task, (accepted, taken)) in tasks.iter().flat_map(|task| sends.map(|send| (task, send))) {
        let mut params = message_to(task, "more");
        params["configuration"] = json!({"acceptedOutputModes": [accepted], "returnImmediately": true});
        let answer = server.call("SendMessage", params).await;
        assert_eq!(answer.body.get("result").is_some(), taken, "{accepted}: {}", answer.body);
        assert!(taken || answer.error_code() == -32005, "{}", answer.body);
    }
    notes.gate.let_pass(10);
    for task in &tasks {
        let ended = server.eventually(id(task), "COMPLETED").await;
        let said = ended["history"].as_array().unwrap().iter();
        assert_eq!(said.filter(|said| said["role"] == "ROLE_USER").count(), 2);
    }
}

#[tokio::test]
async fn p01_a_caller_that_takes_nothing_the_skill_makes_is_refused() {
    let server = serve(makers()).await;
    let mut kept = 0;
    for (skill, accepted, taken) in [
        ("write", json!([]), true),
        ("write", json!(["text/plain"]), true),
        ("write", json!(["image/png", "TEXT/plain;charset=utf-8"]), true),
        ("write", json!(["text/*"]), true),
        ("write", json!(["*/*"]), true),
        ("write", json!(["text"]), true),
        ("write", json!(["file"]), true),
        ("write", json!(["data"]), true),
        ("write", json!(["image/png"]), false),
        ("write", json!(["image/*", "application/json"]), false),
        ("draw", json!(["image/png"]), true),
        ("draw", json!(["image/*"]), true),
        ("draw", json!(["text/plain"]), false),
        ("talk", json!(["text/plain"]), true),
        ("talk", json!(["application/json"]), false),
    ] {
        let mut params = message("go");
        params["message"]["metadata"] = json!({"skillId": skill});
        params["configuration"] = json!({"acceptedOutputModes": accepted});
        for method in ["SendMessage", "SendStreamingMessage"] {
            if method == "SendStreamingMessage" && taken {
                continue;
            }
            let answer = server.call(method, params.clone()).await;
            if taken {
                answer.result();
                kept += usize::from(skill != "talk");
            } else {
                assert_eq!((answer.status, answer.error_code()), (200, -32005), "{skill} {accepted}");
                assert_eq!(answer.body["error"]["data"][0]["reason"], "CONTENT_TYPE_NOT_SUPPORTED");
                let text = answer.body["error"]["message"].as_str().unwrap();
                assert!(text.starts_with("configuration.acceptedOutputModes names nothing"), "{text}");
            }
        }
    }
    let mut legacy = task("t", "go");
    legacy["acceptedOutputModes"] = json!(["video/mp4"]);
    let refused = rpc(&server, &[], "tasks/send", legacy).await;
    assert_eq!(refused.error_code(), -32005);
    let text = refused.body["error"]["message"].as_str().unwrap();
    assert!(text.starts_with("acceptedOutputModes names nothing"), "{text}");
    let listed = server.call("ListTasks", json!({})).await;
    assert_eq!(listed.result()["totalSize"], kept, "refused sends created no task");
    // A repeat gets the same answer as the first send.
    let mut params = message("again");
    let first = server.call("SendMessage", params.clone()).await.result()["task"]["id"].clone();
    params["configuration"] = json!({"acceptedOutputModes": ["video/mp4"]});
    assert_eq!(server.call("SendMessage", params).await.result()["task"]["id"], first);
}

/// The extensions that a request names and the card declares, with the parameters on the card: in every generation and binding,
/// under both names of the header.
#[tokio::test]
async fn p02_the_agent_sees_which_extensions_are_active() {
    let seen: Arc<Mutex<Vec<Vec<ActiveExtension>>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let agent = move |turn: Turn| {
        let keep = Arc::clone(&keep);
        async move {
            assert_eq!(turn.sent_with(turn.message()).extensions, turn.extensions());
            keep.lock().unwrap().push(turn.extensions().to_vec());
            turn.complete().await
        }
    };
    let params = JsonObject::parse(r#"{"unit":"m","n":1.0}"#).ok();
    let declared = |uri: &str, params: &Option<JsonObject>| AgentExtension {
        uri: uri.to_owned(),
        description: None,
        required: false,
        params: params.clone(),
    };
    let (one, two) = ("https://a.example/one", "urn:two");
    let builder = with_card(
        |card| card.capabilities.extensions = vec![declared(one, &params), declared(two, &None)],
        agent,
    );
    let server = serve(resumable(builder)).await;
    let active = |uri: &str, params: &Option<JsonObject>| ActiveExtension {
        uri: uri.to_owned(),
        params: params.clone(),
    };
    for interface in ALL_BINDINGS {
        for (header, value, expected) in [
            (
                "a2a-extensions",
                format!("urn:unknown, {two},{one}"),
                vec![active(two, &None), active(one, &params)],
            ),
            ("x-a2a-extensions", one.to_owned(), vec![active(one, &params)]),
            ("x-other", one.to_owned(), vec![]),
        ] {
            let headers = [(header, value.as_str())];
            let send = Ask::Send(Sending { wait: Some(true), ..sending("go") });
            let answer = read(ask_with(&server, interface, &headers, &send).await.unwrap()).await;
            assert_eq!(answer.status, 200, "{interface:?}: {}", answer.body);
            let came = loop {
                if let Some(came) = seen.lock().unwrap().pop() {
                    break came;
                }
                tokio::task::yield_now().await;
            };
            assert_eq!(came, expected, "{interface:?} {header}");
        }
    }
}
