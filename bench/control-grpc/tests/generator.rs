//! The generator and the control of gRPC, over real sockets: what one sends, the other understands.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::net::SocketAddr;
use std::time::Duration;

use bench_load::grpc::{Channels, Ends, Message, Method, messages};
use bench_load::{Calls, MARK, Outcome, Stop, Target};
use control_grpc::Control;

const COMPLETED: u8 = 3;
const PIECES: usize = 3000;

const SEND: Method<'_> = method("/lf.a2a.v1.A2AService/SendMessage");
const STREAM: Method<'_> = method("/lf.a2a.v1.A2AService/SendStreamingMessage");
const LIST: Method<'_> = method("/lf.a2a.v1.A2AService/ListTasks");

const REPLY: Ends<'_> = Ends { with: (&[1, 3, 1], COMPLETED as u64), pieces: None };
const EVENTS: Ends<'_> = Ends { with: (&[3, 3, 1], COMPLETED as u64), pieces: Some((4, PIECES)) };

const fn method(path: &'static str) -> Method<'static> {
    Method { path, metadata: &[("a2a-version", "1.0")] }
}

/// The control on a port of its own, on a thread that ends with the test.
fn served() -> Target {
    let (sender, address) = std::sync::mpsc::channel::<SocketAddr>();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            control().serve(listener).await.unwrap();
        });
    });
    Target::plain(address.recv().unwrap())
}

fn control() -> Control {
    let status = Message::default().number(1, COMPLETED).into_bytes();
    let task = Message::default().bytes(1, b"a task").bytes(3, &status).into_bytes();
    let mut events = Vec::new();
    // More than the first window of a call, so that the generator has to widen it.
    for number in 0..PIECES {
        let artifact = Message::default().bytes(1, number.to_string().as_bytes()).bytes(2, &[b'x'; 400]);
        let update = Message::default().bytes(1, b"a task").bytes(3, &artifact.into_bytes());
        events.extend(framed(Message::default().bytes(4, &update.into_bytes())));
    }
    let update = Message::default().bytes(1, b"a task").bytes(3, &status);
    events.extend(framed(Message::default().bytes(3, &update.into_bytes())));
    Control::new(&framed(Message::default().bytes(1, &task)), &events).unwrap()
}

fn framed(message: Message) -> Vec<u8> {
    let message = message.into_bytes();
    [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat()
}

fn request() -> Vec<u8> {
    let message = Message::default().bytes(1, MARK.as_bytes()).number(4, 1).into_bytes();
    Message::default().bytes(2, &message).into_bytes()
}

fn loaded(method: Method<'_>, ends: Ends<'_>, stop: Stop) -> Outcome {
    let mut channels = Channels::connect(&served(), method, 3, 8).unwrap();
    channels.closed(&mut Calls::stamped_bytes(request()), ends, stop).unwrap()
}

#[test]
fn calls_are_answered_and_counted() {
    // Enough for the server to have to widen a connection's window for what it is sent.
    let outcome = loaded(SEND, REPLY, Stop::Count(20_000));
    assert_eq!((outcome.answered, outcome.wrong, outcome.aborted), (20_000, 0, 0), "{:?}", outcome.sample);
    assert_eq!(outcome.latencies.len(), 20_000);
    let outcome = loaded(SEND, REPLY, Stop::After(Duration::from_millis(50)));
    assert!(outcome.answered > 0 && outcome.wrong == 0, "{:?}", outcome.sample);
}

#[test]
fn streams_are_read_to_their_end() {
    let outcome = loaded(STREAM, EVENTS, Stop::Count(40));
    assert_eq!((outcome.answered, outcome.wrong, outcome.aborted), (40, 0, 0), "{:?}", outcome.sample);
    assert_eq!(outcome.first_events.len(), 40);
}

#[test]
fn what_is_not_as_expected_counts_as_wrong() {
    let another_state = Ends { with: (&[1, 3, 1], 4), pieces: None };
    assert_eq!(loaded(SEND, another_state, Stop::Count(10)).wrong, 10);
    let one_more = Ends { pieces: Some((4, PIECES + 1)), ..EVENTS };
    assert_eq!(loaded(STREAM, one_more, Stop::Count(10)).wrong, 10);
}

#[test]
fn a_call_that_fails_is_told() {
    let outcome = loaded(LIST, REPLY, Stop::Count(10));
    assert_eq!((outcome.answered, outcome.wrong), (10, 10));
    assert!(outcome.sample.unwrap().starts_with("HTTP 200, gRPC 12"), "UNIMPLEMENTED");
    let mut channels = Channels::connect(&served(), SEND, 1, 1).unwrap();
    let refused = channels.ask(Vec::new()).unwrap_err();
    assert!(refused.starts_with("HTTP 200, gRPC 3: no%20message"), "{refused}");
    let answered = channels.ask(request()).unwrap();
    assert_eq!(messages(&answered).count(), 1);
}
