//! Connections, and the closed loop over them.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::{Answer, Calls, Latencies};

const SCRATCH: usize = 256 * 1024;
/// A server that says nothing for so long will not say anything any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connections to one server.
pub struct Fleet {
    pub(crate) address: SocketAddr,
    pub(crate) epoll: OwnedFd,
    pub(crate) connections: Vec<Connection>,
    scratch: Vec<u8>,
    pub(crate) ready: Vec<Event>,
}

pub(crate) struct Connection {
    socket: TcpStream,
    pub(crate) answer: Answer,
    pub(crate) since: Instant,
    /// How long the first event of a stream took.
    pub(crate) first_event: Option<Duration>,
    pub(crate) busy: bool,
}

/// When to stop sending.
#[derive(Debug, Clone, Copy)]
pub enum Stop {
    After(Duration),
    Count(u64),
}

/// What a good answer has in it.
#[derive(Debug, Clone, Copy)]
pub struct Expect<'a> {
    pub has: &'a str,
    /// Pieces of an artifact in a stream.
    pub artifacts: Option<usize>,
    /// Whether it is a stream, whose first event is timed.
    pub stream: bool,
}

impl<'a> Expect<'a> {
    pub fn reply(has: &'a str) -> Self {
        Expect { has, artifacts: None, stream: false }
    }

    pub fn stream(has: &'a str, artifacts: usize) -> Self {
        Expect { has, artifacts: Some(artifacts), stream: true }
    }

    pub(crate) fn is_met(&self, answer: &Answer) -> bool {
        let body = answer.body();
        answer.status() == 200
            && memmem::find(body, self.has.as_bytes()).is_some()
            && self
                .artifacts
                .is_none_or(|wanted| memmem::find_iter(body, b"\"artifactUpdate\"").count() == wanted)
    }
}

/// What came of a load.
#[derive(Debug, Default)]
pub struct Outcome {
    pub answered: u64,
    /// Answers that were not what was expected, with the first of them.
    pub wrong: u64,
    pub sample: Option<String>,
    /// Connections that ended in the middle of an answer.
    pub aborted: u64,
    pub elapsed: Duration,
    pub latencies: Latencies,
    pub first_events: Latencies,
}

impl Outcome {
    pub fn per_second(&self) -> f64 {
        self.answered as f64 / self.elapsed.as_secs_f64()
    }
}

/// What one look at a connection gave.
pub(crate) enum Look {
    Waiting,
    Whole,
    Closed,
}

impl Fleet {
    pub fn connect(address: SocketAddr, count: usize) -> io::Result<Self> {
        let mut fleet = Fleet {
            address,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            connections: Vec::with_capacity(count),
            scratch: vec![0; SCRATCH],
            ready: Vec::with_capacity(1024),
        };
        for _ in 0..count {
            fleet.add()?;
        }
        Ok(fleet)
    }

    /// One more connection; returns its place.
    pub(crate) fn add(&mut self) -> io::Result<usize> {
        let index = self.connections.len();
        let connection = Connection::open(self.address)?;
        self.watch(&connection, index)?;
        self.connections.push(connection);
        Ok(index)
    }

    fn watch(&self, connection: &Connection, index: usize) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, &connection.socket, EventData::new_u64(index as u64), EventFlags::IN)?)
    }

    /// In place of one that has ended. The old socket leaves the epoll as it closes.
    pub(crate) fn replace(&mut self, index: usize) -> io::Result<()> {
        let connection = Connection::open(self.address)?;
        self.watch(&connection, index)?;
        self.connections[index] = connection;
        Ok(())
    }

    /// Keeps every connection busy until it is time to stop, then waits for what is under way.
    pub fn closed(&mut self, calls: &mut Calls, expect: Expect<'_>, stop: Stop) -> io::Result<Outcome> {
        let mut outcome = Outcome::default();
        let start = Instant::now();
        let (limit, end) = match stop {
            Stop::Count(count) => (count, None),
            Stop::After(time) => (u64::MAX, Some(start + time)),
        };
        let mut sent = 0;
        for index in 0..self.connections.len() {
            if sent < limit {
                self.connections[index].send(calls.next(sent))?;
                sent += 1;
            }
        }
        let mut under_way = sent;
        let mut heard = start;
        while under_way > 0 {
            self.wait(Some(Duration::from_millis(200)))?;
            let now = Instant::now();
            if self.ready.is_empty() {
                self.lose_patience(now - heard)?;
                continue;
            }
            heard = now;
            let goes_on = end.is_none_or(|end| now < end);
            for at in 0..self.ready.len() {
                let index = self.ready[at].data.u64() as usize;
                if !self.settle(index, now, expect, &mut outcome)? {
                    continue;
                }
                under_way -= 1;
                if goes_on && sent < limit {
                    self.connections[index].send(calls.next(sent))?;
                    sent += 1;
                    under_way += 1;
                }
            }
        }
        outcome.elapsed = start.elapsed();
        Ok(outcome)
    }

    /// Reads what there is, and counts it if it was the end of an answer; true if the connection is free again.
    pub(crate) fn settle(
        &mut self,
        index: usize,
        now: Instant,
        expect: Expect<'_>,
        outcome: &mut Outcome,
    ) -> io::Result<bool> {
        let look = self.look_at(index, expect, now)?;
        let connection = &self.connections[index];
        match look {
            Look::Waiting => return Ok(false),
            Look::Whole => outcome.count(connection, expect, now),
            Look::Closed if connection.busy && connection.answer.ends_with_connection() => {
                outcome.count(connection, expect, now);
                self.replace(index)?;
            }
            Look::Closed => {
                // An idle connection that the server closes is its right.
                let busy = connection.busy;
                outcome.aborted += u64::from(busy);
                self.replace(index)?;
                return Ok(busy);
            }
        }
        self.connections[index].busy = false;
        Ok(true)
    }

    pub(crate) fn look_at(&mut self, index: usize, expect: Expect<'_>, now: Instant) -> io::Result<Look> {
        self.connections[index].look(&mut self.scratch, expect.stream, now)
    }

    pub(crate) fn wait(&mut self, time: Option<Duration>) -> io::Result<()> {
        self.ready.clear();
        let time =
            time.map(|time| Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() });
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), time.as_ref()) {
            Ok(_) => Ok(()),
            Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn lose_patience(&self, silence: Duration) -> io::Result<()> {
        if silence < PATIENCE {
            return Ok(());
        }
        let busy = self.connections.iter().filter(|connection| connection.busy).count();
        Err(io::Error::new(ErrorKind::TimedOut, format!("{busy} requests without an answer for {silence:?}")))
    }
}

impl Outcome {
    pub(crate) fn count(&mut self, connection: &Connection, expect: Expect<'_>, now: Instant) {
        self.answered += 1;
        self.latencies.push(now - connection.since);
        if let Some(first) = connection.first_event {
            self.first_events.push(first);
        }
        if !expect.is_met(&connection.answer) {
            self.wrong += 1;
            self.sample.get_or_insert_with(|| {
                let body = connection.answer.body();
                let text = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
                format!("{}: {text}", connection.answer.status())
            });
        }
    }
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let since = Instant::now();
        Ok(Connection { socket, answer: Answer::default(), since, first_event: None, busy: false })
    }

    /// A request fits a socket's buffer, always: there is one at a time.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.answer.reset();
        self.first_event = None;
        self.busy = true;
        self.since = Instant::now();
        match self.socket.write(request) {
            Ok(written) if written == request.len() => Ok(()),
            Ok(_) => Err(io::Error::new(ErrorKind::WriteZero, "a request did not fit the socket's buffer")),
            // The server has just closed this one; reading tells, and the request counts as aborted.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// One read. What is left makes the epoll say so again.
    pub(crate) fn look(&mut self, scratch: &mut [u8], stream: bool, now: Instant) -> io::Result<Look> {
        let count = match self.socket.read(scratch) {
            Ok(0) => return Ok(Look::Closed),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Look::Waiting);
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                return Ok(Look::Closed);
            }
            Err(error) => return Err(error),
        };
        let whole = self
            .answer
            .feed(&scratch[..count])
            .map_err(|_| io::Error::new(ErrorKind::InvalidData, "an answer that is not HTTP/1.1"))?;
        if stream && self.first_event.is_none() && has_event(self.answer.body()) {
            self.first_event = Some(now - self.since);
        }
        Ok(if whole { Look::Whole } else { Look::Waiting })
    }
}

/// A blank line ends an event; some servers write CRLF.
fn has_event(body: &[u8]) -> bool {
    memmem::find(body, b"\n\n").is_some() || memmem::find(body, b"\r\n\r\n").is_some()
}
