//! The connections, and the closed loop over them.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::{Answer, Calls, Latencies, Link, Target};

const SCRATCH: usize = 256 * 1024;
/// A server that sends nothing for this long is considered stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connections to one server.
pub struct Fleet {
    target: Target,
    pub(crate) epoll: OwnedFd,
    pub(crate) connections: Vec<Connection>,
    scratch: Vec<u8>,
    pub(crate) ready: Vec<Event>,
}

pub(crate) struct Connection {
    link: Link,
    pub(crate) answer: Answer,
    pub(crate) since: Instant,
    /// The time until the first event of a stream.
    pub(crate) first_event: Option<Duration>,
    pub(crate) busy: bool,
}

/// When to stop sending.
#[derive(Debug, Clone, Copy)]
pub enum Stop {
    After(Duration),
    Count(u64),
}

/// What a correct answer must contain.
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

/// The result of a load.
#[derive(Debug, Default)]
pub struct Outcome {
    pub answered: u64,
    /// The number of unexpected answers, and the first of them.
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

/// The result of one read from a connection.
pub(crate) enum Look {
    Waiting,
    Whole,
    Closed,
}

impl Fleet {
    pub fn connect(target: Target, count: usize) -> io::Result<Self> {
        let mut fleet = Fleet {
            target,
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

    /// Adds a connection; returns its index.
    pub(crate) fn add(&mut self) -> io::Result<usize> {
        let index = self.connections.len();
        let connection = Connection::open(&self.target)?;
        self.watch(&connection, index)?;
        self.connections.push(connection);
        Ok(index)
    }

    fn watch(&self, connection: &Connection, index: usize) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            connection.link.socket(),
            EventData::new_u64(index as u64),
            EventFlags::IN,
        )?)
    }

    /// Replaces a connection that has ended. Closing the old socket removes it from the epoll.
    pub(crate) fn replace(&mut self, index: usize) -> io::Result<()> {
        let connection = Connection::open(&self.target)?;
        self.watch(&connection, index)?;
        self.connections[index] = connection;
        Ok(())
    }

    /// Keeps every connection busy until it is time to stop, then waits for the pending answers.
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

    /// Reads available bytes, and counts the answer if it is complete; true if the connection is free again.
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
                // A server may close an idle connection.
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
    fn open(target: &Target) -> io::Result<Self> {
        let link = target.connect()?;
        link.socket().set_nodelay(true)?;
        link.socket().set_nonblocking(true)?;
        let since = Instant::now();
        Ok(Connection { link, answer: Answer::default(), since, first_event: None, busy: false })
    }

    /// A request always fits the socket's buffer, since there is only one at a time.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.answer.reset();
        self.first_event = None;
        self.busy = true;
        self.since = Instant::now();
        match self.link.write(request) {
            Ok(written) if written == request.len() => Ok(()),
            Ok(_) => Err(io::Error::new(ErrorKind::WriteZero, "a request did not fit the socket's buffer")),
            // The server has just closed this connection; the next read shows it, and the request counts as aborted.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// One read. If bytes are left, epoll reports the connection again.
    pub(crate) fn look(&mut self, scratch: &mut [u8], stream: bool, now: Instant) -> io::Result<Look> {
        let count = match self.link.read(scratch) {
            Ok(0) => return Ok(Look::Closed),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(Look::Waiting);
            }
            // The last is the end of a TLS connection whose server did not say goodbye.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof
                ) =>
            {
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
