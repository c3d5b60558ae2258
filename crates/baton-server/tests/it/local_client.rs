//! Agents called in process, without a socket; the same rules apply.

use std::sync::Arc;

use baton_server::a2a::{AgentCard, ErrorKind, StreamItem, TaskState};
use baton_server::store::memory::MemoryStore;
use baton_server::store::sqlite::{Options, SqliteStore};
use baton_server::{AgentError, Answer, Asked, Mount, Server, Turn};

async fn greet(turn: Turn) -> Result<(), AgentError> {
    let mut text = turn.stream_text("greeting");
    text.write("Hello, ").await?;
    text.write(&turn.text()).await?;
    text.finish().await?;
    // `complete` returns the agent's own result type, so it can be the last line.
    turn.complete_with("Greeted").await
}

async fn shout(asked: Asked) -> Result<String, AgentError> {
    Ok(asked.text().to_uppercase())
}

#[tokio::test]
async fn p08_an_agent_is_tried_without_a_socket() {
    let server = Server::agent("greet", "Greets", greet).build().await.unwrap();
    let answer = server.send("Baton").await.unwrap();
    assert_eq!(answer.text(), "Hello, Baton");
    let task = answer.into_task().unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(server.client().task(&task.id).await.unwrap().status, task.status);

    // The same rules: an ended task accepts no message, and a task belongs to its owner.
    let refused = server.client().send_to(&task, "more").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TaskEnded);
    let unknown = server.client().as_owner("somebody else").unwrap().task(&task.id).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn p08_a_stream_is_walked_without_a_socket() {
    let server = Server::agent("greet", "Greets", greet).build().await.unwrap();
    let items = server.stream("Baton").await.unwrap().rest().await.unwrap();
    assert!(matches!(&items[0], StreamItem::Task(task) if task.history[0].text() == "Baton"), "{items:?}");
    let last = items.last().unwrap();
    let StreamItem::Status { update, .. } = last else { panic!("{last:?}") };
    assert_eq!(update.state, TaskState::Completed);
    assert_eq!(update.message.as_ref().unwrap().text(), "Greeted");
    assert!(items.iter().any(|item| matches!(item, StreamItem::Artifact { .. })));
}

#[tokio::test]
async fn p08_a_task_is_canceled_without_a_socket() {
    async fn wait(turn: Turn) -> Result<(), AgentError> {
        turn.cancellation().cancelled().await;
        Err(baton_server::Stopped.into())
    }
    let server = Server::agent("wait", "Waits", wait).build().await.unwrap();
    let mut stream = server.stream("go").await.unwrap();
    let Some(Ok(StreamItem::Task(task))) = stream.next().await else { panic!("a task comes first") };
    assert_eq!(server.client().cancel(&task.id).await.unwrap().status.state, TaskState::Canceled);
    let ended = stream.rest().await.unwrap();
    assert!(
        matches!(ended.last(), Some(StreamItem::Status { update, .. }) if update.state == TaskState::Canceled)
    );
}

/// The argument's type decides which of the two kinds a function is.
#[tokio::test]
async fn p08_the_shortest_way_takes_both_kinds_of_agents() {
    let server = Server::agent("shout", "Shouts", shout).build().await.unwrap();
    let answer = server.send("hello").await.unwrap();
    assert_eq!(answer.text(), "HELLO");
    assert!(matches!(&answer, Answer::Message(_)), "{answer:?}");
    answer.into_task().unwrap_err();
}

#[tokio::test]
async fn p08_one_of_several_agents_is_called_by_its_id() {
    let mount = |id: &str| Mount::new(id, AgentCard::new(id, "One of two", "1")).path(&format!("/{id}"));
    let skill = |id: &str| baton_server::a2a::AgentSkill::new(id, id, "d");
    let host = Server::host()
        .mount(mount("shouter").message_skill(skill("s"), shout))
        .mount(mount("greeter").task_skill(skill("g"), greet));
    let server = host.build().await.unwrap();
    let texts = [("shouter", "HI"), ("greeter", "Hello, hi")];
    for (id, expected) in texts {
        assert_eq!(server.client_of(id).unwrap().send("hi").await.unwrap().text(), expected);
    }
    assert!(server.client_of("nobody").is_none());
}

/// `store` accepts a store or an `Arc` of one.
#[tokio::test]
async fn p08_a_store_is_given_as_it_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = || SqliteStore::open(folder.path().join("tasks.db"), Options::default()).unwrap();
    let greeter = || Server::agent("greet", "Greets", greet);
    let server = greeter().store(store()).build().await.unwrap();
    let task = server.send("Baton").await.unwrap().into_task().unwrap();
    server.shut_down().await;
    drop(server);
    let server = greeter().store(Arc::new(store())).build().await.unwrap();
    assert_eq!(server.client().task(&task.id).await.unwrap().artifacts, task.artifacts);

    let shared = Arc::new(MemoryStore::new());
    let one = greeter().store(Arc::clone(&shared)).build().await.unwrap();
    let task = one.send("Baton").await.unwrap().into_task().unwrap();
    let other = greeter().store(shared).build().await.unwrap();
    assert_eq!(other.client().task(&task.id).await.unwrap().id, task.id);
}
