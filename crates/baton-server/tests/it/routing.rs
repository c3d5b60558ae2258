use baton_protocol::domain::{AgentCard, AgentSkill};
use baton_server::{AgentError, Asked, Builder, Server, Turn};
use serde_json::{Value, json};

use crate::asking::{Ask, FACES, Face, Said, answer, get, said, state, task_of};
use crate::harness::{HANG, TestServer, id, message, message_to, serve};
use crate::stage::Backend;

fn skill(id: &str, tags: &[&str]) -> AgentSkill {
    let mut skill = AgentSkill::new(id, id, "For tests");
    skill.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    skill
}

/// Says which skill it is; "ask" asks first.
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

/// The task as it is once it has ended: the oldest generation answers before.
async fn ended(server: &TestServer, face: Face, send: Said) -> Value {
    let task = task_of(server, face, &Ask::Send(send)).await;
    let give_up = tokio::time::Instant::now() + HANG;
    loop {
        let task = task_of(server, face, &get(id(&task))).await;
        if ["completed", "failed"].contains(&state(&task).as_str()) {
            return task;
        }
        assert!(tokio::time::Instant::now() < give_up, "{task}");
    }
}

#[tokio::test]
async fn s08_a_message_finds_its_skill_in_every_generation() {
    let server = serve(builder()).await;
    for face in FACES {
        for (text, named, expected) in [
            ("the forecast, please", None, "weather"),
            ("TRANSLATE this", None, "translate"),
            ("the forecast, please", Some("translate"), "translate"),
        ] {
            let send = Said { skill: named.map(str::to_owned), ..said(text) };
            let task = ended(&server, face, send).await;
            assert_eq!(who(&task), expected, "{face:?}: {text} {named:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn s08_without_a_matching_skill_the_task_fails_and_says_what_there_is() {
    let server = serve(builder()).await;
    for face in FACES {
        let task = ended(&server, face, said("do you sell shoes?")).await;
        assert_eq!(state(&task), "failed", "{face:?}: {task}");
        let told = reason(&task);
        assert!(told.starts_with("No matching skill: "), "{face:?}: {told}");
        assert!(told.contains("`translate`, `weather`, `talk`"), "{face:?}: {told}");
        let unknown = Said { skill: Some("shoes".to_owned()), ..said("translate this") };
        let task = ended(&server, face, unknown).await;
        assert_eq!(state(&task), "failed", "{face:?}: {task}");
        assert!(reason(&task).contains("there is no `shoes`"), "{face:?}: {task}");
    }
    server.stop().await;
}

#[tokio::test]
async fn s08_a_message_skill_is_found_by_its_words_too() {
    let server = serve(builder()).await;
    let told = server.call("SendMessage", message("let us chat")).await;
    assert_eq!(told.result()["message"]["parts"][0]["text"], "talk");
    // A client that names its task gets one.
    let task = ended(&server, Face::V01, said("let us chat")).await;
    assert_eq!(reason(&task), "talk");
    server.stop().await;
}

#[tokio::test]
async fn s08_the_default_skill_takes_what_fits_no_other() {
    let server = serve(builder().default_skill("weather")).await;
    for face in FACES {
        assert_eq!(who(&ended(&server, face, said("do you sell shoes?")).await), "weather", "{face:?}");
        let picture = Said { picture: true, ..said("") };
        assert_eq!(who(&ended(&server, face, picture).await), "weather", "{face:?}");
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

/// Other words on the next start: what has begun stays where it is.
#[tokio::test]
async fn s08_a_task_stays_with_its_skill_over_a_restart() {
    for backend in Backend::each() {
        let server = serve(builder().store(backend.open().await)).await;
        let mut asked = Vec::new();
        for face in FACES {
            let task = task_of(&server, face, &Ask::Send(said("ask for the forecast"))).await;
            server.eventually(id(&task), "INPUT_REQUIRED").await;
            asked.push((face, task));
        }
        server.stop().await;

        // Now the words lead to the other skill.
        let card = AgentCard::new("routes", "Has several skills", "2");
        let builder = Server::builder(card)
            .task_skill(skill("translate", &["forecast"]), named("translate"))
            .task_skill(skill("weather", &["translation"]), named("weather"));
        let server = serve(builder.store(backend.open().await)).await;
        assert_eq!(who(&server.send("the forecast").await), "translate");
        for (face, task) in asked {
            let follow_up = Said { task: Some(id(&task).to_owned()), ..said("the forecast") };
            let sent = answer(&server, face, &Ask::Send(follow_up)).await;
            assert_eq!(sent.status, 200, "{face:?}: {}", sent.body);
            let task = server.eventually(id(&task), "COMPLETED").await;
            assert_eq!(who(&task), "weather", "{face:?}");
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
        let told = reason(task);
        assert!(told.contains("`weather` is no longer there") && told.contains("`translate`"), "{told}");
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
