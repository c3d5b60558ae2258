//! Behaviour of hyper and h2 that this crate relies on and that is not documented, with one test each: an update that behaves
//! differently fails here. The crate's README lists them with the modules that rely on them.

mod http1;
mod http2;
mod why;

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// What happened, in order.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|noted| **noted == what).count()
    }

    fn all(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

/// A connection that logs hyper's calls: `read` (with bytes), `asked` (without), `wrote`, `flushed`, `shut`.
#[derive(Debug)]
struct Noted {
    stream: DuplexStream,
    log: Log,
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.log.note(if read.is_ready() { "read" } else { "asked" });
        read
    }
}

impl AsyncWrite for Noted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.log.note("wrote");
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.log.note("flushed");
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.log.note("shut");
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
