//! A receiver of webhooks: one thread with epoll that reads requests, counts them and answers `200` without a body. It must
//! cost less than the servers that call it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::{ClockId, clock_gettime};

const SCRATCH: usize = 64 * 1024;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// How often the thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);
/// The event of the listener; connections have their index.
const LISTENER: u64 = u64::MAX;

/// What a sink does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Manner {
    Answers,
    /// Accepts connections and reads, but never answers.
    Silent,
}

/// What has arrived.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrived {
    pub requests: u64,
    /// Requests with a signature.
    pub signed: u64,
    /// Requests whose body has the text that ends a task.
    pub last_ones: u64,
    pub head_bytes: u64,
    pub body_bytes: u64,
    pub connections: u64,
    /// When the newest request was complete.
    pub newest: Option<Instant>,
    /// Processor time of the sink's thread, in microseconds.
    pub cpu: f64,
}

/// Ends with its thread when it is dropped.
#[derive(Debug)]
pub struct Sink {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

#[derive(Debug)]
struct Shared {
    manner: Manner,
    last: &'static str,
    stopping: AtomicBool,
    arrived: Mutex<Arrived>,
}

impl Sink {
    /// On a port of its own, and on the cores of the calling thread. `last` is contained in the last notification of a task.
    pub fn start(manner: Manner, last: &'static str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared =
            Arc::new(Shared { manner, last, stopping: AtomicBool::new(false), arrived: Mutex::default() });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || serve(&of_thread, &listener));
        Ok(Sink { address, shared, thread: Some(thread) })
    }

    pub fn arrived(&self) -> Arrived {
        *self.shared.arrived()
    }

    /// An error if the thread has ended.
    pub fn check(&self) -> Result<(), String> {
        match self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            true => Err("the sink ended: a request could not be read".to_owned()),
            false => Ok(()),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Connection {
    socket: TcpStream,
    /// The beginning of a request that is not complete.
    pending: Vec<u8>,
}

fn serve(shared: &Shared, listener: &TcpListener) -> io::Result<()> {
    let epoll: OwnedFd = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut scratch = vec![0; SCRATCH];
    let mut ready: Vec<Event> = Vec::with_capacity(256);
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    while !shared.stopping.load(Ordering::Relaxed) {
        ready.clear();
        match epoll::wait(&epoll, spare_capacity(&mut ready), Some(&look)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = Arrived::default();
        for event in &ready {
            let index = event.data.u64();
            if index == LISTENER {
                while let Some(socket) = accepted(listener)? {
                    let index = free.pop().unwrap_or(connections.len());
                    epoll::add(&epoll, &socket, EventData::new_u64(index as u64), EventFlags::IN)?;
                    let connection = Some(Connection { socket, pending: Vec::new() });
                    match connections.get_mut(index) {
                        Some(place) => *place = connection,
                        None => connections.push(connection),
                    }
                    found.connections += 1;
                }
            } else if let Some(connection) = connections[index as usize].as_mut()
                && !connection.read(&mut scratch, shared, &mut found)?
            {
                // Closing the socket removes it from the epoll.
                connections[index as usize] = None;
                free.push(index as usize);
            }
        }
        if found.requests + found.connections > 0 {
            shared.arrived().add(&found);
        }
    }
    Ok(())
}

fn accepted(listener: &TcpListener) -> io::Result<Option<TcpStream>> {
    match listener.accept() {
        Ok((socket, _)) => {
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            Ok(Some(socket))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        // The client has gone already.
        Err(error) if error.kind() == ErrorKind::ConnectionAborted => Ok(None),
        Err(error) => Err(error),
    }
}

impl Connection {
    /// One read, and an answer to each request that is complete with it. False if the connection has ended.
    fn read(&mut self, scratch: &mut [u8], shared: &Shared, found: &mut Arrived) -> io::Result<bool> {
        let count = match self.socket.read(scratch) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(true);
            }
            Err(_) => return Ok(false),
        };
        let mut all = std::mem::take(&mut self.pending);
        let input = if all.is_empty() {
            &scratch[..count]
        } else {
            all.extend_from_slice(&scratch[..count]);
            &all[..]
        };
        let mut at = 0;
        while let Some(request) = Request::read(&input[at..])? {
            at += request.head.len() + request.body.len();
            found.count(&request, shared.last);
            if shared.manner == Manner::Answers && self.socket.write(ANSWER).is_err() {
                return Ok(false);
            }
        }
        self.pending = input[at..].to_vec();
        Ok(true)
    }
}

/// A whole request.
struct Request<'a> {
    head: &'a [u8],
    body: &'a [u8],
}

impl<'a> Request<'a> {
    /// `None` if it is not complete; an error if it has no length.
    fn read(input: &'a [u8]) -> io::Result<Option<Self>> {
        let Some(end) = memmem::find(input, b"\r\n\r\n") else { return Ok(None) };
        let (head, rest) = input.split_at(end + 4);
        let Some(length) = length(head) else {
            return Err(io::Error::new(ErrorKind::InvalidData, "a request without a length"));
        };
        Ok(rest.get(..length).map(|body| Request { head, body }))
    }
}

fn length(head: &[u8]) -> Option<usize> {
    // As hyper writes it, which is in all the clients that are compared.
    let at = memmem::find(head, b"\r\ncontent-length: ")? + 18;
    let digits = head[at..].split(|byte| *byte == b'\r').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

impl Arrived {
    /// What has arrived since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Arrived) -> Arrived {
        Arrived {
            requests: self.requests - before.requests,
            signed: self.signed - before.signed,
            last_ones: self.last_ones - before.last_ones,
            head_bytes: self.head_bytes - before.head_bytes,
            body_bytes: self.body_bytes - before.body_bytes,
            connections: self.connections - before.connections,
            newest: self.newest,
            cpu: self.cpu - before.cpu,
        }
    }

    fn count(&mut self, request: &Request<'_>, last: &str) {
        self.requests += 1;
        self.signed += u64::from(memmem::find(request.head, b"\r\nwebhook-signature: v1,").is_some());
        self.last_ones += u64::from(memmem::find(request.body, last.as_bytes()).is_some());
        self.head_bytes += request.head.len() as u64;
        self.body_bytes += request.body.len() as u64;
    }

    fn add(&mut self, more: &Arrived) {
        self.requests += more.requests;
        self.signed += more.signed;
        self.last_ones += more.last_ones;
        self.head_bytes += more.head_bytes;
        self.body_bytes += more.body_bytes;
        self.connections += more.connections;
        if more.requests > 0 {
            self.newest = Some(Instant::now());
        }
        let time = clock_gettime(ClockId::ThreadCPUTime);
        self.cpu = time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its body looks like the end of a head.
    const POST: &[u8] =
        b"POST /hook HTTP/1.1\r\nwebhook-signature: v1,c2ln\r\ncontent-length: 8\r\n\r\n\r\n\r\ndone";

    #[test]
    fn requests_are_read_in_any_pieces() {
        for end in 0..POST.len() {
            assert!(Request::read(&POST[..end]).unwrap().is_none(), "{end}");
        }
        let mut found = Arrived::default();
        found.count(&Request::read(&[POST, POST].concat()).unwrap().unwrap(), "done");
        assert_eq!((found.requests, found.signed, found.last_ones, found.body_bytes), (1, 1, 1, 8));
        assert!(Request::read(b"POST / HTTP/1.1\r\n\r\n").is_err());
    }

    #[test]
    fn every_request_is_answered_and_counted() {
        let sink = Sink::start(Manner::Answers, "done").unwrap();
        let mut socket = TcpStream::connect(sink.address).unwrap();
        socket.write_all(&[POST, POST].concat()).unwrap();
        let mut answers = vec![0; 2 * ANSWER.len()];
        socket.read_exact(&mut answers).unwrap();
        assert_eq!(answers, [ANSWER, ANSWER].concat());
        while sink.arrived().requests < 2 {
            std::thread::yield_now();
        }
        assert_eq!((sink.arrived().last_ones, sink.arrived().connections), (2, 1));
    }
}
