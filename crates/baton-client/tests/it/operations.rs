//! P-09: every operation against a Baton server, in every binding and generation that has it.

use baton_client::protocol::domain::{ListFilter, Part, PushConfig, TaskId, TaskState};
use baton_client::protocol::operation::{ListTasks, SendMessage};
use baton_client::protocol::{ErrorKind, Generation};
use baton_client::{Answered, Binding, Client, Error, message};
use baton_server::a2a::AgentSkill;
use baton_server::{AgentError, Asked, Mount, Server};

use crate::harness::{TestServer, card, obedient, quick, rest, serve, texts, with_agent};

/// What Baton serves.
const FACES: [(Binding, Generation); 7] = [
    (Binding::JsonRpc, Generation::V1),
    (Binding::HttpJson, Generation::V1),
    (Binding::Grpc, Generation::V1),
    (Binding::JsonRpc, Generation::V0_3),
    (Binding::HttpJson, Generation::V0_3),
    (Binding::Grpc, Generation::V0_3),
    (Binding::JsonRpc, Generation::V0_1),
];

/// Those without a list of tasks.
const LISTLESS: [(Binding, Generation); 2] =
    [(Binding::Grpc, Generation::V0_3), (Binding::JsonRpc, Generation::V0_1)];

async fn client(server: &TestServer, (binding, version): (Binding, Generation)) -> Client {
    let mut builder = quick().bindings([binding]).versions([version]);
    // No card can list 0.1.
    if version == Generation::V0_1 {
        builder = builder.assume_version(version);
    }
    let client = builder.connect(&server.url).await.unwrap();
    assert_eq!((client.interface().binding(), client.interface().version()), (binding, version));
    client
}

#[tokio::test]
async fn p09_a_message_is_sent_in_every_binding_and_generation() {
    let server = serve(with_agent(obedient)).await;
    for face in FACES {
        let client = client(&server, face).await;
        let Answered::Task(task) = client.send("hello").await.unwrap() else { panic!("{face:?}: no task") };
        assert_eq!(task.status.state, TaskState::Completed, "{face:?}");
        assert_eq!(texts(&task), ["hello"], "{face:?}");
        let again = client.get(&task.id).await.unwrap();
        assert_eq!(texts(&again), ["hello"], "{face:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_streams_end_with_the_whole_task() {
    let server = serve(with_agent(obedient)).await;
    for face in FACES {
        let client = client(&server, face).await;
        let mut stream = client.stream("words one two three").await.unwrap();
        let events = rest(&mut stream).await;
        assert!(events.len() >= 3, "{face:?}: {events:?}");
        assert_eq!(stream.ending(), Some(baton_client::Ending::Terminal), "{face:?}");
        assert_eq!(stream.reconnects(), 0);
        let task = stream.task().unwrap();
        assert_eq!(task.status.state, TaskState::Completed, "{face:?}");
        assert_eq!(texts(task), ["one two three"], "{face:?}");
        // Only what was read has no number: in 0.1 the task at the end, since no event tells its context.
        let read = events.iter().filter(|event| event.id.is_none()).count();
        assert_eq!(read, usize::from(face.1 == Generation::V0_1), "{face:?}: {events:?}");
        let ids = events.iter().filter_map(|event| event.id.as_deref());
        let numbers: Vec<u64> = ids.map(|id| id.parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "{face:?}: {numbers:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_a_question_interrupts_and_the_answer_goes_to_the_same_task() {
    let server = serve(with_agent(obedient)).await;
    for face in FACES {
        let client = client(&server, face).await;
        let mut stream = client.stream("ask").await.unwrap();
        rest(&mut stream).await;
        assert_eq!(stream.ending(), Some(baton_client::Ending::Interrupted), "{face:?}");
        let task = stream.task().unwrap();
        assert_eq!(task.status.state, TaskState::InputRequired, "{face:?}");
        let mut answer = message(vec![Part::text("this")]);
        answer.task_id = Some(task.id.clone());
        let mut stream = client.stream(answer).await.unwrap();
        rest(&mut stream).await;
        assert_eq!(stream.ending(), Some(baton_client::Ending::Terminal), "{face:?}");
        assert_eq!(texts(stream.task().unwrap()), ["this"], "{face:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_cancel_and_subscribe() {
    let server = serve(with_agent(obedient)).await;
    for face in FACES {
        let client = client(&server, face).await;
        let send =
            SendMessage { return_immediately: true, ..SendMessage::new(message(vec![Part::text("hold")])) };
        // 0.1 cannot ask for that: it streams, and stops reading.
        let id = match face.1 {
            Generation::V0_1 => {
                let mut stream = client.stream("hold").await.unwrap();
                stream.next().await.unwrap().unwrap();
                stream.task().unwrap().id.clone()
            }
            _ => client.send(send).await.unwrap().task().unwrap().id.clone(),
        };
        let mut stream = client.subscribe(&id).await.unwrap();
        let task = client.cancel(&id).await.unwrap();
        assert_eq!(task.status.state, TaskState::Canceled, "{face:?}");
        rest(&mut stream).await;
        assert_eq!(stream.task().unwrap().status.state, TaskState::Canceled, "{face:?}");
        let done = client.send("done").await.unwrap().task().unwrap().id.clone();
        let error = client.cancel(&done).await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::TaskNotCancelable), "{face:?} {error}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_errors_have_the_same_kind_and_name_in_every_binding() {
    let server = serve(with_agent(obedient)).await;
    for face in FACES {
        let client = client(&server, face).await;
        let error = client.get(&TaskId::parse("no-such-task").unwrap()).await.unwrap_err();
        let agent = error.agent().unwrap_or_else(|| panic!("{face:?}: {error}"));
        assert_eq!(agent.kind(), Some(ErrorKind::TaskNotFound), "{face:?}");
        assert_eq!(agent.name(), Some("TaskNotFoundError"), "{face:?}");
        assert!(!agent.message().is_empty());
        match face {
            (Binding::JsonRpc, _) => assert_eq!(agent.code(), Some(-32001), "{face:?}"),
            (Binding::Grpc, _) => assert_eq!(agent.grpc_code(), Some(5), "{face:?}"),
            _ => assert_eq!(agent.http_status(), Some(404), "{face:?}"),
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_lists_go_through_all_pages() {
    let server = serve(with_agent(obedient)).await;
    let sender = client(&server, FACES[0]).await;
    let mut sent = Vec::new();
    for number in 0..7 {
        let answered = sender.send(format!("number {number}")).await.unwrap();
        sent.push(answered.task().unwrap().id.clone());
    }
    for face in FACES.iter().filter(|face| !LISTLESS.contains(face)) {
        let client = client(&server, *face).await;
        let list = ListTasks { page_size: Some(3), ..ListTasks::default() };
        let mut pages = client.tasks(list.clone());
        let mut sizes = Vec::new();
        while let Some(page) = pages.next_page().await {
            sizes.push(page.unwrap().tasks.len());
        }
        assert_eq!(sizes, [3, 3, 1], "{face:?}");
        let mut tasks = client.tasks(list);
        let mut seen = Vec::new();
        while let Some(task) = tasks.next().await {
            seen.push(task.unwrap().id);
        }
        seen.sort();
        let mut expected = sent.clone();
        expected.sort();
        assert_eq!(seen, expected, "{face:?}");
        let filter = ListFilter { states: vec![TaskState::Failed], ..ListFilter::default() };
        let mut none = client.tasks(ListTasks { filter, ..ListTasks::default() });
        assert!(none.next().await.is_none(), "{face:?}");
    }
    for face in LISTLESS {
        let old = client(&server, face).await;
        let error = old.tasks(ListTasks::default()).next().await.unwrap().unwrap_err();
        assert!(matches!(error, Error::NotInVersion { version, .. } if version == face.1), "{error}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_a_message_may_be_the_whole_answer() {
    async fn answer(asked: Asked) -> Result<String, AgentError> {
        Ok(format!("you said {}", asked.text()))
    }
    let server = Server::builder(card()).message_skill(AgentSkill::new("a", "a", "a"), answer);
    let server = serve(server).await;
    for face in &FACES[..6] {
        let client = client(&server, *face).await;
        let answered = client.send("hi").await.unwrap();
        assert_eq!(answered.message().unwrap().text(), "you said hi", "{face:?}");
        let mut stream = client.stream("hi").await.unwrap();
        assert_eq!(rest(&mut stream).await.len(), 1, "{face:?}");
        assert_eq!(stream.ending(), Some(baton_client::Ending::Message), "{face:?}");
        assert_eq!(stream.message().unwrap().text(), "you said hi", "{face:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_the_tenant_of_the_interface_is_sent() {
    let mount = |tenant: &str| {
        Mount::new(tenant, card())
            .tenant(tenant)
            .task_skill(AgentSkill::new("test", "test", "test"), obedient)
    };
    let server = serve(Server::host().mount(mount("acme")).mount(mount("other"))).await;
    for face in &FACES[..3] {
        let base = format!("{}/acme", server.url);
        let client = quick().bindings([face.0]).versions([face.1]).connect(&base).await.unwrap();
        assert_eq!(client.interface().tenant(), Some("acme"), "{face:?}");
        let task = client.send("hello").await.unwrap().task().unwrap().clone();
        assert_eq!(texts(&client.get(&task.id).await.unwrap()), ["hello"], "{face:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn p09_webhooks_are_refused_by_name_where_there_are_none() {
    let server = serve(with_agent(obedient)).await;
    for face in FACES {
        let client = client(&server, face).await;
        let task = client.send("hello").await.unwrap().task().unwrap().clone();
        let config =
            PushConfig { task_id: Some(task.id.clone()), ..PushConfig::new("https://hook.example.org") };
        let error = client.create_push_config(config).await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::PushNotSupported), "{face:?} {error}");
        assert_eq!(error.agent().unwrap().name(), Some("PushNotificationNotSupportedError"));
    }
    server.stop().await;
}
