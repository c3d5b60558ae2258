//! P-03, P-09: what is particular to gRPC: metadata, answers of every kind, deadlines, streams that end badly.

use std::time::Duration;

use axum::http::StatusCode;
use baton_client::protocol::domain::{Task, TaskId, TaskState};
use baton_client::protocol::operation::Reply;
use baton_client::protocol::wire::StreamItem;
use baton_client::protocol::wire::dialect::Dialect;
use baton_client::protocol::wire::pb::Package;
use baton_client::protocol::wire::pb::framing::framed;
use baton_client::protocol::wire::pb::resume::set_number;
use baton_client::protocol::{self, ErrorKind};
use baton_client::{Binding, Ending, Observed, SizeLimits, Timeouts, TransportKind};

use crate::harness::{obedient, options, quick, rest, serve, texts, with_agent};
use crate::scripted_grpc::{Agent, Script};
use crate::{scripted, scripted_grpc};

fn id() -> TaskId {
    TaskId::parse("t").unwrap()
}

/// The task `t`, or another one.
fn task(state: &str) -> Task {
    match item(&scripted::shown(&scripted::task(state))) {
        StreamItem::Task(task) => task,
        other => panic!("no task: {other:?}"),
    }
}

fn got(package: Package, task: Task) -> Vec<u8> {
    package.write_reply(&Reply::Task(task)).unwrap()
}

fn item(json: &str) -> StreamItem {
    Dialect::V1.read_stream_item(json).unwrap().value
}

/// Events with their numbers, and no end.
fn events(package: Package, numbered: &[(u64, String)]) -> Script {
    let event = |(number, json): &(u64, String)| {
        let mut item = item(json);
        set_number(&mut item, *number);
        framed(&package.write_stream_update(&item)).to_vec()
    };
    Script { body: numbered.iter().flat_map(event).collect(), ..Script::default() }
}

#[tokio::test]
async fn p03_every_answer_that_is_none_is_told_apart() {
    enum Expected {
        Agent(Option<ErrorKind>, Option<i32>),
        Transport(TransportKind),
    }
    use Expected::{Agent as Refused, Transport};
    let done = || task("COMPLETED");
    for package in Package::ALL {
        let message = got(package, done());
        let framed = framed(&message).to_vec();
        let with = |body: Vec<u8>| Script { body, ..Script::default() };
        let html = |status| Script {
            status,
            headers: vec![("content-type", "text/html".to_owned())],
            ..with(b"<p>".to_vec())
        };
        let busy = protocol::Error::new(ErrorKind::Unavailable, "come back").with_log("");
        let refused = protocol::Error::of(ErrorKind::TaskNotCancelable);
        let code = i32::from(package.status(&refused).code);
        for (name, script, expected) in [
            (
                "in the head",
                Script::default().ends("5", "no%20task").at_once(),
                Refused(Some(ErrorKind::TaskNotFound), Some(5)),
            ),
            (
                "in trailers",
                Script::default().ends("5", "no%20task"),
                Refused(Some(ErrorKind::TaskNotFound), Some(5)),
            ),
            (
                "by its reason",
                Script::default().failed(package, &refused),
                Refused(Some(ErrorKind::TaskNotCancelable), Some(code)),
            ),
            (
                "without details",
                Script::default().failed(package, &busy).at_once(),
                Refused(Some(ErrorKind::Unavailable), Some(14)),
            ),
            ("a code that nobody knows", Script::default().ends("77", "?"), Refused(None, Some(77))),
            ("a code that is none", Script::default().ends("x", "?"), Refused(None, Some(2))),
            ("no status", with(framed.clone()), Transport(TransportKind::Cut)),
            ("no status, no message", with(Vec::new()), Transport(TransportKind::Cut)),
            ("no message", with(Vec::new()).ends("0", ""), Transport(TransportKind::Malformed)),
            ("two", with(framed.repeat(2)).ends("0", ""), Transport(TransportKind::Malformed)),
            ("half", with(framed[..9].to_vec()).ends("0", ""), Transport(TransportKind::Malformed)),
            ("no protobuf", Script::of(&[0xff; 9]), Transport(TransportKind::Malformed)),
            ("compressed", with(vec![1, 0, 0, 0, 0]).ends("0", ""), Transport(TransportKind::Malformed)),
            ("a flag", with(vec![9, 0, 0, 0, 0]).ends("0", ""), Transport(TransportKind::Malformed)),
            ("too large", Script::of(&[0; 2000]), Transport(TransportKind::TooLarge)),
            ("a lie", with(vec![0, 255, 255, 255, 255]).ends("0", ""), Transport(TransportKind::TooLarge)),
            ("reset", Script { reset: true, ..with(framed[..9].to_vec()) }, Transport(TransportKind::Cut)),
            ("its deadline", Script::default().ends("4", ""), Transport(TransportKind::Timeout)),
            ("a page", html(StatusCode::OK), Transport(TransportKind::Malformed)),
            ("moved", html(StatusCode::FOUND), Transport(TransportKind::Redirected)),
            ("a proxy's", html(StatusCode::BAD_GATEWAY), Refused(Some(ErrorKind::Unavailable), None)),
            (
                "another task",
                Script::of(&got(package, Task { id: TaskId::parse("u").unwrap(), ..done() })),
                Transport(TransportKind::Malformed),
            ),
        ] {
            let agent = Agent::start(move |_, _| script.clone()).await;
            let builder = quick().retries(baton_client::Retries::none());
            let limits = options(|it: &mut SizeLimits| it.reply = 1000);
            let client = agent.client(builder.size_limits(limits), package);
            let error = client.get(&id()).await.unwrap_err();
            let case = format!("{package:?}, {name}: {error}");
            match expected {
                Refused(kind, code) => {
                    let agent = error.agent().unwrap_or_else(|| panic!("{case}"));
                    assert_eq!((agent.kind(), agent.grpc_code()), (kind, code), "{case}");
                    if name.starts_with("in ") {
                        assert_eq!(agent.message(), "no task", "{case}");
                    }
                }
                Transport(kind) => assert_eq!(error.transport().map(|it| it.kind()), Some(kind), "{case}"),
            }
        }
    }
}

#[tokio::test]
async fn p03_calls_carry_the_metadata_of_grpc() {
    for package in Package::ALL {
        let agent = Agent::start(move |method, _| match method {
            "SendStreamingMessage" => {
                events(package, &[(3, scripted::shown(&scripted::task("COMPLETED")))]).ends("0", "")
            }
            _ => Script::of(&got(package, task("COMPLETED"))),
        })
        .await;
        let timeouts = options(|it: &mut Timeouts| it.call = Duration::from_secs(7));
        let builder = quick().timeouts(timeouts).extension("urn:mine").header("x-mine", "1").bearer("t0ken");
        // The card is the user's own, so that the agent gets the credential.
        let client = agent.client(builder, package);
        assert_eq!(client.get(&id()).await.unwrap().status.state, TaskState::Completed);
        rest(&mut client.stream("hello").await.unwrap()).await;
        let [call, stream] = agent.asked().try_into().unwrap();
        let extensions = match package {
            Package::V1 => "a2a-extensions",
            Package::V0_3 => "x-a2a-extensions",
        };
        for (asked, timeout, named) in
            [(&call, Some("7000000u"), "urn:mine"), (&stream, None, "urn:mine,urn:baton:resume:v1")]
        {
            assert_eq!(asked.header("content-type"), Some("application/grpc"));
            assert_eq!(asked.header("te"), Some("trailers"));
            assert_eq!(asked.header("a2a-version"), Some(package.generation().version()));
            assert_eq!(asked.header("x-mine"), Some("1"));
            assert_eq!(asked.header("authorization"), Some("Bearer t0ken"));
            assert_eq!(asked.header("grpc-timeout"), timeout, "{package:?}");
            assert_eq!(asked.header(extensions), Some(named), "{package:?}");
            assert_eq!(asked.header("last-event-id"), None);
        }
    }
}

/// What an agent asks to be repeated later is repeated then, also a message.
#[tokio::test]
async fn p03_a_busy_agent_is_asked_again() {
    for package in Package::ALL {
        for kind in [ErrorKind::Unavailable, ErrorKind::QuotaExceeded] {
            let busy = protocol::Error::new(kind, "later");
            let agent = Agent::start(move |_, before| match before {
                0 => {
                    let mut busy = Script::default().failed(package, &busy).at_once();
                    busy.headers.push(("retry-after", "0".to_owned()));
                    busy
                }
                _ => Script::of(&package.write_reply(&Reply::SentTask(task("COMPLETED"))).unwrap()),
            })
            .await;
            agent.client(quick(), package).send("hello").await.unwrap();
            let [first, second] = agent.asked().try_into().unwrap();
            assert_eq!(first.message, second.message, "{package:?} {kind:?}");
        }
    }
}

/// A stream may end in any of these ways before its task has ended; it goes on behind its last event.
#[tokio::test]
async fn p03_streams_that_end_badly_are_resumed_by_number() {
    for package in Package::ALL {
        for (name, end) in [
            ("no status", Script::default()),
            ("unavailable", Script::default().ends("14", "stopping")),
            ("too early", Script::default().ends("0", "")),
        ] {
            let agent = Agent::start(move |method, _| match method {
                "SendStreamingMessage" => {
                    let begun =
                        [(3, scripted::shown(&scripted::task("WORKING"))), (4, scripted::artifact("one"))];
                    Script { body: events(package, &begun).body, ..end.clone() }
                }
                "SubscribeToTask" | "TaskSubscription" => {
                    let rest = [(5, scripted::artifact("two")), (6, scripted::status("COMPLETED"))];
                    events(package, &rest).ends("0", "")
                }
                other => panic!("{other}"),
            })
            .await;
            let client = agent.client(quick(), package);
            let mut stream = client.stream("go").await.unwrap();
            let seen = rest(&mut stream).await;
            let case = format!("{package:?}, {name}");
            let ids: Vec<_> = seen.iter().filter_map(|event| event.id.as_deref()).collect();
            assert_eq!(ids, ["3", "4", "5", "6"], "{case}");
            assert!(seen.iter().all(|event| !event.json.contains("urn:baton")), "{case}: {seen:?}");
            let whole = stream.task().unwrap();
            assert_eq!((texts(whole), &whole.metadata), (vec!["one".to_owned(), "two".to_owned()], &None));
            assert_eq!((stream.ending(), stream.reconnects()), (Some(Ending::Terminal), 1), "{case}");
            assert_eq!(agent.asked()[1].header("last-event-id"), Some("4"), "{case}");
        }
    }
}

/// Half an event is none, however the stream ended.
#[tokio::test]
async fn p03_an_event_that_is_cut_off_is_not_shown() {
    let package = Package::V1;
    let agent = Agent::start(move |method, _| match method {
        "SendStreamingMessage" => {
            let mut script = events(
                package,
                &[(3, scripted::shown(&scripted::task("WORKING"))), (4, scripted::artifact("one"))],
            );
            script.body.truncate(script.body.len() - 1);
            script.ends("0", "")
        }
        _ => events(package, &[(4, scripted::artifact("one")), (5, scripted::status("COMPLETED"))])
            .ends("0", ""),
    })
    .await;
    let client = agent.client(quick(), package);
    let mut stream = client.stream("go").await.unwrap();
    let ids: Vec<_> = rest(&mut stream).await.into_iter().filter_map(|event| event.id).collect();
    assert_eq!(ids, ["3", "4", "5"]);
    assert_eq!(agent.asked()[1].header("last-event-id"), Some("3"));
}

/// An agent without streams is sent the message, and its task is read.
#[tokio::test]
async fn p03_a_refused_stream_is_replaced_by_a_send() {
    for package in Package::ALL {
        for at_once in [true, false] {
            let agent = Agent::start(move |method, _| match method {
                "SendStreamingMessage" => {
                    let refused = Script::default().ends("12", "no streams");
                    if at_once { refused.at_once() } else { refused }
                }
                "SendMessage" => Script::of(&package.write_reply(&Reply::SentTask(task("WORKING"))).unwrap()),
                _ => Script::of(&got(package, task("COMPLETED"))),
            })
            .await;
            let mut stream = agent.client(quick(), package).stream("go").await.unwrap();
            rest(&mut stream).await;
            assert_eq!(stream.ending(), Some(Ending::Terminal), "{package:?}");
            assert_eq!(agent.methods(), ["SendStreamingMessage", "SendMessage", "GetTask"], "{package:?}");
        }
    }
}

/// The server ends the call at our deadline, or we do; the task goes on.
#[tokio::test]
async fn p03_a_deadline_ends_the_wait_and_not_the_task() {
    let server = serve(with_agent(obedient)).await;
    for package in Package::ALL {
        let builder = quick().bindings([Binding::Grpc]).versions([package.generation()]);
        let timeouts = options(|it: &mut Timeouts| it.send = Some(Duration::from_millis(50)));
        let hurried = builder.clone().timeouts(timeouts).connect(&server.url).await.unwrap();
        let mut message = baton_client::message(vec![protocol::domain::Part::text("hold")]);
        let error = hurried.send(message.clone()).await.unwrap_err();
        assert_eq!(error.transport().map(|it| it.kind()), Some(TransportKind::Timeout), "{error}");
        // The same message is the same turn.
        let patient = builder.connect(&server.url).await.unwrap();
        message.metadata = None;
        let mut stream = patient.stream(message).await.unwrap();
        stream.next().await.unwrap().unwrap();
        let task = stream.task().unwrap();
        assert!(!task.status.state.is_terminal(), "{package:?}: {task:?}");
        patient.cancel(&task.id).await.unwrap();
    }
    server.stop().await;
}

/// Nobody reads protobuf: an observer is shown the JSON that it stands for, without credentials.
#[tokio::test]
async fn p09_an_observer_reads_messages_as_json() {
    use std::sync::{Arc, Mutex};
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&seen);
    let server = serve(with_agent(obedient)).await;
    let builder = quick().bindings([Binding::Grpc]).header("x-key", "s3cret-of-ann");
    let builder = builder.observe(move |observed| {
        let text = match observed {
            Observed::Request { body: Some(body), .. } | Observed::Body(body) => {
                std::str::from_utf8(body).expect("a text").to_owned()
            }
            _ => return,
        };
        tell.lock().unwrap().push(text);
    });
    let client = builder.connect(&server.url).await.unwrap();
    seen.lock().unwrap().clear();
    let task = client.send("my s3cret-of-ann").await.unwrap().task().unwrap().clone();
    client.get(&TaskId::parse("none").unwrap()).await.unwrap_err();
    rest(&mut client.stream("words one").await.unwrap()).await;
    let seen = seen.lock().unwrap().clone();
    assert!(seen[0].starts_with(r#"{"message":{"#), "{seen:?}");
    assert!(seen[1].starts_with(r#"{"task":{"id":"#) && seen[1].contains(task.id.as_str()), "{seen:?}");
    assert!(!seen[1].contains("s3cret"), "{seen:?}");
    assert!(seen[2].starts_with(r#"{"id":"none""#), "{seen:?}");
    assert!(seen[3].starts_with("grpc-status: 5 "), "{seen:?}");
    assert!(seen.iter().skip(5).any(|body| body.contains("artifactUpdate")), "{seen:?}");
    server.stop().await;
}

/// A message of an unknown field, as a later version may have it, is read all the same.
#[tokio::test]
async fn p09_fields_that_nobody_knows_are_passed_over() {
    let mut reply = got(Package::V1, task("COMPLETED"));
    // Field 999, three bytes.
    reply.extend_from_slice(&[0xba, 0x3e, 3, 1, 2, 3]);
    let agent = Agent::start(move |_, _| Script::of(&reply)).await;
    let task = agent.client(quick(), Package::V1).get(&id()).await.unwrap();
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(scripted_grpc::message(&framed(b"x")), "x");
}
