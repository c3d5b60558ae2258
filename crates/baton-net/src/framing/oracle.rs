//! The machine by itself, in pieces, and in front of hyper: what it makes of bytes, and what hyper makes of what it
//! passes on. For the tests, and for the fuzzers.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::time::Instant;

use super::super::lent::Tray;
use super::super::pulse::Pulse;
use super::super::socket::{Http1Filter, Socket};
use super::*;

pub(super) const MAX_HEAD: usize = 8 * 1024;

/// What the machine makes of the bytes: whole requests, and how it ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) requests: Vec<(String, Vec<u8>)>,
    pub(super) refused: Option<Refusal>,
}

/// Follows the machine step by step and takes the bodies out.
pub(super) fn read(bytes: &[u8]) -> Read {
    let (mut framing, mut rest, mut read) = (Framing::new(MAX_HEAD), bytes, Read::default());
    let mut open: Option<(String, Vec<u8>)> = None;
    while !rest.is_empty() {
        let before = framing.at;
        let taken = match framing.step(rest) {
            Ok(0) => break,
            Ok(taken) => taken,
            Err(Refused::Head(refusal) | Refused::Body(refusal)) => {
                read.refused = Some(refusal);
                break;
            }
        };
        match before {
            At::Head(_) => {
                let head = String::from_utf8_lossy(&rest[..taken]).into_owned();
                open = Some((head.trim_start().lines().next().unwrap_or_default().to_owned(), Vec::new()));
            }
            At::Length(_) | At::Chunked(Chunk::Data { .. }) => {
                let open = open.as_mut().expect("a body follows a head");
                open.1.extend_from_slice(&rest[..taken]);
            }
            _ => {}
        }
        if matches!(framing.at, At::Head(_)) {
            read.requests.extend(open.take());
        }
        rest = &rest[taken..];
    }
    read
}

/// A client whose bytes come in the given pieces.
struct Pieces(Vec<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if let Some(piece) = self.0.first_mut() {
            let count = piece.len().min(buf.remaining());
            buf.put_slice(&piece[..count]);
            piece.drain(..count);
            if piece.is_empty() {
                self.0.remove(0);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// All that goes on to hyper, and whether it ended with a broken body.
pub(super) fn passed(pieces: Vec<Vec<u8>>, room: usize) -> (Vec<u8>, bool) {
    let pulse = Arc::new(Pulse::new(Instant::now()));
    let tray = Arc::<Tray>::default();
    let filter = Http1Filter::new(MAX_HEAD, BytesMut::new(), &pulse, Arc::clone(&tray));
    let mut socket = Socket::new(Pieces(pieces), pulse, filter);
    let mut all = Vec::new();
    let mut cx = Context::from_waker(std::task::Waker::noop());
    loop {
        let mut buffer = vec![0; room];
        let mut buffer = ReadBuf::new(&mut buffer);
        tray.requests.announce_all();
        match Pin::new(&mut socket).poll_read(&mut cx, &mut buffer) {
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => return (all, false),
            Poll::Ready(Ok(())) => all.extend_from_slice(buffer.filled()),
            Poll::Ready(Err(_)) => return (all, true),
            // Refused, and the stand-in has been read.
            Poll::Pending => return (all, false),
        }
    }
}

/// The requests that hyper's service sees whole, behind the filter.
pub(super) fn seen_by_hyper(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime without threads and sockets");
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tray = Arc::<Tray>::default();
        let service = service_fn(|request: Request<Incoming>| {
            let counted = tray.requests.announce(request.body().size_hint().exact());
            assert!(counted, "hyper announces another request than was passed on: {request:?}");
            let seen = Arc::clone(&seen);
            async move {
                let line = format!("{} {} {:?}", request.method(), request.uri(), request.version());
                let stands_in = request.method() == super::super::refusal::METHOD;
                if let Ok(body) = request.into_body().collect().await
                    && !stands_in
                {
                    seen.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((line, body.to_bytes().to_vec()));
                }
                Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
            }
        });
        let pulse = Arc::new(Pulse::new(Instant::now()));
        let filter = Http1Filter::new(MAX_HEAD, BytesMut::new(), &pulse, Arc::clone(&tray));
        let socket = TokioIo::new(Socket::new(server, pulse, filter));
        client.write_all(bytes).await.expect("there is room for it");
        client.shutdown().await.expect("it is open");
        // An end that hyper takes for an error is as good as any other here.
        let _ = http1::Builder::new().half_close(true).serve_connection(socket, service).await;
        drop(client);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *seen)
    })
}

/// Targets of the fuzzers: the bytes of a connection as they are, and a request with a header name drawn from them.
pub(crate) fn check(bytes: &[u8]) {
    check_connection(bytes);
    check_connection(&with_drawn_name(bytes));
}

/// The result must not depend on how the bytes are split, and hyper must see the same requests.
fn check_connection(bytes: &[u8]) {
    let whole = passed(vec![bytes.to_vec()], 1 << 16);
    let single = bytes.iter().map(|byte| vec![*byte]).collect();
    assert_eq!(passed(single, 1 << 16), whole, "byte by byte");
    let few = bytes.chunks(7).map(<[u8]>::to_vec).collect();
    assert_eq!(passed(few, 5), whole, "in pieces, into a small buffer");

    let read = read(bytes);
    let seen = seen_by_hyper(bytes);
    assert!(seen.len() <= read.requests.len(), "{seen:?} {read:?}");
    for (seen, read) in seen.iter().zip(&read.requests) {
        // As a URI is written again, its text may differ; where it ends may not.
        assert_eq!(seen.0.split(' ').next(), read.0.split(' ').next());
        assert_eq!(seen.1, read.1);
    }
}

/// A request with a header whose name is nearly one that matters: the first byte chooses the name and its value, the
/// next four change two of its characters, and the rest is the body.
fn with_drawn_name(bytes: &[u8]) -> Vec<u8> {
    let (choice, body) = bytes.split_at(bytes.len().min(5));
    let choice: Vec<usize> = choice.iter().map(|byte| usize::from(*byte)).chain([0; 5]).collect();
    let names = super::super::head::DECISIVE;
    let mut name = names[choice[0] % names.len()].to_vec();
    for change in choice[1..5].chunks(2) {
        drawn_change(&mut name, change[0], change[1]);
    }
    let value = match choice[0] / names.len() % 3 {
        0 => body.len().to_string(),
        1 => "chunked".to_owned(),
        _ => "close, upgrade".to_owned(),
    };
    let head = format!("POST / HTTP/1.1\r\nhost: a\r\n{}: {value}\r\n\r\n", name.escape_ascii());
    [head.as_bytes(), body].concat()
}

/// Puts one of the characters in which spellings differ at a place, in addition to what is there or instead of it.
pub(super) fn drawn_change(name: &mut Vec<u8>, at: usize, which: usize) {
    const ODD: &[u8] = b"_-. +~!*^|%'#$&`0xX\t";
    let at = at % (name.len() + 1);
    match which / ODD.len() % 3 {
        0 => name.insert(at, ODD[which % ODD.len()]),
        1 if at < name.len() => name[at] = ODD[which % ODD.len()],
        _ if at < name.len() => name[at] ^= 0x20,
        _ => {}
    }
}
