//! P-09: what a stream does when it is lost, silent, refused or odd; and that its ending is true.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_client::protocol::ErrorKind;
use baton_client::protocol::domain::{Part, TaskId, TaskState};
use baton_client::protocol::operation::SendMessage;
use baton_client::protocol::wire::StreamItem;
use baton_client::{Ending, EventStream, Reconnects, StreamEvent, Timeouts, TransportKind, message};
use futures_util::StreamExt as _;
use tokio::sync::Semaphore;

use crate::harness::{TEST_TIMEOUT, next, options, quick, rest, scripted_client, texts};
use crate::scripted::{Agent, Say, artifact, list, shown, status, task, task_with};

fn id() -> TaskId {
    TaskId::parse("t").unwrap()
}

/// So many tries, with nearly no waits.
fn at_once(most: u32) -> Reconnects {
    let wait = Duration::from_millis(1);
    options(|it: &mut Reconnects| {
        (it.most, it.first_wait, it.longest_wait, it.poll) = (most, wait, wait, wait);
    })
}

/// The names of the artifacts in these events.
fn names(events: &[StreamEvent]) -> Vec<&str> {
    let mut names = Vec::new();
    for event in events {
        if let StreamItem::Artifact { update, .. } = &event.item {
            names.push(update.artifact.name.as_deref().unwrap());
        }
    }
    names
}

/// The answer to the question of task `t`.
fn answer() -> SendMessage {
    let mut answer = message(vec![Part::text("this")]);
    answer.task_id = Some(id());
    SendMessage::new(answer)
}

async fn error_of(stream: &mut EventStream) -> baton_client::Error {
    loop {
        match tokio::time::timeout(TEST_TIMEOUT, stream.next()).await.unwrap().unwrap() {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

/// Older JavaScript servers number by milliseconds, so that several events have the same number.
#[tokio::test]
async fn p09_numbers_that_stand_still_lose_nothing_after_a_reconnect() {
    let agent = Agent::start(|method, before| match (method, before) {
        ("SendStreamingMessage", _) => Say::Events(vec![format!("id=100 {}", shown(&task("WORKING")))]),
        ("SubscribeToTask", 0) => Say::Events(
            [artifact("one"), artifact("two"), artifact("three"), status("COMPLETED")]
                .map(|event| format!("id=200 {event}"))
                .to_vec(),
        ),
        _ => Say::Result(task_with("COMPLETED", &["one", "two", "three"])),
    })
    .await;
    let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
    let events = rest(&mut stream).await;
    assert_eq!(names(&events), ["one", "two", "three"]);
    assert_eq!(texts(stream.task().unwrap()), ["one", "two", "three"]);
    assert_eq!((stream.ending(), stream.reconnects()), (Some(Ending::Terminal), 1));
}

/// The end is never a repeat, whatever its number says: an agent that counts anew with each connection ends, too.
#[tokio::test]
async fn p09_the_end_is_taken_from_an_agent_that_counts_again() {
    let agent = Agent::start(|method, _| match method {
        "SendStreamingMessage" => Say::Events(vec![format!("id=9 {}", shown(&task("WORKING")))]),
        "SubscribeToTask" => {
            Say::Events(vec![format!("id=1 {}", artifact("one")), format!("id=2 {}", status("COMPLETED"))])
        }
        _ => Say::Result(task_with("COMPLETED", &["one"])),
    })
    .await;
    let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
    rest(&mut stream).await;
    assert_eq!(texts(stream.task().unwrap()), ["one"]);
    assert_eq!((stream.ending(), agent.count("SubscribeToTask")), (Some(Ending::Terminal), 1));
}

/// The subscription shows only what happens from now on, and what was missed is in the task.
#[tokio::test]
async fn p09_a_send_returns_the_whole_task() {
    for (state, expected) in [
        ("COMPLETED", TaskState::Completed),
        ("INPUT_REQUIRED", TaskState::InputRequired),
        ("AUTH_REQUIRED", TaskState::AuthRequired),
    ] {
        let agent = Agent::start(move |method, _| match method {
            "SendMessage" => Say::Result(shown(&task("WORKING"))),
            "SubscribeToTask" => Say::Open(vec![status(state)]),
            _ => Say::Result(task_with(state, &["missed"])),
        })
        .await;
        let client = scripted_client(quick(), &agent.url);
        let answered = tokio::time::timeout(TEST_TIMEOUT, client.send("go")).await.unwrap().unwrap();
        let task = answered.task().unwrap();
        assert_eq!((task.status.state, texts(task)), (expected, vec!["missed".to_owned()]));
    }
}

/// However quickly an agent wants to be asked again, and however little it has to say.
#[tokio::test]
async fn p09_an_agent_cannot_make_the_client_subscribe_without_a_pause() {
    // Nothing new: the task is read instead.
    let agent = Agent::start(|method, before| match (method, before) {
        ("SendStreamingMessage" | "SubscribeToTask", _) => {
            Say::Events(vec![format!("retry=0 {}", shown(&task("WORKING")))])
        }
        (_, 0) => Say::Result(task("WORKING")),
        _ => Say::Result(task("COMPLETED")),
    })
    .await;
    let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
    rest(&mut stream).await;
    assert_eq!((agent.count("SubscribeToTask"), agent.count("GetTask")), (2, 2));

    // Something new each time: it goes on, with pauses.
    const TIMES: usize = 5;
    let agent = Agent::start(|method, before| match method {
        "SendStreamingMessage" => Say::Events(vec![format!("retry=0 {}", shown(&task("WORKING")))]),
        "SubscribeToTask" if before == TIMES => Say::Events(vec![status("COMPLETED")]),
        "SubscribeToTask" => Say::Events(vec![artifact(&format!("a{before}"))]),
        _ => Say::Result(task("COMPLETED")),
    })
    .await;
    let first_wait = Duration::from_millis(50);
    let reconnects = options(|it: &mut Reconnects| it.first_wait = first_wait);
    let client = scripted_client(quick().reconnects(reconnects), &agent.url);
    let began = Instant::now();
    let mut stream = client.stream("go").await.unwrap();
    let events = rest(&mut stream).await;
    assert_eq!((names(&events).len(), stream.reconnects() as usize), (TIMES, TIMES + 1));
    assert!(began.elapsed() >= first_wait * TIMES as u32, "{:?}", began.elapsed());
}

/// What nobody reads is not looked at, but it must not be nested without end: whoever shows it would need memory by the
/// square of the depth.
#[tokio::test]
async fn p09_nesting_without_end_is_refused() {
    use baton_client::protocol::operation::{Call, GetTask, HistoryLength, ListTasks};
    let deep = "[".repeat(20_000) + &"]".repeat(20_000);
    let with_deep = |object: String| format!(r#"{},"x":{deep}}}"#, object.strip_suffix('}').unwrap());
    let (listed, read) = (with_deep(r#"{"tasks":[]}"#.to_owned()), with_deep(task("WORKING")));
    let event = with_deep(shown(&task("WORKING")));
    let agent = Agent::start(move |method, _| match method {
        "ListTasks" => Say::Result(listed.clone()),
        "GetTask" => Say::Result(read.clone()),
        _ => Say::Events(vec![event.clone()]),
    })
    .await;
    let client = scripted_client(quick(), &agent.url);
    let get = GetTask { id: id(), history_length: HistoryLength::All };
    let mut stream = client.stream("go").await.unwrap();
    for error in [
        client.call_raw(&Call::ListTasks(ListTasks::default())).await.unwrap_err(),
        client.call_raw(&Call::GetTask(get)).await.unwrap_err(),
        client.get(&id()).await.unwrap_err(),
        error_of(&mut stream).await,
    ] {
        assert_eq!(error.transport().unwrap().kind(), TransportKind::Malformed, "{error}");
        assert!(error.to_string().contains("nested"), "{error}");
    }
}

/// The card says that the agent streams, and the agent says that it does not: nothing happened to the message, so that it
/// can be sent in the other way.
#[tokio::test]
async fn p09_a_message_whose_stream_is_refused_is_sent_without_one() {
    for (name, code, in_event) in
        [("answer", -32004, false), ("event", -32004, true), ("no such method", -32601, false)]
    {
        let agent = Agent::start(move |method, before| match (method, before) {
            ("SendStreamingMessage", _) if in_event => Say::Events(vec![format!("!{code}")]),
            ("SendStreamingMessage", _) => Say::Error(code),
            ("SendMessage", _) => Say::Result(shown(&task("SUBMITTED"))),
            ("GetTask", 0) => Say::Result(task("WORKING")),
            _ => Say::Result(task_with("COMPLETED", &["done"])),
        })
        .await;
        let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
        let events = rest(&mut stream).await;
        assert_eq!(events.len(), 3, "{name}: {events:?}");
        assert_eq!(texts(stream.task().unwrap()), ["done"], "{name}");
        let counts = ["SendStreamingMessage", "SendMessage", "SubscribeToTask"].map(|it| agent.count(it));
        assert_eq!((stream.ending(), counts), (Some(Ending::Terminal), [1, 1, 0]), "{name}");
    }
    // Any other refusal is the agent's answer.
    let agent = Agent::start(|_, _| Say::Error(-32602)).await;
    let error = scripted_client(quick(), &agent.url).stream("go").await.unwrap_err();
    assert_eq!((error.kind(), agent.asked().len()), (Some(ErrorKind::InvalidParams), 1));
}

/// A server that restarts, and a proxy before it, answer with errors for a while.
#[tokio::test]
async fn p09_a_task_that_cannot_be_read_for_a_while_is_read_later() {
    for status in [500, 502, 503, 504, 429] {
        let agent = Agent::start(move |method, before| match (method, before) {
            ("SendStreamingMessage", _) => Say::Events(vec![shown(&task("WORKING"))]),
            ("SubscribeToTask", _) => Say::Error(-32004),
            ("GetTask", 0..3) => Say::Busy(status),
            _ => Say::Result(task_with("COMPLETED", &["done"])),
        })
        .await;
        let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
        rest(&mut stream).await;
        assert_eq!(stream.ending(), Some(Ending::Terminal), "{status}");
        assert_eq!((texts(stream.task().unwrap()), agent.count("GetTask")), (vec!["done".to_owned()], 4));
    }
    // The agent's word is final, and patience has an end.
    for (say, gets) in [(404, 1), (503, 4)] {
        let agent = Agent::start(move |method, _| match method {
            "SendStreamingMessage" => Say::Events(vec![shown(&task("WORKING"))]),
            "SubscribeToTask" => Say::Error(-32004),
            _ => Say::Busy(say),
        })
        .await;
        let reconnects = at_once(4);
        let client = scripted_client(quick().reconnects(reconnects), &agent.url);
        let mut stream = client.stream("go").await.unwrap();
        let error = error_of(&mut stream).await;
        assert_eq!(error.agent().unwrap().http_status(), Some(say), "{error}");
        assert_eq!((agent.count("GetTask"), stream.ending()), (gets, None), "{say}");
    }
}

/// Looks at the stream again and again, for a moment only, as a program does that has other things to look at.
async fn glance(stream: &mut EventStream, times: usize) -> Option<Result<StreamEvent, baton_client::Error>> {
    for _ in 0..times {
        if let Ok(event) = tokio::time::timeout(Duration::from_millis(5), stream.next()).await {
            return event;
        }
    }
    panic!("nothing came");
}

#[tokio::test]
async fn p09_a_stream_goes_on_although_its_caller_looks_away() {
    // The agent takes its time with a subscription.
    let permits = Arc::new(Semaphore::new(0));
    let given = Arc::clone(&permits);
    let agent = Agent::start(move |method, _| match method {
        "SendStreamingMessage" => Say::Events(vec![shown(&task("WORKING"))]),
        _ => Say::Later(Arc::clone(&given), vec![shown(&task_with("COMPLETED", &["done"]))]),
    })
    .await;
    let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
    next(&mut stream).await.unwrap();
    for _ in 0..40 {
        tokio::time::timeout(Duration::from_millis(5), stream.next()).await.unwrap_err();
    }
    permits.add_permits(1);
    glance(&mut stream, 4000).await.unwrap().unwrap();
    assert_eq!((stream.ending(), agent.count("SubscribeToTask")), (Some(Ending::Terminal), 1));

    // A silent stream: the silence does not begin anew with every look.
    let agent = Agent::start(|method, _| match method {
        "GetTask" => Say::Result(task("COMPLETED")),
        _ => Say::Open(vec![shown(&task("WORKING"))]),
    })
    .await;
    let timeouts = options(|it: &mut Timeouts| it.idle = Duration::from_millis(50));
    let client = scripted_client(quick().timeouts(timeouts), &agent.url);
    let mut stream = client.stream("go").await.unwrap();
    next(&mut stream).await.unwrap();
    glance(&mut stream, 4000).await.unwrap().unwrap();
    assert_eq!(stream.ending(), Some(Ending::Terminal));
}

/// If the task cannot be read at the end, it may lack something: the error is the last thing, and there is no ending.
#[tokio::test]
async fn p09_an_ending_is_said_only_once_the_task_is_whole() {
    let agent = |says: fn(usize) -> Say| {
        Agent::start(move |method, before| match method {
            "SendStreamingMessage" => Say::Events(vec![shown(&task("WORKING"))]),
            "SubscribeToTask" => Say::Events(vec![status("COMPLETED")]),
            _ => says(before),
        })
    };
    let broken = agent(|_| Say::Error(-32603)).await;
    let mut stream = scripted_client(quick(), &broken.url).stream("go").await.unwrap();
    let error = error_of(&mut stream).await;
    assert_eq!((error.kind(), stream.ending()), (Some(ErrorKind::Internal), None));
    assert!(stream.next().await.is_none());
    // It is tried again; and a copy of the task that lags behind is not taken for its end.
    let late = agent(|before| match before {
        0 => Say::Busy(503),
        1 => Say::Result(task("WORKING")),
        _ => Say::Result(task_with("COMPLETED", &["missed"])),
    })
    .await;
    let mut stream = scripted_client(quick(), &late.url).stream("go").await.unwrap();
    rest(&mut stream).await;
    assert_eq!(texts(stream.task().unwrap()), ["missed"]);
    assert_eq!((stream.ending(), late.count("GetTask")), (Some(Ending::Terminal), 3));
}

/// The stream of an answer begins with the task as it was before, still waiting; and is closed there.
#[tokio::test]
async fn p09_a_stream_that_is_closed_before_the_turn_began_has_not_ended() {
    let agent = Agent::start(|method, _| match method {
        "SendStreamingMessage" => Say::Events(vec![shown(&task("INPUT_REQUIRED"))]),
        "SubscribeToTask" => Say::Events(vec![shown(&task("WORKING")), status("COMPLETED")]),
        _ => Say::Result(task("COMPLETED")),
    })
    .await;
    let mut stream = scripted_client(quick(), &agent.url).stream(answer()).await.unwrap();
    rest(&mut stream).await;
    assert_eq!(stream.ending(), Some(Ending::Terminal));
    // A question to a new message is one.
    let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
    rest(&mut stream).await;
    assert_eq!(stream.ending(), Some(Ending::Interrupted));
    // If nothing else ever comes, the question stands.
    let agent = Agent::start(|method, _| match method {
        "GetTask" => Say::Result(task("INPUT_REQUIRED")),
        _ => Say::Events(vec![shown(&task("INPUT_REQUIRED"))]),
    })
    .await;
    let mut stream = scripted_client(quick(), &agent.url).stream(answer()).await.unwrap();
    rest(&mut stream).await;
    assert_eq!(stream.ending(), Some(Ending::Interrupted));
}

/// A stream that begins in the middle has the whole task at its end.
#[tokio::test]
async fn p09_a_resumed_stream_ends_with_the_whole_task() {
    let agent = Agent::start(|method, _| match method {
        "GetTask" => Say::Result(task_with("COMPLETED", &["one", "two"])),
        _ => Say::Events(vec![
            format!("id=1 {}", artifact("one")),
            format!("id=2 {}", artifact("two")),
            format!("id=3 {}", status("COMPLETED")),
        ]),
    })
    .await;
    let client = scripted_client(quick(), &agent.url);
    // The agent shows everything again, but the first event was shown by another stream.
    let mut stream = client.resume(&id(), "1").await.unwrap();
    let events = rest(&mut stream).await;
    assert_eq!(names(&events), ["two"]);
    assert_eq!(texts(stream.task().unwrap()), ["one", "two"]);
    assert_eq!((stream.ending(), agent.count("GetTask")), (Some(Ending::Terminal), 1));
    assert_eq!(agent.asked()[0].1.as_deref(), Some("1"));
}

/// An authorization comes by another way, and the turn goes on: whether it is streamed or read.
#[tokio::test]
async fn p09_an_authorization_ends_no_turn() {
    for streams in [true, false] {
        let agent = Agent::start(move |method, before| match (method, before) {
            ("SendStreamingMessage", _) if streams => {
                Say::Events(vec![shown(&task("WORKING")), status("AUTH_REQUIRED"), status("COMPLETED")])
            }
            ("SendStreamingMessage", _) => Say::Error(-32004),
            ("SendMessage", _) => Say::Result(shown(&task("AUTH_REQUIRED"))),
            ("GetTask", 0..2) => Say::Result(task("AUTH_REQUIRED")),
            _ => Say::Result(task("COMPLETED")),
        })
        .await;
        let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
        rest(&mut stream).await;
        assert_eq!(stream.ending(), Some(Ending::Terminal), "{streams}");
    }
}

/// The stream stays open without a byte, although the task has ended: the task itself is asked.
#[tokio::test]
async fn p09_a_silent_stream_is_left_and_the_task_read() {
    let timeouts = options(|it: &mut Timeouts| it.idle = Duration::from_millis(50));
    let agent = Agent::start(|method, _| match method {
        "SendStreamingMessage" => Say::Open(vec![shown(&task("WORKING"))]),
        "GetTask" => Say::Result(task_with("COMPLETED", &["done"])),
        _ => Say::Open(Vec::new()),
    })
    .await;
    let client = scripted_client(quick().timeouts(timeouts.clone()), &agent.url);
    let mut stream = client.stream("go").await.unwrap();
    rest(&mut stream).await;
    assert_eq!(texts(stream.task().unwrap()), ["done"]);
    assert_eq!((stream.ending(), agent.count("SubscribeToTask")), (Some(Ending::Terminal), 0));

    // It is still at work: the stream goes on, behind the last event, unless the task has overtaken that.
    for (read, last_id, seen) in
        [(task("WORKING"), Some("3"), vec!["one"]), (task_with("WORKING", &["one"]), None, vec![])]
    {
        let agent = Agent::start(move |method, before| match (method, before) {
            ("SendStreamingMessage", _) => Say::Open(vec![format!("id=3 {}", shown(&task("WORKING")))]),
            ("GetTask", 0) => Say::Result(read.clone()),
            ("GetTask", _) => Say::Result(task_with("COMPLETED", &["one"])),
            _ => Say::Events(match read.contains("one") {
                true => vec![status("COMPLETED")],
                false => vec![format!("id=4 {}", artifact("one")), format!("id=5 {}", status("COMPLETED"))],
            }),
        })
        .await;
        let client = scripted_client(quick().timeouts(timeouts.clone()), &agent.url);
        let mut stream = client.stream("go").await.unwrap();
        let events = rest(&mut stream).await;
        assert_eq!(names(&events), seen);
        assert_eq!(texts(stream.task().unwrap()), ["one"]);
        let subscribed = agent.asked().into_iter().find(|(method, _)| method == "SubscribeToTask").unwrap();
        assert_eq!(subscribed.1.as_deref(), last_id);
    }
}

/// Each try of a stream is one request: the retries of single calls do not multiply it.
#[tokio::test]
async fn p09_retries_are_not_multiplied_when_a_stream_is_taken_up_again() {
    let agent = Agent::start(|method, _| match method {
        "SendStreamingMessage" => Say::Events(vec![shown(&task("WORKING"))]),
        _ => Say::Busy(503),
    })
    .await;
    let reconnects = at_once(3);
    let client = scripted_client(quick().reconnects(reconnects), &agent.url);
    let mut stream = client.stream("go").await.unwrap();
    error_of(&mut stream).await;
    assert_eq!((agent.count("SubscribeToTask"), stream.reconnects()), (3, 3));
}

#[tokio::test]
async fn p09_what_was_never_lost_was_not_taken_up_again() {
    let agent = Agent::start(|method, _| match method {
        "SendMessage" => Say::Result(shown(&task("WORKING"))),
        _ => Say::Events(vec![shown(&task("WORKING")), status("COMPLETED")]),
    })
    .await;
    let client = scripted_client(quick(), &agent.url);
    let send = SendMessage { return_immediately: true, ..SendMessage::new(message(vec![Part::text("go")])) };
    let task = client.send(send).await.unwrap().task().unwrap().clone();
    let mut stream = client.follow(task);
    rest(&mut stream).await;
    assert_eq!((stream.ending(), stream.reconnects()), (Some(Ending::Terminal), 0));
}

/// Everything that `futures` has for streams, and still the task and the ending.
#[tokio::test]
async fn p09_events_are_a_stream_of_futures() {
    let agent = Agent::start(|_, _| {
        Say::Events(list(&[&shown(&task("WORKING")), &artifact("one"), &status("COMPLETED")]))
    })
    .await;
    let mut stream = scripted_client(quick(), &agent.url).stream("go").await.unwrap();
    let count = stream.by_ref().filter(|event| std::future::ready(event.is_ok())).count().await;
    assert_eq!((count, stream.ending()), (3, Some(Ending::Terminal)));
    assert_eq!(texts(stream.task().unwrap()), ["one"]);
    fn is_shared<T: Send + Sync + Unpin>(_: &T) {}
    is_shared(&stream);
}

/// A list that leads in a circle, or only on.
#[tokio::test]
async fn p09_a_list_without_end_is_given_up() {
    use baton_client::protocol::operation::ListTasks;
    for circle in [true, false] {
        let agent = Agent::start(move |_, before| {
            let (tasks, next) = match circle {
                true => (task("WORKING"), (before % 3).to_string()),
                false => (String::new(), before.to_string()),
            };
            Say::Result(format!(r#"{{"tasks":[{tasks}],"nextPageToken":"{next}"}}"#))
        })
        .await;
        let mut tasks = scripted_client(quick(), &agent.url).tasks(ListTasks::default()).into_stream();
        let error = loop {
            match tasks.next().await.unwrap() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("no end"), "{error}");
        assert!(tasks.next().await.is_none());
        assert!(agent.count("ListTasks") <= 101);
    }
}
