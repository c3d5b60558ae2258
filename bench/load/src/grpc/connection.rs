//! One connection of HTTP/2, as a client has it, with a fixed number of calls at once.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::hpack::{Blocks, Decoder};
use crate::Target;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD: usize = 9;
const PREFIX: usize = 5;

/// How much a server may send ahead, in one call and in all: more than an answer has, as most clients of gRPC let it.
const STREAM_WINDOW: u32 = 1024 * 1024;
const WINDOW: u32 = 16 * 1024 * 1024;
/// What a server lets us send ahead until it says more.
const FIRST_WINDOW: u32 = 65_535;

mod frame {
    pub(super) const DATA: u8 = 0;
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RESET: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const PUSH: u8 = 5;
    pub(super) const PING: u8 = 6;
    pub(super) const GO_AWAY: u8 = 7;
    pub(super) const WINDOW_UPDATE: u8 = 8;
    pub(super) const CONTINUATION: u8 = 9;

    pub(super) const ACK: u8 = 0x1;
    pub(super) const END_STREAM: u8 = 0x1;
    pub(super) const END_HEADERS: u8 = 0x4;
    pub(super) const PADDED: u8 = 0x8;
    pub(super) const PRIORITY: u8 = 0x20;
}

mod setting {
    pub(super) const TABLE_SIZE: u16 = 1;
    pub(super) const PUSH: u16 = 2;
    pub(super) const STREAM_WINDOW: u16 = 4;
}

/// One of a connection's calls, from one to the next.
#[derive(Debug)]
pub(super) struct Call {
    /// 0 while there is none.
    id: u32,
    pub(super) since: Instant,
    pub(super) first_message: Option<Duration>,
    pub(super) http_status: Vec<u8>,
    pub(super) grpc_status: Vec<u8>,
    pub(super) grpc_message: Vec<u8>,
    /// The messages of the answer, each with its prefix.
    pub(super) body: Vec<u8>,
    /// What was taken since the server was last told that it may send more.
    taken: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ended {
    /// The answer is over.
    Answered(usize),
    /// The server has given the call up.
    Reset(usize),
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    pub(super) calls: Vec<Call>,
    next_id: u32,
    /// Bytes to be written.
    out: Vec<u8>,
    /// A frame of which a part has come.
    part: Vec<u8>,
    /// Headers of a call of which a part has come.
    block: Option<(u32, bool, Vec<u8>)>,
    decoder: Decoder,
    /// What we may send.
    window: i64,
    taken: u32,
}

impl Connection {
    pub(super) fn open(target: &Target, calls: usize) -> io::Result<Self> {
        let socket = TcpStream::connect(target.address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let idle = || Call {
            id: 0,
            since: Instant::now(),
            first_message: None,
            http_status: Vec::new(),
            grpc_status: Vec::new(),
            grpc_message: Vec::new(),
            body: Vec::new(),
            taken: 0,
        };
        let mut connection = Connection {
            socket,
            calls: (0..calls).map(|_| idle()).collect(),
            next_id: 1,
            out: PREFACE.to_vec(),
            part: Vec::new(),
            block: None,
            decoder: Decoder::default(),
            window: i64::from(FIRST_WINDOW),
            taken: 0,
        };
        let mut settings = Vec::new();
        for (name, value) in [(setting::PUSH, 0), (setting::STREAM_WINDOW, STREAM_WINDOW)] {
            settings.extend_from_slice(&name.to_be_bytes());
            settings.extend_from_slice(&value.to_be_bytes());
        }
        connection.put(frame::SETTINGS, 0, 0, &settings);
        connection.put(frame::WINDOW_UPDATE, 0, 0, &(WINDOW - FIRST_WINDOW).to_be_bytes());
        Ok(connection)
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn is_busy(&self) -> bool {
        self.calls.iter().any(|call| call.id != 0)
    }

    /// A call that is not under way, if the server lets us send a message of that length now.
    pub(super) fn free(&self, length: usize) -> Option<usize> {
        let fits = self.window >= (PREFIX + length) as i64;
        self.calls.iter().position(|call| call.id == 0).filter(|_| fits)
    }

    /// Begins a call. It is sent by `flush`, together with others.
    pub(super) fn begin(&mut self, at: usize, headers: &Blocks, message: &[u8]) {
        let id = self.next_id;
        self.next_id += 2;
        let call = &mut self.calls[at];
        call.id = id;
        call.first_message = None;
        call.taken = 0;
        for bytes in [&mut call.http_status, &mut call.grpc_status, &mut call.grpc_message, &mut call.body] {
            bytes.clear();
        }
        call.since = Instant::now();
        let block = if id == 1 { &headers.first } else { &headers.later };
        self.put(frame::HEADERS, frame::END_HEADERS, id, block);
        let length = PREFIX + message.len();
        self.put_head(frame::DATA, frame::END_STREAM, id, length);
        self.out.push(0);
        self.out.extend_from_slice(&(message.len() as u32).to_be_bytes());
        self.out.extend_from_slice(message);
        self.window -= length as i64;
    }

    /// What is written at once always fits the socket's buffer: a few small messages.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let written = self.socket.write(&self.out)?;
        if written < self.out.len() {
            return Err(io::Error::new(ErrorKind::WriteZero, "calls did not fit the socket's buffer"));
        }
        self.out.clear();
        Ok(())
    }

    /// One read. If bytes are left, epoll reports the connection again.
    pub(super) fn look(
        &mut self,
        scratch: &mut [u8],
        now: Instant,
        ended: &mut Vec<Ended>,
    ) -> io::Result<()> {
        let count = match self.socket.read(scratch) {
            Ok(0) => return Err(broken("the server closed a connection")),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut part = std::mem::take(&mut self.part);
        if part.is_empty() {
            let taken = self.frames(&scratch[..count], now, ended)?;
            part.extend_from_slice(&scratch[taken..count]);
        } else {
            part.extend_from_slice(&scratch[..count]);
            let taken = self.frames(&part, now, ended)?;
            part.drain(..taken);
        }
        self.part = part;
        Ok(())
    }

    /// Takes all whole frames; returns their length.
    fn frames(&mut self, input: &[u8], now: Instant, ended: &mut Vec<Ended>) -> io::Result<usize> {
        let mut at = 0;
        while let Some((head, rest)) = input[at..].split_first_chunk::<FRAME_HEAD>() {
            let [a, b, c, kind, flags, id @ ..] = *head;
            let Some(payload) = rest.get(..u32::from_be_bytes([0, a, b, c]) as usize) else { break };
            at += FRAME_HEAD + payload.len();
            let id = u32::from_be_bytes(id) & 0x7fff_ffff;
            ended.extend(self.frame(kind, flags, id, payload, now)?);
        }
        Ok(at)
    }

    fn frame(
        &mut self,
        kind: u8,
        flags: u8,
        id: u32,
        payload: &[u8],
        now: Instant,
    ) -> io::Result<Option<Ended>> {
        match kind {
            frame::DATA => return self.data(flags, id, payload, now),
            frame::HEADERS => {
                let padded = unpadded(flags, payload)?;
                let skipped = if flags & frame::PRIORITY != 0 { 5 } else { 0 };
                let block = padded.get(skipped..).ok_or_else(|| broken("headers that are too short"))?;
                self.block = Some((id, flags & frame::END_STREAM != 0, block.to_vec()));
                return self.headers(flags);
            }
            frame::CONTINUATION => {
                let (_, _, block) = self.block.as_mut().ok_or_else(|| broken("a continuation of nothing"))?;
                block.extend_from_slice(payload);
                return self.headers(flags);
            }
            // An answer that is over may be followed by this, since requests need not be read to their end.
            frame::RESET => return Ok(self.end(id).map(Ended::Reset)),
            frame::SETTINGS if flags & frame::ACK == 0 => self.settings(payload)?,
            frame::PING if flags & frame::ACK == 0 => self.put(frame::PING, frame::ACK, 0, payload),
            frame::WINDOW_UPDATE if id == 0 => {
                let more = payload.try_into().map_err(|_| broken("a window of another form"))?;
                self.window += i64::from(u32::from_be_bytes(more));
            }
            frame::GO_AWAY => return Err(broken("the server wants the connection to end")),
            frame::PUSH => return Err(broken("the server pushes")),
            _ => {}
        }
        Ok(None)
    }

    fn data(&mut self, flags: u8, id: u32, payload: &[u8], now: Instant) -> io::Result<Option<Ended>> {
        self.taken += payload.len() as u32;
        if self.taken >= WINDOW / 2 {
            let taken = std::mem::take(&mut self.taken);
            self.put(frame::WINDOW_UPDATE, 0, 0, &taken.to_be_bytes());
        }
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return Ok(None) };
        let call = &mut self.calls[at];
        call.body.extend_from_slice(unpadded(flags, payload)?);
        if call.first_message.is_none() && has_message(&call.body) {
            call.first_message = Some(now - call.since);
        }
        call.taken += payload.len() as u32;
        if call.taken >= STREAM_WINDOW / 2 {
            let taken = std::mem::take(&mut call.taken);
            self.put(frame::WINDOW_UPDATE, 0, id, &taken.to_be_bytes());
        }
        Ok((flags & frame::END_STREAM != 0).then(|| self.end(id)).flatten().map(Ended::Answered))
    }

    /// Reads the headers if they are whole. The table has to know all, also those of calls that are over.
    fn headers(&mut self, flags: u8) -> io::Result<Option<Ended>> {
        if flags & frame::END_HEADERS == 0 {
            return Ok(None);
        }
        let Some((id, is_last, block)) = self.block.take() else { return Ok(None) };
        let mut call = self.calls.iter_mut().find(|call| call.id == id);
        let read = self.decoder.decode(&block, |name, value| {
            let Some(call) = &mut call else { return };
            let kept = match name {
                b":status" => &mut call.http_status,
                b"grpc-status" => &mut call.grpc_status,
                b"grpc-message" => &mut call.grpc_message,
                _ => return,
            };
            kept.clear();
            kept.extend_from_slice(value);
        });
        read.map_err(|_| broken("headers that cannot be read"))?;
        Ok(is_last.then(|| self.end(id)).flatten().map(Ended::Answered))
    }

    fn settings(&mut self, payload: &[u8]) -> io::Result<()> {
        for pair in payload.chunks_exact(6) {
            let [a, b, value @ ..] = *pair.first_chunk::<6>().ok_or_else(|| broken("short settings"))?;
            let (name, value) = (u16::from_be_bytes([a, b]), u32::from_be_bytes(value));
            // Calls are written for the sizes of the standard.
            if name == setting::TABLE_SIZE && value < 4096 || name == setting::STREAM_WINDOW && value < 16_384
            {
                return Err(broken("a server that wants headers or messages smaller than usual"));
            }
        }
        self.put(frame::SETTINGS, frame::ACK, 0, &[]);
        Ok(())
    }

    fn end(&mut self, id: u32) -> Option<usize> {
        let at = self.calls.iter().position(|call| call.id == id && id != 0)?;
        self.calls[at].id = 0;
        Some(at)
    }

    fn put(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        self.put_head(kind, flags, id, payload.len());
        self.out.extend_from_slice(payload);
    }

    fn put_head(&mut self, kind: u8, flags: u8, id: u32, length: usize) {
        let [_, a, b, c] = (length as u32).to_be_bytes();
        self.out.extend_from_slice(&[a, b, c, kind, flags]);
        self.out.extend_from_slice(&id.to_be_bytes());
    }
}

fn unpadded(flags: u8, payload: &[u8]) -> io::Result<&[u8]> {
    if flags & frame::PADDED == 0 {
        return Ok(payload);
    }
    let cut = payload.split_first().and_then(|(padding, rest)| {
        let length = rest.len().checked_sub(usize::from(*padding))?;
        rest.get(..length)
    });
    cut.ok_or_else(|| broken("more padding than frame"))
}

/// Whether the body begins with a whole message.
fn has_message(body: &[u8]) -> bool {
    body.split_first_chunk::<PREFIX>()
        .is_some_and(|([_, length @ ..], rest)| rest.len() >= u32::from_be_bytes(*length) as usize)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}
