use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::Limits;
use baton_server::Options;
use baton_server::{Mount, Server};
use serde_json::{Value, json};

use crate::fixtures::{Gate, agent_with};
use crate::harness::{Answer, TestServer, id, message, serve, state};
use crate::speakers::{envelope, read, request};

/// An agent below `/<id>` that waits at the gate.
fn mount(id: &str, gate: &Gate, limits: Limits) -> Mount {
    let agent = agent_with(gate, |gate: Gate, _turn| async move {
        gate.pass().await;
        Ok(())
    });
    let skill = AgentSkill::new(id, id, "Waits at the gate");
    Mount::new(id, AgentCard::new(id, "Waits", "1"))
        .task_skill(skill, agent)
        .path(&format!("/{id}"))
        .limits(limits)
}

fn limits(max_running: usize, max_queued: usize) -> Limits {
    let mut limits = Limits::default();
    (limits.max_running, limits.max_queued) = (Some(max_running), Some(max_queued));
    limits
}

async fn call(server: &TestServer, agent: &str, method: &str, params: &Value) -> Answer {
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let path = format!("/{agent}/");
    read(request(server, http::Method::POST, &path, &headers, envelope(method, params)).await).await
}

async fn start(server: &TestServer, agent: &str) -> Answer {
    let mut params = message("work");
    params["configuration"] = json!({"returnImmediately": true});
    call(server, agent, "SendMessage", &params).await
}

async fn state_of(server: &TestServer, agent: &str, task: &Answer) -> String {
    let task = id(&task.result()["task"]);
    let found = call(server, agent, "GetTask", &json!({"id": task})).await;
    state(found.result()).to_owned()
}

async fn until(server: &TestServer, agent: &str, task: &Answer, wanted: &str) {
    let give_up = tokio::time::Instant::now() + crate::harness::TEST_TIMEOUT;
    while state_of(server, agent, task).await != wanted {
        assert!(tokio::time::Instant::now() < give_up, "not {wanted}");
    }
}

#[tokio::test]
async fn s12_an_agent_at_its_own_capacity_is_refused_and_others_are_not() {
    let gate = Gate::new();
    let builder = Server::host().mount(mount("busy", &gate, limits(1, 1))).mount(mount(
        "calm",
        &gate,
        Limits::default(),
    ));
    let server = serve(builder).await;
    let running = start(&server, "busy").await;
    let queued = start(&server, "busy").await;
    assert_eq!(state_of(&server, "busy", &running).await, "WORKING");
    assert_eq!(state_of(&server, "busy", &queued).await, "SUBMITTED");
    let refused = start(&server, "busy").await;
    assert_eq!((refused.status, refused.error_code()), (503, -32050));
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert!(refused.body["error"]["message"].as_str().unwrap().contains("agent is at its capacity"));
    let other = start(&server, "calm").await;
    assert_eq!(state_of(&server, "calm", &other).await, "WORKING");

    // The limits can be raised while tasks run and wait.
    server.server.control().set_limits("busy", limits(2, 1)).unwrap();
    until(&server, "busy", &queued, "WORKING").await;
    gate.let_pass(3);
    for (agent, task) in [("busy", &running), ("busy", &queued), ("calm", &other)] {
        until(&server, agent, task, "COMPLETED").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn s12_one_agents_full_queue_does_not_shut_out_another() {
    let (busy, calm) = (Gate::new(), Gate::new());
    let mut options = Options::default();
    (options.max_running, options.max_queued) = (1, 3);
    let builder = Server::host()
        .mount(mount("busy", &busy, Limits::default()))
        .mount(mount("calm", &calm, Limits::default()))
        .options(options);
    let server = serve(builder).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(start(&server, "busy").await);
    }
    assert_eq!(start(&server, "busy").await.status, 503);
    let other = start(&server, "calm").await;
    assert_eq!(state_of(&server, "calm", &other).await, "SUBMITTED");
    // It runs after one of the three that were queued before it, not after all of them.
    calm.let_pass(1);
    busy.let_pass(2);
    until(&server, "calm", &other, "COMPLETED").await;
    assert_eq!(state_of(&server, "busy", &all[3]).await, "SUBMITTED");
    busy.let_pass(2);
    for task in &all {
        until(&server, "busy", task, "COMPLETED").await;
    }
    // Raised limits of the whole server take effect immediately, too.
    let (one, two) = (start(&server, "busy").await, start(&server, "busy").await);
    assert_eq!(state_of(&server, "busy", &two).await, "SUBMITTED");
    server.server.control().set_options(Options::default());
    until(&server, "busy", &two, "WORKING").await;
    busy.let_pass(2);
    until(&server, "busy", &one, "COMPLETED").await;
    server.stop().await;
}
