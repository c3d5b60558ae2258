//! Connections that each carry several calls at once, and the closed loop over them.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::connection::{Call, Connection, Ended};
use super::hpack::Blocks;
use super::message::Ends;
use crate::{Calls, Outcome, Stop, Target};

const SCRATCH: usize = 256 * 1024;
/// A server that sends nothing for this long is considered stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is called.
#[derive(Debug, Clone, Copy)]
pub struct Method<'a> {
    /// `/PACKAGE.SERVICE/METHOD`.
    pub path: &'a str,
    /// Sent with every call.
    pub metadata: &'a [(&'a str, &'a str)],
}

/// Connections to one server, for one method.
pub struct Channels {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    headers: Blocks,
    scratch: Vec<u8>,
    ready: Vec<Event>,
    ended: Vec<Ended>,
}

impl Channels {
    /// `each` is the number of calls at once on a connection.
    pub fn connect(target: &Target, method: Method<'_>, connections: usize, each: usize) -> io::Result<Self> {
        let authority = target.address.to_string();
        let mut headers = vec![(":path", method.path), (":authority", &authority), ("te", "trailers")];
        headers.extend([("content-type", "application/grpc"), ("user-agent", "grpc-bench")]);
        headers.extend_from_slice(method.metadata);
        let mut channels = Channels {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            connections: Vec::with_capacity(connections),
            headers: Blocks::new(&headers),
            scratch: vec![0; SCRATCH],
            ready: Vec::with_capacity(1024),
            ended: Vec::new(),
        };
        for index in 0..connections {
            let connection = Connection::open(target, each)?;
            let data = EventData::new_u64(index as u64);
            epoll::add(&channels.epoll, connection.socket(), data, EventFlags::IN)?;
            channels.connections.push(connection);
        }
        Ok(channels)
    }

    /// Keeps every connection busy until it is time to stop, then waits for the pending answers.
    pub fn closed(&mut self, calls: &mut Calls, ends: Ends<'_>, stop: Stop) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let start = Instant::now();
        let (limit, end) = match stop {
            Stop::Count(count) => (count, None),
            Stop::After(time) => (u64::MAX, Some(start + time)),
        };
        let mut sent = 0;
        for connection in &mut self.connections {
            fill(connection, &self.headers, calls, &mut sent, limit);
            connection.flush()?;
        }
        let (mut heard, mut goes_on) = (start, true);
        // A connection whose server lets it send nothing for now has calls to send, and none under way.
        while goes_on && sent < limit || self.connections.iter().any(Connection::is_busy) {
            self.wait()?;
            let now = Instant::now();
            goes_on = end.is_none_or(|end| now < end);
            if self.ready.is_empty() {
                lose_patience(now - heard)?;
                continue;
            }
            heard = now;
            for event in &self.ready {
                let connection = &mut self.connections[event.data.u64() as usize];
                connection.look(&mut self.scratch, now, &mut self.ended)?;
                for ended in self.ended.drain(..) {
                    match ended {
                        Ended::Answered(at) => outcome.count_call(&connection.calls[at], ends, now),
                        Ended::Reset(_) => outcome.aborted += 1,
                    }
                }
                if goes_on {
                    fill(connection, &self.headers, calls, &mut sent, limit);
                }
                connection.flush()?;
            }
        }
        outcome.elapsed = start.elapsed();
        Ok(outcome)
    }

    /// One call; returns the messages of its answer, each with its prefix.
    pub fn ask(&mut self, message: Vec<u8>) -> Result<Vec<u8>, String> {
        // How the answer ends does not matter here.
        let ends = Ends { with: (&[], 0), pieces: None };
        let answered = self.closed(&mut Calls::Listed(vec![message]), ends, Stop::Count(1));
        answered.map_err(|error| error.to_string())?;
        let call = &self.connections[0].calls[0];
        if call.succeeded() { Ok(call.body.clone()) } else { Err(call.told()) }
    }

    fn wait(&mut self) -> io::Result<()> {
        self.ready.clear();
        let time = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Begins as many calls as the connection has room for.
fn fill(connection: &mut Connection, headers: &Blocks, calls: &mut Calls, sent: &mut u64, limit: u64) {
    while *sent < limit {
        let message = calls.next(*sent);
        let Some(at) = connection.free(message.len()) else { break };
        connection.begin(at, headers, message);
        *sent += 1;
    }
}

fn lose_patience(silence: Duration) -> io::Result<()> {
    if silence < PATIENCE {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::TimedOut, format!("calls without an answer for {silence:?}")))
}

impl Call {
    fn succeeded(&self) -> bool {
        self.http_status == b"200" && self.grpc_status == b"0"
    }

    /// What the server said, for people.
    fn told(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
        let (http, grpc) = (text(&self.http_status), text(&self.grpc_status));
        format!("HTTP {http}, gRPC {grpc}: {} {}", text(&self.grpc_message), text(&self.body))
    }
}

impl Outcome {
    fn count_call(&mut self, call: &Call, ends: Ends<'_>, now: Instant) {
        self.answered += 1;
        self.latencies.push(now - call.since);
        self.first_events.extend(call.first_message);
        if !call.succeeded() || !ends.is_met(&call.body) {
            self.wrong += 1;
            self.sample.get_or_insert_with(|| call.told());
        }
    }
}
