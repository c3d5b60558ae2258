//! The calls as messages of protocol version 1.0, over gRPC.

use std::io;

use bench_load::grpc::{Channels, Ends, Message, Method, bytes_at, messages};
use bench_load::{Calls, MARK};

use crate::server::Server;
use crate::wire::TEXT;

const fn method(path: &'static str) -> Method<'static> {
    Method { path, metadata: &[("a2a-version", "1.0")] }
}

pub const SEND: Method<'_> = method("/lf.a2a.v1.A2AService/SendMessage");
pub const STREAM: Method<'_> = method("/lf.a2a.v1.A2AService/SendStreamingMessage");
pub const GET: Method<'_> = method("/lf.a2a.v1.A2AService/GetTask");

const COMPLETED: u64 = 3;

/// A SendMessageResponse with a finished task.
pub const SENT: Ends<'_> = Ends { with: (&[1, 3, 1], COMPLETED), pieces: None };
/// A finished task.
pub const GOT: Ends<'_> = Ends { with: (&[3, 1], COMPLETED), pieces: None };

/// A stream with that many artifact updates and a last status.
pub const fn streamed(artifacts: usize) -> Ends<'static> {
    Ends { with: (&[3, 3, 1], COMPLETED), pieces: Some((4, artifacts)) }
}

/// A SendMessageRequest; its message has that number in its id.
fn send(text: &str, number: &str) -> Vec<u8> {
    const USER: u8 = 1;
    // Message ids must not repeat between points of one run.
    let start = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let part = Message::default().bytes(1, text.as_bytes()).into_bytes();
    let id = format!("{start:019x}-{number}");
    let message = Message::default().bytes(1, id.as_bytes()).number(4, USER).bytes(5, &part).into_bytes();
    Message::default().bytes(2, &message).into_bytes()
}

pub fn send_calls(text: &str) -> Calls {
    Calls::stamped_bytes(send(text, MARK))
}

pub fn get_calls(ids: &[Vec<u8>]) -> Calls {
    Calls::Listed(ids.iter().map(|id| Message::default().bytes(2, id).into_bytes()).collect())
}

pub fn channels(
    server: &Server,
    method: Method<'_>,
    connections: usize,
    each: usize,
) -> Result<Channels, String> {
    let connected = Channels::connect(&server.target, method, connections, each);
    connected.map_err(|error: io::Error| format!("cannot connect: {error}"))
}

/// The answer to one message, as it was sent.
pub fn ask(server: &Server, method: Method<'_>, text: &str) -> Result<Vec<u8>, String> {
    channels(server, method, 1, 1)?.ask(send(text, "0"))
}

pub fn task_ids(server: &Server, count: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut channels = channels(server, SEND, 1, 1)?;
    let mut one = |number: usize| {
        let answer = channels.ask(send(TEXT, &number.to_string()))?;
        let reply = messages(&answer).next().flatten();
        let id = reply.and_then(|reply| bytes_at(reply, &[1, 1]));
        id.map(<[u8]>::to_vec).ok_or_else(|| "a reply without a task".to_owned())
    };
    (0..count).map(&mut one).collect()
}
