use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::{AgentError, Asked, Builder, Server, Turn};
use serde_json::{Value, json};

use crate::asking::{Ask, INTERFACES, Interface, Sending, answer, get, sending, state, task_of};
use crate::fixtures::Backend;
use crate::harness::{TEST_TIMEOUT, TestServer, id, message, message_to, serve};

fn skill(id: &str, tags: &[&str]) -> AgentSkill {
    let mut skill = AgentSkill::new(id, id, "For tests");
    skill.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    skill
}

/// An agent that answers with its name; for "ask" it asks first.
fn named(name: &'static str) -> impl baton_server::Agent {
    move |turn: Turn| async move {
        if turn.is_first() && turn.text().contains("ask") {
            turn.ask("What else?");
            return Ok(());
        }
        turn.text_artifact("who", name).await?;
        Ok::<(), AgentError>(())
    }
}

async fn talker(_asked: Asked) -> Result<&'static str, AgentError> {
    Ok("talk")
}

fn builder() -> Builder {
    let mut card = AgentCard::new("routes", "Has several skills", "1");
    card.default_input_modes = vec!["*/*".to_owned()];
    Server::builder(card)
        .task_skill(skill("translate", &["translation"]), named("translate"))
        .task_skill(skill("weather", &["forecast"]), named("weather"))
        .message_skill(skill("talk", &["chat"]), talker)
}

fn who(task: &Value) -> &str {
    task["artifacts"][0]["parts"][0]["text"].as_str().unwrap_or_else(|| panic!("no artifact: {task}"))
}

fn reason(task: &Value) -> &str {
    let message = &task["status"]["message"];
    let parts = message.get("parts").or_else(|| message.get("content"));
    parts.and_then(|parts| parts[0]["text"].as_str()).unwrap_or_else(|| panic!("no reason: {task}"))
}

/// The ended task: 0.1 answers before the end, so this polls.
async fn ended(server: &TestServer, interface: Interface, send: Sending) -> Value {
    let task = task_of(server, interface, &Ask::Send(send)).await;
    let give_up = tokio::time::Instant::now() + TEST_TIMEOUT;
    loop {
        let task = task_of(server, interface, &get(id(&task))).await;
        if ["completed", "failed"].contains(&state(&task).as_str()) {
            return task;
        }
        assert!(tokio::time::Instant::now() < give_up, "{task}");
    }
}

#[tokio::test]
async fn s08_a_message_finds_its_skill_in_every_generation() {
    let server = serve(builder()).await;
    for interface in INTERFACES {
        for (text, named, expected) in [
            ("the forecast, please", None, "weather"),
            ("TRANSLATE this", None, "translate"),
            ("the forecast, please", Some("translate"), "translate"),
        ] {
            let send = Sending { skill: named.map(str::to_owned), ..sending(text) };
            let task = ended(&server, interface, send).await;
            assert_eq!(who(&task), expected, "{interface:?}: {text} {named:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn s08_without_a_matching_skill_the_task_fails_and_says_what_there_is() {
    let server = serve(builder()).await;
    for interface in INTERFACES {
        let task = ended(&server, interface, sending("do you sell shoes?")).await;
        assert_eq!(state(&task), "failed", "{interface:?}: {task}");
        let text = reason(&task);
        assert!(text.starts_with("No matching skill: "), "{interface:?}: {text}");
        assert!(text.contains("`translate`, `weather`, `talk`"), "{interface:?}: {text}");
        let unknown = Sending { skill: Some("shoes".to_owned()), ..sending("translate this") };
        let task = ended(&server, interface, unknown).await;
        assert_eq!(state(&task), "failed", "{interface:?}: {task}");
        assert!(reason(&task).contains("there is no `shoes`"), "{interface:?}: {task}");
    }
    server.stop().await;
}

#[tokio::test]
async fn s08_a_message_skill_is_found_by_its_words_too() {
    let server = serve(builder()).await;
    let reply = server.call("SendMessage", message("let us chat")).await;
    assert_eq!(reply.result()["message"]["parts"][0]["text"], "talk");
    // A client that chooses its task's id gets a task.
    let task = ended(&server, Interface::V01, sending("let us chat")).await;
    assert_eq!(reason(&task), "talk");
    server.stop().await;
}

#[tokio::test]
async fn s08_the_default_skill_takes_what_fits_no_other() {
    let server = serve(builder().default_skill("weather")).await;
    for interface in INTERFACES {
        assert_eq!(
            who(&ended(&server, interface, sending("do you sell shoes?")).await),
            "weather",
            "{interface:?}"
        );
        let picture = Sending { picture: true, ..sending("") };
        assert_eq!(who(&ended(&server, interface, picture).await), "weather", "{interface:?}");
    }
    server.stop().await;
    let refused = builder().default_skill("shoes").build().await.unwrap_err().to_string();
    assert!(refused.contains("`shoes`") && refused.contains("`weather`"), "{refused}");
}

#[tokio::test]
async fn s08_a_router_of_ones_own_decides_where_no_skill_is_named() {
    let own = builder().choose_skill(|message, _| message.text().contains("rain").then_some(1));
    let server = serve(own).await;
    assert_eq!(who(&server.send("translate rain").await), "weather");
    let mut named = message("rain");
    named["message"]["metadata"] = json!({"skillId": "translate"});
    assert_eq!(who(&server.call("SendMessage", named).await.result()["task"]), "translate");
    let lost = server.send("translate").await;
    assert!(reason(&lost).starts_with("No matching skill"), "{lost}");
    server.stop().await;
}

/// Skills with other tags after a restart: existing tasks stay with their skill.
#[tokio::test]
async fn s08_a_task_stays_with_its_skill_over_a_restart() {
    for backend in Backend::each() {
        let server = serve(builder().store(backend.open().await)).await;
        let mut asked = Vec::new();
        for interface in INTERFACES {
            let task = task_of(&server, interface, &Ask::Send(sending("ask for the forecast"))).await;
            server.eventually(id(&task), "INPUT_REQUIRED").await;
            asked.push((interface, task));
        }
        server.stop().await;

        // The same text is now routed to the other skill.
        let card = AgentCard::new("routes", "Has several skills", "2");
        let builder = Server::builder(card)
            .task_skill(skill("translate", &["forecast"]), named("translate"))
            .task_skill(skill("weather", &["translation"]), named("weather"));
        let server = serve(builder.store(backend.open().await)).await;
        assert_eq!(who(&server.send("the forecast").await), "translate");
        for (interface, task) in asked {
            let follow_up = Sending { task: Some(id(&task).to_owned()), ..sending("the forecast") };
            let sent = answer(&server, interface, &Ask::Send(follow_up)).await;
            assert_eq!(sent.status, 200, "{interface:?}: {}", sent.body);
            let task = server.eventually(id(&task), "COMPLETED").await;
            assert_eq!(who(&task), "weather", "{interface:?}");
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn s08_a_task_whose_skill_is_gone_fails_and_says_so() {
    for backend in Backend::each() {
        let server = serve(builder().store(backend.open().await)).await;
        let task = server.send("ask for the forecast").await;
        server.stop().await;

        let card = AgentCard::new("routes", "Has fewer skills", "2");
        let builder = Server::builder(card).task_skill(skill("translate", &["forecast"]), named("translate"));
        let server = serve(builder.store(backend.open().await)).await;
        let answered = server.call("SendMessage", message_to(&task, "the forecast")).await;
        let task = &answered.result()["task"];
        assert_eq!(state(task), "failed");
        let text = reason(task);
        assert!(text.contains("`weather` is no longer there") && text.contains("`translate`"), "{text}");
        server.stop().await;
    }
}

#[tokio::test]
async fn s08_a_new_card_brings_new_words_for_new_tasks() {
    let server = serve(builder()).await;
    let asked = server.send("ask for the forecast").await;
    let mut card = AgentCard::new("routes", "Has several skills", "2");
    card.default_input_modes = vec!["*/*".to_owned()];
    card.skills = vec![skill("translate", &["forecast"]), skill("weather", &[]), skill("talk", &[])];
    server.server.control().replace_card("default", card).unwrap();
    assert_eq!(who(&server.send("the forecast").await), "translate");
    let answered = server.call("SendMessage", message_to(&asked, "the forecast")).await;
    assert_eq!(who(&answered.result()["task"]), "weather");
    server.stop().await;
}
